"""Browser tests of the console in Chromium, against a real server, from upload to download.

Screenshots at desktop and phone width are saved in `.artefacts/` for inspection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests import browsers, wards
from tests.browser.inspection import check_axe
from tests.conftest import Site
from tests.serving import PASSWORD, Service, populated_vault, serving, sqlite_vault

import sfumato as sf
from sfumato.release.certificate import check_report

ARTEFACTS = Path(__file__).parents[2] / ".artefacts"
Scheme = Literal["light", "dark"]


@pytest.fixture
def any_service(site: Site, tmp_path: Path) -> Iterator[Service]:
    """A service on SQLite or PostgreSQL."""
    with serving(populated_vault(site), tmp_path) as found:
        yield found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service on SQLite, for tests that do not depend on the database."""
    with serving(sqlite_vault(tmp_path), tmp_path) as found:
        yield found


def opened(browser: Browser, service: Service, size: str = "desktop", scheme: Scheme = "light") -> Page:
    """A page in a separate browser context; a script error or a violation of the security policy fails the test."""
    context: BrowserContext = browser.new_context(
        base_url=service.url,
        viewport=browsers.SIZES[size],
        color_scheme=scheme,
        accept_downloads=True,
        **browsers.mobile(browser, size),
    )
    return browsers.watched(context.new_page())


def sign_in(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Name").fill("anna")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Open the console").click()
    page.wait_for_url("**/console")


def test_from_upload_to_download(browser: Browser, any_service: Service, tmp_path: Path) -> None:
    first_release(browser, any_service, tmp_path)


def first_release(browser: Browser, service: Service, tmp_path: Path) -> None:
    """From a table to the copies of two recipients, who fetch them in the browser, and to a verified ledger."""
    pq.write_table(wards.table(2000, seed=8), tmp_path / "survey.parquet")
    page = opened(browser, service)
    sign_in(page)
    _upload(page, tmp_path / "survey.parquet")
    for name, level in (("office", "partner"), ("press", "0.3")):
        page.goto("/console/recipients")
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Register").click()
        expect(page.get_by_role("link", name=name)).to_be_visible()
        page.goto("/console/datasets/survey")
        page.get_by_label("Recipient", exact=True).select_option(name)
        page.get_by_label("Level", exact=True).fill(level)
        page.get_by_role("button", name="Grant", exact=True).click()
        expect(page.locator(".ladder")).to_contain_text(name)
    _explore(page)
    token = _token(page)
    expected = service.vault.release("office", "survey", tmp_path / "local.parquet")[0].read_bytes()
    _fetch(opened(browser, service), token, expected)
    _stranger(opened(browser, service), service)
    page.goto("/console/ledger")
    expect(page.get_by_text("Released survey version 1 to office")).to_be_visible()
    page.get_by_label("Recipient").fill("office")
    page.get_by_role("button", name="Filter").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    assert "Released survey version 1 to office" in download.value.path().read_text()
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The vault is intact")).to_be_visible(timeout=30_000)
    page.context.close()


def _upload(page: Page, path: Path) -> None:
    page.get_by_role("link", name="Upload a table").click()
    page.get_by_label("File").set_input_files(path)
    expect(page.get_by_label("Dataset name")).to_have_value("survey")
    page.get_by_role("button", name="Upload and draft").click()
    page.get_by_role("tab", name="TOML").click()
    policy = page.get_by_label("Policy (TOML)")
    expect(policy).to_be_visible()
    expect(policy).to_have_value(re.compile("partner = 0.5"))
    page.get_by_role("button", name="Add to the vault").click()
    page.get_by_role("link", name="Go to survey").click(timeout=30_000)
    expect(page.get_by_role("heading", name="survey")).to_be_visible()


def _explore(page: Page) -> None:
    """Two recipients together learn no more than the better one alone; with independent noise they would."""
    page.get_by_role("link", name="What if they collude?").click()
    verdict = page.locator("#summary")
    expect(verdict).to_contain_text("office, press together learn no more than the level of office allows")
    residual = [float(share) for share in re.findall(r"([\d.]+) %", verdict.inner_text())]
    assert 50 < residual[0] < 70  # at fidelity 0.5; categories show less than their scores
    assert residual[1] < residual[0] - 3
    page.get_by_label("press").uncheck()
    expect(verdict).to_contain_text("office alone has the copy")
    page.get_by_label("office").uncheck()
    expect(verdict).to_contain_text("Select at least one")
    page.get_by_role("link", name="Choose a level").click()
    expect(page.locator("#rows tbody tr")).to_have_count(10)
    before = page.locator("#rows tbody").inner_text()
    page.get_by_label("Fidelity").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#summary")).to_contain_text("At fidelity 0.55")
    expect(page.locator("#rows tbody")).not_to_have_text(before)
    expect(page.locator("#whose")).to_contain_text("invented")
    page.get_by_label("Show original records").check()
    expect(page.locator("#whose")).to_contain_text("the access log says that you looked")
    page.reload()
    expect(page.get_by_label("Show original records")).not_to_be_checked()


def _token(page: Page) -> str:
    page.goto("/console/recipients/office")
    page.get_by_label("Purpose").fill("its programs")
    page.get_by_role("button", name="Issue a token").click()
    secret = page.locator("#secret")
    expect(secret).to_have_text(re.compile("sfu_[0-9a-f]{12}_.{43}"))
    token = secret.inner_text()
    page.reload()
    expect(page.locator("#handed")).to_be_hidden()
    assert token not in page.content()
    return token


def _fetch(page: Page, token: str, expected: bytes) -> None:
    page.goto("/")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Show my copies").click()
    expect(page.get_by_role("heading", name="survey")).to_be_visible()
    expect(page.get_by_text("Collusion-resistant")).to_be_visible()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Parquet").click()
    assert Path(downloading.value.path()).read_bytes() == expected
    assert downloading.value.suggested_filename == "survey.v1.parquet"
    assert not re.search(r"\bpress\b", page.content())
    page.goto("/console")
    expect(page).to_have_url(re.compile("/mine$"))  # redirected to the page for recipients
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.context.close()


def _stranger(page: Page, service: Service) -> None:
    page.goto("/console/datasets/survey")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Your token").fill("sfu_000000000000_" + "x" * 43)
    page.get_by_role("button", name="Show my copies").click()
    expect(page.get_by_role("alert")).to_contain_text("Sign-in failed")
    assert page.request.get(f"{service.url}/api/v1/copies/survey").status == 401
    page.context.close()


PAGES = {
    "overview": "/console",
    "new": "/console/datasets/new",
    "dataset": "/console/datasets/ward",
    "levels": "/console/datasets/ward/levels",
    "collusion": "/console/datasets/ward/collusion",
    "recipients": "/console/recipients",
    "recipient": "/console/recipients/clinic",
    "ledger": "/console/ledger",
    "team": "/console/team",
    "settings": "/console/settings",
    "missing": "/console/datasets/nowhere",
}


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("desktop", "light"),
        ("phone", "dark"),
        pytest.param("desktop", "dark", marks=pytest.mark.slow),
        pytest.param("phone", "light", marks=pytest.mark.slow),
    ],
)
def test_every_page_is_accessible_and_fits(browser: Browser, tmp_path: Path, size: str, scheme: Scheme) -> None:
    with serving(sqlite_vault(tmp_path), tmp_path) as service:
        token = service.vault.token("clinic")["token"]
        page = opened(browser, service, size, scheme)
        page.goto("/signin")
        check_page(page, "signin", size, scheme)
        sign_in(page)
        for name, path in PAGES.items():
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == (404 if name == "missing" else 200), name
            if name in ("levels", "collusion"):
                expect(page.locator("#summary")).not_to_have_text("…")
            check_page(page, name, size, scheme)
        page.context.close()
        page = opened(browser, service, size, scheme)
        page.goto("/signin")
        page.get_by_label("Your token").fill(token)
        page.get_by_role("button", name="Show my copies").click()
        page.wait_for_url("**/mine")
        check_page(page, "mine", size, scheme)
        page.context.close()


def check_page(page: Page, name: str, size: str, scheme: Scheme) -> None:
    """No serious accessibility violation, no horizontal scrolling, and a screenshot."""
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"{name}-{size}-{scheme}.png", full_page=True)
    assert page.viewport_size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], name
    check_axe(page)


def test_the_console_works_with_the_keyboard(browser: Browser, service: Service) -> None:
    page = opened(browser, service)
    page.goto("/signin")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.get_by_label("Name").focus()
    page.keyboard.type("anna")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")
    page.goto("/console/datasets/ward")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke the grant of insurer").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".ladder")).not_to_contain_text("insurer")
    assert [grant.recipient for grant in service.vault.grants("ward")] == ["clinic"]
    page.context.close()


def test_errors_are_shown_on_the_page(browser: Browser, service: Service) -> None:
    page = opened(browser, service)
    sign_in(page)
    page.goto("/console/datasets/ward")
    page.get_by_label("Level", exact=True).fill("nonsense")
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("level")
    assert len(service.vault.grants("ward")) == 2
    page.context.close()


def test_an_audit_and_its_report(browser: Browser, service: Service) -> None:
    page = opened(browser, service)
    sign_in(page)
    page.goto("/console/datasets/ward")
    page.get_by_role("button", name="Run an audit").click()
    expect(page.locator(".verdict")).to_contain_text("The column at the highest risk: ", timeout=120_000)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # nothing is clipped
    with page.expect_popup() as opening:
        page.get_by_role("link", name="Open the report").click()
    expect(opening.value.get_by_role("heading", name="Audit of ward")).to_be_visible()
    ARTEFACTS.mkdir(exist_ok=True)
    opening.value.screenshot(path=ARTEFACTS / "report-desktop-light.png")
    page.context.close()


def test_an_officer_decides_about_a_pack(browser: Browser, service: Service, tmp_path: Path) -> None:
    page = opened(browser, service)
    sign_in(page)
    page.goto("/console/datasets/ward")
    expect(page.get_by_text("There is no sign-off pack of version 1 yet")).to_be_visible()
    page.get_by_label("Sign-off pack").select_option("html")
    page.get_by_role("button", name="Run an audit").click()
    with page.expect_download(timeout=120_000) as pack:
        page.get_by_role("link", name="Download the sign-off pack").click(timeout=120_000)
    with page.expect_download() as signature:
        page.get_by_role("link", name="its signature").click()
    pack.value.save_as(tmp_path / "pack.html")
    signature.value.save_as(tmp_path / "pack.html.sig")
    assert check_report(tmp_path / "pack.html") == service.vault.public_key
    page.get_by_role("link", name="page of ward").click()
    page.get_by_label("Officer").fill("Ada Lovelace")
    page.get_by_label("Decision").select_option("reject")
    page.get_by_role("button", name="Record the decision").click()
    expect(page.get_by_text("by Ada Lovelace")).to_be_visible()
    decision = service.vault.log()[-1]
    assert (decision.action, decision.body["officer"]) == ("rejected", "Ada Lovelace")
    page.goto("/console")
    expect(page.locator(".card", has_text="ward").get_by_text("within limits")).to_be_visible()
    page.context.close()


def test_the_code_on_the_recipients_page_runs(browser: Browser, service: Service, tmp_path: Path) -> None:
    token = service.vault.token("clinic")["token"]
    page = opened(browser, service)
    page.goto("/signin")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Show my copies").click()
    page.get_by_text("Load it in Python").click()
    code = page.locator("pre").inner_text()
    page.context.close()
    path, _ = sf.connect(service.url, token).fetch("ward", tmp_path / "ward.v1.parquet")
    python = code[: code.index("# R")].replace('"ward.v1.parquet"', json.dumps(str(path)))
    scope: dict[str, object] = {"token": token}
    exec(python, scope)  # noqa: S102 - our own code
    assert len(scope["frame"]) == wards.ROWS  # type: ignore[arg-type]

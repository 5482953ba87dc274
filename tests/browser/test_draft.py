"""Browser tests of the draft: from a file to a dataset, by controls, with the text of the policy always in step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests import wards
from tests.browser.test_console import check_page, opened, sign_in
from tests.serving import Service, serving, sqlite_vault

import sfumato as sf
from sfumato.ledger.reader import Query


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("draft")
    with serving(sqlite_vault(folder), folder) as found:
        yield found


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A table with an identifier, numbers with missing values, categories and free text."""
    table = wards.table(1500, seed=8)
    income = [None if i % 50 == 0 else value for i, value in enumerate(table["income"].to_pylist())]
    table = table.set_column(table.column_names.index("income"), "income", pa.array(income))
    table = table.append_column("remark", pa.array([f"remark number {i}" for i in range(1500)]))
    path = tmp_path / "survey.csv"
    pyarrow.csv.write_csv(table, path)
    return path


def _drafted(page: Page, path: Path, name: str) -> None:
    sign_in(page)
    page.get_by_role("link", name="Upload a table").click()
    page.get_by_label("File").set_input_files(path)
    page.get_by_label("Dataset name").fill(name)
    page.get_by_role("button", name="Upload and draft").click()
    expect(page.get_by_role("tab", name="Columns")).to_be_focused(timeout=30_000)


def _row(page: Page, column: str) -> Locator:
    return page.locator("#columns tbody tr").filter(has=page.get_by_role("rowheader", name=re.compile(f"^{column}")))


def test_columns_levels_and_text_are_one_policy(browser: Browser, service: Service, survey: Path) -> None:
    page = opened(browser, service)
    _drafted(page, survey, "first")
    expect(_row(page, "income")).to_contain_text("2.0 %")  # missing
    expect(page.get_by_label("Role of remark")).to_have_value("drop")
    page.get_by_label("Role of age").select_option("gaussian")
    expect(_row(page, "age")).to_contain_text("noise")
    page.get_by_role("tab", name="TOML").click()
    text = page.get_by_label("Policy (TOML)")
    expect(text).to_have_value(re.compile('^age = .*"gaussian"', re.MULTILINE))
    stated = re.sub("^age = .*$", 'age = "drop"  # not needed', text.input_value(), flags=re.MULTILINE)
    text.fill(f"require_approval = true\n{stated}")
    page.get_by_role("button", name="Apply the text").click()
    page.get_by_role("tab", name="Columns").click()
    expect(page.get_by_label("Role of age")).to_have_value("drop")
    page.get_by_role("tab", name="Columns").press("ArrowRight")
    expect(page.get_by_role("tab", name="Levels")).to_be_focused()
    page.get_by_label("Fidelity").nth(2).fill("0.1")
    page.get_by_label("Fidelity").nth(2).press("Tab")
    page.get_by_role("tab", name="TOML").click()
    expect(text).to_have_value(re.compile(r"^public = 0\.1$", re.MULTILINE))
    expect(text).to_have_value(re.compile("^require_approval = true$", re.MULTILINE))  # what was typed stays
    page.reload()
    expect(page.get_by_text("This draft was restored")).to_be_visible()
    expect(page.get_by_label("Role of age")).to_have_value("drop")
    page.get_by_role("button", name="Add to the vault").click()
    page.get_by_role("link", name="Go to first").click(timeout=30_000)
    policy = service.vault.dataset("first").scheme.policy
    assert policy.columns["age"].role == "drop"
    assert policy.require_approval
    assert policy.ladder.level("public").fidelity == 0.1
    page.context.close()


def test_what_is_wrong_is_said_and_nothing_is_lost(browser: Browser, service: Service, survey: Path) -> None:
    page = opened(browser, service)
    _drafted(page, survey, "second")
    page.get_by_role("tab", name="TOML").click()
    text = page.get_by_label("Policy (TOML)")
    before = text.input_value()
    text.fill(before.replace("public = 0.2", "public = 7"))
    page.get_by_role("button", name="Apply the text").click()
    expect(page.locator("#fault")).to_contain_text("fidelity")
    expect(text).to_have_value(re.compile("public = 7"))  # to be corrected, not lost
    page.get_by_role("button", name="Add to the vault").click()
    expect(page.get_by_role("status")).to_contain_text("Apply the text of the policy first")
    text.fill(before)
    page.get_by_role("button", name="Apply the text").click()
    expect(page.locator("#fault")).to_be_hidden()
    page.route("**/parts/**", lambda route: route.abort())  # the network fails for good
    page.get_by_label("File").set_input_files(survey)
    page.get_by_role("button", name="Upload and draft").click()
    expect(page.get_by_role("status")).to_contain_text("The connection was lost", timeout=30_000)
    page.unroute("**/parts/**")
    failures = iter([True, True])
    page.route("**/parts/**", lambda route: route.abort() if next(failures, False) else route.continue_())
    page.get_by_role("button", name="Upload and draft").click()  # twice in vain, then it goes on
    expect(page.get_by_role("tab", name="Columns")).to_be_focused(timeout=30_000)
    page.context.close()


@pytest.mark.parametrize(
    ("size", "scheme"), [("desktop", "light"), pytest.param("phone", "dark", marks=pytest.mark.slow)]
)
def test_a_trial_shows_what_an_attacker_recovers(
    browser: Browser, service: Service, survey: Path, size: str, scheme: str
) -> None:
    page = opened(browser, service, size, scheme)  # type: ignore[arg-type]
    _drafted(page, survey, f"third-{size}")
    check_page(page, "draft", size, scheme)  # type: ignore[arg-type]
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#tried")).to_contain_text("Tried:", timeout=180_000)
    expect(_row(page, "income")).to_contain_text(re.compile(r"internal \d+ %"))
    check_page(page, "draft-tried", size, scheme)  # type: ignore[arg-type]
    page.get_by_role("tab", name="Levels").click()
    expect(page.locator("#picture svg circle")).to_have_count(16)
    check_page(page, "draft-levels", size, scheme)  # type: ignore[arg-type]
    page.context.close()


def test_no_value_of_a_single_record_is_sent(service: Service, survey: Path) -> None:
    """Histograms end at percentiles, and only values that ten records have are named."""
    with service.client(service.vault.token(scopes=["write", "read"])["token"]) as client:
        upload = client.post("/api/v1/uploads", json={"name": "survey.csv"}).json()["upload"]
        client.put(f"/api/v1/uploads/{upload}/parts/1", content=survey.read_bytes())
        answer = client.post("/api/v1/suggestions", json={"upload": upload, "dataset": "x"}).json()
    incomes = sorted(value for value in wards.table(1500, seed=8)["income"].to_pylist())
    assert "remark number" not in str(answer)
    for value in (incomes[0], incomes[-1]):
        assert f"{value:g}" not in str(answer["columns"])
    shares = {one["name"]: one["shares"] for one in answer["columns"]}
    assert sum(shares["income"]) == pytest.approx(1)
    assert sf.Policy.loads(answer["policy"]).dataset == "x"


def test_levels_of_a_dataset_are_measured_by_the_strongest_attacks(browser: Browser, tmp_path: Path) -> None:
    """The figures of the slider and of colluding recipients are those of the trial, and stay when pages load again."""
    with serving(sqlite_vault(tmp_path), tmp_path) as service:
        page = opened(browser, service)
        sign_in(page)
        page.goto("/console/datasets/ward/levels")
        expect(page.locator("#summary")).to_contain_text("protection at most")
        page.get_by_role("button", name="Measure on a sample").click()
        expect(page.locator("#tried")).to_contain_text("The best of five attacks on a sample recovers", timeout=90_000)
        expect(page.locator("#summary")).to_contain_text("The strongest attack on a sample recovers")
        expect(page.locator("#picture circle").first).to_be_visible()
        check_page(page, "levels-measured", "desktop", "light")
        page.reload()
        expect(page.locator("#summary")).to_contain_text("The strongest attack on a sample recovers")
        service.vault.recipient("office")
        service.vault.grant("office", "ward", 0.3)
        page.goto("/console/datasets/ward/collusion")
        expect(page.locator("#summary")).to_contain_text("The strongest attack on a sample recovers")
        seen = service.vault.accesses(Query(action="previewed", dataset="ward"))
        assert not any(entry.body["originals"] for entry in seen)
        page.context.close()

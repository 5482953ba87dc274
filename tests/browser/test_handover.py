"""Browser tests of what an owner does after a release: links that open once, rows to append, and erasing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect
from tests import wards
from tests.browser.test_console import check_page, opened, sign_in
from tests.serving import Service, serving, sqlite_vault


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(sqlite_vault(tmp_path), tmp_path) as found:
        yield found


def _link(page: Page) -> str:
    """The link that the owner hands over to the clinic."""
    page.goto("/console/datasets/ward")
    page.get_by_role("button", name="Hand over by link to clinic").click()
    expect(page.locator("#link-url")).to_be_focused()
    return str(page.locator("#link-url").text_content())


def test_a_link_opens_once(browser: Browser, service: Service) -> None:
    owner = opened(browser, service)
    sign_in(owner)
    link = _link(owner)
    assert link.startswith(f"{service.url}/open#sfu_")
    check_page(owner, "link", "desktop", "light")
    owner.goto("/console/recipients/clinic")
    expect(owner.get_by_text("link, not opened yet")).to_be_visible()
    recipient = opened(browser, service, "phone", "dark")
    asked: list[str] = []
    recipient.on("request", lambda request: asked.append(request.url))
    recipient.goto(link)
    assert recipient.url == f"{service.url}/open"  # the secret is neither in the address bar nor in the history
    check_page(recipient, "open", "phone", "dark")
    recipient.get_by_role("button", name="Show my copies").click()
    recipient.wait_for_url("**/mine")
    assert not [url for url in asked[1:] if "sfu_" in url]
    with recipient.expect_download() as download:
        recipient.get_by_role("link", name="Parquet", exact=True).click()
    assert pq.read_metadata(download.value.path()).num_rows == service.vault.dataset("ward").rows
    other = opened(browser, service)
    other.goto(link)
    other.get_by_role("button", name="Show my copies").click()
    expect(other.get_by_role("alert")).to_contain_text("works once")
    owner.goto("/console/recipients/clinic")
    expect(owner.get_by_text("link, opened")).to_be_visible()
    expect(owner.get_by_text("clinic signed in with the link")).to_be_visible()
    owner.on("dialog", lambda dialog: dialog.accept())
    owner.get_by_role("button", name="Withdraw").click()
    expect(owner.get_by_role("cell", name="withdrawn")).to_be_visible()
    recipient.goto("/mine")
    recipient.wait_for_url("**/signin")  # at once, though the session has not ended


def test_a_link_that_was_cut_off_says_so_and_one_that_is_looked_at_still_opens(
    browser: Browser, service: Service
) -> None:
    owner = opened(browser, service)
    sign_in(owner)
    link = _link(owner)
    page = opened(browser, service)
    page.goto("/open")
    expect(page.get_by_text("must be the complete link")).to_be_visible()
    expect(page.get_by_role("button", name="Show my copies")).to_be_disabled()
    for _ in range(2):  # a program that looks at links in messages, or somebody who thinks again
        opened(browser, service).goto(link)
    page = opened(browser, service)
    page.goto(link)
    page.get_by_role("button", name="Show my copies").click()
    page.wait_for_url("**/mine")


def test_rows_are_appended_and_versions_and_datasets_erased(browser: Browser, service: Service, tmp_path: Path) -> None:
    more = wards.table(20, seed=5)
    more = more.set_column(0, "id", pa.array(range(900_000, 900_020)))
    pq.write_table(more, tmp_path / "more.parquet")
    rows = service.vault.dataset("ward").rows
    page = opened(browser, service, "phone", "dark")
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page)
    page.goto("/console/datasets/ward")
    page.get_by_label("Or only the rows to append").set_input_files(tmp_path / "more.parquet")
    page.get_by_role("button", name="Append rows").click()
    expect(page.get_by_text("done", exact=True)).to_be_visible(timeout=60_000)
    assert service.vault.dataset("ward").rows == rows + 20
    page.goto("/console/datasets/ward")
    page.get_by_text("Erase for good").click()
    check_page(page, "erase", "phone", "dark")
    page.get_by_role("button", name="Erase the version").click()
    expect(page.locator("#said")).to_contain_text("append")  # its rows are those of the current version, too
    page.get_by_role("button", name="Erase the dataset").click()
    assert service.vault.dataset("ward").rows == rows + 20  # the name was not typed
    page.get_by_label("Type ward to erase all of it").fill("ward")
    page.get_by_role("button", name="Erase the dataset").click()
    page.wait_for_url("**/console")
    expect(page.get_by_role("link", name="ward", exact=True)).to_have_count(0)
    assert service.vault.verify().sound


def test_a_recipient_asks_in_sql_and_sees_intervals(browser: Browser, service: Service) -> None:
    page = opened(browser, service, "phone", "light")
    page.goto("/signin")
    page.get_by_label("Your token").fill(service.vault.token("clinic")["token"])
    page.get_by_role("button", name="Show my copies").click()
    page.get_by_text("Ask a question in SQL").click()
    expect(page.get_by_label("Question")).to_have_value(re.compile("SELECT .* FROM copy"))
    page.get_by_label("Question").fill("select region, avg(age) as age from copy group by region")
    page.get_by_role("button", name="Ask", exact=True).click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("north", timeout=60_000)
    expect(answer.locator("tbody tr").first).to_contain_text(" to ")
    expect(page.get_by_role("img", name="age by region, with intervals")).to_be_visible()
    expect(page.get_by_text("corrected for the noise")).to_be_visible()
    check_page(page, "answer", "phone", "light")
    page.get_by_label("Question").fill("select * from copy")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("single records", timeout=60_000)

"""Pages of surveys without a connection: opened, answered and opened again, until they were sent."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect
from tests.browser.answering import answer_commute, page_of
from tests.serving import serving, sqlite_vault

from sfumato.survey.surveys import Surveys

KEPT_PAGES = """caches.keys()
  .then((names) => Promise.all(names.map(async (name) => (await caches.open(name)).keys())))
  .then((all) => all.flat().map(({ url }) => new URL(url).pathname))"""


def test_a_page_opens_without_a_connection_until_it_was_sent(browser: Browser, tmp_path: Path) -> None:
    """The service itself stops, and comes back at the same address."""
    (folder := tmp_path / "own").mkdir()
    vault = sqlite_vault(folder)
    with serving(vault, folder) as service:
        context = browser.new_context(base_url=service.url)
        page = page_of(context, "commute")
        page.get_by_label("I agree").wait_for()
        assert page.evaluate("caches.keys()") == []  # who only looks leaves nothing
        page.get_by_label("I agree").check()
        expect(page.locator("sfumato-survey[data-kept]")).to_be_visible()
    page.reload()
    answer_commute(page)
    shown = page.locator("pre").inner_text()
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("or you are offline")).to_be_visible()
    page.reload()
    expect(page.get_by_text("or you are offline")).to_be_visible()
    assert page.locator("pre").inner_text() == shown  # nothing was drawn again
    paths = page.evaluate(KEPT_PAGES)
    assert {"/answer/commute", "/api/v1/respond/commute"} <= set(paths)
    assert not [path for path in paths if not re.match(r"/(answer|static|survey|api/v1/respond/commute$)", path)]
    with serving(vault, folder, port=int(service.url.rpartition(":")[2])):
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text("Thank you")).to_be_visible()
        assert Surveys(vault).status("commute").answers == 1
        page.wait_for_function("caches.keys().then((names) => names.length === 0)")
        page.wait_for_function("navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)")
    context.close()

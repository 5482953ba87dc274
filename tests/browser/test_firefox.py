"""The two main journeys in Firefox; `make journeys` runs all of them there, on desktop and phone, in light and dark."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect
from tests import browsers
from tests.browser.answering import answer_commute, page_of
from tests.browser.test_console import first_release
from tests.serving import serving, sqlite_vault

from sfumato.survey.surveys import Surveys


def test_a_table_is_released_and_a_survey_answered(tmp_path: Path) -> None:
    with browsers.running("firefox") as browser, serving(sqlite_vault(tmp_path), tmp_path) as service:
        first_release(browser, service, tmp_path)
        context = browser.new_context(base_url=service.url)
        page = page_of(context, "commute")
        answer_commute(page)
        page.get_by_role("button", name="Send this").click()
        expect(page.get_by_text("Thank you")).to_be_visible()
        assert Surveys(service.vault).status("commute").answers == 1

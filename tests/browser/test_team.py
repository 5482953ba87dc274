"""Browser tests of the team: operators with roles, one's own password, and tokens of the owner's programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.test_console import check_page, opened, sign_in
from tests.serving import PASSWORD, Service, serving, sqlite_vault

OTHER = "another long password"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(sqlite_vault(tmp_path), tmp_path) as found:
        yield found


def _sign_in(page: Page, name: str, password: str) -> None:
    page.goto("/signin")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Open the console").click()
    page.wait_for_url("**/console")


def test_a_team_with_roles_and_tokens(browser: Browser, service: Service) -> None:
    owner = opened(browser, service)
    owner.on("dialog", lambda dialog: dialog.accept())
    sign_in(owner)
    owner.get_by_role("link", name="Team").click()
    owner.get_by_label("Name").fill("ben")
    owner.get_by_label("Password (at least 12 characters)", exact=True).fill(PASSWORD)
    owner.get_by_label("Role", exact=True).select_option("viewer")
    with owner.expect_event("load"):
        owner.get_by_role("button", name="Save").click()
    row = owner.get_by_role("row", name="ben")
    expect(row.get_by_label("Role of ben")).to_have_value("viewer")
    expect(row).to_contain_text("never")
    ben = opened(browser, service, "phone", "dark")
    _sign_in(ben, "ben", PASSWORD)
    ben.goto("/console/recipients")
    expect(ben.get_by_role("button", name="Register")).to_be_disabled()
    assert "ask an administrator" in str(ben.get_by_role("button", name="Register").get_attribute("title"))
    ben.goto("/console/team")
    expect(ben.get_by_role("heading", name="Add an operator")).to_have_count(0)
    check_page(ben, "team-viewer", "phone", "dark")
    ben.get_by_label("Current password").fill(PASSWORD)
    ben.get_by_label("New password (at least 12 characters)").fill(OTHER)
    ben.get_by_role("button", name="Change it, and sign in again").click()
    ben.wait_for_url("**/signin")
    _sign_in(ben, "ben", OTHER)
    owner.reload()
    row.get_by_label("Role of ben").select_option("editor")
    with owner.expect_event("load"):  # the page loads again when the role has changed
        row.get_by_role("button", name="Change the role of ben").click()
    expect(row.get_by_label("Role of ben")).to_have_value("editor")
    ben.goto("/console")
    ben.wait_for_url("**/signin")  # the new role ended the session
    owner.get_by_label("Purpose").fill("nightly export")
    owner.get_by_label("write:").uncheck()
    owner.get_by_role("button", name="Issue a token").click()
    expect(owner.locator("#secret")).to_have_text(re.compile("^sfu_"))
    check_page(owner, "team", "desktop", "light")
    owner.reload()
    expect(owner.get_by_role("row", name="nightly export")).to_contain_text("read")
    owner.get_by_role("button", name="Withdraw").click()
    expect(owner.get_by_role("cell", name="withdrawn")).to_be_visible()
    owner.get_by_role("button", name="Remove ben").click()
    expect(owner.get_by_role("row", name="ben")).to_have_count(0)
    assert service.vault.verify().sound

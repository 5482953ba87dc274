"""Browser test of sign-in at a real OpenID Connect provider."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.test_console import Scheme, check_page, opened, sign_in
from tests.openid import provider_file, real_provider
from tests.serving import serving, sqlite_vault

MAIL = {"email": "ben@example.org", "email_verified": True}


def _sign_in_there(page: Page, subject: str) -> None:
    page.goto("/signin")
    page.get_by_role("link", name="Sign in with Town Hall").click()
    page.wait_for_url("**/oauth2/authorize**")
    page.get_by_role("button", name=subject).click()


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_an_operator_without_a_password_signs_in(browser: Browser, tmp_path: Path, size: str, scheme: Scheme) -> None:
    with real_provider(
        {"sub": "ben", **MAIL}, {"sub": "eve", "email": "eve@example.org", "email_verified": True}
    ) as issuer:
        options = ("--openid", str(provider_file(tmp_path, issuer)))
        with serving(sqlite_vault(tmp_path), tmp_path, *options) as service:
            owner = opened(browser, service)
            sign_in(owner)
            owner.goto("/console/team")
            owner.get_by_label("Name").first.fill("ben")
            owner.get_by_label("E-mail address there").fill("ben@example.org")
            owner.locator("#rank").select_option("viewer")
            with owner.expect_event("load"):
                owner.get_by_role("button", name="Save").first.click()
            expect(owner.get_by_role("row", name="ben@example.org")).to_contain_text("viewer")
            check_page(owner, "team-openid", "desktop", "light")
            page = opened(browser, service, size, scheme)
            _sign_in_there(page, "eve")
            expect(page.get_by_role("alert")).to_contain_text("eve@example.org is no operator here")
            check_page(page, "signin-openid", size, scheme)
            _sign_in_there(page, "ben")
            page.wait_for_url("**/console")
            expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
            page.reload()
            page.get_by_role("button", name="Sign out").click()
            page.wait_for_url("**/signin")

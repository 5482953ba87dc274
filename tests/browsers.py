"""Real browsers for the tests: Debian's Chromium and Firefox, installed if need be, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright
from tests.debian import installed

expect.set_options(timeout=20_000)  # milliseconds: machines may be busy

SIZES: dict[str, ViewportSize] = {"desktop": {"width": 1200, "height": 900}, "phone": {"width": 390, "height": 844}}

_PROGRAMS = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "firefox-esr": ("firefox-esr", "firefox")}


def _options(kind: str) -> dict[str, Any]:
    """How Playwright starts a browser that is the system's own: Firefox by the standard WebDriver BiDi."""
    package = "firefox-esr" if kind == "firefox" else kind
    path = installed(lambda: next(filter(None, map(shutil.which, _PROGRAMS[package])), None), package)
    own: dict[str, Any] = {"channel": "moz-firefox"} if kind == "firefox" else {"args": ["--no-sandbox"]}
    return {"executable_path": path, **own}


@contextmanager
def running(kind: str = "chromium", scheme: str | None = None) -> Iterator[Browser]:
    """A browser of a kind, for as long as it is needed; Firefox has one colour scheme in all its contexts."""
    settings: dict[str, bool | int] = {"browser.download.alwaysOpenPanel": False}  # which would take the focus
    if scheme == "dark":
        settings["layout.css.prefers-color-scheme.content-override"] = 0
    more = {"firefox_user_prefs": settings} if kind == "firefox" else {}
    with sync_playwright() as playwright:
        browser = getattr(playwright, kind).launch(**_options(kind), **more)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def profile(browser: Browser, folder: Path, **options: Any) -> Iterator[BrowserContext]:
    """Another browser of the same kind, whose storage outlives it in a folder."""
    own = _options(browser.browser_type.name)
    context = browser.browser_type.launch_persistent_context(folder, **own, **options)
    try:
        yield context
    finally:
        context.close()


def mobile(browser: Browser, size: str) -> dict[str, Any]:
    """What makes a context that of a phone, beside its size; Firefox has no more than that."""
    return {"is_mobile": True} if size == "phone" and browser.browser_type.name == "chromium" else {}


_CARET = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA="
"""The style with which Playwright hides the caret in screenshots; Firefox says that the page's policy forbids it."""


def watched(page: Page) -> Page:
    """A page on which a script error, or a violation of the security policy, fails the test."""

    def on_error(text: str) -> None:
        if _CARET not in text:
            pytest.fail(f"script error: {text}")

    page.on("pageerror", lambda error: on_error(str(error)))
    page.on("console", lambda line: on_error(line.text) if "Content Security" in line.text else None)
    return page

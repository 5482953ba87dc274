"""A real browser for the tests: Debian's Chromium, installed if need be, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, sync_playwright
from tests.debian import installed


@contextmanager
def running() -> Iterator[Browser]:
    """A browser for as long as it is needed."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed(_find, "chromium"), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def profile(browser: Browser, folder: Path, **options: Any) -> Iterator[BrowserContext]:
    """Another browser of the same kind, whose storage outlives it in a folder."""
    path = installed(_find, "chromium")
    context = browser.browser_type.launch_persistent_context(
        folder, executable_path=path, args=["--no-sandbox"], **options
    )
    try:
        yield context
    finally:
        context.close()


def _find() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

"""A real browser for the tests: Debian's Chromium, installed if need be, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright


@contextmanager
def running() -> Iterator[Browser]:
    """A browser for as long as it is needed."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def _program() -> str:
    """Where Chromium is; it is installed if it is nowhere."""
    found = _find()
    if found is None:
        helper = [] if os.geteuid() == 0 else ["sudo", "-n"]
        subprocess.run([*helper, "apt-get", "update", "-qq"], check=False)
        subprocess.run([*helper, "apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"], check=True)
        found = _find()
    if found is None:
        raise RuntimeError("the tests need a browser: install your system's package `chromium`")
    return found


def _find() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

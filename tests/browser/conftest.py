"""Fixtures: a browser, and a running service with surveys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests import browsers
from tests.browser.inspection import Inspection, inspected
from tests.browser.keyboard import only_keyboard
from tests.serving import Service, serving, sqlite_vault

Array = Any


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("survey")
    with serving(sqlite_vault(folder), folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    with browsers.running(pytestconfig.getoption("--browser"), pytestconfig.getoption("--scheme")) as found:
        yield found


@pytest.fixture(scope="session")
def inspection(pytestconfig: pytest.Config) -> Inspection:
    return Inspection(axe=pytestconfig.getoption("--axe"))


@pytest.fixture(autouse=True)
def _as_stated(pytestconfig: pytest.Config, inspection: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every journey is made as the options say, and every page on it is looked at."""
    kind, size, scheme = (pytestconfig.getoption(name) for name in ("--browser", "--size", "--scheme"))
    overrides: dict[str, Any] = {}
    if size:
        overrides |= {"viewport": browsers.SIZES[size], "is_mobile": size == "phone" and kind == "chromium"}
    if scheme and kind == "chromium":
        overrides["color_scheme"] = scheme
    if pytestconfig.getoption("--keyboard"):
        only_keyboard(monkeypatch)
    inspected(monkeypatch, inspection, overrides)


@pytest.fixture
def context(browser: Browser, service: Service) -> Iterator[BrowserContext]:
    # Without workers, which would hide requests from tests that forge the answers; one test is about them.
    found = browser.new_context(base_url=service.url, service_workers="block")
    yield found
    found.close()

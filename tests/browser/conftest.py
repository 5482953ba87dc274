"""Fixtures: a browser, and a running service with surveys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests import browsers
from tests.serving import Service, serving, sqlite_vault

Array = Any


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("survey")
    with serving(sqlite_vault(folder), folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    with browsers.running(pytestconfig.getoption("--browser")) as found:
        yield found


@pytest.fixture
def context(browser: Browser, service: Service) -> Iterator[BrowserContext]:
    # Without workers, which would hide requests from tests that forge the answers; one test is about them.
    found = browser.new_context(base_url=service.url, service_workers="block")
    yield found
    found.close()

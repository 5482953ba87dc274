"""The checks of pages find what they look for: planted faults in pages of their own."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page
from tests.browser import keyboard
from tests.browser.inspection import Inspection, check_axe

WHOLE = '<!doctype html><html lang="en"><title>Planted</title><main><h1>Planted</h1>{}</main></html>'

MOVING = (
    '<p style="height: 20rem">This moves by itself.</p><script>setTimeout(() => { document.querySelector("h1")'
    '.style.marginBottom = "20rem"; document.body.id = "moved"; }, 700)</script>'
)


def _page(browser: Browser, body: str) -> Page:
    page = browser.new_context().new_page()
    page.route("**/*", lambda route: route.fulfill(body=WHOLE.format(body), content_type="text/html"))
    page.goto("http://planted.test/")
    return page


def test_a_page_that_is_as_it_should_be_passes(browser: Browser) -> None:
    page = _page(browser, "<button>Press</button>")
    Inspection(axe=True).look(page)
    keyboard.click(page.get_by_role("button"))


def test_what_moves_by_itself_is_found(browser: Browser) -> None:
    if browser.browser_type.name == "firefox":
        pytest.skip("Firefox does not tell")
    page = _page(browser, MOVING)
    page.locator("#moved").wait_for()
    page.wait_for_timeout(300)
    with pytest.raises(AssertionError, match="moved by"):
        Inspection(axe=False).look(page)
    page.evaluate("window.layoutShifts = []")


def test_what_scrolls_sideways_is_found(browser: Browser) -> None:
    page = _page(browser, '<p style="width: 9000px">Wide.</p>')
    with pytest.raises(AssertionError, match="scrolls sideways"):
        Inspection(axe=False).look(page)


def test_axe_finds_a_field_without_a_label(browser: Browser) -> None:
    page = _page(browser, "<input>")
    with pytest.raises(AssertionError, match="label"):
        check_axe(page)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<div role="button" onclick="">Press</div><button>Other</button>', "cannot be reached"),
        ("<style>:focus-visible { outline: none }</style><button>Press</button>", "nothing shows it"),
    ],
)
def test_what_has_no_keyboard_is_found(browser: Browser, monkeypatch: pytest.MonkeyPatch, body: str, said: str) -> None:
    monkeypatch.setattr(keyboard, "_MOST_TABS", 8)
    with pytest.raises(AssertionError, match=said):
        keyboard.click(_page(browser, body).get_by_role("button", name="Press"))

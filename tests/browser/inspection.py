"""What every page must satisfy at each step of a journey, whatever the journey is about.

Nothing moves by itself, nothing scrolls sideways, and, with `--axe`, axe finds nothing serious. A page is looked at
before each click on it, and when it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, BrowserType, Error, Locator, Page

MOST_SHIFT = 0.02
"""The most that parts of a page may move by themselves, as a share of the window (web.dev: 0.1 is good)."""

_RECORD_SHIFTS = """
window.layoutShifts = [];
if (window.PerformanceObserver?.supportedEntryTypes.includes("layout-shift")) {
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      const moved = entry.sources.map(({ node, previousRect, currentRect }) =>
        `${node?.outerHTML?.slice(0, 90)} from ${previousRect.y.toFixed()} to ${currentRect.y.toFixed()}`);
      window.layoutShifts.push({ value: entry.value, moved });
    }
  }).observe({ type: "layout-shift", buffered: true });
}
"""
"""Chromium tells of parts that moved although nobody did anything in the half second before; Firefox does not."""

_LOOK = """() => ({
  shifts: window.layoutShifts ?? (document.scripts.length ? null : []),
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  width: document.documentElement.clientWidth,
  ours: document.querySelector('meta[name="csrf"]') !== null,
  shape: [location.pathname, ...[...document.querySelectorAll("body *")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => [one.localName, one.className, one.getAttribute("role"), one.disabled].join())].join(" "),
})"""
"""A page without scripts, which may be in a sandbox, does not move by itself."""

_MOST_PAGES = 20
"""So many pages may follow each other before one of them is looked at."""


class Inspection:
    """Looks at the pages of a browser; axe gets each state of the service's own pages, not of others', once."""

    def __init__(self, *, axe: bool) -> None:
        self._axe, self._seen = axe, set[str]()

    def look(self, page: Page) -> None:
        """Fail if this page moves, scrolls sideways, or cannot be used by all people."""
        if page.is_closed() or not page.url.startswith("http"):
            return
        found = _seen_at_rest(page)
        assert found["shifts"] is not None, f"{page.url} was not observed"
        moved = sum(one["value"] for one in found["shifts"])
        assert moved <= MOST_SHIFT, f"parts of {page.url} moved by {moved:.3f}: {found['shifts']}"
        assert found["overflow"] <= 0, f"{page.url} scrolls sideways by {found['overflow']} pixels"
        if self._axe and found["ours"] and found["shape"] not in self._seen:
            self._seen.add(found["shape"])
            check_axe(page)


def _seen_at_rest(page: Page) -> dict[str, Any]:
    """What is seen of a page that has loaded; without its style sheet it would be another one."""
    for _ in range(_MOST_PAGES):
        page.wait_for_load_state()
        try:
            seen: dict[str, Any] = page.evaluate(_LOOK)
            return seen
        except Error as error:
            if "context was destroyed" not in str(error):  # by the next page
                raise
    raise AssertionError(f"{page.url} loads again and again")


def check_axe(page: Page) -> None:
    """Fail if axe finds anything serious."""
    found = Axe().run(page).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], f"{page.url}: {serious}"


def inspected(patch: pytest.MonkeyPatch, inspection: Inspection, overrides: dict[str, Any]) -> None:
    """Let every page of a browser be looked at, in contexts with these options."""
    new_context = Browser.new_context

    def new(browser: Browser, **options: Any) -> BrowserContext:
        context = new_context(browser, **options | overrides)
        context.add_init_script(_RECORD_SHIFTS)
        return context

    launch = BrowserType.launch_persistent_context

    def launched(kind: BrowserType, folder: Any, **options: Any) -> BrowserContext:
        context = launch(kind, folder, **options | overrides)
        context.add_init_script(_RECORD_SHIFTS)
        return context

    patch.setattr(Browser, "new_context", new)
    patch.setattr(BrowserType, "launch_persistent_context", launched)
    for name in ("fill", "select_option"):
        patch.setattr(Locator, name, _as_by_a_person(getattr(Locator, name)))
    patch.setattr(Locator, "click", _after_a_look(inspection, Locator.click, lambda locator: locator.page))
    for name in ("goto", "reload", "close"):
        patch.setattr(Page, name, _after_a_look(inspection, getattr(Page, name), lambda page: page))
    patch.setattr(BrowserContext, "close", _closing(inspection, BrowserContext.close))


def _after_a_look(inspection: Inspection, action: Callable[..., Any], page_of: Callable[[Any], Page]) -> Any:
    def acting(subject: Any, *arguments: Any, **options: Any) -> Any:
        inspection.look(page_of(subject))
        return action(subject, *arguments, **options)

    return acting


def _as_by_a_person(action: Callable[..., Any]) -> Any:
    """Playwright fills in fields without any key: with one, the browser knows that what moves now was asked for."""

    def acting(locator: Locator, *arguments: Any, **options: Any) -> Any:
        locator.page.keyboard.press("Shift")
        return action(locator, *arguments, **options)

    return acting


def _closing(inspection: Inspection, close: Callable[..., None]) -> Any:
    def closing(context: BrowserContext, **options: Any) -> None:
        for page in context.pages:
            inspection.look(page)
        close(context, **options)

    return closing

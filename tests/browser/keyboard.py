"""Journeys by keyboard alone: what tests click, check, choose and fill in is reached by Tab, and done with keys.

`pytest tests/browser --keyboard` replaces the actions of Playwright's locators, so that every journey is one by
keyboard. What cannot be reached, or shows no sign that it has the focus, fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

_MOST_TABS = 300
_MOST_ARROWS = 120

_WHERE = """(found) => {
  const target = found.closest("a, button, input, select, textarea, summary, [tabindex]")
    ?? found.closest("label")?.control ?? found;
  let focused = document.activeElement;
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  const group = (one) => one?.type === "radio" ? `radio ${one.name}` : one?.role === "tab" ? "tab" : null;
  const style = focused && getComputedStyle(focused);
  return {
    kind: target.role === "tab" ? "tab" : target.type ?? target.localName,
    reached: focused === target,
    inGroup: group(target) !== null && group(focused) === group(target),
    back: Boolean(focused && target.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING),
    shown: Boolean(style && style.outlineStyle !== "none" && style.outlineWidth !== "0px"),
  };
}"""
"""Where the focus is, seen from a target: on it, in its group of radio buttons or tabs, or after it."""


def reach(locator: Locator, timeout: float | None = None) -> str:
    """Move the focus to a control by Tab, and by arrows within a group; returns what kind of control it is."""
    expect(locator).to_be_visible(timeout=timeout)
    expect(locator).to_be_enabled(timeout=timeout)
    keyboard = locator.page.keyboard
    locator.page.bring_to_front()  # in a window behind another one, nothing has the focus
    for pressed in range(_MOST_TABS):
        found = locator.evaluate(_WHERE)
        if found["reached"] or (found["inGroup"] and found["kind"] == "radio"):
            if found["shown"]:
                return str(found["kind"])
            assert not pressed, f"{locator} has the focus, and nothing shows it"
            keyboard.press("Shift+Tab")  # a script, or the page before, had put the focus there
        elif found["inGroup"]:
            keyboard.press("ArrowRight")
        else:
            keyboard.press("Shift+Tab" if found["back"] else "Tab")
    raise AssertionError(f"{locator} cannot be reached by keyboard")


def click(locator: Locator, *, timeout: float | None = None) -> None:
    """Press a button, follow a link, open a tab or details."""
    kind = reach(locator, timeout)
    if kind == "radio":
        set_checked(locator, True)
    elif kind != "tab":  # which opens as soon as it has the focus
        locator.page.keyboard.press("Space" if kind == "checkbox" else "Enter")


def check(locator: Locator) -> None:
    set_checked(locator, True)


def uncheck(locator: Locator) -> None:
    set_checked(locator, False)


def set_checked(locator: Locator, checked: bool) -> None:
    """Tick a box, or choose a radio button: the first one with the space bar, the others with arrows."""
    reach(locator)
    for _tried in range(_MOST_ARROWS):
        if locator.is_checked() == checked:
            return
        kind = reach(locator)
        is_here = locator.evaluate(_WHERE)["reached"]
        locator.page.keyboard.press("Space" if kind == "checkbox" or is_here else "ArrowDown")
    raise AssertionError(f"{locator} cannot be {'' if checked else 'un'}checked by keyboard")


_CHOICE = """(select, wanted) => {
  const index = [...select.options].findIndex((option) => option.value === wanted || option.label === wanted);
  if (index < 0) throw new Error(`there is no option ${wanted}`);
  return index - select.selectedIndex;
}"""


def select_option(locator: Locator, value: str = "", *, label: str = "") -> None:
    """Choose an option with arrows."""
    reach(locator)
    for _tried in range(_MOST_ARROWS):
        step = locator.evaluate(_CHOICE, value or label)
        if step == 0:
            return
        reach(locator)
        locator.page.keyboard.press("ArrowDown" if step > 0 else "ArrowUp")
        locator.page.wait_for_timeout(20)  # the page may answer a choice by drawing the control anew
    raise AssertionError(f"{value or label!r} cannot be chosen in {locator}")


def fill(locator: Locator, value: str) -> None:
    """Type a text instead of the present one, and go on to the next field; move a slider with arrows."""
    kind, keyboard = reach(locator), locator.page.keyboard
    if kind == "range":
        _slide(locator, float(value))
        return
    if kind == "date":
        year, month, day = value.split("-")
        keyboard.type(f"{month}{day}{year}")  # as in the United States, whose English the tests' browsers speak
    else:
        keyboard.press("ControlOrMeta+a")
        if value:
            keyboard.insert_text(value)
        else:
            keyboard.press("Delete")
    assert locator.input_value() == value, f"{locator} cannot be filled in by keyboard"
    keyboard.press("Tab")


def _slide(locator: Locator, value: float) -> None:
    for _ in range(_MOST_ARROWS):
        now = float(locator.input_value())
        if abs(now - value) < 1e-9:
            return
        locator.page.keyboard.press("ArrowRight" if now < value else "ArrowLeft")
    raise AssertionError(f"{locator} cannot be moved to {value}")


def press(locator: Locator, key: str) -> None:
    reach(locator)
    locator.page.keyboard.press(key)


def set_input_files(original: Callable[..., None]) -> Callable[..., None]:
    """Open the chooser of files with the keyboard; Firefox does not tell the driver that it opened."""

    def choose(locator: Locator, files: Any) -> None:
        reach(locator)
        browser = locator.page.context.browser
        if browser is None or browser.browser_type.name == "firefox":
            original(locator, files)
            return
        with locator.page.expect_file_chooser() as chooser:
            locator.page.keyboard.press("Enter")
        chooser.value.set_files(files)

    return choose


def only_keyboard(patch: pytest.MonkeyPatch) -> None:
    """Let all locators act by keyboard."""
    patch.setattr(Locator, "set_input_files", set_input_files(Locator.set_input_files))
    for action in (click, check, uncheck, set_checked, select_option, fill, press):
        patch.setattr(Locator, action.__name__, action)

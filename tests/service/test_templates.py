"""Pages before their scripts have loaded: a click that would be lost is impossible."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import sfumato.service

TEMPLATES = Path(sfumato.service.__file__).parent / "web" / "templates"

VOID = {"input", "link", "meta", "br", "img", "hr"}


class Buttons(HTMLParser):
    """Buttons that can be clicked and do nothing, or the wrong thing, without a script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.within: list[tuple[str, dict[str, str | None]]] = []
        self.found: list[str] = []
        self.feed(re.sub(r"{%.*?%}|{{.*?}}", "", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        hidden = "hidden" in own or any("hidden" in outer for _, outer in self.within)
        submits = any(name == "form" and "method" in outer for name, outer in self.within)
        if tag == "button" and "disabled" not in own and not hidden and not submits:
            self.found.append(self.get_starttag_text() or "")
        if tag not in VOID:
            self.within.append((tag, own))

    def handle_endtag(self, tag: str) -> None:
        while self.within and self.within.pop()[0] != tag:
            pass


@pytest.mark.parametrize("page", sorted(TEMPLATES.glob("*.html")), ids=lambda page: page.stem)
def test_no_button_waits_for_a_script_that_has_not_loaded(page: Path) -> None:
    assert not Buttons(page.read_text()).found


def test_a_button_that_is_enabled_too_early_is_found() -> None:
    assert Buttons("<form data-method='PUT'><br><button>Save</button></form>").found == ["<button>"]
    assert not Buttons("<form method='post'><button>Sign in</button></form><p hidden><button>x</button></p>").found

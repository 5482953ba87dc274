"""HTML pages and SVG figures for reports: one page template and one plotting style, without external files."""

from __future__ import annotations

import html
from importlib import resources
from string import Template


def page(*, title: str, verdict: str, body: str, footer: str, subtitle: str = "", failed: bool = False) -> str:
    """A self-contained HTML page; `body` is HTML, and every other argument is plain text that is escaped here."""
    template = Template((resources.files(__package__) / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=html.escape(title),
        subtitle=f'<p class="secondary">{html.escape(subtitle)}</p>' if subtitle else "",
        state=" failed" if failed else "",
        verdict=html.escape(verdict),
        body=body,
        footer=html.escape(footer),
    )

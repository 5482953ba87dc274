"""Pages and pictures that need nothing else: one frame and one way to draw, for all reports."""

from __future__ import annotations

import html
from importlib import resources
from string import Template


def page(*, title: str, verdict: str, body: str, foot: str, subtitle: str = "", bad: bool = False) -> str:
    """A page as HTML; all but the body is text."""
    frame = Template((resources.files(__package__) / "page.html").read_text(encoding="utf-8"))
    return frame.substitute(
        title=html.escape(title),
        subtitle=f'<p class="pale">{html.escape(subtitle)}</p>' if subtitle else "",
        bad=" bad" if bad else "",
        verdict=html.escape(verdict),
        body=body,
        foot=html.escape(foot),
    )

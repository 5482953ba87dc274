"""HTML pages and SVG figures for reports: one page template and one plotting style, without external files."""

from __future__ import annotations

import html
from collections.abc import Sequence
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


def escape(text: str) -> str:
    """Plain text as HTML."""
    return html.escape(text)


def table(names: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """An HTML table; the first `texts` columns hold text."""

    def cells(tag: str, row: Sequence[str]) -> str:
        classes = [' class="text"' if i < texts else "" for i in range(len(row))]
        return "".join(f"<{tag}{name}>{html.escape(cell)}</{tag}>" for name, cell in zip(classes, row, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{cells('th', names)}</tr></thead><tbody>{body}</tbody></table></div>"

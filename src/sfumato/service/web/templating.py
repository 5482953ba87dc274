"""Rendering of web pages from Jinja templates."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sfumato.service.state import Session
from sfumato.tables.readers import FORMATS
from sfumato.vault.names import format_end

WEB_ROOT = Path(str(resources.files(__package__)))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(WEB_ROOT / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals["table_endings"] = ",".join(FORMATS)
    environment.filters["day"] = lambda moment: str(moment)[:10]
    environment.filters["end"] = format_end
    environment.filters["minute"] = lambda moment: str(moment)[:16].replace("T", " ")
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["percent"] = lambda share: f"{share:.1%}"
    environment.filters["level"] = lambda level: level if isinstance(level, str) else f"{level:.4g}"
    return environment


class Visitor(Protocol):
    """A caller as far as a page is concerned."""

    @property
    def session(self) -> Session | None:
        """The session of a caller with a browser."""
        ...


_PARTS = {"recipient": "Recipients", "survey": "Surveys", "ledger": "Ledger", "team": "Team", "settings": "Settings"}
"""The part of the navigation that templates belong to, by the beginnings of their names; others are about datasets."""


def render(template: str, caller: Visitor | None, status: int = 200, **variables: Any) -> HTMLResponse:
    """Render a template for a caller, or for an anonymous visitor."""
    csrf = caller.session.csrf if caller and caller.session else ""
    part = next((name for start, name in _PARTS.items() if template.startswith(start)), "Datasets")
    page = _environment().get_template(template).render(caller=caller, csrf=csrf, part=part, **variables)
    return HTMLResponse(page, status)


def not_found(caller: Visitor | None, text: str) -> HTMLResponse:
    """The page for something that does not exist."""
    return render("problem.html", caller, 404, title="Not found", text=text, request_id="")


_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
"""Content security policy of a report: a self-contained page with inline styles and without scripts."""


def report_page(page: str) -> HTMLResponse:
    """A report as a page of its own, which can do nothing."""
    return HTMLResponse(page, headers={"Content-Security-Policy": _REPORT_POLICY, "X-Frame-Options": "SAMEORIGIN"})

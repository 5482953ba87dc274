"""Pages from templates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sfumato.service.authentication import COOKIE, Caller, by_session
from sfumato.service.context import desk_of

HERE = Path(str(resources.files(__package__)))


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters["day"] = lambda moment: str(moment)[:10]
    made.filters["minute"] = lambda moment: str(moment)[:16].replace("T", " ")
    made.filters["thousands"] = lambda number: f"{number:,}"
    made.filters["level"] = lambda level: level if isinstance(level, str) else f"{level:.4g}"
    return made


def render(name: str, who: Caller | None, status: int = 200, **said: Any) -> HTMLResponse:
    """A page for somebody."""
    csrf = who.session.csrf if who and who.session else ""
    return HTMLResponse(_environment().get_template(name).render(who=who, csrf=csrf, **said), status)


def here(request: Request) -> str:
    """The address of this service, as people are told to use it: behind a proxy with TLS, never without."""
    base = str(request.base_url).rstrip("/")
    return base.replace("http://", "https://", 1) if desk_of(request).settings.secure else base


class SignInFirst(Exception):
    """Somebody looks at a page that is not for whoever is not signed in."""


def _signed_in(role: str) -> Callable[[Request], Caller]:
    def check(request: Request) -> Caller:
        kept = request.cookies.get(COOKIE)
        found = by_session(desk_of(request), kept) if kept else None
        if found is None or found.role != role:
            raise SignInFirst
        request.scope["caller"] = found
        return found

    return check


Owner = Annotated[Caller, Depends(_signed_in("owner"))]
Recipient = Annotated[Caller, Depends(_signed_in("recipient"))]

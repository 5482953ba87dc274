"""Rendering of web pages from Jinja templates, and access control for pages of signed-in users."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sfumato.service.authentication import COOKIE, Caller, caller_by_session
from sfumato.service.context import context_of

WEB_ROOT = Path(str(resources.files(__package__)))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(WEB_ROOT / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["day"] = lambda moment: str(moment)[:10]
    environment.filters["minute"] = lambda moment: str(moment)[:16].replace("T", " ")
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["percent"] = lambda share: f"{share:.1%}"
    environment.filters["level"] = lambda level: level if isinstance(level, str) else f"{level:.4g}"
    return environment


def render(template: str, caller: Caller | None, status: int = 200, **variables: Any) -> HTMLResponse:
    """Render a template for a caller, or for an anonymous visitor."""
    csrf = caller.session.csrf if caller and caller.session else ""
    page = _environment().get_template(template).render(caller=caller, csrf=csrf, **variables)
    return HTMLResponse(page, status)


def service_url(request: Request) -> str:
    """The base URL of this service as its users see it, which is always https behind a TLS proxy."""
    base = str(request.base_url).rstrip("/")
    return base.replace("http://", "https://", 1) if context_of(request).settings.secure else base


class SignInRequired(Exception):
    """The requested page is for signed-in users of another role, or the visitor is not signed in."""


def signed_in_caller(request: Request) -> Caller | None:
    """The user of a signed-in browser, or None."""
    cookie = request.cookies.get(COOKIE)
    return caller_by_session(context_of(request), cookie) if cookie else None


def _signed_in(role: str) -> Callable[[Request], Caller]:
    """A dependency that admits only signed-in users with a role."""

    def check(request: Request) -> Caller:
        caller = signed_in_caller(request)
        if caller is None or caller.role != role:
            raise SignInRequired
        request.scope["caller"] = caller
        return caller

    return check


Owner = Annotated[Caller, Depends(_signed_in("owner"))]
Recipient = Annotated[Caller, Depends(_signed_in("recipient"))]

"""Access control for the pages of signed-in users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request

from sfumato.service.authentication import Caller, caller_by_session, cookie_name
from sfumato.service.context import context_of


def service_url(request: Request) -> str:
    """The base URL of this service as its users see it, which is always https behind a TLS proxy."""
    base = str(request.base_url).rstrip("/")
    return base.replace("http://", "https://", 1) if context_of(request).settings.secure else base


class SignInRequired(Exception):
    """The requested page is for signed-in users of another role, or the visitor is not signed in."""


def signed_in_caller(request: Request) -> Caller | None:
    """The user of a signed-in browser, or None."""
    context = context_of(request)
    cookie = request.cookies.get(cookie_name(context.settings))
    return caller_by_session(context, cookie) if cookie else None


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

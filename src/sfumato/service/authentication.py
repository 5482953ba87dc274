"""Who asks: somebody with a token, a signed-in browser, or nobody; and what they may do."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from sfumato.service.context import ServiceContext, desk_of
from sfumato.service.problems import Refused
from sfumato.service.state import Session, hash_of
from sfumato.vault import operators, tokens

COOKIE = "sfumato_session"

_SAFE = ("GET", "HEAD", "OPTIONS")
_bearer = HTTPBearer(auto_error=False, description="A token, as `sfumato token` hands it out.")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False, description="A signed-in browser.")


@dataclass(frozen=True)
class Caller:
    """Somebody who is known."""

    role: str
    """`owner` or `recipient`."""
    name: str
    scopes: frozenset[str]
    session: Session | None = None

    @property
    def actor(self) -> str:
        """Who the ledger says it was."""
        return f"{self.role} {self.name}"


Shown = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
Kept = Annotated[str | None, Depends(_cookie)]


def caller(request: Request, shown: Shown, kept: Kept) -> Caller:
    """Who asks; refused if nobody knows."""
    desk = desk_of(request)
    if shown is not None:
        found = by_token(desk, shown.credentials)
    else:
        found = by_session(desk, kept) if kept else None
        if found is not None:
            check_own_page(request, found)
    if found is None:
        desk.gate.failed(request)
        raise Refused(
            401,
            "A token that is in force, or a signed-in browser, is needed.",
            WWW_Authenticate='Bearer realm="sfumato"',
        )
    desk.gate.admit(found.actor)
    request.scope["caller"] = found
    return found


Known = Annotated[Caller, Depends(caller)]


def by_token(desk: ServiceContext, shown: str) -> Caller | None:
    """Whose token this is."""
    token = desk.bearers.ask(hash_of(shown), lambda: tokens.bearer(desk.vault, shown))
    if token is None or not token.in_force(desk.vault.now()):
        return None
    name = token.holder or f"token {token.id}"
    return Caller("recipient" if token.holder else "owner", name, frozenset(token.scopes))


def by_session(desk: ServiceContext, secret: str) -> Caller | None:
    """Whose browser this is; a recipient's as long as its token, an operator's as long as its account is in force."""
    session = desk.state.session(secret)
    if session is None:
        return None
    if session.operator:
        same = str(operators.enrolment(desk.vault, session.operator)) == session.token
        return Caller("owner", session.operator, frozenset(tokens.OWNER), session) if same else None
    token = tokens.named(desk.vault, session.token)
    return None if token is None else Caller("recipient", token.holder, frozenset(token.scopes), session)


def check_own_page(request: Request, found: Caller) -> None:
    """Refuse a change that a page of somebody else asks the browser for."""
    if request.method in _SAFE or found.session is None:
        return
    shown = request.headers.get("x-csrf-token", "")
    if not hmac.compare_digest(shown.encode(), found.session.csrf.encode()):
        raise Refused(403, "A change from a browser must come from a page of this service; load the page again.")


def allowed(role: str, scope: str) -> Callable[[Caller], Caller]:
    """Let only callers of a role with a scope pass."""

    def check(found: Known) -> Caller:
        if found.role != role or scope not in found.scopes:
            raise Refused(403, f"This needs a token of the {role}'s with the scope {scope}.")
        return found

    return check


Reader = Annotated[Caller, Depends(allowed("owner", "read"))]
Writer = Annotated[Caller, Depends(allowed("owner", "write"))]

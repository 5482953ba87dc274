"""Authentication and authorisation of requests, by bearer token or by the session cookie of a signed-in browser."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from sfumato.ledger.ledger import Origin
from sfumato.service.context import ServiceContext, context_of
from sfumato.service.problems import HTTPProblem
from sfumato.service.settings import Settings
from sfumato.service.state import Session, hash_of
from sfumato.vault import Vault, operators, tokens

_COOKIE = "sfumato_session"

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_bearer = HTTPBearer(auto_error=False, description="A token issued with `sfumato token add`.")
_cookie = APIKeyCookie(
    name=f"__Host-{_COOKIE}",
    auto_error=False,
    description="The session cookie of a signed-in browser; with `--insecure`, its name has no prefix.",
)


@dataclass(frozen=True)
class Caller:
    """An authenticated caller."""

    role: str
    """`owner` or `recipient`."""
    name: str
    scopes: frozenset[str]
    session: Session | None = None
    token: str = ""
    """The id of the token that was used, now or to sign in; empty for an operator."""
    address: str = ""

    @property
    def origin(self) -> Origin:
        """The caller as recorded in the access log."""
        return Origin(f"token {self.token}" if self.token else self.actor, self.address)

    def acting(self, vault: Vault) -> Vault:
        """The vault, with the caller recorded in new entries and in the access log."""
        return vault.acting_as(self.actor, self.origin)

    @property
    def actor(self) -> str:
        """The caller's name as recorded in the ledger."""
        return f"{self.role} {self.name}"


BearerToken = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def cookie_name(settings: Settings) -> str:
    """The name of the session cookie; over TLS it has the prefix with which no other host or path can set it."""
    return f"__Host-{_COOKIE}" if settings.secure else _COOKIE


def _session_cookie(request: Request, _: Annotated[str | None, Depends(_cookie)]) -> str | None:
    return request.cookies.get(cookie_name(context_of(request).settings))


SessionCookie = Annotated[str | None, Depends(_session_cookie)]


def authenticate(request: Request, bearer: BearerToken, cookie: SessionCookie) -> Caller:
    """The caller of a request; raises 401 if there is no valid token or session."""
    context = context_of(request)

    def identify() -> Caller | None:
        if bearer is not None:
            return caller_by_token(context, bearer.credentials)
        return caller_by_session(context, cookie) if cookie else None

    caller = identify()
    if caller is not None:
        check_csrf(request, caller)
    else:
        context.limiter.record_invalid_token(request)
        raise HTTPProblem(
            401,
            "A valid token or a signed-in browser session is required; get a token that is in force, or sign in.",
            WWW_Authenticate='Bearer realm="sfumato"',
        )
    context.limiter.check_caller(caller.actor)
    caller = replace(caller, address=context.limiter.client_address(request))
    context.record_use(caller.actor, caller.origin)
    request.scope["caller"] = caller
    request.scope["identify"] = identify  # a long response asks again whether its caller is still admitted
    return caller


Authenticated = Annotated[Caller, Depends(authenticate)]


def caller_by_token(context: ServiceContext, text: str) -> Caller | None:
    """The holder of a bearer token, if the token is in force."""
    token = context.token_cache.get(hash_of(text), lambda: tokens.authenticate(context.vault, text))
    if token is None or not token.is_active(context.vault.now()) or tokens.LINK in token.scopes:
        return None  # programs can do nothing with a link
    name = token.holder or f"token {token.id}"
    return Caller("recipient" if token.holder else "owner", name, frozenset(token.scopes), token=token.id)


def caller_by_session(context: ServiceContext, secret: str) -> Caller | None:
    """The user of a signed-in browser, as long as the recipient's token or the operator's account is in force."""
    session = context.state.session(secret)
    if session is None:
        return None
    if session.operator:
        found = operators.find(context.vault, session.operator)
        if found is None or str(found.enrolment) != session.token:
            return None
        return Caller("owner", found.name, frozenset(found.scopes), session)
    token = tokens.find(context.vault, session.token)
    scopes = frozenset(tokens.RECIPIENT[:1])  # after signing in with a link, too
    return None if token is None else Caller("recipient", token.holder, scopes, session, token.id)


def check_csrf(request: Request, caller: Caller) -> None:
    """Refuse a state-changing browser request without the session's CSRF token."""
    if request.method in _SAFE_METHODS or caller.session is None:
        return
    token = request.headers.get("x-csrf-token", "")
    if not hmac.compare_digest(token.encode(), caller.session.csrf.encode()):
        raise HTTPProblem(403, "The CSRF token is missing or wrong; reload the page and try again.")


def require(role: str, scope: str) -> Callable[[Caller], Caller]:
    """A dependency that admits only callers with a role and a scope."""

    def check(caller: Authenticated) -> Caller:
        if caller.role == role and scope not in caller.scopes and caller.session is not None:
            raise HTTPProblem(403, f"Your role lacks the scope {scope}, which this needs; ask an administrator.")
        if caller.role != role or scope not in caller.scopes:
            raise HTTPProblem(403, f"This endpoint requires a token of the {role} with the scope {scope}.")
        return caller

    return check


Reader = Annotated[Caller, Depends(require("owner", "read"))]
Writer = Annotated[Caller, Depends(require("owner", "write"))]
Eraser = Annotated[Caller, Depends(require("owner", "erase"))]
Administrator = Annotated[Caller, Depends(require("owner", "team"))]

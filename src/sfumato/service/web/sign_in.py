"""Sign-in and sign-out pages: operators sign in with a password, recipients with their token."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from sfumato.ledger.ledger import Origin
from sfumato.service.authentication import cookie_name
from sfumato.service.context import ServiceContext, context_of
from sfumato.service.problems import HTTPProblem
from sfumato.service.web.rendering import SignInRequired, signed_in_caller
from sfumato.service.web.templating import WEB_ROOT, render
from sfumato.vault import operators, tokens
from sfumato.vault.tokens import Token

router = APIRouter()

_MAX_NAME = 100
"""The most characters of an operator's name."""

_FAILED = "Sign-in failed: check your token, or your name and password, and try again."
_LINK_USED = "This link cannot be used: it works once, and until its last day. Ask the data owner for another one."
_WRONG_ORIGIN = "The sign-in form must be sent from this service's own page; open it and sign in there."


def mount(app: FastAPI) -> None:
    """Serve styles and scripts, and redirect visitors who must sign in to the sign-in page."""
    app.mount("/static", StaticFiles(directory=WEB_ROOT / "static"), name="static")

    @app.exception_handler(SignInRequired)
    async def redirect_to_sign_in(_: Request, __: SignInRequired) -> Response:
        return RedirectResponse("/signin", 303)


@router.get("/")
def home(request: Request) -> Response:
    """Redirect to the caller's start page."""
    caller = signed_in_caller(request)
    return RedirectResponse("/signin" if caller is None else "/console" if caller.role == "owner" else "/mine", 303)


@router.get("/signin")
def sign_in_page(request: Request) -> Response:
    """Page with the sign-in forms."""
    if signed_in_caller(request) is not None:
        return RedirectResponse("/", 303)
    return sign_in_form(context_of(request))


@router.get("/open")
def open_page(request: Request) -> Response:
    """Page that a link leads to; the link's secret is in the address after #, which no server and no log sees."""
    caller = signed_in_caller(request)
    return render("open.html", None, signed_in=caller.name if caller else "")


@router.post("/signin")
async def sign_in(request: Request) -> Response:
    """Sign in with name and password, or with a token."""
    _check_origin(request)
    form = {name: values[0] for name, values in parse_qs((await request.body()).decode("utf-8", "replace")).items()}
    return await asyncio.to_thread(_sign_in, request, form)


@router.post("/signout")
async def sign_out(request: Request) -> Response:
    """Sign out."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    context = context_of(request)

    def end_session() -> None:
        caller = signed_in_caller(request)
        if caller is not None and caller.session is not None:
            if form.get("csrf") != [caller.session.csrf]:
                raise HTTPProblem(403, "The CSRF token is missing or wrong; sign out from a page of this service.")
            context.state.sign_out(caller.session)

    await asyncio.to_thread(end_session)
    response = RedirectResponse("/signin", 303)
    secure = context.settings.secure
    response.delete_cookie(cookie_name(context.settings), secure=secure, httponly=True, samesite="strict")
    return response


def _sign_in(request: Request, form: dict[str, str]) -> Response:
    context = context_of(request)
    account = "" if "token" in form else form.get("name", "").strip()[:_MAX_NAME]
    with context.limiter.sign_in(request, account) as succeeded:
        identity, link = _verified(context, account, form)
        secret = None if identity is None else started_session(request, account, identity, link)
        if secret is None:
            return sign_in_form(context, 401, _LINK_USED if form.get("link") else _FAILED)
        succeeded()
        if account:
            actor = f"owner {account}"
            context.record_use(actor, Origin(actor, context.limiter.client_address(request)))
    response = RedirectResponse("/console" if account else "/mine", 303)
    return with_session(response, context, secret)


def with_session(response: Response, context: ServiceContext, secret: str) -> Response:
    """A response that gives a session to the browser."""
    response.set_cookie(
        cookie_name(context.settings),
        secret,
        max_age=context.settings.session_hours * 3600,
        httponly=True,
        secure=context.settings.secure,
        samesite="strict",
        path="/",
    )
    return response


def sign_in_form(context: ServiceContext, status: int = 200, error: str = "") -> Response:
    """The page with the sign-in forms."""
    provider = context.settings.openid
    return render("signin.html", None, status, error=error, provider=provider and provider.name)


def _verified(context: ServiceContext, account: str, form: dict[str, str]) -> tuple[str | None, Token | None]:
    """The id of a recipient's token, or the number of an operator's enrolment, None if refused; and the link used."""
    if "token" in form:
        token = tokens.authenticate(context.vault, form["token"].strip())
        if token is None or not token.holder:
            return None, None
        return token.id, token if tokens.LINK in token.scopes else None
    if not operators.verify_password(context.vault, account, form.get("password", "")):
        return None, None
    found = operators.find(context.vault, account)
    return None if found is None else str(found.enrolment), None


def started_session(request: Request, account: str, identity: str, link: Token | None) -> str | None:
    """The secret of a new session, which ends the one before; None if a link was used already."""
    context, before = context_of(request), signed_in_caller(request)
    secret, session = context.state.sign_in(account, identity, context.settings.session_hours)
    if link is not None and not tokens.open_link(context.vault, link):  # after what may fail, so that no link is lost
        context.state.sign_out(session)
        return None
    if before is not None and before.session is not None:
        context.state.sign_out(before.session)
    return secret


def _check_origin(request: Request) -> None:
    """Refuse a form that was sent from a page of another site."""
    origin = request.headers.get("origin")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPProblem(403, _WRONG_ORIGIN)
    if origin not in (None, "null") and urlsplit(str(origin)).netloc != request.headers.get("host"):
        raise HTTPProblem(403, _WRONG_ORIGIN)

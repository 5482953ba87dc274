"""The entrance: operators sign in with a password, recipients with their token."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from sfumato.service.authentication import COOKIE, Caller, by_session
from sfumato.service.context import ServiceContext, desk_of
from sfumato.service.problems import Refused
from sfumato.service.web.rendering import HERE, SignInFirst, render
from sfumato.vault import operators, tokens

router = APIRouter()


def mount(app: FastAPI) -> None:
    """Style and scripts, and the way to the entrance for whoever is not signed in."""
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")

    @app.exception_handler(SignInFirst)
    async def to_the_entrance(_: Request, __: SignInFirst) -> Response:
        return RedirectResponse("/signin", 303)


@router.get("/")
def start(request: Request) -> Response:
    """To whatever page is the caller's."""
    who = _who(request)
    return RedirectResponse("/signin" if who is None else "/console" if who.role == "owner" else "/mine", 303)


@router.get("/signin")
def signin(request: Request) -> Response:
    """The form."""
    return RedirectResponse("/", 303) if _who(request) is not None else render("signin.html", None, wrong="")


@router.post("/signin")
async def enter(request: Request) -> Response:
    """Sign in, by name and password or by token."""
    _check_origin(request)
    said = {name: values[0] for name, values in parse_qs((await request.body()).decode("utf-8", "replace")).items()}
    return await asyncio.to_thread(_entered, request, said)


@router.post("/signout")
async def leave(request: Request) -> Response:
    """Sign out."""
    said = parse_qs((await request.body()).decode("utf-8", "replace"))
    desk = desk_of(request)

    def left() -> None:
        who = _who(request)
        if who is not None and who.session is not None:
            if said.get("csrf") != [who.session.csrf]:
                raise Refused(403, "Sign out from a page of this service.")
            desk.state.sign_out(who.session)

    await asyncio.to_thread(left)
    answer = RedirectResponse("/signin", 303)
    answer.delete_cookie(COOKIE)
    return answer


def _entered(request: Request, said: dict[str, str]) -> Response:
    desk = desk_of(request)
    desk.gate.knock(request)
    name, token = "", ""
    if "token" in said:
        found = tokens.bearer(desk.vault, said["token"].strip())
        known, token = found is not None and bool(found.holder), found.id if found else ""
    else:
        name = said.get("name", "").strip()
        known = operators.is_right(desk.vault, name, said.get("password", ""))
        token = str(operators.enrolment(desk.vault, name)) if known else ""
    if not known:
        desk.gate.failed(request)
        return render("signin.html", None, 401, wrong="That did not open anything. Look at it again.")
    return _let_in(desk, name, token)


def _let_in(desk: ServiceContext, name: str, token: str) -> Response:
    secret, _ = desk.state.sign_in(name, token, desk.settings.session)
    answer = RedirectResponse("/console" if name else "/mine", 303)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=desk.settings.session * 3600,
        httponly=True,
        secure=desk.settings.secure,
        samesite="strict",
        path="/",
    )
    return answer


def _who(request: Request) -> Caller | None:
    kept = request.cookies.get(COOKIE)
    return by_session(desk_of(request), kept) if kept else None


def _check_origin(request: Request) -> None:
    """Refuse a form that another site's page sends."""
    origin = request.headers.get("origin")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "Sign in from the page of this service.")
    if origin not in (None, "null") and urlsplit(str(origin)).netloc != request.headers.get("host"):
        raise Refused(403, "Sign in from the page of this service.")

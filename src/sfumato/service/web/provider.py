"""Sign-in of operators at an OpenID Connect provider: where they are sent, and where they come back."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.ledger.ledger import Origin
from sfumato.service.authentication import cookie_name
from sfumato.service.context import ServiceContext, context_of
from sfumato.service.openid import Begun
from sfumato.service.problems import HTTPProblem
from sfumato.service.web.rendering import service_url
from sfumato.service.web.sign_in import sign_in_form, started_session, with_session
from sfumato.service.web.templating import render
from sfumato.vault import operators

router = APIRouter()

_BEGUN_SECONDS = 600
"""How long a browser may be at the provider."""


@router.get("/signin/openid")
async def sign_in_there(request: Request) -> Response:
    """Go to the OpenID Connect provider, which sends the browser back to `signed_in_there`."""
    context = context_of(request)
    if context.openid is None:
        raise HTTPProblem(404, "This service knows no OpenID Connect provider; sign in with a password.")
    try:
        url, begun = await context.openid.begin(_callback(request))
    except HTTPProblem as problem:
        return await asyncio.to_thread(sign_in_form, context, problem.status_code, problem.detail)
    response = RedirectResponse(url, 303)
    response.set_cookie(
        _begun_name(context),
        str(begun),
        max_age=_BEGUN_SECONDS,
        httponly=True,
        secure=context.settings.secure,
        samesite="lax",  # the provider's page sends the browser back, which is another site
        path="/",
    )
    return response


@router.get("/signin/openid/callback")
async def signed_in_there(request: Request) -> Response:
    """Where the browser comes back from the OpenID Connect provider."""
    context = context_of(request)
    if context.openid is None:
        raise HTTPProblem(404, "This service knows no OpenID Connect provider; sign in with a password.")
    kept = Begun.of(request.cookies.get(_begun_name(context), ""))
    try:
        begun = context.openid.check_begun(request.query_params, kept)  # any page can send its visitors here
        with context.limiter.sign_in(request, "") as succeeded:
            identity = await context.openid.identity(request.query_params, begun, _callback(request))
            response = await asyncio.to_thread(_admit, request, identity)
            succeeded()
    except HTTPProblem as problem:
        response = await asyncio.to_thread(sign_in_form, context, problem.status_code, problem.detail)
    response.delete_cookie(_begun_name(context), secure=context.settings.secure, httponly=True, samesite="lax")
    return response


def _admit(request: Request, identity: str) -> Response:
    """Start the session of the operator whom the provider confirmed."""
    context = context_of(request)
    found = operators.find_by_identity(context.vault, identity)
    if found is None:
        raise HTTPProblem(
            403, f"{identity} is no operator here; an administrator adds one on the page Team, with this identity."
        )
    secret = started_session(request, found.name, str(found.enrolment), None)
    actor = f"owner {found.name}"
    context.record_use(actor, Origin(actor, context.limiter.client_address(request)))
    # Not a redirect: a browser sends the session's cookie only where a page of this service leads.
    return with_session(render("welcome.html", None), context, str(secret))


def _callback(request: Request) -> str:
    return f"{service_url(request)}/signin/openid/callback"


def _begun_name(context: ServiceContext) -> str:
    """The name of the cookie with what a browser keeps while it is at the provider."""
    return cookie_name(context.settings) + "_openid"

"""Web pages for surveys: the owner's console pages, and the page on which respondents answer."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

from sfumato.errors import UnknownSubject
from sfumato.service.api import schemas
from sfumato.service.context import context_of
from sfumato.service.web.rendering import Owner, service_url
from sfumato.service.web.templating import not_found, render
from sfumato.survey.example import EXAMPLE

router = APIRouter()

BROWSER = Path(str(resources.files("sfumato.survey"))) / "browser"
"""Folder of the JavaScript module that perturbs answers, which is also an npm package."""


def mount(app: FastAPI) -> None:
    """Serve the respondents' JavaScript module to pages of any origin."""
    app.mount("/survey", StaticFiles(directory=BROWSER), name="survey")


@cache
def integrity(name: str) -> str:
    """The subresource integrity value of a script, so that browsers refuse an altered one."""
    digest = hashlib.sha384((BROWSER / name).read_bytes()).digest()
    return f"sha384-{base64.b64encode(digest).decode()}"


@router.get("/answer/{survey}")
def answer_page(request: Request, survey: schemas.Name) -> Response:
    """Page on which respondents answer a survey."""
    context = context_of(request)
    try:
        known = context.surveys.get(survey)
    except UnknownSubject:
        known = None
    if known is None or known.state == "draft":
        return not_found(None, "There is no such survey; check the link.")
    return render("answer.html", None, known=known, integrity=integrity)


@router.get("/console/surveys")
def surveys_page(request: Request, caller: Owner) -> Response:
    """Page with all surveys, and a form for a new one."""
    return render("surveys.html", caller, surveys=context_of(request).surveys.summaries(), example=EXAMPLE)


@router.get("/console/surveys/{survey}")
def survey_page(request: Request, survey: schemas.Name, caller: Owner) -> Response:
    """Page of one survey with its live results."""
    surveys = context_of(request).surveys
    try:
        known = surveys.get(survey)
    except UnknownSubject as error:
        return not_found(caller, str(error))
    return render(
        "survey.html",
        caller,
        known=known,
        now=surveys.status(survey),
        service_url=service_url(request),
        integrity=integrity,
    )

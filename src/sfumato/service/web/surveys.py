"""Pages about surveys: the owner's, and the one on which people answer."""

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
from sfumato.service.api import schemas as shapes
from sfumato.service.context import desk_of
from sfumato.service.web.rendering import Owner, here, render
from sfumato.survey.example import EXAMPLE

router = APIRouter()

BROWSER = Path(str(resources.files("sfumato.survey"))) / "browser"
"""The module that blurs answers, which is also an npm package."""


def mount(app: FastAPI) -> None:
    """Serve the module, to this service's own page and to any other site's."""
    app.mount("/survey", StaticFiles(directory=BROWSER), name="survey")


@cache
def integrity(name: str) -> str:
    """What a page must say of a file, so that browsers run nothing else."""
    digest = hashlib.sha384((BROWSER / name).read_bytes()).digest()
    return f"sha384-{base64.b64encode(digest).decode()}"


@router.get("/answer/{survey}")
def answer(request: Request, survey: shapes.Name) -> Response:
    """The page on which people answer."""
    desk = desk_of(request)
    try:
        known = desk.surveys.known(survey)
    except UnknownSubject:
        known = None
    if known is None or known.state == "draft":
        return render("missing.html", None, 404, text="There is no such survey. Look at the link again.")
    return render("answer.html", None, known=known, integrity=integrity)


@router.get("/console/surveys")
def listed(request: Request, who: Owner) -> Response:
    """All surveys, and a draft of a new one."""
    return render("surveys.html", who, surveys=desk_of(request).surveys.listed(), example=EXAMPLE)


@router.get("/console/surveys/{survey}")
def survey(request: Request, survey: shapes.Name, who: Owner) -> Response:
    """One survey: what came in, as it comes in."""
    surveys = desk_of(request).surveys
    try:
        known = surveys.known(survey)
    except UnknownSubject as error:
        return render("missing.html", who, 404, text=str(error))
    return render("survey.html", who, known=known, now=surveys.status(survey), here=here(request), integrity=integrity)

"""Web pages for surveys: the owner's console pages, and the page on which respondents answer."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from sfumato.errors import UnknownSubject
from sfumato.service.api import schemas
from sfumato.service.authentication import Caller
from sfumato.service.context import context_of
from sfumato.service.web.rendering import Owner, service_url
from sfumato.service.web.templating import WEB_ROOT, not_found, render
from sfumato.survey.definition import Survey
from sfumato.survey.example import EXAMPLE
from sfumato.survey.invitations import SMALLEST
from sfumato.survey.weights import weighable

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


MODULES = ("sfumato-messages.js", "sfumato-perturbation.js", "sfumato-survey.js", "sfumato-form.js")
"""The scripts of a form, each of which needs those before it."""

LANGUAGES = {"en": "English", "de": "Deutsch", "ar": "العربية"}
"""The languages in which the form speaks: the catalogues of `sfumato-messages.js`."""


def _languages(survey: Survey) -> dict[str, str]:
    """The languages in which a page can be shown: those of the form, of translations and of the author."""
    tags = [*([survey.language] if survey.language else []), *(one.language for one in survey.translations)]
    return LANGUAGES | {tag: tag for tag in tags if tag not in LANGUAGES}


def _language(request: Request, wanted: str, survey: Survey) -> str:
    """The language of a page: the one asked for, else the browser's most preferred one that there are texts in."""
    offered = {tag.lower(): tag for tag in _languages(survey)}
    for tag in [wanted, *_accepted(request.headers.get("accept-language", ""))]:
        for one in (tag.lower(), tag.lower().split("-")[0]):
            if one in offered:
                return offered[one]
    return "en"


def _accepted(header: str) -> list[str]:
    """The tags of a header Accept-Language, the most preferred first (RFC 9110, 12.5.4)."""
    found = []
    for part in header.split(","):
        tag, _, weight = part.partition(";q=")
        with contextlib.suppress(ValueError):
            found.append((-float(weight or 1), tag.strip()))
    return [tag for _, tag in sorted(found, key=lambda one: one[0])]


@router.get("/answer-worker.js")
def answer_worker() -> Response:
    """The script that opens respondents' pages without a connection; its address allows it to, for pages below it."""
    return FileResponse(WEB_ROOT / "static" / "answer-worker.js", media_type="text/javascript")


@router.get("/answer/{survey}")
def answer_page(request: Request, survey: schemas.Name, lang: Annotated[str, Query(max_length=40)] = "") -> Response:
    """Page on which respondents answer a survey."""
    context = context_of(request)
    try:
        known = context.surveys.get(survey)
    except UnknownSubject:
        known = None
    if known is None or known.state == "draft":
        return not_found(None, "There is no such survey; check the link.")
    chosen = _language(request, lang, known.survey)
    translated = {one.language: one.title for one in known.survey.translations if one.title}
    return render(
        "answer.html",
        None,
        known=known,
        integrity=integrity,
        modules=MODULES,
        lang=chosen,
        languages=_languages(known.survey),
        title=translated.get(chosen, known.survey.title),
    )


@router.get("/console/surveys")
def surveys_page(request: Request, caller: Owner) -> Response:
    """Page with all surveys."""
    return render("surveys.html", caller, surveys=context_of(request).surveys.summaries())


@router.get("/console/new-survey")
def new_survey_page(
    request: Request, caller: Owner, like: Annotated[str, Query(max_length=200, alias="from")] = ""
) -> Response:
    """Page on which a survey is built, from an example or as a duplicate of another one."""
    if not like:
        return _builder(caller, "", Survey.loads(EXAMPLE), invited=False)
    try:
        known = context_of(request).surveys.get(like)
    except UnknownSubject as error:
        return not_found(caller, str(error))
    return _builder(caller, "", known.survey, invited=known.invited)


@router.get("/console/surveys/{survey}/edit")
def edit_survey_page(request: Request, survey: schemas.Name, caller: Owner) -> Response:
    """Page on which the draft of a survey is changed."""
    try:
        known = context_of(request).surveys.get(survey)
    except UnknownSubject as error:
        return not_found(caller, str(error))
    if known.state != "draft":
        return not_found(caller, f"The survey {survey} was opened and cannot be changed; duplicate it instead.")
    return _builder(caller, survey, known.survey, invited=known.invited)


def _builder(caller: Caller, name: str, survey: Survey, *, invited: bool) -> Response:
    document = json.dumps(survey.as_listed(), ensure_ascii=False)
    return render("survey_builder.html", caller, name=name, document=document, invited=invited, languages=LANGUAGES)


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
        groups=surveys.groups(survey),
        smallest=SMALLEST,
        weighable=weighable(known.survey),
        service_url=service_url(request),
        integrity=integrity,
        modules=MODULES,
    )

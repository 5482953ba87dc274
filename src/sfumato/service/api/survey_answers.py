"""Public API endpoints for survey respondents: get a survey and its guidance, and submit perturbed answers.

Respondents are anonymous: these endpoints use no names, cookies or tokens, and accept requests from any origin.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from sfumato.errors import UnknownSubject
from sfumato.service.answer_queue import CLOSED
from sfumato.service.api import schemas
from sfumato.service.context import ServiceContext, context_of
from sfumato.service.problems import HTTPProblem, problem_responses
from sfumato.survey import rows
from sfumato.survey.invitations import Counted
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import RegisteredSurvey

_ENOUGH = "Enough people of your group have answered: yours counts if it came before, and was not stored else."
"""Said of used tickets, too, so that nobody finds out which are."""

router = APIRouter(prefix="/api/v1/respond", tags=["respondents"], responses=problem_responses(404, 409, 410))

Ticket = Annotated[
    str, Field(pattern=r"^[0-9a-f]{32}$", description="Drawn at random by the device, or sent with an invitation.")
]
Row = Annotated[list[Annotated[int, Field(ge=0, le=63, strict=True)]], Field(max_length=13_000)]


class PublishedSurvey(BaseModel):
    """A survey as respondents' devices see it."""

    survey: str
    state: str
    """`open` or `closed`."""
    definition: str
    """The definition as JSON in one string."""
    version: str
    """The hash of the definition."""
    wanted: bool
    """Whether a guided survey still needs unperturbed answers to start with."""


class CurrentGuidance(BaseModel):
    """The current guidance of a guided survey, and the public log of all guidance it has ever published."""

    epoch: int
    matrix: list[list[float]] | None
    digests: list[str]


class Receipts(BaseModel):
    """The receipts of all answers that count, sorted."""

    receipts: list[str]


class NewSubmission(schemas.Body):
    """The fields of every submitted answer."""

    ticket: Ticket
    version: Annotated[str, Field(max_length=64)]
    row: Row


class PerturbedAnswer(NewSubmission):
    """A perturbed answer."""

    level: Annotated[int, Field(ge=0, le=100, strict=True)] = 0
    label: Annotated[int, Field(ge=0, le=63, strict=True)] = 0
    epoch: Annotated[int, Field(ge=0, le=10_000_000, strict=True)] = 0
    used: Annotated[int, Field(ge=0, le=13_000, strict=True)] = 0


class UnperturbedAnswer(NewSubmission):
    """An unperturbed answer of a volunteer, with which a guided survey starts."""

    label: Annotated[int, Field(ge=0, le=63, strict=True)]


class SubmissionResult(BaseModel):
    """Whether an answer was counted; a repeated one is not stored again."""

    counted: bool


@router.get("/{survey}")
async def get_survey(request: Request, survey: schemas.Name) -> PublishedSurvey:
    """Get the definition of a survey."""
    context = context_of(request)
    known = await _published(context, survey)
    wanted = known.survey.mode == "guided" and await asyncio.to_thread(_wants_unperturbed, context, known)
    state = context.surveys.state(known)
    return PublishedSurvey(
        survey=survey, state=state, definition=known.survey.published, version=known.survey.version, wanted=wanted
    )


@router.get("/{survey}/guidance")
async def get_guidance(request: Request, survey: schemas.Name) -> CurrentGuidance:
    """Get the current guidance of a guided survey, which is the same for all respondents."""
    context = context_of(request)
    epoch = await asyncio.to_thread(context.surveys.epoch, await _published(context, survey))
    guidance = epoch.guidance
    return CurrentGuidance(
        epoch=epoch.number,
        matrix=None if guidance is None else guidance.matrix.tolist(),
        digests=list(epoch.digests),
    )


@router.get("/{survey}/receipts")
async def get_receipts(request: Request, survey: schemas.Name) -> Receipts:
    """Get the receipts of all answers that count, so that a device can look for its own without saying which it is.

    They are published when the survey has closed: before, a new one would tell when somebody answered. Those of invited
    people are not, since the sender of an invitation could look for its receipt.
    """
    context = context_of(request)
    known = await _published(context, survey)
    if known.invited:
        raise HTTPProblem(409, "A survey for invited people publishes no receipts: they would tell who answered.")
    if context.surveys.state(known) != "closed":
        raise HTTPProblem(409, "The receipts are published when the survey has closed; ask again then.")
    return Receipts(receipts=await asyncio.to_thread(context.surveys.collector.receipts, known.name))


@router.post("/{survey}/answers", status_code=201)
async def submit_answer(
    request: Request, response: Response, survey: schemas.Name, body: PerturbedAnswer
) -> SubmissionResult:
    """Submit a perturbed answer. A ticket is counted once, however often it is sent."""
    context = context_of(request)
    known = await _open_survey(context, survey, body.version)
    if known.survey.mode == "randomised":
        rows.check_randomised(known.survey, body.level, body.row)
        submission = Submission(body.ticket, body.level, 0, tuple(body.row))
    else:
        rows.check_guided(known.survey, body.label, body.row)
        latest = await asyncio.to_thread(context.surveys.collector.epochs, survey, known.survey)
        if not (1 <= body.epoch <= latest and 1 <= body.used <= known.survey.width):
            raise HTTPProblem(
                422,
                f"An answer must refer to published guidance (epoch 1 to {latest}) and use 1 to {known.survey.width} "
                f"of its directions, not epoch {body.epoch} and {body.used} directions; load the guidance again.",
            )
        submission = Submission(body.ticket, body.used, body.label, tuple(body.row))
    return _result(response, await context.answer_queue.submit(known, submission))


@router.post("/{survey}/bootstrap", status_code=201)
async def submit_unperturbed_answer(
    request: Request, response: Response, survey: schemas.Name, body: UnperturbedAnswer
) -> SubmissionResult:
    """Submit an unperturbed answer, of which a guided survey needs a few to start with."""
    context = context_of(request)
    known = await _open_survey(context, survey, body.version)
    if known.survey.mode != "guided":
        raise HTTPProblem(409, "Only guided surveys accept unperturbed answers, and this one is randomised.")
    rows.check_unperturbed(known.survey, body.label, body.row)
    submission = Submission(body.ticket, 0, body.label, tuple(body.row))
    return _result(response, await asyncio.to_thread(_store_unperturbed, context, known, submission))


@router.options("/{survey}", include_in_schema=False)
@router.options("/{survey}/{_resource}", include_in_schema=False)
def preflight() -> Response:
    """Answer the CORS preflight request of a page of another origin, without cookies."""
    return Response(
        None, 204, {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "Content-Type"}
    )


def _wants_unperturbed(context: ServiceContext, known: RegisteredSurvey) -> bool:
    return context.surveys.collector.needs_unperturbed(known.name, known.survey)


def _store_unperturbed(context: ServiceContext, known: RegisteredSurvey, submission: Submission) -> Counted:
    if context.surveys.state(context.surveys.get(known.name)) != "open":
        raise HTTPProblem(409, CLOSED)
    return context.surveys.collector.store_unperturbed(known.name, known.survey, submission, invited=known.invited)


async def _published(context: ServiceContext, survey: str) -> RegisteredSurvey:
    """A survey that has been opened; a draft gets the same response as a survey that does not exist."""
    with contextlib.suppress(UnknownSubject):
        known = await context.survey_cache.get(survey, lambda: context.surveys.get(survey))
        if known.state != "draft":
            return known
    raise HTTPProblem(404, f"There is no survey {survey!r}; check the link.")


async def _open_survey(context: ServiceContext, survey: str, version: str) -> RegisteredSurvey:
    known = await _published(context, survey)
    if version != known.survey.version:
        raise HTTPProblem(409, "This answer belongs to another version of the survey; reload the page.")
    if context.surveys.state(known) != "open":
        raise HTTPProblem(409, CLOSED)
    return known


def _result(response: Response, counts: Counted) -> SubmissionResult:
    if counts is None:
        raise HTTPProblem(403, "This survey is for invited people only; open it with the link in your invitation.")
    if counts == "full":
        raise HTTPProblem(409, _ENOUGH)
    response.status_code = 201 if counts else 200
    return SubmissionResult(counted=counts)

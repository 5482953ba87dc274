"""What respondents' devices ask and send: without a name, a cookie or a token, from any site."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from sfumato.errors import UnknownSubject
from sfumato.service.answer_queue import CLOSED
from sfumato.service.api import schemas as shapes
from sfumato.service.context import ServiceContext, desk_of
from sfumato.service.problems import Refused, documented
from sfumato.survey import rows
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import Known

router = APIRouter(prefix="/api/v1/respond", tags=["respondents"], responses=documented(404, 409, 410))

Ticket = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", description="Drawn by the device, or handed out.")]
Row = Annotated[list[Annotated[int, Field(ge=0, le=63, strict=True)]], Field(max_length=13_000)]


class Asked(BaseModel):
    """A survey as devices see it."""

    survey: str
    state: str
    """`open` or `closed`."""
    definition: str
    """The definition as JSON in one text."""
    version: str
    """The hash of that text."""
    wanted: bool
    """Whether unblurred answers are wanted, to begin a guided survey with."""


class Guided(BaseModel):
    """What a guided survey asks for now, and the public log of all it ever asked for."""

    epoch: int
    matrix: list[list[float]] | None
    digests: list[str]


class Sent(shapes.Body):
    """What every answer has."""

    ticket: Ticket
    version: Annotated[str, Field(max_length=64)]
    row: Row


class Answer(Sent):
    """A blurred answer."""

    level: Annotated[int, Field(ge=0, le=100, strict=True)] = 0
    label: Annotated[int, Field(ge=0, le=63, strict=True)] = 0
    epoch: Annotated[int, Field(ge=0, le=10_000_000, strict=True)] = 0
    used: Annotated[int, Field(ge=0, le=13_000, strict=True)] = 0


class Clear(Sent):
    """An unblurred answer of somebody who wants to help a guided survey begin."""

    label: Annotated[int, Field(ge=0, le=63, strict=True)]


class Counted(BaseModel):
    """Whether an answer counts, or had come before; then nothing is stored."""

    counted: bool


@router.get("/{survey}")
async def asked(request: Request, survey: shapes.Name) -> Asked:
    """A survey's definition."""
    desk = desk_of(request)
    known = await _known(desk, survey)
    wanted = known.survey.mode == "guided" and await asyncio.to_thread(_wanted, desk, known)
    state = desk.surveys.state(known)
    return Asked(
        survey=survey, state=state, definition=known.survey.published, version=known.survey.schema, wanted=wanted
    )


@router.get("/{survey}/guidance")
async def guidance(request: Request, survey: shapes.Name) -> Guided:
    """What a guided survey asks for now: the same for all."""
    desk = desk_of(request)
    epoch = await asyncio.to_thread(desk.surveys.epoch, await _known(desk, survey))
    found = epoch.guidance
    return Guided(
        epoch=epoch.number, matrix=None if found is None else found.matrix.tolist(), digests=list(epoch.digests)
    )


@router.post("/{survey}/answers", status_code=201)
async def answer(request: Request, response: Response, survey: shapes.Name, sent: Answer) -> Counted:
    """Send a blurred answer; a ticket counts once, however often it is sent."""
    desk = desk_of(request)
    known = await _open(desk, survey, sent.version)
    if known.survey.mode == "randomised":
        rows.check_randomised(known.survey, sent.level, sent.row)
        taken = Submission(sent.ticket, sent.level, 0, tuple(sent.row))
    else:
        rows.check_guided(known.survey, sent.label, sent.row)
        latest = await asyncio.to_thread(desk.surveys.collector.epochs, survey, known.survey)
        if not (1 <= sent.epoch <= latest and 1 <= sent.used <= known.survey.width):
            raise Refused(422, "The answer must name a guidance that this survey gave out, and directions of it.")
        taken = Submission(sent.ticket, sent.used, sent.label, tuple(sent.row))
    return _said(response, await desk.intake.put(known, taken))


@router.post("/{survey}/bootstrap", status_code=201)
async def bootstrap(request: Request, response: Response, survey: shapes.Name, sent: Clear) -> Counted:
    """Send an unblurred answer, which a guided survey needs some of to begin."""
    desk = desk_of(request)
    known = await _open(desk, survey, sent.version)
    if known.survey.mode != "guided":
        raise Refused(409, "This survey takes no unblurred answers.")
    rows.check_clear(known.survey, sent.label, sent.row)
    taken = Submission(sent.ticket, 0, sent.label, tuple(sent.row))
    return _said(response, await asyncio.to_thread(_take_clear, desk, known, taken))


@router.options("/{survey}", include_in_schema=False)
@router.options("/{survey}/{_what}", include_in_schema=False)
def preflight() -> Response:
    """Let pages of other sites ask, without cookies."""
    return Response(
        None, 204, {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "Content-Type"}
    )


def _wanted(desk: ServiceContext, known: Known) -> bool:
    return desk.surveys.collector.wants_clear(known.name, known.survey)


def _take_clear(desk: ServiceContext, known: Known, sent: Submission) -> bool | None:
    if desk.surveys.state(desk.surveys.known(known.name)) != "open":
        raise Refused(409, CLOSED)
    return desk.surveys.collector.take_clear(known.name, known.survey, sent, invited=known.invited)


async def _known(desk: ServiceContext, survey: str) -> Known:
    """A survey that was opened; of drafts nobody learns that they are there."""
    with contextlib.suppress(UnknownSubject):
        known = await desk.known_surveys.ask(survey, lambda: desk.surveys.known(survey))
        if known.state != "draft":
            return known
    raise Refused(404, f"There is no survey {survey!r}. Look at the link again.")


async def _open(desk: ServiceContext, survey: str, version: str) -> Known:
    known = await _known(desk, survey)
    if version != known.survey.schema:
        raise Refused(409, "This answer is for another version of the survey; load the page again.")
    if desk.surveys.state(known) != "open":
        raise Refused(409, CLOSED)
    return known


def _said(response: Response, counts: bool | None) -> Counted:
    if counts is None:
        raise Refused(403, "This survey is for invited people; open it by the link that you were given.")
    response.status_code = 201 if counts else 200
    return Counted(counted=counts)

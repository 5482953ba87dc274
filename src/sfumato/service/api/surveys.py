"""Surveys, for their owner."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from sfumato.service.api import schemas as shapes
from sfumato.service.api.ledger import shown
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import desk_of
from sfumato.service.problems import documented
from sfumato.survey.results import Quality, Status
from sfumato.survey.surveys import Listed, Surveys

router = APIRouter(prefix="/api/v1/surveys", tags=["surveys"], responses=documented(404))


class NewSurvey(shapes.Body):
    """A definition, in TOML."""

    definition: Annotated[str, Field(max_length=500_000)]
    invited: bool = False


class Turn(shapes.Body):
    """Whether a survey takes answers."""

    state: Literal["open", "closed"]


class NewTickets(shapes.Body):
    """How many people are invited."""

    count: Annotated[int, Field(ge=1, le=100_000)]


class Tickets(BaseModel):
    """Tickets; they are shown here and never again."""

    tickets: list[str]


class Test(shapes.Body):
    """Unblurred answers that a model is tried on."""

    rows: Annotated[list[dict[str, Any]], Field(max_length=100_000, default_factory=list)]


class Judged(BaseModel):
    """How good models are."""

    answers: int
    classes: list[str]
    qualities: list[Quality]


@router.get("")
def listed(request: Request, who: Reader) -> list[Listed]:  # noqa: ARG001
    """All surveys."""
    return desk_of(request).surveys.listed()


@router.put("/{survey}")
def draft(request: Request, survey: shapes.Name, new: NewSurvey, who: Writer) -> shapes.Told:
    """Draft a survey, or draft it again."""
    return shown(_acting(request, who.actor).new(survey, new.definition, invited=new.invited))


@router.patch("/{survey}")
def turn(request: Request, survey: shapes.Name, change: Turn, who: Writer) -> shapes.Told:
    """Open a survey, or close it for good."""
    surveys = _acting(request, who.actor)
    return shown(surveys.open(survey) if change.state == "open" else surveys.close(survey))


@router.get("/{survey}")
def status(request: Request, survey: shapes.Name, who: Reader) -> Status:  # noqa: ARG001
    """Counts, shares with their intervals, and alarms."""
    return desk_of(request).surveys.status(survey)


@router.post("/{survey}/tickets", status_code=201)
def invite(request: Request, survey: shapes.Name, new: NewTickets, who: Writer) -> Tickets:  # noqa: ARG001
    """Tickets for invited people."""
    return Tickets(tickets=desk_of(request).surveys.invite(survey, new.count))


@router.post("/{survey}/model")
def model(request: Request, survey: shapes.Name, test: Test, who: Reader) -> Judged:  # noqa: ARG001
    """Train a naive Bayes and a tree, and say how good they are."""
    found = desk_of(request).surveys.model(survey, test.rows)
    return Judged(answers=found.answers, classes=list(found.classes), qualities=list(found.qualities))


@router.get("/{survey}/rows", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def export(request: Request, survey: shapes.Name, who: Reader) -> Response:  # noqa: ARG001
    """All blurred answers, as CSV."""
    import pyarrow as pa  # noqa: PLC0415 - as below
    import pyarrow.csv  # noqa: PLC0415 - rarely asked for

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(desk_of(request).surveys.export(survey), sink)
    return Response(sink.getvalue().to_pybytes(), media_type="text/csv")


def _acting(request: Request, actor: str) -> Surveys:
    return Surveys(desk_of(request).vault.acting_as(actor))

"""API endpoints for survey owners: create, open and close surveys, invite respondents, and read results."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from sfumato.service.api import schemas
from sfumato.service.api.ledger import ledger_entry
from sfumato.service.authentication import Caller, Eraser, Reader, Writer
from sfumato.service.context import context_of
from sfumato.service.problems import problem_responses
from sfumato.survey.definition import Survey
from sfumato.survey.invitations import Group
from sfumato.survey.planner import plan
from sfumato.survey.surveys import Surveys, SurveySummary

router = APIRouter(prefix="/api/v1/surveys", tags=["surveys"], responses=problem_responses(404))


class NewSurvey(schemas.Body):
    """The definition of a survey in TOML, and whether only invited people may answer."""

    definition: Annotated[str, Field(max_length=500_000)]
    invited: bool = False


class SurveyUpdate(schemas.Body):
    """The new state of a survey."""

    state: Literal["open", "closed"]


class NewTickets(schemas.Body):
    """The number of people to invite, and maybe their group, with the number of its answers that are wanted."""

    count: Annotated[int, Field(ge=1, le=100_000)]
    group: Annotated[str, Field(max_length=100)] = ""
    quota: Annotated[int, Field(ge=1, le=100_000_000)] | None = None


class Tickets(BaseModel):
    """Tickets for invited people, which are returned only once."""

    tickets: list[str]


class TestSet(schemas.Body):
    """Unperturbed answers on which classifiers are tested."""

    rows: Annotated[list[dict[str, Any]], Field(max_length=100_000, default_factory=list)]


class Share(BaseModel):
    """The estimated share of an answer, with its 95 % confidence interval."""

    item: str
    answer: str
    share: float
    low: float
    high: float


class Status(BaseModel):
    """The state of a survey, with the answers received and the shares estimated from them."""

    survey: str
    title: str
    mode: str
    state: str
    deadline: str
    answers: int
    levels: dict[str, int]
    clear: int
    """The number of unperturbed answers, sent to start a guided survey."""
    epoch: int
    alarms: list[str]
    """Reasons to distrust the guidance or the shares."""
    influence: float | None
    """The largest change of a share that one forged answer causes."""
    disclosure: float | None
    """The degree of privacy disclosure of a guided survey: the share of a respondent's information in a row."""
    error: float | None
    """The degree of error of a guided survey: the largest error of a share, or joint share, of answers."""
    fingerprint: str
    shares: list[Share]


class Checked(BaseModel):
    """A definition as text and as a document, and how accurate the survey will be."""

    definition: str
    document: dict[str, Any]
    published: str
    """What respondents' devices receive."""
    version: str
    plan: dict[str, Any] | None
    """None of a guided survey, whose accuracy depends on how people answer."""


class Unchecked(schemas.Body):
    """A definition, as text or as a document, and what to plan for."""

    definition: Annotated[str, Field(max_length=500_000)] | None = None
    document: dict[str, Any] | None = None
    people: Annotated[int, Field(ge=1, le=1_000_000_000)] = 400
    points: Annotated[float, Field(ge=0.01, le=50)] = 5.0


class Definition(BaseModel):
    """The definition of a survey, and whether only invited people may answer."""

    definition: str
    document: dict[str, Any]
    invited: bool
    state: str


class Population(schemas.Body):
    """What is known of the population: the share of each answer to a question."""

    question: Annotated[str, Field(max_length=100)]
    shares: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(max_length=64)]


class Paragraph(BaseModel):
    """A paragraph for a report."""

    text: str


class Cell(BaseModel):
    """The estimated share of respondents with two answers, with its 95 % confidence interval."""

    first: str
    second: str
    share: float
    low: float
    high: float


class Cross(BaseModel):
    """The joint shares of the answers to two questions."""

    first: str
    second: str
    answers: int
    cells: list[Cell]


class Quality(BaseModel):
    """The accuracy of a classifier, with its 95 % confidence interval."""

    model: str
    accuracy: float
    low: float
    high: float
    evaluated_on: str


class ModelQualities(BaseModel):
    """The accuracy of the classifiers of a survey."""

    answers: int
    classes: list[str]
    qualities: list[Quality]


@router.get("")
def list_surveys(request: Request, caller: Reader) -> list[SurveySummary]:  # noqa: ARG001
    """List all surveys."""
    return context_of(request).surveys.summaries()


@router.post("/check")
def check_definition(body: Unchecked, caller: Reader) -> Checked:  # noqa: ARG001
    """Check a definition without storing it, and say how accurate the survey will be."""
    known = Survey.parse(body.document) if body.document is not None else Survey.loads(body.definition or "")
    known.check_protection()
    return Checked(
        definition=known.dumps(),
        document=known.as_listed(),
        published=known.published,
        version=known.version,
        plan=plan(known, body.people, body.points).as_dict() if known.mode == "randomised" else None,
    )


@router.put("/{survey}")
def save_draft(request: Request, survey: schemas.Name, body: NewSurvey, caller: Writer) -> schemas.LedgerEntry:
    """Create the draft of a survey, or replace it."""
    return ledger_entry(_acting(request, caller).new(survey, body.definition, invited=body.invited))


@router.patch("/{survey}")
def open_or_close_survey(
    request: Request, survey: schemas.Name, body: SurveyUpdate, caller: Writer
) -> schemas.LedgerEntry:
    """Open a survey, or close it permanently."""
    surveys = _acting(request, caller)
    return ledger_entry(surveys.open(survey) if body.state == "open" else surveys.close(survey))


@router.delete("/{survey}")
def erase_survey(request: Request, survey: schemas.Name, caller: Eraser) -> schemas.LedgerEntry:
    """Erase all answers to a survey that is not open, for good."""
    return ledger_entry(_acting(request, caller).erase(survey))


@router.get("/{survey}")
def get_survey_status(request: Request, survey: schemas.Name, caller: Reader) -> Status:  # noqa: ARG001
    """Get the number of answers, the estimated shares with confidence intervals, and alarms."""
    return Status(**context_of(request).surveys.status(survey).as_dict())


@router.get("/{survey}/definition")
def get_definition(request: Request, survey: schemas.Name, caller: Reader) -> Definition:  # noqa: ARG001
    """Get the definition of a survey, to look at it, to change a draft or to begin another one with it."""
    surveys = context_of(request).surveys
    known = surveys.get(survey)
    document = known.survey.as_listed()
    return Definition(
        definition=known.survey.dumps(), document=document, invited=known.invited, state=surveys.state(known)
    )


@router.get("/{survey}/cross")
def get_cross_table(request: Request, survey: schemas.Name, first: str, second: str, caller: Reader) -> Cross:  # noqa: ARG001
    """Get the shares of respondents with each pair of answers to two questions."""
    return Cross(**context_of(request).surveys.cross_table(survey, first, second).as_dict())


@router.post("/{survey}/weighted")
def get_weighted_shares(request: Request, survey: schemas.Name, body: Population, caller: Reader) -> list[Share]:  # noqa: ARG001
    """Get the shares of all other answers, if the answers to one question had the shares of the population."""
    found = context_of(request).surveys.weighted(survey, body.question, body.shares)
    return [Share(**one.as_dict()) for one in found]


@router.get("/{survey}/methods")
def get_methods_paragraph(request: Request, survey: schemas.Name, caller: Reader) -> Paragraph:  # noqa: ARG001
    """Get a paragraph about the method of a survey, for a report."""
    return Paragraph(text=context_of(request).surveys.methods(survey))


@router.post("/{survey}/tickets", status_code=201)
def create_tickets(request: Request, survey: schemas.Name, body: NewTickets, caller: Writer) -> Tickets:  # noqa: ARG001
    """Create tickets for invited people."""
    return Tickets(tickets=context_of(request).surveys.invite(survey, body.count, body.group, body.quota))


@router.get("/{survey}/groups")
def list_groups(request: Request, survey: schemas.Name, caller: Reader) -> list[Group]:  # noqa: ARG001
    """List the groups of invited people, with the number of those who answered."""
    return context_of(request).surveys.groups(survey)


@router.post("/{survey}/model")
def evaluate_classifiers(
    request: Request,
    survey: schemas.Name,
    body: TestSet,
    caller: Reader,  # noqa: ARG001
) -> ModelQualities:
    """Train a naive Bayes classifier and a decision tree on the answers, and estimate their accuracy."""
    model = context_of(request).surveys.model(survey, body.rows)
    qualities = [Quality(**quality.as_dict()) for quality in model.qualities]
    return ModelQualities(answers=model.answers, classes=list(model.classes), qualities=qualities)


@router.get(
    "/{survey}/rows",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def export_answers(request: Request, survey: schemas.Name, caller: Reader) -> Response:
    """Export all perturbed answers as CSV."""
    import pyarrow as pa  # noqa: PLC0415 - needed for exports only
    import pyarrow.csv  # noqa: PLC0415 - needed for exports only

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(_acting(request, caller).export(survey), sink)
    return Response(sink.getvalue().to_pybytes(), media_type="text/csv")


def _acting(request: Request, caller: Caller) -> Surveys:
    return Surveys(caller.acting(context_of(request).vault))

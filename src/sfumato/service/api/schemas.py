"""Request and response schemas of the API, as Pydantic models, where the vault has no class of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from sfumato.ledger.chain import Entry

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, dots, dashes and underscores.")]
Filter = Annotated[str | None, Query(pattern=NAME)]
Text = Annotated[str, Field(max_length=10_000)]
Format = Literal["parquet", "csv", "csv.gz", "arrows"]


def files(*media_types: str) -> dict[str, Any]:
    """The content of a response that is a file, for the OpenAPI document."""
    return {media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in media_types}


FILE_BODY = {"requestBody": {"required": True, "content": files("application/vnd.apache.parquet")}}
"""A request whose body is a copy, for the OpenAPI document."""


class Body(BaseModel):
    """A request body, in which unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class LedgerEntry(Entry):
    """A ledger entry with its description as a sentence."""

    sentence: str = ""


class LedgerPage(BaseModel):
    """A page of ledger entries, newest first, with the cursor for the next page."""

    entries: list[LedgerEntry]
    before: int | None


class TableSource(BaseModel):
    """Where a table comes from: an upload, a path in the server's folder of tables, or a source by its name."""

    model_config = ConfigDict(extra="forbid")
    upload: Annotated[str, Field(max_length=80)] | None = None
    path: Annotated[str, Field(max_length=1000)] | None = None
    source: Annotated[str, Field(max_length=100)] | None = None


class NewRows(TableSource):
    """Rows that are added to a dataset, and the reason why other datasets may have them too."""

    accept_overlap: Text | None = None


class NewDataset(NewRows):
    """A table and its policy."""

    policy: Annotated[str, Field(max_length=500_000)]
    traced: bool = False
    replace: bool = False
    """Whether it may replace a dataset of this name, which nobody has a grant for or a copy of."""


class NewVersion(NewRows):
    """A table that replaces the current version of a dataset."""

    replace: bool = False
    """Whether it may lack many of the records."""


class PolicyRequest(TableSource):
    """A table for which a policy should be drafted."""

    dataset: Annotated[str, Field(pattern=NAME)]


class ColumnDraft(BaseModel):
    """A column of an uploaded table, without any value of a single record, and its role in a policy."""

    name: str
    kind: str
    missing: float
    distinct: int
    shares: list[float]
    """The share of the records in each bin of a histogram, or with each named value."""
    labels: list[str]
    """The ends of the histogram, the 1st and the 99th percentile, or the named values."""
    spikes: list[str]
    role: str
    reason: str
    choices: list[str]
    """The roles that this column may have."""


class PolicyDraft(BaseModel):
    """A drafted policy, which the owner should review."""

    policy: str
    roles: dict[str, str]
    levels: dict[str, float]
    columns: list[ColumnDraft]


class PolicyEdit(TableSource):
    """A policy for a table, and what to change in it."""

    policy: Annotated[str, Field(max_length=500_000)]
    roles: dict[str, str] = Field(default_factory=dict, max_length=5000)
    """Other roles of some columns."""
    levels: dict[str, float] | None = None
    """All levels, from the most to the least trusted."""


class PolicyTrial(TableSource):
    """A policy to be tried on a sample of a table."""

    policy: Annotated[str, Field(max_length=500_000)]


class Dataset(BaseModel):
    """A version of a dataset."""

    dataset: str
    table: str = ""
    """The name of the table among those of a dataset of several."""
    version: int
    rows: int
    traced: bool
    columns: dict[str, str]
    levels: dict[str, float]
    changed: str


class NewRecipient(Body):
    """A recipient to be registered."""

    recipient: Annotated[str, Field(pattern=NAME)]
    note: Annotated[str, Field(max_length=2000)] = ""


class RecipientUpdate(Body):
    """Whether a recipient is enabled."""

    enabled: bool


class OperatorUpdate(Body):
    """A password, an identity at the OpenID Connect provider, or a role."""

    password: Annotated[str, Field(max_length=1000)] | None = None
    identity: Annotated[str, Field(max_length=1000)] | None = None
    role: Literal["viewer", "editor", "administrator"] | None = None


class NewPassword(Body):
    """One's own password, and the one that replaces it."""

    current: Annotated[str, Field(max_length=1000)]
    password: Annotated[str, Field(max_length=1000)]


class NewToken(Body):
    """The scopes and the lifetime of a new token."""

    scopes: Annotated[list[str], Field(max_length=10)] | None = None
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    note: Annotated[str, Field(max_length=200)] = ""


class IssuedToken(BaseModel):
    """A new token, whose secret is returned only once."""

    token: str
    id: str
    until: str


class NewGrant(Body):
    """The level of a grant, its columns and rows, and its expiry date."""

    level: Annotated[str, Field(max_length=100)] | float
    columns: Annotated[list[Text], Field(max_length=5000)] | None = None
    where: Text | None = None
    until: Annotated[str, Field(max_length=40)] | None = None


class MyGrant(BaseModel):
    """A grant as its recipient sees it, with what the copy promises."""

    dataset: str
    level: str | float
    fidelity: float
    columns: list[str] | None
    where: str | None
    until: str | None
    version: int
    shown: dict[str, str]
    """The columns of the copy with their types."""
    promises: list[str]
    limits: list[str]
    fetched: str | None = None
    """When a copy was sent last, as far as the access log goes back."""
    fetched_version: int | None = None
    appended: bool = False
    """Whether all versions since then only appended rows, which can be fetched alone."""


class CopyCheck(BaseModel):
    """What the certificate of a copy says, which is as this vault signed it."""

    dataset: str
    version: int | None
    recipient: str | None
    rows: int


class CallerIdentity(BaseModel):
    """The role, the name and the scopes of the caller."""

    role: str
    name: str
    scopes: list[str]


class NewQuestion(Body):
    """A question in SQL about the original of a copy, whose table is called `copy`."""

    question: Annotated[str, Field(min_length=1, max_length=4000)]
    level: Annotated[str, Field(max_length=40)] | None = None


class Answer(BaseModel):
    """An estimated answer: each aggregate has its interval in `_low` and `_high`."""

    answer: list[dict[str, Any]]
    method: str
    """`correction`, `imputation`, or `exact` for unchanged columns alone."""
    how: str
    """How the answer was found, in a sentence."""
    columns: list[str]
    shown: list[list[str]]
    """The rows as texts, each estimate with its interval."""


class NewAudit(Body):
    """The colluding recipients and the attacks of an audit."""

    colluders: Annotated[list[str], Field(max_length=1000)] | None = None
    attacks: Annotated[list[str], Field(max_length=100)] | None = None
    rows: Annotated[int, Field(ge=100, le=1_000_000)] = 100_000
    without: list[Literal["measures", "utility"]] = Field(default_factory=list, max_length=2)
    quasi: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=1000)
    risk_utility: bool = False
    pack: Literal["pdf", "html"] | None = None


class NewDecision(Body):
    """An officer's decision about the latest sign-off pack of a dataset."""

    officer: Annotated[str, Field(min_length=1, max_length=200)]
    role: Annotated[str, Field(max_length=200)] = ""
    reason: Text = ""
    approved: bool = True


class NewVerification(Body):
    """Options for the verification of the vault."""

    contains: Annotated[str, Field(max_length=64)] | None = None
    files: bool = True


class Upload(BaseModel):
    """An upload, to be sent in parts numbered from 1."""

    upload: str
    part: int
    """Maximum size of a part in bytes."""


class NewUpload(Body):
    """The name of a file to be uploaded, whose suffix determines its format."""

    name: Annotated[str, Field(max_length=300)]

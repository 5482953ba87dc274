"""What goes over the wire, where it is not one of the vault's own records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from sfumato.ledger.chain import Entry

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, dots, dashes and underscores.")]
Filter = Annotated[str | None, Query(pattern=NAME)]
Text = Annotated[str, Field(max_length=10_000)]
Format = Literal["parquet", "csv", "csv.gz", "arrows"]


class Body(BaseModel):
    """A request; a field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Told(Entry):
    """An entry of the ledger, and what it says in words."""

    sentence: str = ""


class Page(BaseModel):
    """Some entries, the latest first, and where older ones begin."""

    entries: list[Told]
    before: int | None


class Table(BaseModel):
    """Where a table is: an upload, or a path on the server under the folder that its operator opened."""

    model_config = ConfigDict(extra="forbid")
    upload: Annotated[str, Field(max_length=80)] | None = None
    path: Annotated[str, Field(max_length=1000)] | None = None


class NewDataset(Table):
    """A table and its policy."""

    policy: Annotated[str, Field(max_length=500_000)]
    traced: bool = False


class Suggest(Table):
    """A table that needs a policy."""

    dataset: Annotated[str, Field(pattern=NAME)]


class Suggested(BaseModel):
    """A draft, to be read and corrected."""

    policy: str
    roles: dict[str, str]


class Dataset(BaseModel):
    """A dataset at its latest version."""

    dataset: str
    version: int
    rows: int
    traced: bool
    columns: dict[str, str]
    levels: dict[str, float]
    changed: str


class Recipient(BaseModel):
    """Somebody who may receive copies."""

    recipient: str
    note: str
    enabled: bool


class NewRecipient(Body):
    """Somebody new."""

    recipient: Annotated[str, Field(pattern=NAME)]
    note: Annotated[str, Field(max_length=2000)] = ""


class Switch(Body):
    """Whether a recipient may receive anything."""

    enabled: bool


class NewToken(Body):
    """What a token shall allow, and how long."""

    scopes: Annotated[list[str], Field(max_length=10)] | None = None
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    note: Annotated[str, Field(max_length=200)] = ""


class Handed(BaseModel):
    """A new token; it is shown here and never again."""

    token: str
    id: str
    until: str


class NewGrant(Body):
    """Which level, and what part of the table, until when."""

    level: Annotated[str, Field(max_length=100)] | float
    columns: Annotated[list[Text], Field(max_length=5000)] | None = None
    where: Text | None = None
    until: Annotated[str, Field(max_length=40)] | None = None


class MyGrant(BaseModel):
    """What a recipient may fetch."""

    dataset: str
    level: str | float
    fidelity: float
    columns: list[str] | None
    where: str | None
    until: str | None
    version: int
    shown: dict[str, str]
    """The columns of the copy, and their types."""
    promises: list[str]
    limits: list[str]


class Me(BaseModel):
    """Who asks."""

    role: str
    name: str
    scopes: list[str]


class NewAudit(Body):
    """Whose copies are pooled, and which attacks are tried."""

    colluders: Annotated[list[str], Field(max_length=1000)] | None = None
    attacks: Annotated[list[str], Field(max_length=100)] | None = None
    rows: Annotated[int, Field(ge=100, le=1_000_000)] = 100_000


class NewCheck(Body):
    """How the vault is checked."""

    contains: Annotated[str, Field(max_length=64)] | None = None
    files: bool = True


class Upload(BaseModel):
    """An upload, to be sent in parts numbered from 1."""

    upload: str
    part: int
    """The most bytes of a part."""


class NewUpload(Body):
    """The file's name, whose ending says its format."""

    name: Annotated[str, Field(max_length=300)]

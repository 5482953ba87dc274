"""Public models of copies: all that an attacker or an analyst may know about how columns were perturbed, one per file.

A model contains no secret. It documents the distribution of its columns completely, so that attacks and
estimators need no other knowledge, and it says itself what it promises and what it does not. The file name is the kind
by which a manifest names a model. Rules for change: never remove a model or a field, never change what a field means;
a reader that meets a model it does not know says so by name.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from sfumato.errors import ManifestError, UnknownMember
from sfumato.family import Family
from sfumato.levels import Level
from sfumato.serialization import check_types

Amount = Callable[[float], str]
"""Writes a number in the unit of a column, such as days."""


@dataclass(frozen=True)
class Limit:
    """Something that a copy does not protect, and the columns that it concerns, if it concerns only some."""

    text: str
    columns: tuple[str, ...] = ()
    advice: str = ""
    """A second sentence."""

    def __str__(self) -> str:
        named = f"{self.text}: {', '.join(self.columns)}." if self.columns else f"{self.text}."
        return f"{named} {self.advice}" if self.advice else named


@dataclass(frozen=True)
class Model(abc.ABC):
    """What is public about some columns of a copy."""

    kind: ClassVar[str]
    """The name of the model in a manifest: its file's name, with hyphens."""
    columns: tuple[str, ...]
    """The columns of the copy that it describes."""

    @property
    def is_perturbed(self) -> bool:
        """Whether the columns carry random noise, so that levels differ."""
        return True

    @property
    def is_collusion_resistant(self) -> bool:
        """Whether combining copies of several levels adds no information to the best one."""
        return True

    @property
    def coarsened_columns(self) -> tuple[str, ...]:
        """The columns of which a copy shows less than its level allows: other copies may show some of the rest."""
        return ()

    @property
    def original_columns(self) -> tuple[str, ...]:
        """The columns of the original that these columns were made from."""
        return self.columns

    @property
    def identifies(self) -> bool:
        """Whether the columns identify records or entities, rather than describe them."""
        return False

    @property
    def entity_column(self) -> str:
        """The column of the original that names entities, where rows of one share noise; empty where none do."""
        return ""

    @property
    def design_effect(self) -> float:
        """By how much more means vary than if each row had noise of its own: rows of an entity share some."""
        return 1.0

    @abc.abstractmethod
    def promises(self, level: Level) -> list[str]:
        """What a copy at this level guarantees about these columns, in sentences."""

    def with_entity_rows(self, rows: float) -> Self:  # noqa: ARG002 - most models know no entities
        """This model where an entity has up to so many rows."""
        return self

    @abc.abstractmethod
    def limits(self) -> list[Limit]:
        """What a copy does not guarantee about these columns."""

    @abc.abstractmethod
    def describe(self, column: str, amount: Amount) -> str:
        """What became of one column, in a few words; `amount` writes a number in the column's unit."""

    def narrowed(self, names: Sequence[str]) -> Self:
        """The model of a copy that shows only these of the columns."""
        return dataclasses.replace(self, columns=tuple(self.columns[i] for i in self._kept(names)))

    def unshuffled(self) -> Self:
        """The model of rows that are in the order of the table."""
        return self

    def validate(self) -> None:  # noqa: B027 - most models need no more than their fields
        """Raise `TypeError` for a model whose fields do not fit each other."""

    def _kept(self, names: Sequence[str]) -> list[int]:
        """The indices of the columns that are among `names`."""
        return [i for i, name in enumerate(self.columns) if name in names]


MODELS = Family("sfumato.models", "Model")

M = TypeVar("M", bound=Model)


def of_type(models: Iterable[Model], kind: type[M]) -> list[M]:
    """The models of one type: for code that needs what only this type has, such as a covariance."""
    return [model for model in models if isinstance(model, kind)]


def model_of(models: Iterable[Model], column: str) -> Model:
    """The model of one column; `KeyError` if there is none."""
    for model in models:
        if column in model.columns:
            return model
    raise KeyError(column)


def path_identity(scheme: str, key: str, model: Model, fidelity: float) -> str:
    """Names the path that a copy lies on: copies of equal identity are points of one path.

    Noise that is independent between levels has a path of its own for each level.
    """
    return f"{scheme}/{key}" if model.is_collusion_resistant else f"{scheme}/{key}/{fidelity!r}"


def encode(model: Model) -> dict[str, Any]:
    """A model as JSON."""
    return {"kind": model.kind, **{field.name: getattr(model, field.name) for field in dataclasses.fields(model)}}


def decode(data: dict[str, Any]) -> Model:
    """The inverse of `encode`."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    try:
        record: type[Model] = MODELS[str(kind)]
    except UnknownMember:
        raise ManifestError(
            f"this version knows no model called {kind!r}, only {', '.join(MODELS)}; upgrade sfumato"
        ) from None
    try:
        model = record(**{name: _frozen(value) for name, value in fields.items()})
        check_types(model)
        model.validate()
    except TypeError:
        raise ManifestError(f"the {kind!r} model of the manifest is malformed; ask for the copy again") from None
    return model


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value

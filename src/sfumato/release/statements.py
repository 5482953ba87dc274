"""What a copy promises, warns of and does not protect, collected from the models of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.levels import Level
from sfumato.models import Limit, Model, of_type
from sfumato.models.unchanged import Unchanged
from sfumato.tables.view import View

_RESISTANT = (
    "Collusion-resistant: combining this copy with any number of less faithful copies of the same table, made with the "
    "same key and scheme, adds no information about a record, whatever method is used."
)
_RESISTANT_BY_LEVEL = (
    "Collusion-resistant: combining this copy with any number of less faithful copies of the same table, made with the "
    "same key and scheme, tells no more about a record than this level allows, whatever method is used. Where values "
    "repeat, are missing, or are categories, this copy alone shows less than its level allows, and other copies may "
    "show some of the difference: {}."
)
_UNSAFE = (
    "UNSAFE: some columns carry noise that is independent between copies. Recipients who combine their copies learn "
    "more than from the best one. Use such copies for comparison only."
)
_NOTHING = "NOTHING IS PERTURBED in this copy."
_MAPPED = (
    "NOTHING IS PERTURBED: copies of all levels are identical, and protected only while the linear map stays secret."
)

_MEMBERSHIP = Limit("Membership is not protected: a copy shows that a record is in the table")
_VERSIONS = Limit("A record that changes between versions of the table is released again, with independent noise")
_CORRELATED = Limit(
    "Correlated columns help an attacker: numbers are perturbed jointly, categories only within a joint group, and a "
    "public column not at all"
)
_IN_ORDER = Limit(
    "The rows are in the order of the table",
    advice="Where neighbouring rows are alike (by date, by region, by size), averaging them removes the noise.",
)


def promises(level: Level, models: Sequence[Model]) -> tuple[str, ...]:
    """What a copy at this level guarantees."""
    found = dict.fromkeys(sentence for model in models for sentence in model.promises(level))
    safe = any(model.is_perturbed for model in models) and all(model.is_collusion_resistant for model in models)
    coarsened = ", ".join(name for model in models for name in model.coarsened_columns)
    return (*found, *([_RESISTANT_BY_LEVEL.format(coarsened) if coarsened else _RESISTANT] if safe else []))


def warnings(models: Sequence[Model]) -> tuple[str, ...]:
    """What an owner must read before such a copy leaves."""
    if not any(model.is_perturbed for model in models):
        mapped = any(model.original_columns != model.columns for model in models)
        return (_MAPPED if mapped else _NOTHING,)
    return () if all(model.is_collusion_resistant for model in models) else (_UNSAFE,)


_LINKED = Limit(
    "Other tables of this dataset have noise of their own: what they show about the same person, household or thing "
    "helps to estimate the values of this one"
)


def limits(models: Sequence[Model], view: View, *, in_order: bool, table: str = "") -> tuple[str, ...]:
    """What a copy does not guarantee; limits that several models share are stated once, for all their columns."""
    found = [_MEMBERSHIP, *(limit for model in models for limit in model.limits())]
    if any(model.is_perturbed for model in models):
        found.append(_VERSIONS)
        found += [_IN_ORDER] if in_order else _orderings(models)
    if len(models) > 1:
        found.append(_CORRELATED)
    if table:
        found.append(_LINKED)
    merged: dict[tuple[str, str], tuple[str, ...]] = {}
    for limit in found:
        name = (limit.text, limit.advice)
        merged[name] = merged.get(name, ()) + limit.columns
    return (*(str(Limit(text, columns, advice)) for (text, advice), columns in merged.items()), *_of_view(view))


def _orderings(models: Sequence[Model]) -> list[Limit]:
    """The columns by which the rows can be sorted although their order is secret."""
    columns = tuple(name for model in of_type(models, Unchanged) for name in model.columns)
    advice = "Where neighbours in the order of such a column are alike, averaging them removes the noise."
    text = "The rows are in a secret order, and can still be sorted by unperturbed columns"
    return [Limit(text, columns, advice)] if columns else []


def _of_view(view: View) -> list[str]:
    """What follows from showing only a part of a table."""
    out = [] if view.where is None else [f"Only the rows with {view.where} are released."]
    if view.columns is not None:
        out.append(
            "Only some columns are released. A recipient who combines this copy with one that has other columns learns "
            "no more than from one copy of all these columns at the better level."
        )
    return out

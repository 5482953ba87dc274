"""What is promised, and what is not, in plain words."""

from __future__ import annotations

from sfumato.models import GaussianNoise, Model, Unchanged, UniformReplacement
from sfumato.schema.levels import Level
from sfumato.schema.view import View

_POOLING = (
    "Pooling is useless: whoever holds this copy and any number of less faithful copies of the same table, made with "
    "the same key and scheme, learns no more about a record than from this copy alone, whatever method is used."
)
_UNSAFE = (
    "UNSAFE: some columns carry noise that is independent between copies. Recipients who pool their copies learn more "
    "than from the best one. For comparison only."
)


def promises(level: Level, models: tuple[Model, ...]) -> tuple[str, ...]:
    """What a copy at this level guarantees."""
    out = []
    if any(isinstance(model, GaussianNoise) for model in models):
        out.append(
            f"Numbers, fidelity {level.fidelity:.6g}: the best linear estimate from the blurred numbers keeps an error "
            f"of {level.error:.4g} of a column's variance (up to its `scale`)."
        )
    if any(isinstance(model, UniformReplacement) for model in models):
        out.append(
            f"Categories, fidelity {level.fidelity:.6g}: a category is retained with probability {level.retention:.4g} "
            "(up to its `scale`), else drawn at random from its domain, its own value included."
        )
    if not out:
        return ("NOTHING IS BLURRED in this copy.",)
    naive = any(not model.chained for model in models if not isinstance(model, Unchanged))
    return (*out, _UNSAFE if naive else _POOLING)


def parts(view: View) -> tuple[str, ...]:
    """What follows from showing only a part of a table."""
    out = [] if view.where is None else [f"Only the rows with {view.where} are shown."]
    if view.columns is not None:
        out.append(
            "Only some columns are shown. Whoever pools this copy with one that shows others has both, and no more "
            "than a copy of all these columns at the better level."
        )
    return tuple(out)


def limits(models: tuple[Model, ...]) -> tuple[str, ...]:
    """What a copy does not guarantee."""
    out = ["It is not hidden that a record is in the table."]
    numbers = [model for model in models if isinstance(model, GaussianNoise)]
    categories = [model for model in models if isinstance(model, UniformReplacement)]
    for model in models:
        if isinstance(model, Unchanged):
            what = "record ids" if model.why == "id" else "public columns"
            out.append(f"Shown as they are ({what}): {', '.join(model.columns)}.")
    for model in numbers:
        loose = [name for name, clip in zip(model.columns, model.clip, strict=True) if clip is None]
        if loose:
            out.append(
                f"Not clipped: {', '.join(loose)}. A value that lies further out than the noise reaches stands out."
            )
        out.append("The shape of the noise shows how the numeric columns vary together.")
    if categories:
        names = [name for model in categories for name in model.columns]
        out.append(f"The list of possible values is public: {', '.join(names)}.")
    kept = [name for model in numbers for name in model.columns]
    kept += [name for model in categories if not model.perturbs_null for name in model.columns]
    if kept:
        out.append(f"A missing value is shown as missing: {', '.join(kept)}.")
    if numbers or categories:
        out.append("A record that changes between versions of the table is seen again, with independent noise.")
    if len(models) > 1:
        out.append(
            "Columns that tell about each other help an attacker: numbers are blurred as one, categories only within a "
            "joint group, and a public column not at all."
        )
    return tuple(out)

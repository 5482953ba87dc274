"""What is promised, and what is not, in plain words."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv

from sfumato.models import GaussianNoise, Model, Projection, Rotation, Unchanged, UniformReplacement
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
    out += [_turned(model) for model in models if isinstance(model, Rotation)]
    if not out:
        return ("NOTHING IS BLURRED in this copy.",)
    if not any(_is_blurred(model) for model in models):
        return (*out, "NOTHING IS BLURRED: copies of all levels are the same, and safe only while the turn is secret.")
    naive = any(not model.chained for model in models if not isinstance(model, Unchanged))
    return (*out, _UNSAFE if naive else _POOLING)


def _turned(model: Rotation) -> str:
    names = f"{len(model.sources)} numbers"
    if isinstance(model, Projection):
        ell, size = len(model.columns), len(model.sources)
        return (
            f"Distances, {names} projected to {ell}: over the choice of the matrix, that of a pair stays within "
            f"{distortion(ell, 0.5):.2g} of itself with a chance of one half, within {distortion(ell, 0.99):.2g} with "
            f"one of 99 %; those of all pairs at once within {worst_distortion(ell, size):.2g}, but for one matrix in "
            "a million."
        )
    if model.noise:
        return (
            f"Distances, {names} turned together after noise of one size in all directions: those of the noisy "
            f"records stay, and if the turn is undone, the best linear estimate still keeps an error of at least "
            f"{model.noise / (1 + model.noise):.4g} of a column's variance."
        )
    return f"Distances, {names} turned together: every distance between two records stays, to about {model.step:.1g}."


def _is_blurred(model: Model) -> bool:
    return not isinstance(model, Unchanged) and not (isinstance(model, Rotation) and not model.noise)


def distortion(dimensions: int, share: float) -> float:
    """Within which part of itself a projection keeps that share of distances: `√(χ²/ℓ)` about 1."""
    tails = np.array([(1 - share) / 2, (1 + share) / 2])
    low, high = np.sqrt(2 * gammaincinv(dimensions / 2, tails) / dimensions)
    return float(max(1 - low, high - 1))


def worst_distortion(dimensions: int, size: int, chance: float = 1e-6) -> float:
    """Within which part of itself a projection keeps all distances at once (Davidson and Szarek 2001)."""
    return float((math.sqrt(size) + math.sqrt(2 * math.log(2 / chance))) / math.sqrt(dimensions))


def parts(view: View) -> tuple[str, ...]:
    """What follows from showing only a part of a table."""
    out = [] if view.where is None else [f"Only the rows with {view.where} are shown."]
    if view.columns is not None:
        out.append(
            "Only some columns are shown. Whoever pools this copy with one that shows others has both, and no more "
            "than a copy of all these columns at the better level."
        )
    return tuple(out)


def _turned_limits(model: Rotation) -> list[str]:
    """What a secret turn does not hide."""
    size = len(model.sources)
    back = "turn all others back, and fewer go far" if len(model.columns) >= size else "turn the others back in part"
    if model.noise:
        undone = "A sample of the same population may undo the turn; then the noise is what protects."
    else:
        undone = (
            f"Whoever knows {size + model.translated} of the records can {back}; so does a sample of the same kind."
        )
    out = [f"Turned, not hidden: {', '.join(model.sources)}. {undone}"]
    if any(model.centre):
        out.append("The means and standard deviations of these columns are published, to three digits.")
    if isinstance(model, Projection):
        out.append(
            "A projection is no remedy against a known sample, although giannella2010, section VI, says so: the better "
            "it keeps distances, the better the attack."
        )
    if not model.shuffled:
        out.append("The rows are in the order of the table: a known record is found by its place.")
    out.append(f"A record that misses one of these numbers shows nothing in {model.columns[0]} to {model.columns[-1]}.")
    return out


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
    for model in models:
        if isinstance(model, Rotation):
            out += _turned_limits(model)
    if categories:
        names = [name for model in categories for name in model.columns]
        out.append(f"The list of possible values is public: {', '.join(names)}.")
    kept = [name for model in numbers for name in model.columns]
    kept += [name for model in categories if not model.perturbs_null for name in model.columns]
    if kept:
        out.append(f"A missing value is shown as missing: {', '.join(kept)}.")
    if numbers or categories or any(isinstance(model, Rotation) and model.noise for model in models):
        out.append("A record that changes between versions of the table is seen again, with independent noise.")
    if len(models) > 1:
        out.append(
            "Columns that tell about each other help an attacker: numbers are blurred as one, categories only within a "
            "joint group, and a public column not at all."
        )
    return tuple(out)

"""What a level of trust can answer, and what it cannot, in plain words."""

from __future__ import annotations

import math

from sfumato.kernels.kernel_deconvolution import cutoff, reference_error
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.interval import half_width
from sfumato.mining.copies.quantiles import WORST
from sfumato.mining.features.contingency import axes_of
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation

_TENTH = 0.1


def enough_for_a_count(rows: int, retention: float, size: int) -> int | None:
    """How many rows a group must have for its count to be within a tenth of itself, with 95 % confidence.

    Of `g` rows in a group, out of `n`, `r = (1-p)/s` being the chance to come into it by replacement, the count has
    variance `(g·(p+r)(1-p-r) + (n-g)·r(1-r))/p²`: an equation of second degree in `g`.
    """
    width = half_width(0.95)
    r = (1 - retention) / size
    inside, outside = (retention + r) * (1 - retention - r), r * (1 - r)
    scale = (_TENTH * retention / width) ** 2
    slope = inside - outside
    group = (slope + math.sqrt(slope**2 + 4 * scale * rows * outside)) / (2 * scale)
    return math.ceil(group) if group <= rows else None


def enough_for_a_mean(noise: float) -> int:
    """How many rows a group must have for its mean to be within a tenth of the column's standard deviation.

    Args:
        noise: its variance, in units of the column's.

    """
    return math.ceil((half_width(0.95) / _TENTH) ** 2 * noise)


def abilities(copy: Copy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What can be answered, and what cannot."""
    can, cannot = _of_numbers(copy)
    for name in copy.replaced:
        [axis] = axes_of(copy, [name])
        enough = enough_for_a_count(copy.rows, axis.retention, axis.size)
        if enough is None:
            cannot.append(f"Counts of {name}: no group of {copy.rows:,} rows is large enough to be known within 10 %.")
        else:
            can.append(f"Counts of {name}: a value needs {enough:,} of the {copy.rows:,} rows to be known within 10 %.")
    turned = [model for model in copy.manifest.models if isinstance(model, Rotation)]
    for model in turned:
        can.append(f"Distances between records over {', '.join(model.sources)}: clusters and neighbours as they are.")
        cannot.append(f"Values of {', '.join(model.sources)}: they are turned together.")
    if copy.noisy or copy.replaced:
        cannot.append("Single records: what a row shows is mostly not what the record says.")
        cannot.append("Largest and smallest values, and how many different ones there are.")
    return tuple(can), tuple(cannot)


def _of_numbers(copy: Copy) -> tuple[list[str], list[str]]:
    can: list[str] = []
    cannot: list[str] = []
    for model in copy.manifest.models:
        names = [name for name in copy.names if isinstance(model, GaussianNoise) and name in model.columns]
        if not names or not isinstance(model, GaussianNoise):
            continue
        listed, ratio = ", ".join(names), model.noise * max(model.scale) ** 2
        need = enough_for_a_mean(ratio)
        said = f"Means of {listed}: a group needs {need:,} rows for a tenth of the column's standard deviation."
        (can if need <= copy.rows else cannot).append(said)
        deviation = math.sqrt(ratio)
        error = reference_error(deviation, 1.0, copy.rows, cutoff(deviation, 1.0, copy.rows))
        if error > WORST / 1.5:
            cannot.append(f"Quantiles and ranges of {listed}: {copy.rows:,} rows at this level tell no shares.")
        else:
            reach = half_width(0.95) * error
            can.append(f"Quantiles and ranges of {listed}: shares of all rows to about ±{reach:.1%}.")
        if len(names) > 1:
            size = half_width(0.95) * math.sqrt((2 * ratio + ratio**2) / max(copy.rows, 1))
            can.append(f"Correlations between {listed}: to about ±{min(size, 1.0):.2g}; regressions.")
    return can, cannot

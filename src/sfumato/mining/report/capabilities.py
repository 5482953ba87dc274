"""Capabilities of a trust level: the statistics that a copy supports, with their precision, and those it does not."""

from __future__ import annotations

import math

from scipy.special import ndtr

from sfumato.kernels.kernel_deconvolution import cutoff_frequency, reference_standard_error, resolution
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import MAX_STANDARD_ERROR
from sfumato.mining.features.contingency import factors_of
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation

_CONFIDENCE = 0.95
_RELATIVE_ERROR = 0.1
_MAX_REACH = 0.5
"""The largest half-width of an interval of a share at which counts of ranges are worth asking for."""


def rows_for_count(rows: int, retention: float, size: int, design_effect: float = 1.0) -> int | None:
    """The size of the smallest group whose count is known within 10 %, with 95 % confidence; none if there is none.

    For a group of `g` rows out of `n`, with `r = (1-p)/s` the probability of entering it by replacement, the count has
    variance `(g·(p+r)(1-p-r) + (n-g)·r(1-r))/p²`: a quadratic equation in `g`.
    """
    if size < 1:
        return None
    width = critical_value(_CONFIDENCE, design_effect)
    r = (1 - retention) / size
    inside, outside = (retention + r) * (1 - retention - r), r * (1 - r)
    scale = (_RELATIVE_ERROR * retention / width) ** 2
    slope = inside - outside
    group = (slope + math.sqrt(slope**2 + 4 * scale * rows * outside)) / (2 * scale)
    return math.ceil(group) if group <= rows else None


def rows_for_mean(noise: float) -> int:
    """The size of the smallest group whose mean is known within a tenth of the column's standard deviation.

    Args:
        noise: the variance of the noise, in units of the column's variance.

    """
    return math.ceil((critical_value(_CONFIDENCE) / _RELATIVE_ERROR) ** 2 * noise)


def capabilities(copy: Copy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The statistics that a copy supports, and those that it does not, in sentences."""
    supported: list[str] = []
    unsupported: list[str] = []
    for model in of_type(copy.manifest.models, GaussianNoise):
        _numeric_capabilities(copy, model, supported, unsupported)
    for name in copy.replaced_columns:
        [factor] = factors_of(copy, [name])
        need = rows_for_count(copy.rows, factor.retention, factor.size, copy.design_effect(copy.replaced_columns))
        if need is None:
            unsupported.append(f"Counts of {name}: no group of the {copy.rows:,} rows is large enough for ±10%.")
        else:
            supported.append(
                f"Counts of {name}: within ±10% for categories of {need:,} or more of the {copy.rows:,} rows."
            )
    for rotation in of_type(copy.manifest.models, Rotation):
        listed = ", ".join(rotation.sources)
        supported.append(f"Distances between records over {listed}: clustering and nearest neighbours as usual.")
        unsupported.append(f"Values of {listed}: only linear combinations of them are in the copy.")
    if copy.preserved_columns:
        listed = ", ".join(copy.preserved_columns)
        supported.append(
            f"Frequencies, means, quantiles and counts of one of {listed}: as they stand, with any software."
        )
        supported.append("Rank correlations between them, and models that rest on these: as they stand.")
        unsupported.append(
            "Values of few records, and those beyond the outermost bins: they are moved to the nearest one, so that "
            "means of heavy-tailed columns leave out the largest values."
        )
        unsupported.append("Other relations between them: what rank correlations do not express fades with fidelity.")
        if copy.noisy_columns or copy.replaced_columns or copy.public_columns:
            unsupported.append(f"Relations between them and other columns: they fade to {_fidelity_root(copy):.0%}.")
    if copy.noisy_columns or copy.replaced_columns or copy.preserved_columns:
        unsupported.append("Single records: the values in a row are perturbed and mostly differ from the original's.")
        unsupported.append("Minimum, maximum, and the number of distinct values.")
    return tuple(supported), tuple(unsupported)


def _fidelity_root(copy: Copy) -> float:
    """What is left of a rank correlation with a column that is not perturbed together with it, about `√f`."""
    return math.sqrt(copy.manifest.fidelity)


def _numeric_capabilities(copy: Copy, model: GaussianNoise, supported: list[str], unsupported: list[str]) -> None:
    """Append the capabilities for the columns of one noise model."""
    names = [name for name in copy.column_names if name in model.columns]
    if not names:
        return
    listed, ratio = ", ".join(names), model.noise * max(model.scale) ** 2
    effect = copy.design_effect(names)
    need = rows_for_mean(ratio * effect)
    means = f"Means of {listed}: within a tenth of the column's standard deviation for groups of {need:,} or more rows."
    (supported if need <= copy.rows else unsupported).append(means)
    deviation = math.sqrt(ratio)
    cutoff = cutoff_frequency(deviation, 1.0, copy.rows)
    error = reference_standard_error(deviation, 1.0, copy.rows, cutoff)
    # the share of a normal column's rows within the resolution of its median
    reach = critical_value(_CONFIDENCE, effect) * error + float(ndtr(resolution(cutoff))) - 0.5
    if error > MAX_STANDARD_ERROR / 1.5 or reach > _MAX_REACH:
        unsupported.append(f"Quantiles and counts of ranges of {listed}: {copy.rows:,} rows are too few at this noise.")
    else:
        supported.append(
            f"Quantiles and counts of ranges of {listed}: to about ±{reach:.1%} of all rows if values spread as in a "
            "normal distribution, and less well near spikes and in the bulk of heavy-tailed columns."
        )
    if len(names) > 1:
        reach = critical_value(_CONFIDENCE, effect) * math.sqrt((2 * ratio + ratio**2) / max(copy.rows, 1))
        supported.append(f"Correlations between {listed}: to about ±{min(reach, 1.0):.2g}; regressions.")

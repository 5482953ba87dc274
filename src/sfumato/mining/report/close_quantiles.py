"""Close quantiles: those of plausible originals, for columns whose special values the owner states.

Deconvolution has to allow for any values that many records may share, so that its intervals are much wider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.intervals import Interval
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.estimation import rehearsed
from sfumato.mining.copies.imputation import combine
from sfumato.mining.copies.perturbed_again import is_plain
from sfumato.mining.copies.plausible_originals import PlausibleOriginals, check_imputable, rows_of
from sfumato.tables.columns import numbers_of
from sfumato.tables.source import Source

RECORDS = 20_000
"""The most records that are drawn: more take long, and hardly make quantiles more precise."""

_IMPUTATIONS = 12


def close_quantiles(
    copy: Copy, probabilities: Sequence[float], confidence: float, random_state: int = 0
) -> dict[str, tuple[Interval, ...]]:
    """The quantiles of the columns that can be imputed, and whose special values are stated."""
    names = _imputable(copy)
    stated = [name for name in names if (model := copy.noise_model(name)) and model.special_values(name) is not None]
    if not stated:
        return {}
    table = rows_of(copy, names, evenly_spaced(copy.rows, RECORDS))
    try:
        originals = PlausibleOriginals.of(Copy(copy.manifest, Source.of(table)), names)
    except MiningError:  # too few records
        return {}

    def measure(original: pa.Table) -> Floats:
        return np.array([_quantiles(numbers_of(original, [name])[:, 0], probabilities) for name in stated])

    found, rehearsals = rehearsed(originals, _IMPUTATIONS, random_state, measure)
    values = np.array([one[..., 0] for one in found])
    errors = np.array([one[..., 1] for one in found]) * math.sqrt(1 - table.num_rows / copy.rows)
    biases = [np.mean([answer[..., 0] for answer in one.answers], axis=0) - one.truth[..., 0] for one in rehearsals]
    combined = combine(values, errors**2, confidence, biases)
    ends = np.stack([combined.estimate, combined.low, combined.high], axis=-1).tolist()
    return {name: tuple(Interval(*one) for one in line) for name, line in zip(stated, ends, strict=True)}


def _imputable(copy: Copy) -> list[str]:
    """The columns that a joint model may have, without identifiers."""
    names = []
    for name in copy.column_names:
        nested = pa.types.is_nested(copy.source.schema.field(name).type)
        if nested or copy.is_identifier(name) or (copy.model(name).is_perturbed and not is_plain(copy.model(name))):
            continue
        try:
            check_imputable(copy, name)
        except MiningError:
            continue
        names.append(name)
    return names


def _quantiles(values: Floats, probabilities: Sequence[float]) -> Floats:
    """Quantiles, and their standard errors by those that lie one standard error of a proportion away."""
    values = values[~np.isnan(values)]
    if not len(values):
        return np.full((len(probabilities), 2), np.nan)
    middle = np.array(probabilities)
    away = np.sqrt(middle * (1 - middle) / len(values))
    found, low, high = np.quantile(values, np.clip([middle, middle - away, middle + away], 0, 1))
    quantiles: Floats = np.column_stack([found, (high - low) / 2])
    return quantiles

"""Sample risk of rotated and projected copies: what a sample of the population discloses (giannella2010, section V)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Evidence, Knowledge, MappedRows, Records, breached
from sfumato.attacks.known_sample import KnownSample
from sfumato.errors import AttackError, ReleaseError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.threads import in_threads
from sfumato.models.rotation import Rotation
from sfumato.risk.breach import BREACHED_SHARE, EPSILONS, baseline_breach, is_breached
from sfumato.risk.linear_map_simulation import simulated_rows
from sfumato.tables.sampling import one_in, pseudo_random_order

SIZES = (20, 50, 200, 1000, 5000)
"""The sizes of samples of the population that are tried."""

WITHSTAND = 1000
"""The size of a sample up to which no copy is released that a sample breaches."""

RUNS = 2
"""The number of copies, each with a linear map of its own, that a sample of each size is tried on."""

_HELD_OUT = 4
"""One record in this many is a source of samples; the others are released."""

_MAX_LIKELIHOOD_COLUMNS = 24
"""The largest number of columns for the attack by maximum likelihood; beyond, that by third moments is used."""


@dataclass(frozen=True)
class SampleRisk:
    """The share of records that an attacker with a sample of the population breaches."""

    size: int
    """The number of records in the sample."""
    breached_share: tuple[float, ...]
    """The share of records estimated within each of `EPSILONS`."""


def sizes(rows: int) -> list[int]:
    """The sizes of samples that can be tried on a table of so many complete records."""
    return [size for size in SIZES if size <= len(one_in(_HELD_OUT, rows))] if rows else []


def assess_sample_risk(records: Floats, model: Rotation, size: int) -> SampleRisk:
    """The risk by a sample of one size, on simulated copies.

    Args:
        records: the inputs of the linear map: centred, scaled and without missing values.
        model: the public model of the copy.
        size: the number of records in the sample.

    """
    held_out = one_in(_HELD_OUT, len(records))
    runs = in_threads(lambda run: _breached_shares(records, model, held_out, size, run), range(RUNS), RUNS)
    means = np.mean(runs, axis=0)
    return SampleRisk(size, tuple(map(float, means)))


def smallest_breaching(samples: Sequence[SampleRisk], baseline: tuple[float, ...]) -> int | None:
    """The size of the smallest sample that breaches the table."""
    return next((one.size for one in samples if is_breached(one.breached_share, baseline)), None)


def require_sample_resistance(records: Floats, model: Rotation, role: str) -> None:
    """Refuse a copy without noise that a sample of the population breaches; the largest to withstand is tried.

    Where a copy has noise, a sample may undo the map, and the noise of the level protects as it does without a map.
    """
    tried = [] if model.noise else [size for size in sizes(len(records)) if size <= WITHSTAND][-1:]
    samples = [assess_sample_risk(records, model, size) for size in tried]
    size = smallest_breaching(samples, baseline_breach(records))
    if size is not None:
        raise ReleaseError(
            f"a copy with the role {role} must withstand a sample of {size:,} records of the population, and such a "
            f"sample is enough to estimate {BREACHED_SHARE:.0%} of the records within {EPSILONS[-1]:.0%} of their "
            f"norm. Set `noise = true` in [{role}], or accept the risk with `accept` and a reason; see `sfumato advise`"
        )


def _breached_shares(records: Floats, model: Rotation, held_out: Rows, size: int, run: int) -> list[float]:
    """The share of records breached, for each epsilon, in one simulated copy of the records that are not held out."""
    released = np.delete(records, held_out, axis=0)
    copy = MappedRows(model, "", simulated_rows(released, model, run))
    sample = records[held_out[pseudo_random_order(len(held_out), run)[:size]]]
    by_moments = len(model.sources) > _MAX_LIKELIHOOD_COLUMNS or not model.preserves_distances
    attack = KnownSample(method="moments" if by_moments else "likelihood")
    knowledge = Knowledge(sample=Records(model.sources, copy.original_units(sample)))
    try:
        estimate = attack.estimate(Evidence(len(released), knowledge=knowledge, linear_maps=(copy,))).values
    except AttackError:
        return [0.0] * len(EPSILONS)
    found = copy.standardised(estimate)
    return [float(breached(found, released, epsilon)["euclidean"].mean()) for epsilon in EPSILONS]

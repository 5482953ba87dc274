"""Whether turned copies are what their manifests say: one linear map of all records, after the stated noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import stats
from scipy.special import polygamma, psi

from sfumato.attacks import MappedRows, Records
from sfumato.audit.checks import Check
from sfumato.audit.independence_tests import basis, unrelated
from sfumato.audit.noise_checks import DIGITS, FEWEST_ROWS
from sfumato.kernels import Floats
from sfumato.models.projection import Projection


@dataclass(frozen=True)
class TurnedCopy:
    """A copy, and the records it was made from as they are before they are turned; only those that lack nothing."""

    name: str
    part: MappedRows
    rows: Floats
    records: Floats

    @classmethod
    def of(cls, name: str, part: MappedRows, truth: Records) -> TurnedCopy:
        """What can be checked of a copy."""
        records = part.placed(truth.numbers(part.model.sources))
        there = ~(np.isnan(records).any(axis=1) | np.isnan(part.values).any(axis=1))
        return cls(name, part, part.values[there], records[there])

    @property
    def is_large_enough(self) -> bool:
        """Whether there are records enough to check anything."""
        return bool(len(self.rows) >= FEWEST_ROWS * self.records.shape[1])


def turn_checks(copies: Sequence[TurnedCopy]) -> Iterator[Check]:
    """All checks on the copies of one path."""
    large = sorted((copy for copy in copies if copy.is_large_enough), key=lambda copy: copy.part.model.noise)
    for copy in large:
        checks = _noisy(copy) if copy.part.model.noise else _exact(copy)
        yield from (replace(check, copies=(copy.name,)) for check in checks)
    for first, second in combinations(large, 2):
        subject, names = f"{first.name} and {second.name}", (first.name, second.name)
        if first.part.model.noise < second.part.model.noise and len(first.rows) == len(second.rows):
            seen = np.column_stack([first.records, first.rows, np.ones(len(first.rows))])
            p = unrelated(basis(seen), basis(second.rows - first.rows), 0.0)
            yield Check(subject, "whoever pools them learns more than from the better one", p, names)


def _exact(copy: TurnedCopy) -> Iterator[Check]:
    """Without noise every row is a linear function of its record; if it is a rotation, all distances stay."""
    model = copy.part.model
    left = _rest(copy)
    room = 2 * model.step * np.sqrt(copy.rows.shape[1]) + 1e-9 * float(np.abs(copy.rows).max())
    yield Check(copy.name, "some rows are not turned as the others are", float(np.abs(left).max() <= room))
    if not isinstance(model, Projection):
        half = len(copy.rows) // 2
        before, after = (
            np.linalg.norm(part[:half] - part[half : 2 * half], axis=1) for part in (copy.records, copy.rows)
        )
        yield Check(copy.name, "distances do not stay", float(np.abs(before - after).max() <= room))


def _noisy(copy: TurnedCopy) -> Iterator[Check]:
    """What no linear map explains is noise: the determinant of its covariance does not depend on the turn.

    The logarithm of a Wishart determinant is a sum of logarithms of χ², near enough to normal for so many rows.
    """
    model, size = copy.part.model, copy.records.shape[1]
    if copy.rows.shape[1] != size or isinstance(model, Projection):
        return
    variances = np.array([line[-1] for line in model.covariance])  # noise before a turn is independent
    stated = float(np.log(variances / np.square(model.unit)).sum())
    left = _rest(copy)
    found = float(np.linalg.slogdet(left.T @ left)[1])
    freedom = (len(copy.rows) - size - 1 - np.arange(size)) / 2
    mean = float((psi(freedom) + np.log(2)).sum())
    deviation = float(np.sqrt(polygamma(1, freedom).sum()))
    apart = max(abs(found - stated - mean) - 2 * size * DIGITS, 0.0) / deviation
    yield Check(copy.name, "its noise is not as large as stated", min(1.0, 2 * float(stats.norm.sf(apart))))


def _rest(copy: TurnedCopy) -> Floats:
    """What is left of the rows when the best linear function of the records is taken away."""
    known = np.column_stack([copy.records, np.ones(len(copy.records))])
    weights = np.linalg.lstsq(known, copy.rows, rcond=None)[0]
    left: Floats = copy.rows - known @ weights
    return left

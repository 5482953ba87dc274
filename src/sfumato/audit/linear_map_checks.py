"""Checks of rotated and projected copies: one linear map for all records, applied after the published noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import stats
from scipy.special import polygamma, psi

from sfumato.attacks import MappedRows, Records
from sfumato.audit.checks import Check
from sfumato.audit.independence_tests import canonical_correlation_p, orthonormal_basis
from sfumato.audit.noise_checks import MIN_ROWS, RELATIVE_ROUNDING
from sfumato.kernels import Floats


@dataclass(frozen=True)
class MappedCopy:
    """A rotated or projected copy and the inputs of its linear map, without records that have missing values."""

    name: str
    part: MappedRows
    rows: Floats
    """The released rows."""
    records: Floats
    """The original records, centred and scaled."""

    @classmethod
    def of(cls, name: str, part: MappedRows, truth: Records) -> MappedCopy:
        """The complete records of a copy."""
        records = part.standardised(truth.numbers(part.model.sources))
        complete = ~(np.isnan(records).any(axis=1) | np.isnan(part.values).any(axis=1))
        return cls(name, part, part.values[complete], records[complete])

    @property
    def is_large_enough(self) -> bool:
        """Whether there are enough records to test anything."""
        return bool(len(self.rows) >= MIN_ROWS * self.records.shape[1])


def linear_map_checks(copies: Sequence[MappedCopy]) -> Iterator[Check]:
    """All checks on the rotated or projected copies of one path."""
    large = sorted((copy for copy in copies if copy.is_large_enough), key=lambda copy: copy.part.model.noise)
    for copy in large:
        checks = _noise_checks(copy) if copy.part.model.noise else _exact_map_checks(copy)
        yield from (replace(check, copies=(copy.name,)) for check in checks)
    for first, second in combinations(large, 2):
        subject, names = f"{first.name} and {second.name}", (first.name, second.name)
        if first.part.model.noise < second.part.model.noise and len(first.rows) == len(second.rows):
            known = np.column_stack([first.records, first.rows, np.ones(len(first.rows))])
            p = canonical_correlation_p(orthonormal_basis(known), orthonormal_basis(second.rows - first.rows), 0.0)
            yield Check(subject, "combining them discloses more than the better one", p, names)


def _exact_map_checks(copy: MappedCopy) -> Iterator[Check]:
    """Without noise, every row is the same linear function of its record, and a rotation preserves all distances."""
    model = copy.part.model
    residuals = _regression_residuals(copy)
    tolerance = 2 * model.step * np.sqrt(copy.rows.shape[1]) + 1e-9 * float(np.abs(copy.rows).max())
    is_linear = float(np.abs(residuals).max() <= tolerance)
    yield Check(copy.name, "some rows are not mapped like the others", is_linear)
    if model.preserves_distances:
        half = len(copy.rows) // 2
        before, after = (
            np.linalg.norm(part[:half] - part[half : 2 * half], axis=1) for part in (copy.records, copy.rows)
        )
        yield Check(copy.name, "distances are not preserved", float(np.abs(before - after).max() <= tolerance))


def _noise_checks(copy: MappedCopy) -> Iterator[Check]:
    """The residuals of a regression on the records are noise, whose generalised variance no rotation changes.

    The logarithm of a Wishart determinant is a sum of logarithms of χ², close to normal for so many rows.
    """
    model, size = copy.part.model, copy.records.shape[1]
    if copy.rows.shape[1] != size or not model.preserves_distances:
        return
    variances = np.array([line[-1] for line in model.covariance])  # the noise is independent before the rotation
    stated = float(np.log(variances / np.square(model.unit)).sum())
    residuals = _regression_residuals(copy)
    found = float(np.linalg.slogdet(residuals.T @ residuals)[1])
    freedom = (len(copy.rows) - size - 1 - np.arange(size)) / 2
    mean = float((psi(freedom) + np.log(2)).sum())
    deviation = float(np.sqrt(polygamma(1, freedom).sum()))
    excess = max(abs(found - stated - mean) - 2 * size * RELATIVE_ROUNDING, 0.0) / deviation
    yield Check(copy.name, "its noise is not as large as stated", min(1.0, 2 * float(stats.norm.sf(excess))))


def _regression_residuals(copy: MappedCopy) -> Floats:
    """The residuals of a linear regression of the released rows on the records."""
    known = np.column_stack([copy.records, np.ones(len(copy.records))])
    weights = np.linalg.lstsq(known, copy.rows, rcond=None)[0]
    residuals: Floats = copy.rows - known @ weights
    return residuals

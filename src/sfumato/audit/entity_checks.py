"""Checks of noise for entities: means over the rows of an entity, and their differences, have the noise stated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.attacks import Numbers
from sfumato.audit.audit_input import AuditInput, entity_codes
from sfumato.audit.checks import Check
from sfumato.audit.noise_checks import MIN_ROWS, variance_p
from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import symmetric
from sfumato.release.evidence import original_within_range

_AVERAGED = (
    "the noise of means over the rows of an entity is not as large as stated, so that averaging them discloses more"
)
_DIFFERENCES = "the noise of differences between rows of an entity is not as large as stated"


def entity_checks(audited: AuditInput) -> list[Check]:
    """The checks of all copies whose rows share noise within entities."""
    checks: list[Check] = []
    for name, copy in zip(audited.names, audited.copies, strict=True):
        for part in copy.numbers:
            column = part.model.entity_column
            if column and part.model.between and column in audited.original.column_names:
                noise = part.values - original_within_range(audited.original, part.model)
                checks += _checks_of(name, part, noise, entity_codes(audited.original, column))
    return checks


def _checks_of(name: str, part: Numbers, noise: Floats, entities: Rows) -> Iterator[Check]:
    """The checks of one copy, column by column."""
    shared, whole = symmetric(part.model.between), part.covariance
    for i, column in enumerate(part.columns):
        there = ~np.isnan(noise[:, i])
        rows = np.bincount(entities[there], minlength=int(entities.max(initial=0)) + 1)
        several = rows >= 2
        if several.sum() < MIN_ROWS:
            continue
        within, step, subject = whole[i, i] - shared[i, i], part.model.step[i], f"{name}, {column}"
        means = np.bincount(entities[there], noise[there, i], minlength=len(rows)) / np.maximum(rows, 1)
        expected = shared[i, i] + within / np.maximum(rows, 1)
        total = float((means[several] ** 2 / expected[several]).sum())
        rounding = step / np.sqrt(float(expected[several].min()))
        yield Check(subject, _AVERAGED, variance_p(total, int(several.sum()), rounding), (name,))
        if within > (step * 2) ** 2:
            rest = noise[there, i] - means[entities[there]]
            freedom = int((rows[several] - 1).sum())
            p = variance_p(float((rest**2).sum() / within), freedom, step / np.sqrt(within))
            yield Check(subject, _DIFFERENCES, p, (name,))

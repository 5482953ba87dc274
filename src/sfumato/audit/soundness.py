"""Whether copies are what their manifests say: what the guarantee rests on, tested on the noise itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.attacks import Evidence
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.checks import Check, Soundness
from sfumato.audit.linear_map_checks import TurnedCopy, turn_checks
from sfumato.audit.noise_checks import Copy, noise_checks
from sfumato.audit.replacement_checks import Column, crossed, replacement_checks
from sfumato.release.evidence import placed

RATE = 1e-6
"""The probability that sound copies raise an alarm."""


def soundness(seen: AuditInput, rate: float = RATE, faults: Sequence[Check] = ()) -> Soundness:
    """All checks on all copies, judged together with what else was found wrong."""
    checks = (*faults, *_numbers(seen), *_categories(seen), *_turned(seen))
    told = {name for check in checks for name in check.copies}
    blurred = [name for name, copy in zip(seen.names, seen.copies, strict=True) if _shows_anything(copy)]
    return Soundness(checks, rate, tuple(name for name in blurred if name not in told))


def _shows_anything(copy: Evidence) -> bool:
    """Whether there is a blurred value that ought to be checked."""
    numbers = any((~np.isnan(part.values)).any() for part in copy.numbers)
    turned = any((~np.isnan(part.values)).any() for part in copy.turned)
    return numbers or turned or any(part.size > 1 and (part.codes >= 0).any() for part in copy.categories)


def _numbers(seen: AuditInput) -> list[Check]:
    """Path by path."""
    paths: dict[str, list[Copy]] = {}
    for name, copy in zip(seen.names, seen.copies, strict=True):
        for part in copy.numbers:
            paths.setdefault(part.path, []).append(Copy.of(name, part, placed(seen.original, part.model)))
    return [check for copies in paths.values() for check in noise_checks(copies)]


def _turned(seen: AuditInput) -> list[Check]:
    """Path by path."""
    paths: dict[str, list[TurnedCopy]] = {}
    for name, copy in zip(seen.names, seen.copies, strict=True):
        for part in copy.turned:
            paths.setdefault(part.path, []).append(TurnedCopy.of(name, part, seen.truth))
    return [check for copies in paths.values() for check in turn_checks(copies)]


def _categories(seen: AuditInput) -> list[Check]:
    """Path by path for each column, then the attributes of each copy with each other."""
    found: list[Check] = []
    paths: dict[tuple[str, str], list[Column]] = {}
    for name, copy in zip(seen.names, seen.copies, strict=True):
        known = [(part, seen.truth.codes[part.model.columns]) for part in copy.categories]
        for part, truth in known:
            for column in Column.of(name, part, truth):
                paths.setdefault((part.path, column.column), []).append(column)
        found += crossed(known, name)
    return found + [check for columns in paths.values() for check in replacement_checks(columns)]

"""Whether copies are what their manifests say: what the guarantee rests on, tested on the noise itself."""

from __future__ import annotations

from sfumato.audit.checks import Check, Soundness
from sfumato.audit.docket import Docket
from sfumato.audit.noise_checks import noise_checks, path_of
from sfumato.audit.replacement_checks import crossed, replacement_checks
from sfumato.release.exhibits import placed

RATE = 1e-6
"""The probability that sound copies raise an alarm."""


def soundness(seen: Docket, rate: float = RATE) -> Soundness:
    """All checks on all copies, judged together."""
    return Soundness(tuple(_numbers(seen) + _categories(seen)), rate)


def _numbers(seen: Docket) -> list[Check]:
    """Path by path."""
    found: list[Check] = []
    numbers = [(name, part) for name, copy in zip(seen.names, seen.copies, strict=True) for part in copy.numbers]
    for path in dict.fromkeys(part.path for _, part in numbers):
        lane = [(name, part) for name, part in numbers if part.path == path]
        noise = path_of(lane, placed(seen.original, lane[0][1].model))
        found += [] if noise is None else noise_checks(noise)
    return found


def _categories(seen: Docket) -> list[Check]:
    """Path by path for each attribute, then the attributes of each copy with each other."""
    found: list[Check] = []
    truth = seen.truth.codes
    categories = [(name, p) for name, copy in zip(seen.names, seen.copies, strict=True) for p in copy.categories]
    for key in dict.fromkeys((part.path, part.model.columns) for _, part in categories):
        some = [(name, part) for name, part in categories if (part.path, part.model.columns) == key]
        found += replacement_checks(some, truth[key[1]])
    for name, copy in zip(seen.names, seen.copies, strict=True):
        parts = [(f"{name}, {' x '.join(p.model.columns)}", p.codes, truth[p.model.columns]) for p in copy.categories]
        found += crossed(parts)
    return found

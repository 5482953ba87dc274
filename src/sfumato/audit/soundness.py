"""Soundness of copies: tests, on the noise itself, of the properties that the guarantee rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.attacks import Evidence, MappedRows, Numbers
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.checks import Check, Soundness
from sfumato.audit.copula_checks import GroupedScores, copula_checks
from sfumato.audit.entity_checks import entity_checks
from sfumato.audit.linear_map_checks import MappedCopy, linear_map_checks
from sfumato.audit.noise_checks import NoisyCopy, noise_checks
from sfumato.audit.replacement_checks import CategoryColumn, attribute_independence_checks, replacement_checks
from sfumato.release.evidence import original_within_range

FALSE_ALARM_RATE = 1e-6
"""The probability that an audit of sound copies raises an alarm, at most."""


def soundness(
    audited: AuditInput, false_alarm_rate: float = FALSE_ALARM_RATE, faults: Sequence[Check] = ()
) -> Soundness:
    """All checks on all copies, together with checks that failed elsewhere."""
    entities = entity_checks(audited)
    audited = audited.one_per_entity()
    noisy = (*entities, *_number_checks(audited), *_category_checks(audited), *_linear_map_checks(audited))
    checks = (*faults, *noisy, *_copula_checks(audited))
    checked = {name for check in checks for name in check.copies}
    perturbed = [name for name, copy in zip(audited.names, audited.copies, strict=True) if _has_perturbed_values(copy)]
    return Soundness(checks, false_alarm_rate, tuple(name for name in perturbed if name not in checked))


def _has_perturbed_values(copy: Evidence) -> bool:
    """Whether there is a perturbed value, so that the copy ought to be checked."""
    parts: tuple[Numbers | MappedRows, ...] = (*copy.numbers, *copy.linear_maps)
    numbers = any((~np.isnan(part.values)).any() for part in parts)
    return numbers or any(part.size > 1 and (part.codes >= 0).any() for part in copy.categories)


def _number_checks(audited: AuditInput) -> list[Check]:
    """The checks of additive noise, path by path."""
    paths: dict[str, list[NoisyCopy]] = {}
    for name, copy in zip(audited.names, audited.copies, strict=True):
        for part in (part for part in copy.numbers if part.copula is None):
            noisy = NoisyCopy.of(name, part, original_within_range(audited.original, part.model))
            paths.setdefault(part.path, []).append(noisy)
    return [check for copies in paths.values() for check in noise_checks(copies)]


def _copula_checks(audited: AuditInput) -> list[Check]:
    """The checks of margin-preserving copies, path by path for each score."""
    paths: dict[tuple[str, str], list[GroupedScores]] = {}
    originals: dict[tuple[str, str], GroupedScores] = {}
    for name, copy in zip(audited.names, audited.copies, strict=True):
        for part in copy.numbers:
            if part.copula is not None:
                fidelity, truth = 1 / (1 + part.model.noise), audited.truth.numbers(part.columns)
                for score in GroupedScores.of(name, fidelity, part.values * fidelity**0.5, part.copula):
                    paths.setdefault((part.path, score.score), []).append(score)
                originals |= {(part.path, s.score): s for s in GroupedScores.of("", 1.0, truth, part.copula)}
    return [check for key, copies in paths.items() for check in copula_checks(originals[key], copies)]


def _linear_map_checks(audited: AuditInput) -> list[Check]:
    """The checks of rotated and projected copies, path by path."""
    paths: dict[str, list[MappedCopy]] = {}
    for name, copy in zip(audited.names, audited.copies, strict=True):
        for part in copy.linear_maps:
            paths.setdefault(part.path, []).append(MappedCopy.of(name, part, audited.truth))
    return [check for copies in paths.values() for check in linear_map_checks(copies)]


def _category_checks(audited: AuditInput) -> list[Check]:
    """The checks of replaced categories, path by path for each column, then between the attributes of each copy."""
    checks: list[Check] = []
    paths: dict[tuple[str, str], list[CategoryColumn]] = {}
    for name, copy in zip(audited.names, audited.copies, strict=True):
        known = [(part, audited.truth.codes[part.model.columns]) for part in copy.categories]
        for part, truth in known:
            for column in CategoryColumn.of(name, part, truth):
                paths.setdefault((part.path, column.column), []).append(column)
        checks += attribute_independence_checks(known, name)
    return checks + [check for columns in paths.values() for check in replacement_checks(columns)]

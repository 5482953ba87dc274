"""The field's measures of an audit: of the best copy as it stands, and of what all copies together lead to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Records
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.best_estimates import BestEstimates
from sfumato.audit.measures.accounting import PrivacyBudget, privacy_budget
from sfumato.audit.measures.anonymity import Anonymity, anonymity
from sfumato.audit.measures.excess_risk import ExcessRisk
from sfumato.audit.measures.inference import attribute_inference
from sfumato.audit.measures.interval_disclosure import RobustDistanceRisk, interval_disclosure, robust_distance_risk
from sfumato.audit.measures.linkability import linkability, record_linkage
from sfumato.audit.measures.membership import Membership, membership_inference
from sfumato.audit.measures.mixed_table import MixedTable, encode
from sfumato.audit.measures.rare_values import RareValue, rare_category, rare_numbers
from sfumato.audit.measures.singling_out import COLUMNS, singling_out
from sfumato.errors import AttackError, nearest
from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import noise_dissimilarity, symmetric
from sfumato.kernels.intervals import Interval
from sfumato.kernels.threads import in_threads
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import clip_bounds
from sfumato.tables.domain import Domain
from sfumato.tables.sampling import pseudo_random_order

TARGETS = 1000
"""The most records that are singled out, linked or inferred, and the most in the control group."""
CANDIDATES = 5000
"""The most records of a copy among which they are searched for."""
_ROBUST = 500
"""The most records for a robust covariance."""


@dataclass(frozen=True)
class RecordRisks:
    """What one adversary's table tells of records: a copy as it stands, or the best estimates from all copies."""

    adversary: str
    singling_out: tuple[ExcessRisk, ...]
    linkability: ExcessRisk
    inference: tuple[ExcessRisk, ...]
    membership: Membership
    linkage: Interval
    """The share of records that are linked to their own copy by Gower's distance, all their values being known."""
    mahalanobis_linkage: Interval | None
    """The same by the Mahalanobis distance of the noise, where there is any."""
    interval_disclosure: float
    robust_distance: RobustDistanceRisk | None
    targets: int
    candidates: int
    quasi_linkage: Interval | None = None
    """The share of records that are linked to their own copy by somebody who knows the quasi-identifiers alone."""
    quasi_inference: tuple[ExcessRisk, ...] = ()
    """The risk of the other columns by somebody who knows the quasi-identifiers alone."""
    quasi: tuple[str, ...] = ()
    """The named quasi-identifiers."""


@dataclass(frozen=True)
class FieldMeasures:
    """All measures of one audit."""

    records: tuple[RecordRisks, ...]
    rare_values: tuple[RareValue, ...]
    anonymity: Anonymity | None
    dissimilarity: float | None = None
    """Of the best copy's noise and the data, 0 where it has the shape of the data (huang2005, Definition 8.1)."""


def field_measures(
    released: AuditInput,
    control: AuditInput,
    best: BestEstimates,
    unknown: Rows,
    *,
    rows: int,
    quasi: Sequence[str] = (),
) -> FieldMeasures:
    """Measure the risk of records.

    Args:
        released: the records that were attacked.
        control: other records of the same table, of which no copy was attacked.
        best: the best estimates of the attacks, of the `unknown` rows.
        unknown: the rows that attackers did not know.
        rows: the number of records of the whole table.
        quasi: the columns that a public table about the same persons has.

    """
    copy = released.best_copy
    columns = shown_columns(released, copy)
    original, shown, others = encode([released.original, released.tables[copy], control.original], columns)
    jobs = [lambda: _record_risks(released.names[copy], original, shown, others, _noise(released, copy), quasi)]
    reconstructed = _reconstruction(released, control, best, unknown)
    if len(released.copies) > 1 and reconstructed is not None:
        estimated = [name for name in quasi if name in reconstructed[0].columns]
        jobs.append(lambda: _record_risks("all copies, best estimates", *reconstructed, {}, estimated))
    found = in_threads(lambda job: job(), jobs, 2)
    rare, unchanged = rare_values(released, best, unknown), _anonymity(released, copy, rows)
    return FieldMeasures(tuple(found), rare, unchanged, _dissimilarity(original, _noise(released, copy)))


def check_quasi_identifiers(released: AuditInput, quasi: Sequence[str]) -> None:
    """Refuse quasi-identifiers that the best copy does not show, before any work is done."""
    columns = shown_columns(released, released.best_copy)
    missing = [name for name in quasi if name not in columns]
    if missing:
        raise AttackError(
            f"a quasi-identifier must be a column of the best copy, got {missing[0]!r}; {nearest(missing[0], columns)}"
        )


def shown_columns(released: AuditInput, copy: int) -> list[str]:
    """The columns that a copy shows in the terms of the original, without identifiers and linear maps."""
    models = released.manifests[copy].models
    hidden = {name for model in models if model.identifies for name in model.columns}
    names = set(released.tables[copy].column_names) & set(released.original.column_names)
    return [name for name in released.original.column_names if name in names and name not in hidden]


def _record_risks(
    adversary: str,
    original: MixedTable,
    copy: MixedTable,
    control: MixedTable,
    noise: Mapping[str, Floats],
    quasi: Sequence[str] = (),
) -> RecordRisks:
    """The risks of a random sample of records, in a random sample of the copy."""
    order = pseudo_random_order(len(copy))[:CANDIDATES]
    size = min(TARGETS, len(order), len(control))
    own = np.arange(size)
    candidates, targets, others = copy.take(order), original.take(order[:size]), control.take(own)
    crowd = min(len(control), len(order))
    singled = [
        singling_out(original.take(order[:crowd]), copy.take(order[:crowd]), control.take(np.arange(crowd)), count)
        for count in COLUMNS
        if count == 1 or count <= len(copy.columns)
    ]
    true, shown = (table.values[:, table.is_number] for table in (original.take(order), candidates))
    return RecordRisks(
        adversary,
        tuple(one for one in singled if one is not None),
        linkability(targets, candidates, others),
        tuple(attribute_inference(targets, candidates, others)),
        membership_inference(targets, candidates, others),
        record_linkage(targets, candidates, own),
        _mahalanobis(targets, candidates, own, noise),
        interval_disclosure(true, shown) if true.shape[1] else math.nan,
        _robust(true, shown),
        size,
        len(candidates),
        record_linkage(targets.select(quasi), candidates.select(quasi), own) if quasi else None,
        tuple(attribute_inference(targets, candidates, others, quasi)) if quasi else (),
        tuple(quasi),
    )


def _robust(original: Floats, copy: Floats) -> RobustDistanceRisk | None:
    complete = np.flatnonzero(~np.isnan(original).any(axis=1) & ~np.isnan(copy).any(axis=1))[:_ROBUST]
    if len(complete) < 10 * max(original.shape[1], 1) or original.shape[1] < 1:
        return None
    return robust_distance_risk(original[complete], copy[complete])


def _mahalanobis(
    targets: MixedTable, candidates: MixedTable, own: Rows, noise: Mapping[str, Floats]
) -> Interval | None:
    """Linkage by the noise's own distance, on the columns that have it and on categories."""
    if not noise:
        return None
    names, covariance = noise["columns"].tolist(), noise["covariance"]
    used = [*names, *(n for n, number in zip(targets.columns, targets.is_number, strict=True) if not number)]
    values, vectors = np.linalg.eigh(covariance)
    weights = vectors / np.sqrt(np.maximum(values, 1e-9 * values[-1]))
    return record_linkage(targets.select(used), candidates.select(used), own, weights)


def _noise(released: AuditInput, copy: int) -> dict[str, Floats]:
    """The covariance of a copy's noise, with the names of its columns."""
    models = [m for m in of_type(released.manifests[copy].models, GaussianNoise) if not m.centre]
    if len(models) != 1:
        return {}
    return {"columns": np.array(models[0].columns, object), "covariance": symmetric(models[0].covariance)}


def _dissimilarity(original: MixedTable, noise: Mapping[str, Floats]) -> float | None:
    """The dissimilarity of noise and data, where several numbers are perturbed together."""
    if not noise or len(noise["columns"]) < 2:
        return None
    return noise_dissimilarity(original.select(noise["columns"].tolist()).values, noise["covariance"])


def _reconstruction(
    released: AuditInput, control: AuditInput, best: BestEstimates, unknown: Rows
) -> tuple[MixedTable, MixedTable, MixedTable] | None:
    """The original, the best estimates, and the control, in columns that attacks estimate in their own values."""
    copula = {name for copy in released.copies for part in copy.numbers if part.copula for name in part.columns}
    numbers = [name for name in best.numbers if name not in copula]
    attributes = [name for name in best.categories if len(name) == 1 and name in released.truth.codes]
    if not numbers and not attributes:
        return None
    truth, others = released.truth.take(unknown), control.truth
    estimated = [best.numbers[name][2] for name in numbers] + [
        best.categories[name][2].mode().astype(np.float64) for name in attributes
    ]
    is_number = np.arange(len(estimated)) < len(numbers)
    names = (*numbers, *(name[0] for name in attributes))

    def table(records: Records) -> MixedTable:
        codes = [np.where(records.codes[name] >= 0, records.codes[name], np.nan) for name in attributes]
        return MixedTable(names, np.column_stack([*records.numbers(numbers).T, *codes]), is_number)

    return table(truth), MixedTable(names, np.column_stack(estimated), is_number), table(others)


def rare_values(released: AuditInput, best: BestEstimates, unknown: Rows) -> tuple[RareValue, ...]:
    """Rare categories and extreme numbers that the best attack names with confidence, most records first."""
    truth = released.truth.take(unknown)
    scores = {name for copy in released.copies for part in copy.numbers if part.copula for name in part.columns}
    found: list[RareValue] = []
    for name, (_, _, estimate) in best.numbers.items():
        if name in truth.columns and name not in scores:  # those of scores are in `survival`, in their own values
            found += rare_numbers(name, truth.numbers([name])[:, 0], estimate)
    for columns, (_, _, posterior) in best.categories.items():
        if len(columns) == 1 and columns in truth.codes:
            codes = truth.codes[columns]
            for code in np.unique(codes[codes >= 0]).tolist():
                label = _label(posterior.model, code)
                everyone = np.full(len(codes), code)
                one = rare_category(columns[0], label, codes == code, posterior.probability(everyone))
                found += [] if one is None else [one]
    return tuple(sorted((one for one in found if one.named), key=lambda one: -one.named))


def _label(model: UniformReplacement, code: int) -> str:
    """The name of a category."""
    domain = Domain.decode(dict(model.domains[0]))
    if code >= domain.count:
        return "missing"
    return str(domain.values[code] if domain.values else domain.first + code)


def audited_budget(released: AuditInput) -> PrivacyBudget | None:
    """The privacy budget of the best copy, drawn anew on each path; none where it cannot be computed here."""
    models = released.manifests[released.best_copy].models
    bounds = {
        name: clip_bounds(clip, released.original.schema.field(name).type)
        for model in of_type(models, GaussianNoise)
        for name, clip in zip(model.columns, model.clip, strict=True)
        if clip is not None
    }
    try:
        return privacy_budget(models, bounds, released.path_count())
    except AttackError:
        return None  # the library for it is not installed


def _anonymity(released: AuditInput, copy: int, rows: int) -> Anonymity | None:
    """The anonymity of the columns that a copy shows unchanged."""
    models = of_type(released.manifests[copy].models, Unchanged)
    quasi = [name for model in models if not model.identifies for name in model.columns]
    if not quasi:
        return None
    sensitive: Sequence[str] = [name for name in shown_columns(released, copy) if name not in quasi]
    encoded = [encode([released.original], names)[0] for names in (quasi, sensitive)]
    return anonymity(encoded[0], encoded[1], rows)

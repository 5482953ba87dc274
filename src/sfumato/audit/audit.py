"""Audit of copies: every attack on each copy, on all copies of a coalition, and on copies with independent noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from sfumato.attacks import non_dominated
from sfumato.audit.attack_runs import Adversary, Scorer, run_attacks
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.checks import Check
from sfumato.audit.comparison import collusion_curves, column_risks, error_distribution
from sfumato.audit.field_measures import audited_budget, check_quasi_identifiers, field_measures, shown_columns
from sfumato.audit.measures.information_loss import utility
from sfumato.audit.measures.mixed_table import encode
from sfumato.audit.outliers import SinglingOutRisk
from sfumato.audit.result import AttackRun, Audit, HeldCopy
from sfumato.audit.soundness import soundness
from sfumato.audit.steps import Steps
from sfumato.audit.survival import survival
from sfumato.audit.value_risk import value_risks
from sfumato.policy.targets import Target
from sfumato.risk.thresholds import ThresholdResult, best_results, closed_form_results, is_measured

CONTROL_ONE_IN = 10
"""One record in this many is held out as a control: what attacks find out about it, they find out without a copy."""

MEASURES, UTILITY = "measures", "utility"
PARTS = (MEASURES, UTILITY)
"""The parts of an audit that can be left out; attacks are chosen by name."""

NOISE, COPIES = "noise", "copies"
COSTS = {NOISE: 8.0, COPIES: 2.0, MEASURES: 7.0, UTILITY: 2.0}
"""Seconds that the parts take where attacks take their `cost`, roughly, for the estimate of the time that is left."""

ATTACKED = 7_000
"""The most records that are attacked; the noise of all is checked."""

Stage = Callable[[str], None]
"""Called with the name of each step as it begins."""


def audit(
    original: pa.Table,
    copies: dict[str, pa.Table],
    *,
    attacks: Sequence[str] | None = None,
    targets: Sequence[Target] = (),
    singling_out: SinglingOutRisk | None = None,
    faults: Sequence[Check] = (),
    rows: int | None = None,
    without: Sequence[str] = (),
    quasi: Sequence[str] = (),
    stage: Stage = lambda _: None,
) -> Audit:
    """Audit the disclosure risk of copies with every known attack.

    Args:
        original: the same records, unperturbed.
        copies: the copies with their manifests, by the names of the recipients who hold them.
        attacks: the names of the attacks to run; by default all.
        targets: the thresholds to compare the attacks with.
        singling_out: the outliers of the table, if they were looked for.
        faults: other checks of the copies that failed.
        rows: the number of records of the table, if `original` is a part of it.
        without: the parts to leave out, of `PARTS`.
        quasi: the columns that a public table about the same persons has, by which it may be linked.
        stage: called with the name of each step as it begins; what it raises cancels the audit.

    """
    everything, steps = AuditInput.of(original, copies), _planned(stage, without)
    check_quasi_identifiers(everything, quasi)
    with steps.step("checking the noise", COSTS[NOISE]):
        sound = soundness(everything, faults=faults)
    released, control = everything.sample(ATTACKED).hold_out(CONTROL_ONE_IN)
    scorer = Scorer(released.truth, released.known_rows(), control.truth)
    independent = released.with_independent_noise()
    single_copy, all_copies, independent_noise = _run_all(released, independent, attacks, scorer, steps)
    total = rows or len(everything.truth)
    together = _of_collusion(released, independent, everything, scorer, steps)
    return Audit(
        **_subject(released, control, total),
        single_copy=tuple(single_copy),
        all_copies=all_copies,
        independent_noise=independent_noise,
        soundness=sound,
        column_risks=tuple(column_risks(released, single_copy, all_copies, independent_noise)),
        singling_out=singling_out,
        thresholds=_threshold_results(released, targets, [all_copies, *single_copy]),
        partial=attacks is not None,
        **together,
        **_of_records(released, control, scorer, _Records(total, tuple(without), tuple(quasi)), steps),
    )


def _planned(stage: Stage, without: Sequence[str]) -> Steps:
    """The steps of an audit, with what its parts cost; attacks add theirs."""
    steps = Steps(stage)
    steps.plan(sum(COSTS[part] for part in (NOISE, COPIES, *(part for part in PARTS if part not in without))))
    return steps


def _subject(released: AuditInput, control: AuditInput, rows: int) -> dict[str, Any]:
    """What was audited."""
    held = zip(released.names, released.manifests, strict=True)
    return {
        "dataset": released.manifests[0].dataset,
        "rows": rows,
        "audited_rows": len(released.truth) + len(control.truth),
        "paths": released.path_count(),
        "software": f"sfumato {version('sfumato')}",
        "copies": tuple(HeldCopy(name, manifest.fidelity) for name, manifest in held),
    }


@dataclass(frozen=True)
class _Records:
    """What is measured of records: their number, the parts left out, and the quasi-identifiers."""

    rows: int
    without: tuple[str, ...]
    quasi: tuple[str, ...]


def _of_records(
    released: AuditInput, control: AuditInput, scorer: Scorer, chosen: _Records, steps: Steps
) -> dict[str, Any]:
    """The field's measures of risk and utility, unless they are left out."""
    copy = released.best_copy
    found: dict[str, Any] = {"without": chosen.without, "budget": audited_budget(released)}
    if MEASURES not in chosen.without:
        with steps.step("singling out, linkability, inference and membership", COSTS[MEASURES]):
            found["measures"] = field_measures(
                *(released, control, scorer.best, scorer.unknown), rows=chosen.rows, quasi=chosen.quasi
            )
    if UTILITY not in chosen.without:
        with steps.step("utility of the best copy", COSTS[UTILITY]):
            names = shown_columns(released, copy)
            found["utility"] = utility(*encode([released.original, released.tables[copy], control.original], names))
    return found


def _of_collusion(
    released: AuditInput, independent: AuditInput, everything: AuditInput, scorer: Scorer, steps: Steps
) -> dict[str, Any]:
    """What copies add to each other, and what concerns margin-preserving columns only."""
    with steps.step("adding copy by copy", COSTS[COPIES]):
        return {
            "collusion_curves": tuple(collusion_curves(released, independent)),
            "error_distribution": error_distribution(released, independent),
            **_of_margins(released, independent, everything, scorer),
        }


def _of_margins(
    released: AuditInput, independent: AuditInput, everything: AuditInput, scorer: Scorer
) -> dict[str, Any]:
    """What concerns margin-preserving columns only."""
    return {
        "coarsened_columns": _coarsened_columns(released),
        "value_risks": value_risks(released, independent, scorer.best),
        "survival": survival(everything),
    }


def _run_all(
    released: AuditInput, independent: AuditInput, attacks: Sequence[str] | None, scorer: Scorer, steps: Steps
) -> tuple[list[AttackRun], AttackRun, AttackRun]:
    """The attacks on each copy, on all copies, and on copies with independent noise.

    Known records are given to the holder of the best copy, to the coalitions, and to holders of rotated or projected
    copies, against which known records are the main attack.
    """
    knows = [i == released.best_copy or bool(copy.linear_maps) for i, copy in enumerate(released.copies)]
    adversaries = [Adversary(name, released.single(i, known_records=knows[i])) for i, name in enumerate(released.names)]
    adversaries.append(Adversary("all copies", released.combined(), equivalent=_equivalent_copy(released)))
    adversaries.append(Adversary("copies with independent noise", independent.combined(), is_comparison=True))
    *single_copy, all_copies, independent_noise = run_attacks(adversaries, attacks, scorer, steps)
    return single_copy, all_copies, independent_noise


def _equivalent_copy(released: AuditInput) -> int | None:
    """The index of the one copy that all copies combine to, if there is one: the best copy, if all lie on one path."""
    evidence = released.combined(known_records=False)
    best = non_dominated(evidence.numbers)
    if _coarsened_columns(released):
        return None  # other copies may show more of such columns than the best one
    if len(best) != 1 or evidence.numbers[best[0]].columns != evidence.columns:
        return None
    sufficient = evidence.numbers[best[0]]
    return next(i for i, copy in enumerate(released.copies) if any(sufficient is part for part in copy.numbers))


def _coarsened_columns(released: AuditInput) -> tuple[str, ...]:
    """The columns of which copies show less than their levels allow."""
    models = [model for manifest in released.manifests for model in manifest.models]
    return tuple(dict.fromkeys(name for model in models for name in model.coarsened_columns))


def _threshold_results(
    released: AuditInput, targets: Sequence[Target], runs: Sequence[AttackRun]
) -> tuple[ThresholdResult, ...]:
    """The best attack on each target whose column is in some copy."""
    scores = [score for run in runs for score in run.scores]
    measured = [target for target in targets if _is_released(released, target) and is_measured(scores, target)]
    evidence = released.combined(known_records=False)
    return (*closed_form_results(targets, evidence, released.truth), *best_results(measured, scores))


def _is_released(released: AuditInput, target: Target) -> bool:
    """Whether the column of a target is in some copy."""
    return target.column in released.truth.columns or any(target.column in names for names in released.truth.codes)

"""The audit itself: every attack on every copy, on all of them pooled, and on independent copies for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

import pyarrow as pa

from sfumato.attacks import non_dominated
from sfumato.audit.attack_runs import Case, Scorer, run_attacks
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.checks import Check
from sfumato.audit.comparison import growth, spread, worth
from sfumato.audit.outliers import Exposure
from sfumato.audit.result import AttackRun, Audit, Held
from sfumato.audit.soundness import soundness
from sfumato.policy.targets import Target
from sfumato.risk.thresholds import Reached, reached, speaks_of

CONTROL = 10
"""One record in ten is kept from the attackers, as a control: what they find of it, they would find without a copy."""

Stage = Callable[[str], None]


def audit(
    original: pa.Table,
    copies: dict[str, pa.Table],
    *,
    attacks: Sequence[str] | None = None,
    targets: Sequence[Target] = (),
    exposure: Exposure | None = None,
    faults: Sequence[Check] = (),
    rows: int | None = None,
    stage: Stage = lambda _: None,
) -> Audit:
    """Attack copies in every known way.

    Args:
        original: the same records, as they are.
        copies: by the names of who holds them, each with its manifest.
        attacks: to try; by default all.
        targets: thresholds to hold them against.
        exposure: what stands out of the noise, if it was looked for.
        faults: what else was found wrong with the copies.
        rows: of the whole table, if this is a part of it.
        stage: told what is going on.

    """
    whole = AuditInput.of(original, copies)
    stage("checking the noise")
    sound = soundness(whole, faults=faults)
    seen, control = whole.split(CONTROL)
    scorer, twin = Scorer(seen.truth, seen.known(), control), seen.twin()
    alone, pooled, independent = _tried(seen, twin, attacks, scorer, stage)
    stage("adding copy by copy")
    return Audit(
        dataset=seen.manifests[0].dataset,
        rows=len(whole.truth) if rows is None else rows,
        audited=len(whole.truth),
        paths=seen.paths(),
        copies=tuple(Held(name, m.fidelity) for name, m in zip(seen.names, seen.manifests, strict=True)),
        alone=tuple(alone),
        pooled=pooled,
        independent=independent,
        soundness=sound,
        worth=tuple(worth(seen, alone, pooled, independent)),
        growth=tuple(growth(seen, twin)),
        spread=spread(seen, twin),
        exposure=exposure,
        targets=_reached(seen, targets, [pooled, *alone]),
        partial=attacks is not None,
        software=f"sfumato {version('sfumato')}",
    )


def _tried(
    seen: AuditInput, twin: AuditInput, attacks: Sequence[str] | None, scorer: Scorer, stage: Stage
) -> tuple[list[AttackRun], AttackRun, AttackRun]:
    """All attacks on each copy, on all of them, and on the independent ones; only who holds the best knows records."""
    best = max(range(len(seen.copies)), key=lambda i: seen.manifests[i].fidelity)
    knowing = [i == best or bool(copy.turned) for i, copy in enumerate(seen.copies)]  # a turn is undone by knowing
    cases = [Case(name, seen.alone(i, knows=knowing[i])) for i, name in enumerate(seen.names)]
    cases.append(Case("all together", seen.pooled(), _is_all(seen)))
    cases.append(Case("all, had the noise been independent", twin.pooled()))
    *alone, pooled, independent = run_attacks(cases, attacks, scorer, stage)
    return alone, pooled, independent


def _is_all(seen: AuditInput) -> int | None:
    """The copy that all together pool to, if there is one: where all lie on one path, the best."""
    evidence = seen.pooled(knows=False)
    best = non_dominated(evidence.numbers)
    if len(best) != 1 or evidence.numbers[best[0]].columns != evidence.columns:
        return None
    return next(i for i, copy in enumerate(seen.copies) if any(evidence.numbers[best[0]] is p for p in copy.numbers))


def _reached(seen: AuditInput, targets: Sequence[Target], tried: Sequence[AttackRun]) -> tuple[Reached, ...]:
    """What the best attack reached of each target on a column that some copy shows."""
    scores = [found for trial in tried for found in trial.scores]
    asked = [target for target in targets if _is_shown(seen, target) and speaks_of(scores, target)]
    return tuple(reached(asked, scores))


def _is_shown(seen: AuditInput, target: Target) -> bool:
    return target.column in seen.truth.columns or any(target.column in name for name in seen.truth.codes)

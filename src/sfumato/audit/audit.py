"""The audit itself: every attack on every copy, on all of them pooled, and on independent copies for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice

import numpy as np
import pyarrow as pa

from sfumato.attacks import ATTACKS, Evidence, Knowledge, Records
from sfumato.attacks._pooling import telling
from sfumato.attacks._scoring import record_errors
from sfumato.attacks._simulation import simulated
from sfumato.audit.checks import Check, Soundness
from sfumato.audit.exposure import Exposure
from sfumato.audit.matching import matched, shared_ids
from sfumato.audit.noise_checks import noise_checks, path_of
from sfumato.audit.replacement_checks import crossed, replacement_checks
from sfumato.audit.result import Audit, Growth, Held, Spread, Trial, Worth
from sfumato.audit.trials import Case, Judge, trials
from sfumato.errors import AttackError
from sfumato.kernels import Rows
from sfumato.release.exhibits import exhibit, placed, records, together
from sfumato.release.manifest import Manifest
from sfumato.release.thresholds import reached
from sfumato.schema.targets import Target

RATE = 1e-6
"""The probability that an audit of sound copies raises an alarm."""

KNOWN = 2000
"""Records that the attacker is assumed to know, of those that are audited; at most every tenth."""

Stage = Callable[[str], None]


@dataclass(frozen=True)
class Exhibits:
    """What is audited: the original and the copies of the same records, as attacks see them."""

    names: tuple[str, ...]
    manifests: tuple[Manifest, ...]
    copies: tuple[Evidence, ...]
    original: pa.Table
    truth: Records

    @classmethod
    def of(cls, original: pa.Table, copies: dict[str, pa.Table]) -> Exhibits:
        """Copies by their holders' names; records that not all of them hold are left out."""
        if not copies:
            raise AttackError("an audit needs at least one copy; grant one, or name the files")
        manifests = [Manifest.of(copy) for copy in copies.values()]
        ids = [name for name in shared_ids(manifests) if name in original.column_names]
        table, *found = matched([original, *copies.values()], ids)
        if table.num_rows < 2:
            raise AttackError("an audit needs records that all holders of copies have, and there are none")
        shown = [exhibit(copy, manifest) for copy, manifest in zip(found, manifests, strict=True)]
        models = [model for manifest in manifests for model in manifest.models]
        return cls(tuple(copies), tuple(manifests), tuple(shown), table, records(table, models))

    def known(self) -> Rows:
        """The places of the records that attackers know."""
        count = min(KNOWN, len(self.truth) // 10)
        places: Rows = np.unique(np.linspace(0, len(self.truth) - 1, max(count, 1)).astype(np.int64))
        return places

    def pooled(self, first: int | None = None, *, knows: bool = True) -> Evidence:
        """All copies, or the first few, in one hand."""
        return together(self.copies[:first], self._knowledge() if knows else None)

    def alone(self, i: int, *, knows: bool) -> Evidence:
        """One of the copies."""
        return together([self.copies[i]], self._knowledge() if knows else None)

    def twin(self) -> Exhibits:
        """The same levels with noise that is independent between copies, by the same published models."""
        apart = []
        for i, copy in enumerate(self.copies):
            own = tuple(replace(part, path=f"{part.path}#{i}") for part in copy.numbers)
            drawn = tuple(replace(part, path=f"{part.path}#{i}") for part in copy.categories)
            apart.append(replace(copy, numbers=own, categories=drawn))
        made = simulated(together(apart), self.truth)
        numbers, categories = iter(made.numbers), iter(made.categories)
        copies = [
            replace(
                copy,
                numbers=tuple(islice(numbers, len(copy.numbers))),
                categories=tuple(islice(categories, len(copy.categories))),
            )
            for copy in apart
        ]
        return replace(self, copies=tuple(copies))

    def _knowledge(self) -> Knowledge:
        return Knowledge(known=self.truth.take(self.known()), places=self.known())


def audit(
    original: pa.Table,
    copies: dict[str, pa.Table],
    *,
    attacks: Sequence[str] | None = None,
    targets: Sequence[Target] = (),
    exposure: Exposure | None = None,
    control: pa.Table | None = None,
    rows: int | None = None,
    rate: float = RATE,
    stage: Stage = lambda _: None,
) -> Audit:
    """Attack copies in every known way.

    Args:
        original: the same records, as they are.
        copies: by the names of who holds them, each with its manifest.
        attacks: to try; by default all.
        targets: thresholds to hold them against.
        exposure: what stands out of the noise, if it was looked for.
        control: records that are in none of the copies.
        rows: of the whole table, if this is a part of it.
        rate: of false alarms.
        stage: told what is going on.

    """
    seen = Exhibits.of(original, copies)
    stage("checking the noise")
    soundness = Soundness.of(checks(seen), rate)
    twin = seen.twin()
    best = max(range(len(seen.copies)), key=lambda i: seen.manifests[i].given)
    cases = [Case(name, seen.alone(i, knows=i == best)) for i, name in enumerate(seen.names)]
    cases += [
        Case("all together", seen.pooled(), _is_all(seen)),
        Case("all, had the noise been independent", twin.pooled()),
    ]
    judge = Judge(seen.truth, seen.known(), None if control is None else records(control, seen.manifests[0].models))
    *alone, pooled, independent = trials(cases, attacks, judge, stage)
    stage("adding copy by copy")
    scores = [found for trial in (pooled, *alone) for found in trial.scores]
    return Audit(
        seen.manifests[0].dataset,
        len(seen.truth) if rows is None else rows,
        len(seen.truth),
        tuple(Held(name, manifest.given) for name, manifest in zip(seen.names, seen.manifests, strict=True)),
        tuple(alone),
        pooled,
        independent,
        soundness,
        tuple(_worth(seen, alone, pooled, independent)),
        tuple(_growth(seen, twin)),
        _spread(seen, twin),
        exposure,
        tuple(reached([t for t in targets if _speaks_of(seen, t)], scores)) if attacks is None else (),
        f"sfumato {version('sfumato')}",
    )


def checks(seen: Exhibits) -> list[Check]:
    """Whether the copies are what their manifests say."""
    found: list[Check] = []
    numbers = [(name, part) for name, copy in zip(seen.names, seen.copies, strict=True) for part in copy.numbers]
    for path in dict.fromkeys(part.path for _, part in numbers):
        lane = [(name, part) for name, part in numbers if part.path == path]
        noise = path_of(lane, placed(seen.original, lane[0][1].model))
        found += [] if noise is None else noise_checks(noise)
    categories = [(name, p) for name, copy in zip(seen.names, seen.copies, strict=True) for p in copy.categories]
    for key in dict.fromkeys((part.path, part.model.columns) for _, part in categories):
        some = [(name, part) for name, part in categories if (part.path, part.model.columns) == key]
        found += replacement_checks(some, seen.truth.codes[key[1]])
    for name, copy in zip(seen.names, seen.copies, strict=True):
        truth = seen.truth.codes
        parts = [(f"{name}, {' x '.join(p.model.columns)}", p.codes, truth[p.model.columns]) for p in copy.categories]
        found += crossed(parts)
    return found


def _is_all(seen: Exhibits) -> int | None:
    """The copy that all together pool to, if there is one: where all lie on one path, the best."""
    evidence = seen.pooled(knows=False)
    best = telling(evidence.numbers)
    if len(best) != 1 or evidence.numbers[best[0]].columns != evidence.columns:
        return None
    return next(i for i, copy in enumerate(seen.copies) if any(evidence.numbers[best[0]] is p for p in copy.numbers))


def _speaks_of(seen: Exhibits, target: Target) -> bool:
    return target.column in seen.truth.columns or any(target.column in name for name in seen.truth.codes)


def _worth(seen: Exhibits, alone: Sequence[Trial], pooled: Trial, independent: Trial) -> list[Worth]:
    found = []
    for column in seen.truth.columns if pooled.scores else ():
        best = min(trial.best_error(column)[1] for trial in alone if any(one.has(column) for one in trial.scores))
        attack, value = pooled.best_error(column)
        found.append(Worth(column, "error", 1.0, best, value, independent.best_error(column)[1], attack))
    names = dict.fromkeys(category.columns for one in pooled.scores for category in one.categories)
    for columns in names:
        attack, value = pooled.best_success(columns)
        held = [trial.best_success(columns)[1] for trial in alone if _guesses(trial, columns)]
        base = next(c.success.baseline.value for one in pooled.scores for c in one.categories if c.columns == columns)
        other = independent.best_success(columns)[1]
        found.append(Worth(" x ".join(columns), "success", base, max(held), value, other, attack))
    return found


def _guesses(trial: Trial, columns: tuple[str, ...]) -> bool:
    return any(category.columns == columns for one in trial.scores for category in one.categories)


def _growth(seen: Exhibits, twin: Exhibits) -> list[Growth]:
    """The joint attack with ever more copies."""
    out = []
    if all(copy.numbers for copy in seen.copies):
        out.append(Growth("error", *(tuple(_errors(one)) for one in (seen, twin))))
    if all(copy.categories for copy in seen.copies):
        out.append(Growth("reconstruction", *(tuple(_reconstructions(one)) for one in (seen, twin))))
    return out


def _errors(seen: Exhibits) -> list[float]:
    out = []
    for count in range(1, len(seen.copies) + 1):
        found = ATTACKS["llse"]().estimate(seen.pooled(count, knows=False))
        out.append(float(np.nanmean(record_errors(found.values, seen.truth.numbers(found.columns)) ** 2)))
    return out


def _reconstructions(seen: Exhibits) -> list[float]:
    out = []
    for count in range(1, len(seen.copies) + 1):
        beliefs = ATTACKS["collusion"]().estimate(seen.pooled(count, knows=False)).beliefs
        out.append(float(np.mean([np.nanmean(b.probability(seen.truth.codes[b.columns])) for b in beliefs])))
    return out


def _spread(seen: Exhibits, twin: Exhibits) -> Spread | None:
    """How the errors of the joint attack are distributed over records."""
    if not all(copy.numbers for copy in seen.copies):
        return None
    edges = np.linspace(0, 2.5, 51)
    shares = []
    for one in (seen, twin):
        found = ATTACKS["llse"]().estimate(one.pooled(knows=False))
        errors = record_errors(found.values, seen.truth.numbers(found.columns))
        counts = np.histogram(np.minimum(errors[~np.isnan(errors)], edges[-1]), edges)[0]
        shares.append(tuple(map(float, counts / max(counts.sum(), 1))))
    return Spread(tuple(map(float, edges)), *shares)

"""The adviser on turned copies: what known records, and what samples of the population, would undo of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from sfumato.attacks import Knowledge, MappedRows, breached
from sfumato.attacks.known_sample import KnownSample
from sfumato.errors import AttackError, PolicyError
from sfumato.kernels import Rows
from sfumato.keys.key import Key
from sfumato.mechanisms._linear_map import LinearMapMechanism
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation
from sfumato.policy.document import Policy
from sfumato.release.evidence import before_turning, copy_evidence, records
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import TableScheme
from sfumato.risk.breach import EPSILONS, SHARE, Advice, breaks, counted, without_a_copy
from sfumato.tables.sampling import one_in, order, sampled
from sfumato.tables.source import Source

SIZES = (20, 50, 200, 1000, 5000)
"""Samples that are tried."""

RUNS = 2
"""Copies, each turned anew, that a sample of each size is tried on."""

_ROWS = 40_000
_WIDE = 24
"""Columns up to which the likeliest turn is sought; beyond, third moments decide."""


@dataclass(frozen=True)
class Sampled:
    """What an attacker with a sample of the population finds: the share of records within each of `EPSILONS`."""

    size: int
    share: tuple[float, ...]


@dataclass(frozen=True)
class Advised:
    """What there is to say before a turned copy is given."""

    dataset: str
    role: str
    model: Rotation
    known: Advice | None
    """Nothing where noise is added, or fewer dimensions are shown than there are: known records do not undo all."""
    baseline: tuple[float, ...]
    """The share of records that the mean finds, without any copy."""
    missing: int
    """Records of those looked at that miss a number, and show none."""
    looked: int
    samples: tuple[Sampled, ...]
    withstand: int
    accept: str | None

    @property
    def enough_known(self) -> int | None:
        """The least number of known records that breaks the table."""
        return None if self.known is None else self.known.enough()

    @property
    def enough_sample(self) -> int | None:
        """The size of the smallest sample, of those tried, that breaks it."""
        return next((one.size for one in self.samples if breaks(one.share, self.baseline)), None)

    @property
    def refused(self) -> bool:
        """Whether no copy may leave."""
        return self.accept is None and self.enough_known is not None and self.enough_known < self.withstand

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "dataset": self.dataset,
            "role": self.role,
            "dimensions": len(self.model.sources),
            "released dimensions": len(self.model.columns),
            "noise": self.model.noise,
            "epsilons": list(EPSILONS),
            "broken at a share of": SHARE,
            "without a copy": list(self.baseline),
            "known": None if self.known is None else [asdict(danger) for danger in self.known.dangers],
            "samples": [asdict(one) for one in self.samples],
            "enough known records": self.enough_known,
            "enough sample": self.enough_sample,
            "must withstand": self.withstand,
            "accepted": self.accept,
            "refused": self.refused,
        }


def advise(policy: Policy, table: Any, *, stage: Callable[[str], None] = lambda _: None) -> Advised:
    """What would become of a turned copy of a table under this policy."""
    stage("measuring the table")
    scheme, source = policy.fit(table), Source.of(table)
    moved = [
        (m, s) for m, s in zip(scheme.mechanisms, scheme.schemes, strict=True) if isinstance(m, LinearMapMechanism)
    ]
    if not moved:
        raise PolicyError("there is advice on the roles rotation and projection, and no column has one; see `audit`")
    mechanism, turned = moved[0]
    model = turned.model(next(iter(policy.ladder)))
    if not isinstance(model, Rotation):
        raise TypeError("a turned copy has the model of a turn")
    scheme.check(source, Key.from_bytes(bytes(32)))
    stage("counting known records")
    known = scheme.advice(source, turned) if mechanism.is_exact else None
    places, rows = sampled(scheme.numbered(source), _ROWS)
    apart = one_in(4, rows.num_rows)
    found = []
    with threadpool_limits(1), ThreadPoolExecutor(RUNS) as pool:
        for size in (size for size in SIZES if size <= len(apart) and rows.num_rows):
            stage(f"attacking with a sample of {size:,}")
            runs = [pool.submit(_shares, scheme, model, places, rows, apart, size, run) for run in range(RUNS)]
            found.append(Sampled(size, tuple(map(float, np.mean([run.result() for run in runs], axis=0)))))
    motion, placed = mechanism.motion, before_turning(rows, model) if rows.num_rows else np.empty((0, 1))
    return Advised(
        policy.dataset,
        mechanism.role,
        model,
        known,
        without_a_copy(placed),
        rows.num_rows - len(placed),
        rows.num_rows,
        tuple(found),
        motion.withstand,
        motion.accept,
    )


def _shares(
    scheme: TableScheme, model: Rotation, places: Any, rows: pa.Table, apart: Rows, size: int, run: int
) -> list[float]:
    """The attack with a sample of that size on a copy of the other records, made with a key of its own."""
    others = np.delete(np.arange(rows.num_rows), apart)
    wide = len(model.sources) > _WIDE or isinstance(model, Projection)
    attack = KnownSample(method="moments" if wide else "likelihood")
    chosen = apart[order(len(apart), run)[:size]]
    level = next(iter(scheme.policy.ladder))
    [copy] = scheme.copies(places[others], rows.take(pa.array(others)), [level], Key.generate())
    shown = Knowledge(sample=records(rows.take(pa.array(chosen)), [model]))
    evidence = copy_evidence(copy, Manifest.of(copy))
    try:
        guess = attack.estimate(replace(evidence, knowledge=shown)).values
    except AttackError:
        return [0.0] * len(EPSILONS)
    truth = records(rows.take(pa.array(others)), [model]).numbers(model.sources)
    guess, truth = (
        MappedRows(model, "", guess).placed(part) for part in (guess, truth)
    )  # as known records are counted
    return [float(breached(guess, truth, epsilon)["euclidean"].mean()) for epsilon in EPSILONS]


def text(advised: Advised) -> str:
    """The advice in words."""
    turned = f"{len(advised.model.sources)} columns of {advised.dataset}, {advised.role}"
    level = f", at the most trusted level (noise {advised.model.noise:.3g})" if advised.model.noise else ""
    lines = [_verdict(advised), "", f"What an attacker finds of {turned}{level}; sizes are those before the turn:"]
    heads = "  ".join(f"within {e:.0%}" for e in EPSILONS)
    alone = "  ".join(f"{share:>9.1%}" for share in advised.baseline)
    lines += [f"  {'':>15}  {heads}", f"  {'without a copy':>15}  {alone}", ""]
    if advised.known is not None:
        lines += [f"  {'known records':>15}  {heads}  most endangered record, by a random guess"]
        lines += [
            f"  {danger.known:>15,}  "
            + "  ".join(f"{share:>9.1%}" for share in danger.share)
            + "  "
            + ", ".join(f"{rho:.2f}" for rho in danger.rho)
            for danger in advised.known.dangers
        ]
    if advised.samples:
        lines += ["", f"  {'sample of':>15}  {heads}"]
        lines += [f"  {o.size:>15,}  " + "  ".join(f"{share:>9.1%}" for share in o.share) for o in advised.samples]
    if isinstance(advised.model, Projection):
        lines += [
            "",
            "A projection is no remedy against a sample, although giannella2010, section VI, says so: one matrix is "
            "used for all records, and the better it keeps distances, the better the attack.",
        ]
    return "\n".join(lines)


def _verdict(advised: Advised) -> str:
    known, sample = advised.enough_known, advised.enough_sample
    broken = f"find {SHARE:.0%} of the others within {EPSILONS[-1]:.0%} of their size"
    said = []
    if advised.model.noise:
        said.append("Noise is added before the turn: a copy is at least as safe as one with that noise and no turn.")
    elif advised.known is None:
        said.append("Fewer dimensions are shown than there are columns: known records do not undo all of it.")
    elif known is None:
        said.append(f"No number of known records that was tried is enough to {broken}.")
    else:
        said.append(f"{counted(known)} enough to {broken}; a copy must withstand {advised.withstand}.")
    if sample is not None:
        said.append(f"A sample of {sample:,} of the same population is enough to {broken}.")
    if advised.missing:
        share = f"{advised.missing:,} of {advised.looked:,} records"
        said.append(f"{share} miss a number, and show nothing.")
    if advised.refused:
        said.append("NO COPY MAY LEAVE.")
    elif advised.accept:
        said.append(f"The policy takes the risk: {advised.accept}.")
    return " ".join(said)

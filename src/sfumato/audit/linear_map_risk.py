"""Risk of rotated and projected copies: what known records and samples of the population disclose (giannella2010)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from sfumato.attacks import Knowledge, MappedRows, breached
from sfumato.attacks.known_sample import KnownSample
from sfumato.errors import AttackError, PolicyError
from sfumato.kernels import Rows, Words
from sfumato.keys.key import Key
from sfumato.mechanisms import Scheme
from sfumato.mechanisms._linear_map import LinearMapMechanism
from sfumato.models import of_type
from sfumato.models.rotation import Rotation
from sfumato.release.evidence import copy_evidence, original_before_map, original_records
from sfumato.release.gate import Request, breach_risk, check_table
from sfumato.release.manifest import Manifest
from sfumato.release.perturbation import numbered_rows, perturb_sample
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme
from sfumato.risk.breach import BREACHED_SHARE, EPSILONS, KnownRecordRisk, baseline_breach, enough, is_breached
from sfumato.tables.sampling import one_in, pseudo_random_order, sampled
from sfumato.tables.source import Source

SAMPLE_SIZES = (20, 50, 200, 1000, 5000)
"""The sizes of samples of the population that are tried."""

RUNS = 2
"""The number of copies, each with a linear map of its own, that a sample of each size is tried on."""

_ROWS = 40_000
"""The largest number of records that are attacked."""

_MAX_LIKELIHOOD_COLUMNS = 24
"""The largest number of columns for the attack by maximum likelihood; beyond, that by third moments is used."""

_NO_KEY = Key.from_bytes(bytes(32))
"""A key for checks that no secret depends on."""


@dataclass(frozen=True)
class SampleRisk:
    """The share of records that an attacker with a sample of the population breaches."""

    size: int
    """The number of records in the sample."""
    breached_share: tuple[float, ...]
    """The share of records estimated within each of `EPSILONS`."""


@dataclass(frozen=True)
class LinearMapRisk:
    """The disclosure risk of a rotated or projected copy of a table, before its release."""

    dataset: str
    role: str
    model: Rotation
    known_records: KnownRecordRisk | None
    """The risk by known records; nothing where noise is added, or the copy has fewer dimensions than the original, so
    that known records do not recover everything."""
    baseline: tuple[float, ...]
    """The share of records that the mean breaches without any copy, for each of `EPSILONS`."""
    incomplete: int
    """The number of examined records with a missing value, of which a copy releases nothing."""
    examined: int
    samples: tuple[SampleRisk, ...]
    withstand: int
    """The number of known records that the policy requires a copy to withstand."""
    accept: str | None
    """The reason why the policy accepts the risk, if it does."""

    @property
    def fewest_known_records(self) -> int | None:
        """The smallest number of known records that breaches the table."""
        return None if self.known_records is None else self.known_records.fewest_known()

    @property
    def smallest_sample(self) -> int | None:
        """The size of the smallest sample, of those tried, that breaches the table."""
        return next((one.size for one in self.samples if is_breached(one.breached_share, self.baseline)), None)

    @property
    def refused(self) -> bool:
        """Whether a release would be refused."""
        fewest = self.fewest_known_records
        return self.accept is None and fewest is not None and fewest < self.withstand

    def summary(self) -> dict[str, Any]:
        """The assessment as JSON."""
        curve = None if self.known_records is None else [asdict(point) for point in self.known_records.curve]
        return {
            "dataset": self.dataset,
            "role": self.role,
            "dimensions": len(self.model.sources),
            "released_dimensions": len(self.model.columns),
            "noise": self.model.noise,
            "epsilons": list(EPSILONS),
            "breached_at_share": BREACHED_SHARE,
            "baseline": list(self.baseline),
            "known_records": curve,
            "samples": [asdict(one) for one in self.samples],
            "fewest_known_records": self.fewest_known_records,
            "smallest_sample": self.smallest_sample,
            "must_withstand": self.withstand,
            "accepted": self.accept,
            "refused": self.refused,
        }


def assess_linear_map(policy: Policy, table: Any, *, stage: Callable[[str], None] = lambda _: None) -> LinearMapRisk:
    """Assess the risk of a rotated or projected copy of a table under a policy.

    Args:
        policy: a policy with columns of the role rotation or projection.
        table: the original.
        stage: called with the name of each step as it begins.

    """
    stage("measuring the table")
    scheme, source = policy.fit(table), Source.of(table)
    mechanism, fitted = _linear_map(scheme)
    [model] = of_type([fitted.model(next(iter(policy.ladder)))], Rotation)
    check_table(scheme, source, _NO_KEY)
    stage("assessing known records")
    known_records = breach_risk(Request.of(scheme, source, _NO_KEY), fitted) if mechanism.is_exact else None
    row_numbers, rows = sampled(numbered_rows(scheme, source), _ROWS)
    samples = tuple(_SampleAttack(scheme, model, row_numbers, rows).risks(stage))
    complete = original_before_map(rows, model)
    return LinearMapRisk(
        dataset=policy.dataset,
        role=mechanism.role,
        model=model,
        known_records=known_records,
        baseline=baseline_breach(complete),
        incomplete=rows.num_rows - len(complete),
        examined=rows.num_rows,
        samples=samples,
        withstand=mechanism.linear_map.withstand,
        accept=mechanism.linear_map.accept,
    )


def _linear_map(scheme: TableScheme) -> tuple[LinearMapMechanism, Scheme]:
    """The mechanism of a scheme that rotates or projects, and what was fitted for it."""
    for mechanism, fitted in scheme.fitted:
        if isinstance(mechanism, LinearMapMechanism):
            return mechanism, fitted
    raise PolicyError(
        "`sfumato advise` needs columns with the role rotation or projection, and no column has one; for other roles, "
        "run `sfumato audit`"
    )


@dataclass(frozen=True)
class _SampleAttack:
    """The known-sample attack: a quarter of some records is the sample's source, the others are released."""

    scheme: TableScheme
    model: Rotation
    row_numbers: Words
    rows: pa.Table

    def risks(self, stage: Callable[[str], None]) -> Iterator[SampleRisk]:
        """The risk by samples of growing size."""
        held_out = one_in(4, self.rows.num_rows)
        sizes = [size for size in SAMPLE_SIZES if size <= len(held_out) and self.rows.num_rows]
        with threadpool_limits(1), ThreadPoolExecutor(RUNS) as pool:
            for size in sizes:
                stage(f"attacking with a sample of {size:,}")
                runs = [pool.submit(self._breached_shares, held_out, size, run) for run in range(RUNS)]
                means = np.mean([run.result() for run in runs], axis=0)
                yield SampleRisk(size, tuple(map(float, means)))

    def _breached_shares(self, held_out: Rows, size: int, run: int) -> list[float]:
        """The share of records breached, for each epsilon, in a copy of the other records with a key of its own."""
        model = self.model
        others = np.delete(np.arange(self.rows.num_rows), held_out)
        released = self.rows.take(pa.array(others))
        by_moments = len(model.sources) > _MAX_LIKELIHOOD_COLUMNS or not model.preserves_distances
        attack = KnownSample(method="moments" if by_moments else "likelihood")
        sample = self.rows.take(pa.array(held_out[pseudo_random_order(len(held_out), run)[:size]]))
        level = next(iter(self.scheme.policy.ladder))
        [copy] = perturb_sample(self.scheme, self.row_numbers[others], released, [level], Key.generate())
        evidence = copy_evidence(copy, Manifest.of(copy))
        knowledge = Knowledge(sample=original_records(sample, [model]))
        try:
            estimate = attack.estimate(replace(evidence, knowledge=knowledge)).values
        except AttackError:
            return [0.0] * len(EPSILONS)
        truth = original_records(released, [model]).numbers(model.sources)
        mapped = MappedRows(model, "", estimate)  # errors are measured as for known records, before the map
        estimate, truth = mapped.standardised(estimate), mapped.standardised(truth)
        return [float(breached(estimate, truth, epsilon)["euclidean"].mean()) for epsilon in EPSILONS]


def text(risk: LinearMapRisk) -> str:
    """The assessment as text for a terminal."""
    columns = f"{len(risk.model.sources)} columns of {risk.dataset} with the role {risk.role}"
    level = f", at the most trusted level (noise {risk.model.noise:.3g})" if risk.model.noise else ""
    title = f"Share of records that an attacker estimates within ε of their norm: {columns}{level}"
    lines = [_verdict(risk), "", title, "", *_table_lines(risk)]
    if not risk.model.preserves_distances:
        lines += [
            "",
            "A projection is no remedy against a sample of the population, although giannella2010, section VI, says "
            "so: one matrix is used for all records, and the better it preserves distances, the better the attack.",
        ]
    return "\n".join(lines)


def _table_lines(risk: LinearMapRisk) -> list[str]:
    """The breached shares without a copy, with known records, and with samples of the population."""
    heads = "  ".join(f"within {epsilon:.0%}" for epsilon in EPSILONS)
    lines = [f"  {'':>15}  {heads}", f"  {'without a copy':>15}  {_shares(risk.baseline)}", ""]
    if risk.known_records is not None:
        lines += [f"  {'known records':>15}  {heads}  breach probability of the record most at risk"]
        lines += [
            f"  {point.known_records:>15,}  {_shares(point.breached_share)}  "
            + ", ".join(f"{probability:.2f}" for probability in point.max_probability)
            for point in risk.known_records.curve
        ]
    if risk.samples:
        lines += ["", f"  {'sample size':>15}  {heads}"]
        lines += [f"  {one.size:>15,}  {_shares(one.breached_share)}" for one in risk.samples]
    return lines


def _shares(shares: tuple[float, ...]) -> str:
    return "  ".join(f"{share:>9.1%}" for share in shares)


def _verdict(risk: LinearMapRisk) -> str:
    """The assessment in a few sentences, what is bad before what is good."""
    sentences = ["DO NOT RELEASE."] if risk.refused else []
    breach = f"estimate {BREACHED_SHARE:.0%} of the other records within {EPSILONS[-1]:.0%} of their norm"
    if risk.smallest_sample is not None:
        sentences.append(f"A sample of {risk.smallest_sample:,} records of the population is enough to {breach}.")
    sentences.append(_known_record_sentence(risk, breach))
    if risk.incomplete:
        share = f"{risk.incomplete:,} of {risk.examined:,} records"
        sentences.append(f"{share} have a missing value, and the copy releases nothing of them.")
    if risk.accept and not risk.refused:
        sentences.append(f"The policy accepts the risk: {risk.accept}.")
    return " ".join(sentences)


def _known_record_sentence(risk: LinearMapRisk, breach: str) -> str:
    """What known records disclose, in a sentence."""
    if risk.model.noise:
        return "Noise is added before the linear map: a copy is at least as safe as one with that noise and no map."
    if risk.known_records is None:
        return "The copy has fewer dimensions than the original: known records do not recover all of it."
    if risk.fewest_known_records is None:
        return f"No number of known records that was tried is enough to {breach}."
    known = enough(risk.fewest_known_records)
    return f"{known} enough to {breach}; a copy must withstand {risk.withstand}."

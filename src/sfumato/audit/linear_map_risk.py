"""Risk of rotated and projected copies: what known records and samples of the population disclose (giannella2010)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.errors import PolicyError
from sfumato.keys.key import Key
from sfumato.mechanisms import Scheme
from sfumato.mechanisms._linear_map import LinearMapMechanism
from sfumato.models import of_type
from sfumato.models.rotation import Rotation
from sfumato.release.evidence import original_before_map
from sfumato.release.gate import check_table
from sfumato.release.perturbation import numbered_rows
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme
from sfumato.risk.breach import (
    BREACHED_SHARE,
    EPSILONS,
    ROWS,
    KnownRecordRisk,
    assess_known_record_risk,
    baseline_breach,
    enough,
)
from sfumato.risk.sample import WITHSTAND, SampleRisk, assess_sample_risk, sizes, smallest_breaching
from sfumato.tables.sampling import sampled

_NO_KEY = Key.from_bytes(bytes(32))
"""A key for checks that no secret depends on."""


@dataclass(frozen=True)
class LinearMapRisk:
    """The disclosure risk of a rotated or projected copy of a table, before its release."""

    dataset: str
    role: str
    model: Rotation
    known_records: KnownRecordRisk
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
        return self.known_records.fewest_known()

    @property
    def smallest_sample(self) -> int | None:
        """The size of the smallest sample, of those tried, that breaches the table."""
        return smallest_breaching(self.samples, self.baseline)

    @property
    def refused(self) -> bool:
        """Whether a release would be refused."""
        fewest, size = self.fewest_known_records, self.smallest_sample
        by_known_records = fewest is not None and fewest < self.withstand
        by_sample = size is not None and size <= WITHSTAND and not self.model.noise
        return self.accept is None and (by_known_records or by_sample)

    def summary(self) -> dict[str, Any]:
        """The assessment as JSON."""
        curve = [asdict(point) for point in self.known_records.curve]
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
    scheme, source = policy.fit(table), policy.source(table)
    mechanism, fitted = _linear_map(scheme)
    [model] = of_type([fitted.model(next(iter(policy.ladder)))], Rotation)
    check_table(scheme, source, _NO_KEY)
    stage("assessing known records")
    _, rows = sampled(numbered_rows(scheme, source), ROWS)
    records = original_before_map(rows, model)
    known_records = assess_known_record_risk(records, model, mechanism.linear_map.withstand)
    samples = []
    for size in sizes(len(records)):
        stage(f"attacking with a sample of {size:,}")
        samples.append(assess_sample_risk(records, model, size))
    return LinearMapRisk(
        dataset=policy.dataset,
        role=mechanism.role,
        model=model,
        known_records=known_records,
        baseline=baseline_breach(records),
        incomplete=rows.num_rows - len(records),
        examined=rows.num_rows,
        samples=tuple(samples),
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
    if risk.model.noise:
        sentences.append("A copy is at least as safe as one with its noise and no linear map.")
    if risk.incomplete:
        share = f"{risk.incomplete:,} of {risk.examined:,} records"
        sentences.append(f"{share} have a missing value, and the copy releases nothing of them.")
    if risk.accept and not risk.refused:
        sentences.append(f"The policy accepts the risk: {risk.accept}.")
    return " ".join(sentences)


def _known_record_sentence(risk: LinearMapRisk, breach: str) -> str:
    """What known records disclose, in a sentence."""
    if risk.fewest_known_records is None:
        return f"No number of known records that was tried is enough to {breach}."
    known = enough(risk.fewest_known_records)
    return f"{known} enough to {breach}; a copy must withstand {risk.withstand}."

"""Audits of a vault's dataset: attacks on the copies that recipients hold or may receive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.audit import audit
from sfumato.audit.messages import headline, text, verdict
from sfumato.audit.outliers import singling_out_risk
from sfumato.audit.result import Audit
from sfumato.audit.risk_utility import FIDELITIES, RiskUtilityPoint, mechanisms, risk_utility_map
from sfumato.errors import AttackError, GrantError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.levels import Level
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.perturbation import numbered_rows, perturb_sample
from sfumato.release.policy import Policy
from sfumato.tables.sampling import sampled
from sfumato.tables.source import Source
from sfumato.tables.view import EVERYTHING, View
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import active_grant, granted_view


@dataclass(frozen=True)
class Holder:
    """A copy that a recipient holds or may receive."""

    recipient: str
    fidelity: float
    generation: int
    view: View = EVERYTHING


@dataclass(frozen=True, repr=False)
class ReportedAudit(Audit):
    """An audit that can also be written as text and as a page: what `VaultProtocol.audit` promises."""

    views: Mapping[str, View] = field(default_factory=dict)
    """The columns and rows of each copy."""

    @classmethod
    def of(cls, found: Audit, views: Mapping[str, View] | None = None) -> ReportedAudit:
        """The same audit with its reports."""
        return cls(**found.__dict__, views=views or {})

    def summary(self) -> dict[str, Any]:
        """The result as JSON, with the verdict first."""
        found = {"verdict": verdict(self), "headline": headline(self), **super().summary()}
        return {name: value for name, value in found.items() if name != "views"}

    def text(self) -> str:
        """The verdict and the figures, for a terminal."""
        return text(self)

    def plot(self, axes: Any = None) -> Any:
        """Draw what the best attack recovers of each column on matplotlib axes, which are returned."""
        from sfumato.audit.figures import plot_risks  # noqa: PLC0415 - the drawing library is slow to import

        return plot_risks(self, axes)

    def page(self) -> str:
        """The report as an HTML page with figures."""
        from sfumato.audit.report import page  # noqa: PLC0415 - the drawing library is slow to import

        return page(self)


def holders_of(reading: LedgerReader, dataset: Dataset, names: list[str] | None, now: datetime) -> dict[str, Holder]:
    """The copies that recipients hold or may receive, by a unique name of the holder."""
    current = reading.head().generation
    grants = [entry.recipient for entry in reading.current("grant", dataset=dataset.name)]
    found: list[Holder] = []
    for recipient in dict.fromkeys(grants if names is None else names):
        holders = _released_copies(reading, dataset, recipient)
        try:
            grant, _ = active_grant(reading, recipient, dataset.name, now)
            holders.append(Holder(recipient, grant.fidelity, current, grant.view))
        except GrantError:
            if names is not None and not holders:
                raise
        found += holders
    if not found:
        ladder = dataset.scheme.policy.ladder
        return {name: Holder(name, level.fidelity, current) for name, level in ladder.levels.items()}
    return _named(sorted(dict.fromkeys(found), key=lambda holder: -holder.fidelity))


def _released_copies(reading: LedgerReader, dataset: Dataset, recipient: str) -> list[Holder]:
    """The released copies of any version: a record that has not changed since has the same noise in them."""
    releases = reading.entries(Query(kind="release", dataset=dataset.name, recipient=recipient))
    return [Holder(recipient, e.body["fidelity"], e.body["generation"], granted_view(e.body)) for e in releases]


def _named(holders: Sequence[Holder]) -> dict[str, Holder]:
    """The copies by name; the name of a recipient with several copies gets a number."""
    names: dict[str, Holder] = {}
    for holder in holders:
        name, count = holder.recipient, 1
        while name in names:
            count += 1
            name = f"{holder.recipient} ({count})"
        names[name] = holder
    return names


def audit_dataset(
    dataset: Dataset,
    holders: Mapping[str, Holder],
    keys: Mapping[int, Key],
    *,
    attacks: Sequence[str] | None,
    rows: int,
    without: Sequence[str] = (),
    quasi: Sequence[str] = (),
    risk_utility: bool = False,
    stage: Callable[[str], None],
) -> ReportedAudit:
    """Reproduce the copies of some records, bit for bit, and attack them."""
    scheme = dataset.scheme
    with dataset.source() as source:
        stage("reading the table")
        views = list(dict.fromkeys(holder.view for holder in holders.values()))
        row_ids, table = sampled(_shared(numbered_rows(scheme, source), views), rows)
        if table.num_rows < 2:
            names = ", ".join(holders)
            raise AttackError(
                f"audited recipients must have some records in common, and {names} have none; name some that do, as in "
                "--colluders a,b"
            )
        stage("making the copies")
        copies = {
            name: perturb_sample(scheme.with_view(h.view), row_ids, table, [Level(h.fidelity)], keys[h.generation])[0]
            for name, h in holders.items()
        }
        stage("looking for outliers")
        best = Level(max(holder.fidelity for holder in holders.values()))
        noise = of_type(scheme.models(dataset.schema, best), GaussianNoise)
        outliers = singling_out_risk(lambda: numbered_rows(scheme, source), noise[0], scheme.ids) if noise else None
        targets, count = scheme.policy.targets, dataset.rows
        found = audit(
            *(table, copies),
            attacks=attacks,
            targets=targets,
            singling_out=outliers,
            rows=count,
            without=without,
            quasi=quasi,
            stage=stage,
        )
        if risk_utility:
            found = replace(found, risk_utility=_risk_utility(Policy.loads(scheme.policy.dumps()), source, stage))
        return ReportedAudit.of(found, {name: holder.view for name, holder in holders.items()})


def _risk_utility(policy: Policy, source: Source, stage: Callable[[str], None]) -> tuple[RiskUtilityPoint, ...]:
    """The risk-utility map of the policy, and of the other way to perturb the same table."""
    policies = mechanisms(policy, source)
    left = len(policies) * len(FIDELITIES)

    def progress(levels: int) -> None:
        nonlocal left
        left -= levels
        stage(f"mapping risk and utility, {left} levels left")

    progress(0)
    return tuple(risk_utility_map(policies, source, progress=progress))


def _shared(
    batches: Iterable[tuple[Words, pa.RecordBatch]], views: Sequence[View]
) -> Iterator[tuple[Words, pa.RecordBatch]]:
    """The rows that all views contain."""
    for row_ids, batch in batches:
        shared = np.ones(batch.num_rows, np.bool_)
        for view in views:
            shared &= view.holds(batch)
        yield row_ids[shared], batch.filter(pa.array(shared))

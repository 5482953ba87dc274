"""Approvals: decisions of officers about sign-off packs, recorded in the ledger and required before a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.audit.states import State
from sfumato.errors import GrantError, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.reader import LedgerReader
from sfumato.tables.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import require


def decide(
    ledger: Ledger, keys: Mapping[int, Key], dataset: str, officer: str, *, role: str, reason: str, approved: bool
) -> Entry:
    """Record the decision of a named officer about the latest pack of the current version of a dataset."""
    if not officer.strip():
        raise VaultError("a decision must name the officer who made it; give --by NAME")
    with ledger.writing(keys) as writing:
        version = require(writing, "dataset", dataset).body["version"]
        report = writing.latest("report", dataset)
        if report is None or report.body["version"] != version:
            raise VaultError(
                f"a decision needs a report on version {version} of {dataset}, and there is none; run "
                f"`sfumato audit {dataset} --report report.pdf`"
            )
        if approved and report.body["state"] == State.UNSOUND.value:
            raise VaultError(f"copies that were found unsound cannot be approved: see entry {report.number} of the log")
        body: dict[str, Any] = {
            "version": version,
            "officer": officer.strip(),
            "role": role.strip(),
            "reason": reason.strip(),
            "report": report.body["digest"],
            "state": report.body["state"],
            "fidelity": report.body["fidelity"],
            "assessed": report.body.get("assessed", [{"fidelity": report.body["fidelity"]}]),
        }
        return writing.append("approved" if approved else "rejected", "approval", body, dataset=dataset)


def require_approval(reading: LedgerReader, dataset: Dataset, fidelity: float, view: View) -> None:
    """Refuse a copy of a version that must be approved and was not, or that shows more than was assessed."""
    if not dataset.scheme.policy.require_approval:
        return
    decision = reading.latest("approval", dataset.name)
    if decision is None or decision.body["version"] != dataset.version or decision.action != "approved":
        rejected = decision is not None and decision.body["version"] == dataset.version
        state = "was rejected" if rejected else "has not been approved"
        raise GrantError(
            f"the policy of {dataset.name} requires an approval, and version {dataset.version} {state}",
            f"run `sfumato audit {dataset.name} --report report.pdf`, then `sfumato approve {dataset.name} --by NAME`",
        )
    if fidelity > decision.body["fidelity"]:
        raise GrantError(
            f"version {dataset.version} of {dataset.name} was approved up to fidelity {decision.body['fidelity']:g}, "
            f"and this copy has {fidelity:g}",
            f"audit it with this grant, and let an officer decide: `sfumato audit {dataset.name} --report new.pdf`",
        )
    if not any(_contains(copy, fidelity, view) for copy in decision.body.get("assessed", [{"fidelity": fidelity}])):
        raise GrantError(
            f"no copy that was assessed for the approval of version {dataset.version} of {dataset.name} shows these "
            f"columns and rows at fidelity {fidelity:g}",
            f"audit it with this grant, and let an officer decide: `sfumato audit {dataset.name} --report new.pdf`",
        )


def _contains(assessed: Mapping[str, Any], fidelity: float, view: View) -> bool:
    """Whether an assessed copy shows all that another one shows."""
    columns, where = assessed.get("columns"), assessed.get("where")
    return (
        fidelity <= assessed["fidelity"]
        and (columns is None or (view.columns is not None and set(view.columns) <= set(columns)))
        and where in (None, view.where)
    )

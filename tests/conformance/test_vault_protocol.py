"""Conformance of `Vault` and `RemoteVault` to `VaultProtocol`: the same methods with the same parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from sfumato.audit.result import Audit
from sfumato.client.remote_vault import RemoteVault
from sfumato.client.results import RemoteAudit, RemoteDataset
from sfumato.vault import Vault
from sfumato.vault.audits import ReportedAudit
from sfumato.vault.datasets import Dataset
from sfumato.vault.likelihood_ratio import Score
from sfumato.vault.protocol import AuditReport, DatasetInfo, VaultProtocol
from sfumato.vault.tracing import Suspect, Trace

IMPLEMENTATIONS = (Vault, RemoteVault)
RECORDS = [
    (DatasetInfo, Dataset),
    (DatasetInfo, RemoteDataset),
    (AuditReport, ReportedAudit),
    (AuditReport, RemoteAudit),
]


def _members(protocol: type) -> dict[str, Any]:
    return {name: member for name, member in vars(protocol).items() if not name.startswith("_")}


def _parameters(function: Any) -> list[tuple[str, Any, Any, Any]]:
    return [(p.name, p.kind, p.default, p.annotation) for p in inspect.signature(function).parameters.values()]


METHODS = [name for name, member in _members(VaultProtocol).items() if inspect.isfunction(member)]
PROPERTIES = [name for name in _members(VaultProtocol) if name not in METHODS]


def test_the_protocol_has_the_operations_of_a_vault() -> None:
    assert set(METHODS) == {
        *(
            "add",
            "update",
            "append",
            "dataset",
            "tables",
            "recipient",
            "recipients",
            "disable",
            "enable",
            "grant",
            "revoke",
            "grants",
        ),
        *("release", "audit", "approve", "trace", "verify", "log", "overview", "token", "tokens", "withdraw"),
        *("accesses", "erase", "erase_accesses", "erase_recipient"),
    }
    assert set(PROPERTIES) == {"public_key", "release_unit"}


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_same_parameters(implementation: type, name: str) -> None:
    assert _parameters(getattr(implementation, name)) == _parameters(getattr(VaultProtocol, name))


@pytest.mark.parametrize("name", METHODS)
def test_results_have_the_same_type(name: str) -> None:
    """A dataset and an audit have their own records, which a test below checks; all others are shared."""
    results = {inspect.signature(getattr(kind, name)).return_annotation for kind in (*IMPLEMENTATIONS, VaultProtocol)}
    assert len(results) == (3 if name in ("dataset", "audit") else 1), results


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_exist(implementation: type, name: str) -> None:
    assert isinstance(getattr(implementation, name), property | str)


@pytest.mark.parametrize(("protocol", "record"), RECORDS)
def test_records_have_all_attributes(protocol: type, record: type) -> None:
    fields = getattr(record, "__dataclass_fields__", {})
    for name, member in _members(protocol).items():
        assert name in fields or hasattr(record, name), name
        if inspect.isfunction(member):
            assert _parameters(getattr(record, name)) == _parameters(member)


def test_a_reported_audit_is_an_audit() -> None:
    assert issubclass(ReportedAudit, Audit)


def test_a_trace_survives_json() -> None:
    accused = Suspect(("lab",), 2, 0.5, Score(9.5), 1e-12)
    unrecorded = Suspect(("press", "clinic"), 1, 0.25, Score(8.0), 1e-9, unrecorded=True)
    trace = Trace(100, 90, "row order", ("age",), 0.125, 3, (accused, unrecorded))
    again = Trace.from_json(trace.as_json())
    assert again == trace
    assert again.accused == (accused,)

"""The surveys of a vault behind a service: the same names as on the vault itself."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow.csv

from sfumato.client.connection import Connection
from sfumato.ledger.chain import Entry
from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import Share
from sfumato.survey.results import Quality, Status
from sfumato.survey.surveys import Listed


class RemoteSurveys:
    """What an owner does with surveys, through a service."""

    def __init__(self, connection: Connection) -> None:
        self._wire = connection

    def new(self, name: str, definition: Survey | str, *, invited: bool = False) -> Entry:
        """Draft a survey, from TOML."""
        text = definition.dumps() if isinstance(definition, Survey) else definition
        return self._entry("PUT", name, {"definition": text, "invited": invited})

    def open(self, name: str) -> Entry:
        """Let a survey take answers."""
        return self._entry("PATCH", name, {"state": "open"})

    def close(self, name: str) -> Entry:
        """Let a survey take no answers any more."""
        return self._entry("PATCH", name, {"state": "closed"})

    def _entry(self, method: str, name: str, said: dict[str, Any]) -> Entry:
        found = self._wire.ask(method, f"/surveys/{name}", json=said)
        return Entry(**{field: value for field, value in found.items() if field != "sentence"})

    def listed(self) -> list[Listed]:
        """All surveys."""
        return [Listed(**one) for one in self._wire.ask("GET", "/surveys")]

    def invite(self, name: str, count: int) -> list[str]:
        """Tickets for invited people."""
        found: list[str] = self._wire.ask("POST", f"/surveys/{name}/tickets", json={"count": count})["tickets"]
        return found

    def status(self, name: str) -> Status:
        """Counts, shares with their intervals, and alarms."""
        said = self._wire.ask("GET", f"/surveys/{name}")
        shares = tuple(Share(**one) for one in said.pop("shares"))
        return Status(**{**said, "shares": shares, "alarms": tuple(said["alarms"])})

    def qualities(self, name: str, test: Sequence[dict[str, Any]] = ()) -> tuple[Quality, ...]:
        """How good models for the class question are."""
        said = self._wire.ask("POST", f"/surveys/{name}/model", json={"rows": list(test)})
        return tuple(Quality(**one) for one in said["qualities"])

    def export(self, name: str) -> Any:
        """All blurred rows, as a table of pyarrow's."""
        return pyarrow.csv.read_csv(io.BytesIO(self._wire.ask("GET", f"/surveys/{name}/rows").encode()))

"""Survey management over HTTP: the client of a service, with the same methods as `sfumato.survey.surveys.Surveys`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.csv

from sfumato.client.connection import Connection
from sfumato.ledger.chain import Entry
from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import AnswerShare, CrossTable
from sfumato.survey.invitations import Group
from sfumato.survey.results import ModelQuality, Status
from sfumato.survey.surveys import SurveySummary


class RemoteSurveys:
    """The surveys of a vault behind a service: draft, open and close them, invite respondents, and read the results."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def new(self, name: str, definition: Survey | str, *, invited: bool = False) -> Entry:
        """Draft a survey from a definition in TOML."""
        text = definition.dumps() if isinstance(definition, Survey) else definition
        return self._entry("PUT", name, {"definition": text, "invited": invited})

    def open(self, name: str) -> Entry:
        """Open a survey for answers."""
        return self._entry("PATCH", name, {"state": "open"})

    def close(self, name: str) -> Entry:
        """Close a survey, which then accepts no more answers."""
        return self._entry("PATCH", name, {"state": "closed"})

    def erase(self, name: str) -> Entry:
        """Destroy all answers to a survey for good."""
        return self._entry("DELETE", name)

    def _entry(self, method: str, name: str, body: dict[str, Any] | None = None) -> Entry:
        found = self._connection.request(method, f"/surveys/{name}", json=body)
        return Entry(**{field: value for field, value in found.items() if field != "sentence"})

    def summaries(self) -> list[SurveySummary]:
        """A summary of each survey of the vault."""
        return [SurveySummary(**one) for one in self._connection.request("GET", "/surveys")]

    def invite(self, name: str, count: int, group: str = "", quota: int | None = None) -> list[str]:
        """Issue tickets for invited respondents, maybe of a group with a quota."""
        body = {"count": count, "group": group, "quota": quota}
        found: list[str] = self._connection.request("POST", f"/surveys/{name}/tickets", json=body)["tickets"]
        return found

    def groups(self, name: str) -> list[Group]:
        """The groups of invited people, with the number of those who answered."""
        return [Group(**one) for one in self._connection.request("GET", f"/surveys/{name}/groups")]

    def status(self, name: str) -> Status:
        """The number of answers, their shares with confidence intervals, and alarms."""
        return Status.parse(self._connection.request("GET", f"/surveys/{name}"))

    def qualities(self, name: str, test: Sequence[dict[str, Any]] = ()) -> tuple[ModelQuality, ...]:
        """The accuracy of classifiers for the class question."""
        result = self._connection.request("POST", f"/surveys/{name}/model", json={"rows": list(test)})
        return tuple(ModelQuality.parse(one) for one in result["qualities"])

    def cross_table(self, name: str, first: str, second: str) -> CrossTable:
        """The shares of respondents with each pair of answers to two questions."""
        found = self._connection.request("GET", f"/surveys/{name}/cross", params={"first": first, "second": second})
        return CrossTable.parse(found)

    def weighted(self, name: str, question: str, population: Mapping[str, float]) -> list[AnswerShare]:
        """The shares of all other answers, if the answers to a question had these shares, as in the population."""
        body = {"question": question, "shares": dict(population)}
        found = self._connection.request("POST", f"/surveys/{name}/weighted", json=body)
        return [AnswerShare.parse(one) for one in found]

    def methods(self, name: str) -> str:
        """A paragraph about the method of a survey, for a report."""
        return str(self._connection.request("GET", f"/surveys/{name}/methods")["text"])

    def export(self, name: str) -> Any:
        """All perturbed rows, as a pyarrow table."""
        return pyarrow.csv.read_csv(io.BytesIO(self._connection.request("GET", f"/surveys/{name}/rows").encode()))

"""The surveys of a vault: their definitions in its ledger, what they received in its database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.errors import SurveyError
from sfumato.ledger.chain import Entry
from sfumato.survey import results
from sfumato.survey.collector import Collector
from sfumato.survey.definition import Survey
from sfumato.survey.epochs import Epoch
from sfumato.survey.results import Status
from sfumato.vault import Vault, grants
from sfumato.vault.names import checked

_STATES = {"drafted": "draft", "opened": "open", "closed": "closed"}


@dataclass(frozen=True)
class Known:
    """A survey by its name, and whether it takes answers."""

    name: str
    survey: Survey
    state: str
    """`draft`, `open` or `closed`."""
    invited: bool
    """Whether only invited people may answer."""

    @classmethod
    def of(cls, entry: Entry) -> Known:
        """What an entry says."""
        said = entry.body
        return cls(entry.dataset, Survey.loads(said["definition"]), _STATES[entry.action], said["invited"])


@dataclass(frozen=True)
class Listed:
    """A survey in a list."""

    survey: str
    title: str
    mode: str
    state: str
    deadline: str
    invited: bool
    questions: int


class Surveys:
    """What an owner does with surveys, and what the service needs of them."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    @cached_property
    def collector(self) -> Collector:
        """What was received."""
        return Collector(self._vault.ledger.database)

    def new(self, name: str, definition: Survey | str, *, invited: bool = False) -> Entry:
        """Draft a survey; until it is opened, drafting it again replaces it."""
        survey = definition if isinstance(definition, Survey) else Survey.loads(definition)
        checked("survey", name)
        body = {"definition": survey.dumps(), "title": survey.title, "invited": invited}
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            latest = writing.latest("survey", name)
            if latest is not None and latest.action != "drafted":
                raise SurveyError(f"the survey {name} was opened already, so it stays as it is; choose another name")
            return writing.append("drafted", "survey", body, dataset=name)

    def open(self, name: str) -> Entry:
        """Let a survey take answers; from now on its definition cannot be changed."""
        return self._turn(name, "opened", "drafted")

    def close(self, name: str) -> Entry:
        """Let a survey take no answers any more."""
        return self._turn(name, "closed", "opened")

    def _turn(self, name: str, action: str, before: str) -> Entry:
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            latest = grants.known(writing, "survey", name)
            if latest.action == action:
                return latest
            if latest.action != before:
                raise SurveyError(
                    f"a survey must be {_STATES[before]} for this, and {name} is {_STATES[latest.action]}"
                )
            if action == "opened" and self._vault.now() > Known.of(latest).survey.ends:
                raise SurveyError(f"the deadline of {name} has passed; draft it again with a later one")
            return writing.append(action, "survey", latest.body, dataset=name)

    def known(self, name: str) -> Known:
        """A survey by its name."""
        with self._vault.ledger.reading(self._vault.keys()) as reading:
            return Known.of(grants.known(reading, "survey", name))

    def state(self, known: Known) -> str:
        """Whether it takes answers now."""
        return "closed" if known.state == "open" and self._vault.now() > known.survey.ends else known.state

    def listed(self) -> list[Listed]:
        """All surveys."""
        with self._vault.ledger.reading() as reading:
            return [self._listed(Known.of(entry)) for entry in reading.current("survey")]

    def _listed(self, one: Known) -> Listed:
        said = one.survey
        return Listed(one.name, said.title, said.mode, self.state(one), said.deadline, one.invited, len(said.questions))

    def invite(self, name: str, count: int) -> list[str]:
        """Tickets for invited people; only hashes of them are kept."""
        if not self.known(name).invited:
            raise SurveyError(f"the survey {name} is open to all; draft one with `--invited` to hand out tickets")
        if not 1 <= count <= 100_000:
            raise SurveyError(f"between 1 and 100,000 tickets are made at once, got {count}")
        return self.collector.invite(name, count)

    # What came in

    def epoch(self, known: Known) -> Epoch:
        """Where a guided survey stands."""
        return self.collector.epoch(known.name, known.survey)

    def status(self, name: str) -> Status:
        """Counts, shares with their intervals, and alarms."""
        known = self.known(name)
        return results.status(self.collector, known.name, known.survey, self.state(known))

    def model(self, name: str, test: Sequence[dict[str, Any]] = ()) -> results.Models:
        """A naive Bayes and a decision tree for the class question, and how good they are."""
        known = self.known(name)
        return results.models(self.collector, known.name, known.survey, test)

    def export(self, name: str) -> Any:
        """All blurred rows, as a table of pyarrow's."""
        known = self.known(name)
        return results.table(self.collector, known.name, known.survey)

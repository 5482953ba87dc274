"""Survey management for a vault: definitions are entries of its ledger, answers are stored in its database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.errors import SurveyError
from sfumato.ledger.chain import ERASED, Entry
from sfumato.survey import results
from sfumato.survey.collector import Collector
from sfumato.survey.definition import Survey
from sfumato.survey.epochs import Epoch
from sfumato.survey.frequencies import AnswerShare, CrossTable, cross_table
from sfumato.survey.invitations import Group
from sfumato.survey.methods_paragraph import methods_paragraph
from sfumato.survey.results import Status
from sfumato.survey.weights import weighted_shares
from sfumato.vault import Vault, grants
from sfumato.vault.names import validated_name
from sfumato.vault.store import SCOPES

_STATES = {"drafted": "draft", "opened": "open", "closed": "closed"}

_MAX_TICKETS, _MAX_GROUP = 100_000, 100


@dataclass(frozen=True)
class RegisteredSurvey:
    """A survey of a vault with its name, its definition and its state in the ledger."""

    name: str
    survey: Survey
    state: str
    """`draft`, `open` or `closed`."""
    invited: bool
    """Whether only invited people may answer."""

    @classmethod
    def from_entry(cls, entry: Entry) -> RegisteredSurvey:
        """The survey that a ledger entry records."""
        body = entry.body
        return cls(entry.dataset, Survey.loads(body["definition"]), _STATES[entry.action], body["invited"])


@dataclass(frozen=True)
class SurveySummary:
    """A survey in the list of all surveys."""

    survey: str
    title: str
    mode: str
    state: str
    deadline: str
    invited: bool
    questions: int


class Surveys:
    """The surveys of a vault: draft, open and close them, invite respondents, and read the results."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    @cached_property
    def collector(self) -> Collector:
        """The collector, which stores the answers."""
        return Collector(self._vault.ledger, self._vault.store.keys)

    def new(self, name: str, definition: Survey | str, *, invited: bool = False) -> Entry:
        """Draft a survey; drafting it again replaces the draft until the survey is opened."""
        survey = (definition if isinstance(definition, Survey) else Survey.loads(definition)).check_protection()
        validated_name("survey", name)
        body = {"definition": survey.dumps(), "title": survey.title, "invited": invited}
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            latest = writing.latest("survey", name)
            if latest is not None and latest.action == ERASED:
                raise SurveyError(f"the survey {name} was erased, and its name is not used again; choose another name")
            if latest is not None and latest.action != "drafted":
                raise SurveyError(f"the survey {name} was opened already and cannot be changed; choose another name")
            return writing.append("drafted", "survey", body, dataset=name)

    def open(self, name: str) -> Entry:
        """Open a survey for answers; from now on its definition cannot be changed."""
        return self._change_state(name, "opened", "drafted")

    def close(self, name: str) -> Entry:
        """Close a survey, which then accepts no more answers."""
        return self._change_state(name, "closed", "opened")

    def erase(self, name: str) -> Entry:
        """Destroy all answers to a survey, its tickets and its guidances for good; an open survey must be closed first.

        A backup that was written before still has them.
        """
        collector = self.collector
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            latest = writing.latest("survey", name) or grants.require(writing, "survey", name)
            if latest.action == "opened":
                raise SurveyError(f"a survey must be closed before it is erased; use `sfumato survey close {name}`")
            scope = collector.erase(writing, name)
            if latest.action == ERASED:
                return latest
            body = {"title": latest.body["title"], SCOPES: [scope]}
            return writing.append(ERASED, "survey", body, dataset=name)

    def _change_state(self, name: str, action: str, required: str) -> Entry:
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            latest = grants.require(writing, "survey", name)
            if latest.action == action:
                return latest
            if latest.action != required:
                raise SurveyError(
                    f"a survey must be {_STATES[required]} to be {action}, and {name} is {_STATES[latest.action]}"
                )
            if (
                action == "opened"
                and self._vault.now() > RegisteredSurvey.from_entry(latest).survey.check_protection().ends
            ):
                raise SurveyError(f"the deadline of {name} has passed; draft it again with a later one")
            return writing.append(action, "survey", latest.body, dataset=name)

    def get(self, name: str) -> RegisteredSurvey:
        """The survey of a name; raises `UnknownSubject` if there is none."""
        with self._vault.ledger.reading(self._vault.keys()) as reading:
            return RegisteredSurvey.from_entry(grants.require(reading, "survey", name))

    def state(self, registered: RegisteredSurvey) -> str:
        """The state of a survey now: an open survey is closed once its deadline has passed."""
        is_over = registered.state == "open" and self._vault.now() > registered.survey.ends
        return "closed" if is_over else registered.state

    def summaries(self) -> list[SurveySummary]:
        """A summary of each survey of the vault."""
        with self._vault.ledger.reading(self._vault.keys()) as reading:
            return [self._summary(RegisteredSurvey.from_entry(entry)) for entry in grants.existing(reading, "survey")]

    def _summary(self, registered: RegisteredSurvey) -> SurveySummary:
        survey = registered.survey
        return SurveySummary(
            survey=registered.name,
            title=survey.title,
            mode=survey.mode,
            state=self.state(registered),
            deadline=survey.deadline,
            invited=registered.invited,
            questions=len(survey.questions),
        )

    def invite(self, name: str, count: int, group: str = "", quota: int | None = None) -> list[str]:
        """Issue tickets for invited respondents; only their hashes are stored.

        Args:
            name: the survey.
            count: the number of tickets.
            group: the group of these people, such as a region, if answers are to be counted by group.
            quota: the number of answers of that group after which others are refused.

        """
        if not self.get(name).invited:
            raise SurveyError(f"the survey {name} is open to everybody; draft one with `--invited` to issue tickets")
        if not 1 <= count <= _MAX_TICKETS:
            raise SurveyError(f"the number of tickets must lie between 1 and {_MAX_TICKETS:,}, got {count}")
        if quota is not None and not (group and quota >= 1):
            raise SurveyError(f"a quota is at least 1, and of a group; got {quota} and the group {group!r}")
        if group and (len(group) > _MAX_GROUP or not group.isprintable() or group != group.strip()):
            raise SurveyError(f"the name of a group must be one line of at most {_MAX_GROUP} characters; correct it")
        return self.collector.invite(name, count, group, quota)

    def groups(self, name: str) -> list[Group]:
        """The groups of invited people, with the number of those who answered."""
        self.get(name)
        return self.collector.groups(name)

    def epoch(self, registered: RegisteredSurvey) -> Epoch:
        """The current guidance of a guided survey, with its public log."""
        return self.collector.epoch(registered.name, registered.survey)

    def status(self, name: str) -> Status:
        """The number of answers, their shares with confidence intervals, and alarms."""
        registered = self.get(name)
        return results.status(self.collector, name, registered.survey, self.state(registered))

    def model(self, name: str, test: Sequence[dict[str, Any]] = ()) -> results.Models:
        """A naive Bayes classifier and a decision tree for the class question, with their accuracy."""
        return results.models(self.collector, name, self.get(name).survey, test)

    def cross_table(self, name: str, first: str, second: str) -> CrossTable:
        """The shares of respondents with each pair of answers to two questions of a randomised survey."""
        survey = self.get(name).survey
        levels, _, rows = self.collector.received(name, len(survey.sizes))
        return cross_table(survey, levels, rows, first, second)

    def weighted(self, name: str, question: str, population: Mapping[str, float]) -> list[AnswerShare]:
        """The shares of all other answers, if the answers to a question had these shares, as in the population."""
        survey = self.get(name).survey
        levels, _, rows = self.collector.received(name, len(survey.sizes))
        return weighted_shares(survey, levels, rows, question, population)

    def methods(self, name: str) -> str:
        """A paragraph about the method of a survey, for a report."""
        registered = self.get(name)
        return methods_paragraph(registered.survey, self.status(name), invited=registered.invited)

    def export(self, name: str) -> Any:
        """All perturbed rows, as a pyarrow table."""
        self._vault.record_access("exported", {}, dataset=name)
        return results.table(self.collector, name, self.get(name).survey)

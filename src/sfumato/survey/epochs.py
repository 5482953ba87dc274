"""Guidance epochs of a guided survey: first computed from unperturbed rows, then from the counts of perturbed ones."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.ledger.connection import Connection, Row
from sfumato.ledger.tables import GUIDANCES
from sfumato.survey import rows
from sfumato.survey.answer_encryption import AnswerCipher
from sfumato.survey.definition import Survey
from sfumato.survey.guidance import CooccurrenceCounts, Guidance, alarms, make_guidance
from sfumato.survey.perturbation import one_hot


@dataclass(frozen=True)
class Epoch:
    """The current guidance of a survey, the public log of all guidances, and the alarms about it."""

    guidance: Guidance | None
    digests: tuple[str, ...]
    """The public log: the digests of all guidances so far, oldest first."""
    alarms: tuple[str, ...]

    @property
    def number(self) -> int:
        """The number of guidances so far."""
        return len(self.digests)


class Epochs:
    """The epochs of one survey, within a transaction."""

    def __init__(self, connection: Connection, cipher: AnswerCipher, survey: Survey) -> None:
        self._connection, self._cipher, self._survey = connection, cipher, survey
        self._name = cipher.survey

    def current(self) -> Epoch:
        """The latest epoch."""
        latest = self._latest()
        if latest is None:
            return Epoch(None, (), ())
        log = "SELECT digest FROM sfumato_survey_guidances WHERE survey = :survey ORDER BY epoch"
        digests = tuple(self._connection.values(log, survey=self._name))
        return Epoch(self._guidance(latest, latest.epoch), digests, tuple(json.loads(latest.alarms)))

    def count(self) -> int:
        """The number of guidances so far."""
        latest = "SELECT max(epoch) FROM sfumato_survey_guidances WHERE survey = :survey"
        return int(self._connection.value(latest, survey=self._name) or 0)

    def needs_unperturbed(self) -> bool:
        """Whether the survey still accepts unperturbed answers: its bootstrap is not complete."""
        return self.count() == 0 or self._has_few_unperturbed()

    def _has_few_unperturbed(self) -> bool:
        count = "SELECT count(*) FROM sfumato_survey_clear WHERE survey = :survey"
        return int(self._connection.value(count, survey=self._name)) < self._survey.guided.bootstrap

    def begin(self) -> None:
        """Publish the first guidance, once there are enough unperturbed rows, if they differ by class."""
        if self.count() == 0 and not self._has_few_unperturbed():
            self._append(1, self._unperturbed_counts(), self._empty(), 0.0, None)

    def refresh(self, batch: int) -> None:
        """Publish the next guidance, when enough rows arrived since the `batch`-th one."""
        own = {"survey": self._name, "batch": batch}
        count = "SELECT count(*) FROM sfumato_survey_answers WHERE survey = :survey AND batch = :batch"
        latest = self._latest()
        if latest is None or self._connection.value(count, **own) < self._survey.guided.refresh:
            return
        answers = 'SELECT key, "row" FROM sfumato_survey_answers WHERE survey = :survey AND batch = :batch'
        labels, texts = self._cipher.answers(self._connection.all(answers, **own))
        tally = self._unpacked(self._cipher.decrypt(str(latest.epoch), latest.tally))
        counts = tally.add(rows.from_text(texts, self._survey.width), np.array(labels))
        unperturbed = self._unperturbed_counts()
        is_enough = counts.rows.min() >= self._survey.guided.refresh // (2 * len(self._survey.classes))
        source, floor = (counts, self._survey.guided.floor) if is_enough else (unperturbed, 0.0)
        self._append(batch + 1, source, counts, floor, unperturbed)

    def _append(
        self,
        epoch: int,
        source: CooccurrenceCounts,
        counts: CooccurrenceCounts,
        floor: float,
        unperturbed: CooccurrenceCounts | None,
    ) -> None:
        pairs = source.without_floor(floor)
        guidance, needed = make_guidance(self._survey.version, epoch, pairs, self._survey.guided.error)
        if guidance is None:  # the classes do not differ: keep the previous directions, if there are any
            latest = self._latest()
            if latest is None:
                return
            guidance = self._guidance(latest, epoch)
        reasons = alarms(guidance, needed, len(self._survey.classes), unperturbed)
        self._connection.update(GUIDANCES, {"tally": ""}, survey=self._name)  # only the latest counts are kept
        values = {
            "survey": self._name,
            "epoch": epoch,
            "digest": guidance.digest,
            "matrix": json.dumps(guidance.matrix.tolist()),
            "rows": int(counts.rows.sum()),
            "tally": self._cipher.encrypt(str(epoch), _packed(counts)),
            "alarms": json.dumps(reasons),
        }
        self._connection.insert(GUIDANCES, values)

    def _guidance(self, record: Any, epoch: int) -> Guidance:
        return Guidance(self._survey.version, epoch, np.array(json.loads(record.matrix)))

    def _latest(self) -> Row | None:
        latest = "SELECT * FROM sfumato_survey_guidances WHERE survey = :survey ORDER BY epoch DESC LIMIT 1"
        return self._connection.one(latest, survey=self._name)

    def _unperturbed_counts(self) -> CooccurrenceCounts:
        """Counts of the unperturbed rows: the first guidance is computed from them, and each later one checked."""
        answers = 'SELECT key, "row" FROM sfumato_survey_clear WHERE survey = :survey'
        labels, texts = self._cipher.answers(self._connection.all(answers, survey=self._name))
        codes = rows.from_text(texts, len(self._survey.sizes))
        return self._empty().add(one_hot(codes, self._survey.sizes), np.array(labels))

    def _empty(self) -> CooccurrenceCounts:
        return CooccurrenceCounts.empty(len(self._survey.classes), self._survey.width)

    def _unpacked(self, text: str) -> CooccurrenceCounts:
        values = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8").astype(np.int64)
        classes, width = len(self._survey.classes), self._survey.width
        return CooccurrenceCounts(values[classes:].reshape(classes, width, width), values[:classes])


def _packed(counts: CooccurrenceCounts) -> str:
    parts = counts.rows.astype("<i8").tobytes() + counts.pairs.astype("<i8").tobytes()
    return base64.b64encode(zlib.compress(parts, 1)).decode()

"""Guidance epochs of a guided survey: first computed from unperturbed rows, then from the counts of perturbed ones."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sfumato.ledger.tables import ANSWERS, CLEAR, GUIDANCES
from sfumato.survey import rows
from sfumato.survey.answer_encryption import AnswerCipher
from sfumato.survey.definition import Survey
from sfumato.survey.guidance import CooccurrenceCounts, Guidance, alarms, make_guidance
from sfumato.survey.perturbation import Integers, one_hot


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
        log = sa.select(GUIDANCES.c.digest).where(GUIDANCES.c.survey == self._name).order_by(GUIDANCES.c.epoch)
        digests = tuple(self._connection.execute(log).scalars())
        return Epoch(self._guidance(latest, latest.epoch), digests, tuple(json.loads(latest.alarms)))

    def count(self) -> int:
        """The number of guidances so far."""
        query = sa.select(sa.func.max(GUIDANCES.c.epoch)).where(GUIDANCES.c.survey == self._name)
        return int(self._connection.execute(query).scalar() or 0)

    def needs_unperturbed(self) -> bool:
        """Whether the survey still accepts unperturbed answers: its bootstrap is not complete."""
        return self.count() == 0 or self._has_few_unperturbed()

    def _has_few_unperturbed(self) -> bool:
        query = sa.select(sa.func.count()).select_from(CLEAR).where(CLEAR.c.survey == self._name)
        return int(self._connection.execute(query).scalar_one()) < self._survey.guided.bootstrap

    def begin(self) -> None:
        """Publish the first guidance, once there are enough unperturbed rows, if they differ by class."""
        if self.count() == 0 and not self._has_few_unperturbed():
            self._append(1, self._unperturbed_counts(), self._empty(), 0.0, None)

    def refresh(self, batch: int) -> None:
        """Publish the next guidance, when enough rows arrived since the `batch`-th one."""
        condition = ANSWERS.c.survey == self._name, ANSWERS.c.batch == batch
        count = self._connection.execute(sa.select(sa.func.count()).where(*condition)).scalar_one()
        if count < self._survey.guided.refresh or batch == 0:
            return
        labels, texts = self._answers(sa.select(ANSWERS.c.key, ANSWERS.c.row).where(*condition))
        latest = self._latest()
        tally = self._unpacked(self._cipher.decrypt(str(latest.epoch), latest.tally))
        counts = tally.add(rows.from_text(texts, self._survey.width), labels)
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
        own = GUIDANCES.c.survey == self._name
        self._connection.execute(GUIDANCES.update().where(own).values(tally=""))  # only the latest counts are kept
        self._connection.execute(
            GUIDANCES.insert().values(
                survey=self._name,
                epoch=epoch,
                digest=guidance.digest,
                matrix=json.dumps(guidance.matrix.tolist()),
                rows=int(counts.rows.sum()),
                tally=self._cipher.encrypt(str(epoch), _packed(counts)),
                alarms=json.dumps(reasons),
            )
        )

    def _guidance(self, record: Any, epoch: int) -> Guidance:
        return Guidance(self._survey.version, epoch, np.array(json.loads(record.matrix)))

    def _latest(self) -> Any:
        own = sa.select(GUIDANCES).where(GUIDANCES.c.survey == self._name)
        return self._connection.execute(own.order_by(GUIDANCES.c.epoch.desc()).limit(1)).one_or_none()

    def _unperturbed_counts(self) -> CooccurrenceCounts:
        """Counts of the unperturbed rows: the first guidance is computed from them, and each later one checked."""
        labels, texts = self._answers(sa.select(CLEAR.c.key, CLEAR.c.row).where(CLEAR.c.survey == self._name))
        codes = rows.from_text(texts, len(self._survey.sizes))
        return self._empty().add(one_hot(codes, self._survey.sizes), labels)

    def _answers(self, query: Any) -> tuple[Integers, list[str]]:
        labels, texts = self._cipher.answers([(one.key, one.row) for one in self._connection.execute(query)])
        return np.array(labels), texts

    def _empty(self) -> CooccurrenceCounts:
        return CooccurrenceCounts.empty(len(self._survey.classes), self._survey.width)

    def _unpacked(self, text: str) -> CooccurrenceCounts:
        values = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8").astype(np.int64)
        classes, width = len(self._survey.classes), self._survey.width
        return CooccurrenceCounts(values[classes:].reshape(classes, width, width), values[:classes])


def _packed(counts: CooccurrenceCounts) -> str:
    parts = counts.rows.astype("<i8").tobytes() + counts.pairs.astype("<i8").tobytes()
    return base64.b64encode(zlib.compress(parts, 1)).decode()

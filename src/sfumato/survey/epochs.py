"""The guidance of a guided survey, epoch by epoch: first from unblurred rows, then from the sums of blurred ones."""

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
from sfumato.survey.definition import Survey
from sfumato.survey.guidance import Guidance, Tally, alarms, guide
from sfumato.survey.perturbation import bits_of


@dataclass(frozen=True)
class Epoch:
    """Where a guided survey stands."""

    guidance: Guidance | None
    digests: tuple[str, ...]
    """Of all guidances so far, the first one first: the public log."""
    alarms: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many guidances there were."""
        return len(self.digests)


class Epochs:
    """The epochs of one survey, within a transaction."""

    def __init__(self, connection: Connection, name: str, survey: Survey) -> None:
        self._connection, self._name, self._survey = connection, name, survey

    def current(self) -> Epoch:
        """The latest one."""
        kept = self._latest()
        if kept is None:
            return Epoch(None, (), ())
        log = sa.select(GUIDANCES.c.digest).where(GUIDANCES.c.survey == self._name).order_by(GUIDANCES.c.epoch)
        digests = tuple(self._connection.execute(log).scalars())
        return Epoch(self._guidance(kept, kept.epoch), digests, tuple(json.loads(kept.alarms)))

    def count(self) -> int:
        """How many there were."""
        query = sa.select(sa.func.max(GUIDANCES.c.epoch)).where(GUIDANCES.c.survey == self._name)
        return int(self._connection.execute(query).scalar() or 0)

    def wants_clear(self) -> bool:
        """Whether unblurred answers are still of use."""
        return self.count() == 0 or self._has_few_clear()

    def _has_few_clear(self) -> bool:
        query = sa.select(sa.func.count()).select_from(CLEAR).where(CLEAR.c.survey == self._name)
        return int(self._connection.execute(query).scalar_one()) < self._survey.guided.bootstrap

    def begin(self) -> None:
        """The first guidance, once there are enough unblurred rows, if they differ by class."""
        if self.count() == 0 and not self._has_few_clear():
            self._append(1, self._clear(), self._empty(), 0.0, None)

    def refresh(self, batch: int) -> None:
        """The next guidance, when enough rows came since the `batch`-th one."""
        here = ANSWERS.c.survey == self._name, ANSWERS.c.batch == batch
        count = self._connection.execute(sa.select(sa.func.count()).where(*here)).scalar_one()
        if count < self._survey.guided.refresh or batch == 0:
            return
        found = self._connection.execute(sa.select(ANSWERS.c.row, ANSWERS.c.label).where(*here)).all()
        bits = rows.read([one.row for one in found], self._survey.width)
        tally = self._unpacked(self._latest().tally).add(bits, np.array([one.label for one in found]))
        clear = self._clear()
        enough = tally.rows.min() >= self._survey.guided.refresh // (2 * len(self._survey.classes))
        source, floor = (tally, self._survey.guided.floor) if enough else (clear, 0.0)
        self._append(batch + 1, source, tally, floor, clear)

    def _append(self, epoch: int, source: Tally, tally: Tally, floor: float, probe: Tally | None) -> None:
        found, needs = guide(self._survey.schema, epoch, source.unfloored(floor), self._survey.guided.error)
        if found is None:  # classes do not differ: the old directions stay, if there are any
            kept = self._latest()
            if kept is None:
                return
            found = self._guidance(kept, epoch)
        said = alarms(found, needs, len(self._survey.classes), probe)
        mine = GUIDANCES.c.survey == self._name
        self._connection.execute(GUIDANCES.update().where(mine).values(tally=""))  # one set of sums is kept
        self._connection.execute(
            GUIDANCES.insert().values(
                survey=self._name,
                epoch=epoch,
                digest=found.digest,
                matrix=json.dumps(found.matrix.tolist()),
                rows=int(tally.rows.sum()),
                tally=_packed(tally),
                alarms=json.dumps(said),
            )
        )

    def _guidance(self, kept: Any, epoch: int) -> Guidance:
        return Guidance(self._survey.schema, epoch, np.array(json.loads(kept.matrix)))

    def _latest(self) -> Any:
        mine = sa.select(GUIDANCES).where(GUIDANCES.c.survey == self._name)
        return self._connection.execute(mine.order_by(GUIDANCES.c.epoch.desc()).limit(1)).one_or_none()

    def _clear(self) -> Tally:
        """The sums of unblurred rows: the first guidance is made from them, and every later one is checked by them."""
        found = self._connection.execute(
            sa.select(CLEAR.c.row, CLEAR.c.label).where(CLEAR.c.survey == self._name)
        ).all()
        bits = bits_of(rows.read([one.row for one in found], len(self._survey.sizes)), self._survey.sizes)
        return self._empty().add(bits, np.array([one.label for one in found]))

    def _empty(self) -> Tally:
        return Tally.empty(len(self._survey.classes), self._survey.width)

    def _unpacked(self, text: str) -> Tally:
        found = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8").astype(np.int64)
        classes, width = len(self._survey.classes), self._survey.width
        return Tally(found[classes:].reshape(classes, width, width), found[:classes])


def _packed(tally: Tally) -> str:
    parts = tally.rows.astype("<i8").tobytes() + tally.together.astype("<i8").tobytes()
    return base64.b64encode(zlib.compress(parts, 1)).decode()

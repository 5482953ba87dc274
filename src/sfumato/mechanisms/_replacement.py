"""Random replacement for batches of cells: in one compiled loop, or array by array."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Rows, Words
from sfumato.kernels.replacement import EVENTS, event_lane, replace
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream, pairs
from sfumato.mechanisms._compiled import expanded, is_worth_it, readable

_CHUNK = 1 << 14
"""Cells that are worked on at once, array by array, within a processor's cache."""


@dataclass(frozen=True)
class Replacement:
    """The replacement of cells of one domain at one retention."""

    secret: Key
    retention: float
    size: int

    def copy(self, values: Rows, words: Words, rows: Words) -> Rows:
        """The perturbed values of some cells, which are addressed by the ids of their records and these words."""
        if is_worth_it(len(values), "replacement_loop"):
            return self._compiled(values, words, rows)
        out = np.empty_like(values)
        for start in range(0, len(values), _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = self._by_arrays(values[part], words[part], rows[part])
        return out

    def _compiled(self, values: Rows, words: Words, rows: Words) -> Rows:
        from sfumato.kernels.replacement_loop import replace_all  # noqa: PLC0415 - loaded when it is worth it

        out, careful = np.empty_like(values), np.empty(len(values) + 1, np.int64)
        lanes = expanded(self.secret, ((),), tuple(map(event_lane, range(self._blocks))))
        given = readable(values), readable(words), readable(rows)
        count = replace_all(*given, self.retention, self.size, lanes, out, careful)
        late = careful[:count]
        if count:
            out[late] = self._by_arrays(values[late], words[late], rows[late])
        return out

    def _by_arrays(self, values: Rows, words: Words, rows: Words) -> Rows:
        return replace(values, self.retention, self.size, pairs(rows, words), Stream(self.secret).bits)

    @property
    def _blocks(self) -> int:
        """Blocks of events that hardly any cell exceeds: their number is a Poisson variable."""
        mean = -math.log(self.retention)
        return math.ceil((mean + 6 * math.sqrt(mean) + 6) / EVENTS)

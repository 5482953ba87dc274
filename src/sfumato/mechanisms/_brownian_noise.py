"""Brownian noise for batches of records: in one compiled loop where the processor encrypts AES, else array by array.

Both ways give the same bits; the second one uses OpenSSL, which works on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.kernels import Floats, Mask, Rows, Words, lattice
from sfumato.kernels.ziggurat import bridge
from sfumato.keys.key import Key
from sfumato.keys.path import Node, Slot, ancestry
from sfumato.keys.stream import RECORD, Stream
from sfumato.mechanisms._compiled import Labels, expanded, is_worth_it, readable

Program = tuple[Rows, Floats, Rows]
"""Nodes, weights and targets, as `kernels.brownian_path` needs them."""

OWN = -1
"""The number of the addresses of rows; those from 0 on are given."""

_CACHE = 1 << 18
"""The maximum of numbers per chunk, over all columns and nodes, so that a chunk stays in a processor's cache."""

_FEWEST_ROWS, _MOST_ROWS = 1 << 12, 1 << 15
"""The minimum and maximum of rows per chunk: with fewer, calls cost more than the cache saves."""


@dataclass(frozen=True)
class Lattice:
    """The numbers of a batch, and the lattice of each column."""

    values: Sequence[Floats]
    null: Sequence[Mask]
    """For each column its nulls, or an empty array where there are none."""
    bounds: Sequence[tuple[float, float]]
    steps: Floats

    def points(self, rows: slice, on_lattice: Floats) -> tuple[list[Words], Rows]:
        """Round some rows to the lattice; return them as words to address them by, and the cells without a point."""
        words = [np.empty(on_lattice.shape[1], np.uint64) for _ in self.values]
        invalid = np.zeros(len(words), np.int64)
        for i, (values, null) in enumerate(zip(self.values, self.null, strict=True)):
            ends = self.bounds[i]
            invalid[i] = lattice.to_lattice(
                values[rows], null[rows], *ends, float(self.steps[i]), on_lattice[i], words[i]
            )
        return words, invalid


@dataclass(frozen=True)
class Addresses:
    """What the noise of a batch's rows is addressed by, besides their values."""

    rows: Words
    """The record ids."""
    more: Sequence[Words] = ()
    """Further words of each row."""
    given: Sequence[Words] = ()
    """Other addresses, two words per row."""
    streams: Sequence[int] = ()
    """For each stream the number of its given addresses, or `OWN`; by default all have those of the rows."""

    def of_rows(self, secret: Key, words: Sequence[Words], part: slice = slice(None)) -> Words:
        """The addresses of some rows, which have these words."""
        return Stream(secret).addresses(self.rows[part], [*words, *(one[part] for one in self.more)])

    def of_streams(self, own: Words, count: int, start: int = 0) -> list[Words]:
        """The addresses of each stream, for rows from `start` on; `own` are those of the rows."""
        part = slice(2 * start, 2 * start + len(own))
        return [own if which == OWN else self.given[which][part] for which in self.streams or [OWN] * count]


@dataclass(frozen=True)
class BrownianNoise:
    """The noise of one mechanism at some points of the path."""

    secret: Key
    streams: tuple[Labels, ...]
    """The sources of the standard normals, in the order of the factor's columns."""
    points: tuple[Node, ...]

    def copies(self, table: Lattice, addresses: Addresses, factor: Floats, out: Floats) -> Rows:
        """Fill `out`, `(point, column, row)`; return the number of cells per column that have no lattice point."""
        compiled = is_worth_it(len(addresses.rows) * len(table.values), "gaussian_copy")
        return (self._compiled if compiled else self._by_arrays)(table, addresses, factor, out)

    def paths(self, addresses: Addresses, words: Sequence[Words]) -> Floats:
        """The path of each stream at each point, `(point, stream, row)`, for rows whose cells have these words."""
        cells = addresses.of_streams(addresses.of_rows(self.secret, words), len(self.streams))
        return self._walked(self._sources(), cells)

    def walk(self, addresses: Words) -> Floats:
        """The same for rows of these addresses, in all streams."""
        if not is_worth_it(len(addresses) // 2 * len(self.streams), "brownian_path"):
            return self._walked(self._sources(), [addresses] * len(self.streams))
        from sfumato.kernels.brownian_path import walk_rows  # noqa: PLC0415 - loaded when it is worth it

        out = np.empty((len(self.points), len(self.streams), len(addresses) // 2))
        walk_rows(*self._program, *self._schedules(), readable(addresses), out)
        return out

    @property
    def _nodes(self) -> list[Node]:
        return ancestry(self.points)

    @property
    def _program(self) -> Program:
        """How the values at the nodes follow from each other."""
        nodes = self._nodes
        at = {node.slot: i for i, node in enumerate(nodes)}
        lanes = list(dict.fromkeys(node.slot[0] for node in nodes))
        lines = [
            [lanes.index(node.slot[0]), node.slot[1]]
            + [len(nodes) if end is None else at[end.slot] for end in (node.left, node.right)]
            for node in nodes
        ]
        weights = np.array([[node.weight, node.size] for node in nodes])
        targets = np.array([at[point.slot] for point in self.points], np.int64)
        return np.array(lines, np.int64), weights, targets

    def _sources(self) -> list[Stream]:
        return [Stream(self.secret.derive(*labels)) for labels in self.streams]

    def _schedules(self) -> tuple[Words, Words]:
        """The expanded keys of the lanes of all streams, and of their late draws."""
        nodes = self._nodes
        lanes = tuple(dict.fromkeys(node.slot[0] for node in nodes))
        late = tuple(late_lane(node.slot) for node in nodes)
        return expanded(self.secret, self.streams, lanes), expanded(self.secret, self.streams, late)

    def _compiled(self, table: Lattice, addresses: Addresses, factor: Floats, out: Floats) -> Rows:
        from sfumato.kernels.gaussian_copy import gaussian_copies  # noqa: PLC0415 - loaded when it is worth it

        rows = len(addresses.rows)
        values = [np.require(one, np.float64, ["C", "A"]) for one in table.values]
        null = [np.require(one, np.bool_, ["C", "A"]) for one in table.null]
        if any(one.size != rows for one in values) or any(one.size not in (0, rows) for one in null):
            raise ValueError("compiled code reads memory by addresses: each column must have as many rows as ids")
        invalid: Rows = gaussian_copies(
            (_pointers(values), _pointers(null)),
            readable(addresses.rows),
            np.array(addresses.more, np.uint64).reshape(len(addresses.more), rows),
            np.array(table.bounds),
            table.steps,
            (expanded(self.secret, ((),), (RECORD,)), *self._schedules()),
            self._program,
            (
                np.array(addresses.given, np.uint64).reshape(len(addresses.given), 2 * rows),
                np.array(addresses.streams or [OWN] * len(self.streams)),
            ),
            factor,
            out,
        )
        return invalid

    def _by_arrays(self, table: Lattice, addresses: Addresses, factor: Floats, out: Floats) -> Rows:
        sources, columns = self._sources(), len(table.values)
        invalid = np.zeros(columns, np.int64)
        chunk = min(max(_CACHE // (2 * columns + len(self._nodes)), _FEWEST_ROWS), _MOST_ROWS)
        for start in range(0, len(addresses.rows), chunk):
            part = slice(start, start + chunk)
            on_lattice = np.empty((columns, len(addresses.rows[part])))
            words, missing = table.points(part, on_lattice)
            invalid += missing
            cells = addresses.of_streams(addresses.of_rows(self.secret, words, part), len(sources), start)
            paths = self._walked(sources, cells)
            for noise, copy in zip(paths, out, strict=True):
                lattice.add_noise(factor, noise, on_lattice, table.steps, copy[:, part])
        return invalid

    def _walked(self, sources: Sequence[Stream], addresses: Sequence[Words]) -> Floats:
        """The path of each stream at each point, array by array, given the addresses of each stream."""
        nodes, out = self._nodes, np.empty((len(self.points), len(sources), len(addresses[0]) // 2))
        for i, (stream, cells) in enumerate(zip(sources, addresses, strict=True)):
            path = walk(stream, cells, nodes)
            for j, point in enumerate(self.points):
                out[j, i] = path[point.slot]
        return out


def _pointers(arrays: Sequence[Floats | Mask]) -> Words:
    """The addresses in memory of some arrays; 0 of an empty one."""
    return np.array([one.ctypes.data if one.size else 0 for one in arrays], np.uint64)


def walk(stream: Stream, addresses: Words, nodes: Sequence[Node]) -> dict[Slot, Floats]:
    """The Brownian path of each cell at each node, array by array; `nodes` come after those they depend on.

    Each normal is drawn once, whatever the number of levels that share it.
    """
    bits: dict[str, Words] = {}
    path: dict[Slot, Floats] = {}
    origin = np.zeros(len(addresses) // 2)
    for node in nodes:
        lane, word = node.slot
        if lane not in bits:
            bits[lane] = stream.bits(lane, addresses)
        left, right = (origin if end is None else path[end.slot] for end in (node.left, node.right))
        more = partial(stream.bits, late_lane(node.slot))
        path[node.slot] = bridge(left, right, node.weight, node.size, bits[lane], word, addresses, more)
    return path


def late_lane(slot: Slot) -> str:
    """The lane of further bits for draws that the first block does not settle."""
    return f"{slot[0]}/{slot[1]}"

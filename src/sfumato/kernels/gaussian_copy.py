"""Gaussian copies in one compiled loop, from values to copies: lattice, addresses, random bits, path, mixing, rounding.

It is what `mechanisms._gaussian_scheme` does by arrays where a processor has no instructions for AES, with the same
bytes. A few hundred rows at a time stay in the fastest cache of a processor, and Python's lock is not held.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from sfumato.kernels import NULL, Floats, Mask, Rows, Words
from sfumato.kernels.aes import SIDE_BY_SIDE, encrypt
from sfumato.kernels.brownian_path import BLOCK_ROWS, scratch, walk
from sfumato.kernels.lattice import LARGEST


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:  # noqa: ARG001 - numba's interface
    """An address as a pointer."""

    def generate(context: Any, builder: Any, given: Any, values: Any) -> Any:  # noqa: ARG001 - numba's interface
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uint64), generate


@njit(nogil=True)
def _to_lattice(  # pragma: no cover - compiled
    values: Floats, null: Mask, bounds: Floats, step: float, lattice: Floats, words: Words
) -> int:
    """`kernels.lattice.to_lattice`."""
    inverse, low, high = 1.0 / step, bounds[0], bounds[1]
    invalid = 0
    for row in range(values.shape[0]):
        point = np.rint(min(max(values[row], low), high) * inverse)
        lattice[row] = point
        words[row] = np.uint64(np.int64(point))
        invalid += not ((abs(values[row]) < np.inf) & (abs(point) <= LARGEST))  # false for NaN
    for row in range(null.shape[0]):
        if null[row]:
            invalid -= not ((abs(values[row]) < np.inf) & (abs(lattice[row]) <= LARGEST))
            lattice[row], words[row] = 0.0, NULL
    return invalid


@njit(nogil=True)
def _add_noise(  # pragma: no cover - compiled
    weights: Floats, path: Floats, lattice: Floats, step: float, noise: Floats, out: Floats
) -> None:
    """`kernels.lattice.add_noise` for one column, four terms at a time."""
    rows, last, k = out.shape[0], weights.shape[0], 0
    while last > 0 and weights[last - 1] == 0.0:
        last -= 1
    noise[:rows] = 0.0
    while k + 4 <= last:
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for row in range(rows):
            part = noise[row] + a * path[k, row]
            part = part + b * path[k + 1, row]
            part = part + c * path[k + 2, row]
            noise[row] = part + d * path[k + 3, row]
        k += 4
    while k < last:
        a = weights[k]
        for row in range(rows):
            noise[row] += a * path[k, row]
        k += 1
    for row in range(rows):
        out[row] = (lattice[row] + np.rint(noise[row])) * step


@njit(nogil=True)
def _absorb(state: Words, first: Words, second: Words) -> None:  # pragma: no cover - compiled
    for row in range(first.shape[0]):
        state[2 * row] ^= first[row]
        state[2 * row + 1] ^= second[row]


@njit(cache=True, nogil=True)
def gaussian_copies(  # pragma: no cover - compiled
    cells: Words,
    nulls: Words,
    rows: Words,
    more: Words,
    bounds: Floats,
    steps: Floats,
    keys: tuple[Words, Words, Words],
    program: tuple[Rows, Floats, Rows],
    given: Words,
    streams: Rows,
    factor: Floats,
    out: Floats,
) -> Rows:
    """Fill `out`, `(level, column, row)`, and return the number of cells per column that have no lattice point.

    Args:
        cells: the address in memory of each column's doubles.
        nulls: the address in memory of each column's mask of nulls; 0 where it has none.
        rows: the record ids.
        more: further words that rows are addressed by, `(word, row)`.
        bounds: the lower and the upper end of each column.
        steps: of the lattice of each column.
        keys: the expanded keys of the records, of the lanes of each stream, and of its late draws.
        program: nodes, weights and targets of `brownian_path.walk_rows`.
        given: addresses that are not those of the rows, `(number, word)`.
        streams: for each stream the number of its given addresses, or a negative number for those of the rows.
        factor: what the normals of the streams are multiplied with, for each column, in lattice steps.
        out: the copies.

    """
    columns, total = cells.shape[0], rows.shape[0]
    record_key, lanes, late_lanes = keys
    nodes, weights, targets = program
    extra, width = more.shape[0], columns + more.shape[0]
    room = BLOCK_ROWS + SIDE_BY_SIDE
    invalid = np.zeros(columns, np.int64)
    none, arrays = np.empty(0, np.bool_), scratch(nodes[:, 0].max() + 1)
    noise = np.empty(BLOCK_ROWS)
    state, addresses = np.empty(2 * room, np.uint64), np.empty(2 * room, np.uint64)
    for start in range(0, total, BLOCK_ROWS):
        size = min(BLOCK_ROWS, total - start)
        lattice, words = np.empty((columns, size)), np.empty((width, size), np.uint64)
        for j in range(columns):
            values = carray(_pointer(cells[j]), (total,), np.float64)[start : start + size]
            null = none
            if nulls[j] != 0:
                null = carray(_pointer(nulls[j]), (total,), np.bool_)[start : start + size]
            invalid[j] += _to_lattice(values, null, bounds[j], steps[j], lattice[j], words[j])
        for j in range(extra):
            words[columns + j] = more[j, start : start + size]
        for row in range(size):
            state[2 * row], state[2 * row + 1] = rows[start + row], words[0, row]
        for j in range(1, width, 2):
            encrypt(record_key, 0, state, size, state)
            _absorb(state, words[j], words[min(j + 1, width - 1)])
        path = np.zeros((nodes.shape[0] + 1, size))
        paths = np.empty((targets.shape[0], streams.shape[0], size))
        for stream in range(streams.shape[0]):
            if streams[stream] < 0:
                walk(nodes, weights, stream, lanes, late_lanes, state, arrays, path)
            else:
                addresses[: 2 * size] = given[streams[stream], 2 * start : 2 * (start + size)]
                walk(nodes, weights, stream, lanes, late_lanes, addresses, arrays, path)
            for level in range(targets.shape[0]):
                paths[level, stream] = path[targets[level]]
        for level in range(targets.shape[0]):
            for j in range(columns):
                copy = out[level, j, start : start + size]
                _add_noise(factor[j], paths[level], lattice[j], steps[j], noise, copy)
    return invalid

"""Gaussian copies in one compiled loop, from values to copies: lattice, addresses, random bits, path, mixing, rounding.

It is what `mechanisms._gaussian_scheme` does by arrays where a processor has no instructions for AES, with the same
bytes. A few hundred rows at a time stay in the fastest cache of a processor, and Python's lock is not held.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from sfumato.kernels import NULL, Floats, Mask, Rows, Words
from sfumato.kernels.aes import SIDE_BY_SIDE, encrypt
from sfumato.kernels.brownian_path import BLOCK_ROWS, scratch, walk
from sfumato.kernels.compiled import copy_to, njit
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
def _read(  # pragma: no cover - compiled
    cells: tuple[Words, Words], part: tuple[int, int], bounds: Floats, steps: Floats, on_lattice: Any, invalid: Rows
) -> None:
    """Round some rows of all columns to the lattice, and count the cells that have no point of it.

    Args:
        cells: as in `gaussian_copies`.
        part: the first of the rows, and the number of rows of the columns.
        bounds: as in `gaussian_copies`.
        steps: as in `gaussian_copies`.
        on_lattice: filled: the lattice points, and the words to address them by.
        invalid: the counts, which are added to.

    """
    (lattice, words), (start, total), (values_at, nulls_at) = on_lattice, part, cells
    end, none = start + lattice.shape[1], np.empty(0, np.bool_)
    for j in range(steps.shape[0]):
        values, null = carray(_pointer(values_at[j]), (total,), np.float64)[start:end], none
        if nulls_at[j] != 0:
            null = carray(_pointer(nulls_at[j]), (total,), np.bool_)[start:end]
        invalid[j] += _to_lattice(values, null, bounds[j], steps[j], lattice[j], words[j])


@njit(nogil=True)
def _absorb(record_key: Words, rows: Words, words: Words, state: Words) -> None:  # pragma: no cover - compiled
    """The addresses of rows, from their ids and words: see `keys.stream`."""
    size, width = rows.shape[0], words.shape[0]
    for row in range(size):
        state[2 * row], state[2 * row + 1] = rows[row], words[0, row]
    for j in range(1, width, 2):
        encrypt(record_key, 0, state, size, state)
        for row in range(size):
            state[2 * row] ^= words[j, row]
            state[2 * row + 1] ^= words[min(j + 1, width - 1), row]


@njit(cache=True, nogil=True)
def gaussian_copies(  # pragma: no cover - compiled
    cells: tuple[Words, Words],
    rows: Words,
    more: Words,
    bounds: Floats,
    steps: Floats,
    keys: tuple[Words, Words, Words],
    program: tuple[Rows, Floats, Rows],
    given: tuple[Words, Rows],
    factor: Floats,
    out: Floats,
) -> Rows:
    """Fill `out`, `(level, column, row)`, and return the number of cells per column that have no lattice point.

    Args:
        cells: the address in memory of each column's doubles, and of its mask of nulls; 0 where it has none.
        rows: the record ids.
        more: further words that rows are addressed by, `(word, row)`.
        bounds: the lower and the upper end of each column.
        steps: the lattice of each column.
        keys: the expanded keys of the records, of the lanes of each stream, and of its late draws.
        program: nodes, weights and targets of `brownian_path.walk_rows`.
        given: other addresses, `(number, word)`, and for each stream the number of its own; negative for the rows'.
        factor: what the normals of the streams are multiplied with, for each column, in lattice steps.
        out: the copies.

    """
    columns, total, (others, streams) = steps.shape[0], rows.shape[0], given
    (record_key, lanes, late_lanes), (nodes, weights, targets) = keys, program
    room = 2 * (BLOCK_ROWS + SIDE_BY_SIDE)
    invalid, arrays, noise = np.zeros(columns, np.int64), scratch(nodes), np.empty(BLOCK_ROWS)
    own, addresses = np.empty(room, np.uint64), np.empty(room, np.uint64)
    for start in range(0, total, BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, total)
        size = end - start
        lattice, words = np.empty((columns, size)), np.empty((columns + more.shape[0], size), np.uint64)
        _read(cells, (start, total), bounds, steps, (lattice, words), invalid)
        for j in range(more.shape[0]):
            copy_to(words[columns + j], more[j, start:end])
        _absorb(record_key, rows[start:end], words, own)
        path, paths = np.zeros((nodes.shape[0] + 1, size)), np.empty((targets.shape[0], streams.shape[0], size))
        for stream in range(streams.shape[0]):
            if streams[stream] >= 0:
                copy_to(addresses, others[streams[stream], 2 * start : 2 * end])
            chosen = addresses if streams[stream] >= 0 else own
            walk(nodes, weights, stream, lanes, late_lanes, chosen, arrays, path)
            for level in range(targets.shape[0]):
                copy_to(paths[level, stream], path[targets[level]])
        for level, j in np.ndindex(out.shape[0], columns):
            _add_noise(factor[j], paths[level], lattice[j], steps[j], noise, out[level, j, start:end])
    return invalid

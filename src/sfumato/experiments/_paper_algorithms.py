"""Reference implementations of the papers' algorithms as printed (with the errata), to compare ours with."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def corner_wave(variances: Array, k_x: Array) -> Array:
    """The noise covariance K_Z of li2012, eq. 15: a corner-wave matrix of noise variances and the data's K_X."""
    return np.kron(np.minimum.outer(variances, variances), k_x)


def algorithm_1(rng: np.random.Generator, rows: int, variances: Array, k_x: Array) -> Array:
    """Algorithm 1 of li2012, parallel generation: the noise of all levels at once, as rows x levels x attributes."""
    k_z = corner_wave(variances, k_x)
    drawn = rng.multivariate_normal(np.zeros(len(k_z)), k_z, rows, method="cholesky")
    return drawn.reshape(rows, len(variances), len(k_x))


def algorithm_1_factored(rng: np.random.Generator, rows: int, variances: Array, k_x: Array) -> Array:
    """Algorithm 1 of li2012 by the Cholesky factors of `Σ_Z ⊗ K_X`, as in the proof of Theorem 6 (Appendix G.2)."""
    steps = np.sqrt(np.diff(variances, prepend=0.0))
    drawn = rng.normal(size=(rows, len(variances), len(k_x))) @ np.linalg.cholesky(k_x).T
    return np.cumsum(drawn * steps[:, None], axis=1)


def algorithm_2(rng: np.random.Generator, rows: int, variances: Array, k_x: Array) -> Array:
    """Algorithm 2 of li2012, sequential generation: the noise of each level is the previous one plus an increment."""
    root, noise, previous, out = np.linalg.cholesky(k_x), np.zeros((rows, len(k_x))), 0.0, []
    for variance in variances:
        noise = noise + np.sqrt(variance - previous) * rng.normal(size=noise.shape) @ root.T
        previous = variance
        out.append(noise)
    return np.stack(out, axis=1)


def algorithm_3(rng: np.random.Generator, known: Array, old: Array, new: Array, k_x: Array) -> Array:
    """Algorithm 3 of li2012, on-demand generation: noise of new levels given that of all old ones (eqs. 17 and 18)."""
    variances = np.concatenate([old, new])
    k_z = corner_wave(variances, k_x)
    size = len(old) * len(k_x)
    inner, cross, outer = k_z[:size, :size], k_z[size:, :size], k_z[size:, size:]
    gain = cross @ np.linalg.inv(inner)
    mean = known.reshape(len(known), size) @ gain.T
    root = np.linalg.cholesky(outer - gain @ cross.T)
    return (mean + rng.normal(size=mean.shape) @ root.T).reshape(len(known), len(new), len(k_x))


def algorithm_iv_a3(known: Array, rows: Array, tolerance: float = 1e-6) -> int:
    """How many valid assignments known records have, up to 2 (giannella2010, IV-A.2 and IV-A.3, corrected by G2).

    A record may be assigned to a row of its length that has the same inner products with the rows of all others.
    """
    lengths = np.linalg.norm(rows, axis=1)
    products = known @ known.T
    found = 0

    def extend(assigned: list[int]) -> None:
        nonlocal found
        i = len(assigned)
        if i == len(known):
            found += 1
            return
        own = np.sqrt(products[i, i])
        candidates = np.flatnonzero(np.abs(lengths - own) <= tolerance * max(own, 1.0))
        off = np.abs(rows[candidates] @ rows[assigned].T - products[i, :i])
        for row in candidates[(off <= tolerance * max(own**2, 1.0)).all(axis=1)].tolist():
            if found > 1:
                return
            if row not in assigned:
                extend([*assigned, row])

    extend([])
    return found


class MultiPert:
    """Algorithm `multi-pert` of xiao2009, Figure 3, with `history(t)` of section 6 instead of the released tables."""

    def __init__(self, rng: np.random.Generator, data: Array, size: int) -> None:
        self.rng, self.data, self.size = rng, data, size
        self.issued: list[float] = []
        self.history: list[list[tuple[float, int]]] = [[] for _ in data]

    def release(self, p: float) -> Array:
        """A copy at retention probability `p`, consistent with all copies released before."""
        larger = min((q for q in self.issued if q > p), default=None)
        smaller = max((q for q in self.issued if q < p), default=None)
        out = np.array([self._cell(t, p, larger, smaller) for t in range(len(self.data))])
        self.issued.append(p)
        return out

    def _value(self, t: int, p: float) -> int:
        """The released value of tuple t at an issued p: that of the smallest probability >= p in history(t)."""
        return min((q, y) for q, y in self.history[t] if q >= p)[1]

    def _cell(self, t: int, p: float, larger: float | None, smaller: float | None) -> int:
        p_l = 1.0 if larger is None else larger
        y_l = int(self.data[t]) if larger is None else self._value(t, larger)
        coin = self.rng.random()
        if smaller is None:
            y = y_l if coin < p / p_l else int(self.rng.integers(self.size))
        else:
            y_r = self._value(t, smaller)
            u, v = self.coin_probabilities(p, p_l, smaller, same=y_l == y_r)
            y = y_l if coin < u else y_r if coin < u + v else int(self.rng.integers(self.size))
        self._remember(t, p, y)
        return y

    def coin_probabilities(self, p: float, p_l: float, p_r: float, *, same: bool) -> tuple[float, float]:
        """The probabilities u and v of keeping the value of the left or the right neighbour (equations 3 and 4)."""
        if same:
            return p / p_l, (1 - p / p_l) * (1 - (1 - p_r / p) / ((self.size - 1) * p_r / p_l + 1))
        return (p - p_r) / (p_l - p_r), p_r * (p_l - p) / (p * (p_l - p_r))

    def _remember(self, t: int, p: float, y: int) -> None:
        above = min(((q, v) for q, v in self.history[t] if q > p), default=None)
        if above is None or above[1] != y:
            self.history[t].append((p, y))
        below = max(((q, v) for q, v in self.history[t] if q < p), default=None)
        if below is not None and below[1] == y:
            self.history[t].remove(below)

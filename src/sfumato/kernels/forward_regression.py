"""Forward regression: the inputs of a linear prediction are chosen one by one, each only if it clearly helps.

Where many inputs tell the same, or nothing, few of them predict as well as all do, and do not follow the noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.kernels import Floats

_MOST, _ROWS = 40, 10
"""The most inputs of one target, and the records that each needs."""


def forward_regression(inputs: Floats, targets: Floats) -> Callable[[Floats], Floats]:
    """A linear prediction of each target, with an intercept, from the inputs that help.

    An input is added as long as the squared error falls by more than `2 ln p` times the error's variance: the most that
    the best of `p` useless ones brings (the risk inflation criterion of Foster and George, 1994).

    Args:
        inputs: one row per record, without missing values.
        targets: one row per record and one column per target, without missing values.

    """
    centre, level, units = inputs.mean(axis=0), targets.mean(axis=0), inputs.std(axis=0)
    units = np.where(units > 1e-12 * np.maximum(np.abs(centre), 1e-300), units, np.inf)
    standard, rows = (inputs - centre) / units, len(inputs)
    products, along = standard.T @ standard, standard.T @ (targets - level)
    totals = np.square(targets - level).sum(axis=0)
    weights = [_chosen(products, a, float(total), rows) for a, total in zip(along.T, totals, strict=True)]
    chosen = np.column_stack(weights) / units[:, None]
    return lambda some: (some - centre) @ chosen + level


def _chosen(products: Floats, along: Floats, total: float, rows: int) -> Floats:
    """The weights of one target: those of the chosen inputs, and zeros (Gram-Schmidt on the matrix of products)."""
    left, rest, norms = total, along.copy(), np.diag(products).copy()
    basis, members = np.zeros((0, len(along))), list[int]()
    least = 2 * np.log(max(len(along), 2))
    for _ in range(min(_MOST, len(along), rows // _ROWS)):
        free = norms > 1e-6 * rows
        gains = np.where(free, rest**2 / np.where(free, norms, 1.0), 0.0)
        best = int(gains.argmax())
        if gains[best] <= least * max(left - gains[best], 1e-9 * total) / rows:
            break
        direction = (products[best] - basis.T @ basis[:, best]) / np.sqrt(norms[best])
        amount = rest[best] / np.sqrt(norms[best])
        basis, left = np.vstack([basis, direction]), left - gains[best]
        rest, norms = rest - amount * direction, norms - direction**2
        members.append(best)
    weights = np.zeros(len(along))
    if members:
        weights[members] = np.linalg.solve(products[np.ix_(members, members)], along[members])
    return weights

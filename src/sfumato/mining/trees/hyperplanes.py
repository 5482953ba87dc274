"""The chance of each class over a few columns together, where it changes across few planes.

The chance `η(x)` of a class lies between 0 and 1 and makes likely what is seen of it:

    P(class | y) = Σ_x η(x)·g(x)·K(y | x) / Σ_x g(x)·K(y | x)

with the density `g` of all records. Behind noise, many `η` are as likely as the true one. A tree can only tell those
whose changes lie on planes across the axes, and it needs few of them where the same threshold serves in many places.
So the likelihood is maximised less a price on every plane: the root mean square of the change across it, a group lasso
(Yuan and Lin 2006) of fused differences (Tibshirani and others 2005). A second round makes planes that changed much
cheap, and the others dear (the adaptive lasso, Zou 2006), which takes back most of what the price flattened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sfumato.kernels import Floats
from sfumato.mining.features.features import TrainingSet
from sfumato.mining.trees.joint_density import Channel, Plan, everyone

PRICES = (0.02, 0.06, 0.2, 0.6)
"""Of a change from 0 to 1 across a whole plane, in roots of the number of records."""
_EVEN = 0.005
"""Changes below this are smoothed rather than taken away."""
_USUAL, _LEAST = 0.2, 0.05
"""In the second round, a change of `_USUAL - _LEAST` has the price that all had in the first."""
_STEPS, _FEW_STEPS = 400, 60
"""Of a search, and of one that need not be exact."""
_STILL = 1e-3
"""A step that makes all that is seen likelier by less, in logarithms, is the last."""


@dataclass(frozen=True)
class Sight:
    """What is seen of the classes over some columns: all that a search needs."""

    plan: Plan
    channel: Channel
    density: Floats
    """`g`."""
    counts: Floats
    """By class, and along every axis of what is seen."""

    @classmethod
    def of(cls, lesson: TrainingSet, plan: Plan) -> Sight:
        """Of all records."""
        counts = plan.count(lesson.values, lesson.labels, len(lesson.classes))
        channel = Channel(plan)
        return cls(plan, channel, everyone(plan, lesson.values, counts.sum(axis=0), channel), counts)

    def halves(self, rng: np.random.Generator) -> tuple[Sight, Sight]:
        """Of either half of the records, dealt out by chance; the density is that of all."""
        dealt = rng.binomial(self.counts.astype(np.int64), 0.5).astype(np.float64)
        one, other = (Sight(self.plan, self.channel, self.density, part) for part in (dealt, self.counts - dealt))
        return one, other

    def chances(self, price: float) -> Floats:
        """`η`, with an axis for the classes in front."""
        return self._each(lambda search: search.run(rounds=2, steps=_STEPS), price)

    def rough_chances(self) -> Floats:
        """The same at the least price, in one short round."""
        return self._each(lambda search: search.run(rounds=1, steps=_FEW_STEPS), PRICES[0])

    def _each(self, run: Callable[[_Search], Floats], price: float) -> Floats:
        """Where there are more than two classes, each is set against all others."""
        if len(self.counts) == 1:
            return np.ones((1, *self.density.shape))
        if len(self.counts) == 2:
            first = run(_Search(self, 0, price))
            return np.stack([first, 1 - first])
        found = np.maximum(np.stack([run(_Search(self, k, price)) for k in range(len(self.counts))]), 1e-9)
        added: Floats = found / found.sum(axis=0)
        return added

    def likelihood(self, chances: Floats) -> float:
        """The logarithm of that of the classes seen, by chances found elsewhere."""
        seen = np.stack([self.channel.forward(one * self.density) for one in chances])
        seen /= self.channel.forward(self.density)
        return float((self.counts * np.log(np.maximum(seen, 1e-9))).sum())


class _Search:
    """The likeliest chances of one class among all."""

    def __init__(self, sight: Sight, which: int, price: float) -> None:
        self._channel, self._density = sight.channel, sight.density
        self._ours = sight.counts[which]
        self._others = sight.counts.sum(axis=0) - self._ours
        self._seen = sight.channel.forward(sight.density)
        self._steps = [_Mean(axis) if plain else _Step(axis) for axis, plain in enumerate(sight.plan.are_categories)]
        self._price = price * np.sqrt(sight.counts.sum())
        self._still = _STILL / max(sight.counts.sum(), 1.0)

    def run(self, rounds: int, steps: int) -> Floats:
        """So many rounds; the first takes all planes alike."""
        shape = self._density.shape
        found = np.full(shape, self._ours.sum() / max(self._ours.sum() + self._others.sum(), 1.0))
        prices = [self._price] * len(shape)
        for _ in range(rounds):
            ends = minimize(
                self._unlikely,
                found.ravel(),
                args=(prices,),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * found.size,
                options={"maxiter": steps, "maxcor": 12, "ftol": self._still, "gtol": 1e-4},
            )
            found = ends.x.reshape(shape)
            changes = [_size(step.of(found), step.axis) for step in self._steps]
            prices = [self._price * _USUAL / (change + _LEAST) for change in changes]
        return found

    def _unlikely(self, flat: Floats, prices: list[Floats]) -> tuple[float, Floats]:
        """What is to be least, and its slope."""
        found = flat.reshape(self._density.shape)
        chance = np.clip(self._channel.forward(found * self._density) / self._seen, 1e-9, 1 - 1e-9)
        value = -float((self._ours * np.log(chance) + self._others * np.log(1 - chance)).sum())
        ratios = (self._ours / chance - self._others / (1 - chance)) / self._seen
        slope = -self._density * self._channel.backward(ratios)
        for step, price in zip(self._steps, prices, strict=True):
            change = step.of(found)
            size = np.sqrt(_size(change, step.axis) ** 2 + _EVEN**2)
            value += float((price * (size - _EVEN)).sum())
            slope += step.back(price * change / (size * (change.size / change.shape[step.axis])))
        return value, slope.ravel()


class _Step:
    """Changes from one cell to the next, along an axis that has an order."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def of(self, chances: Floats) -> Floats:
        return np.diff(chances, axis=self.axis)

    def back(self, changes: Floats) -> Floats:
        """The transpose."""
        ahead = np.moveaxis(changes, self.axis, 0)
        back = np.zeros((len(ahead) + 1, *ahead.shape[1:]))
        back[1:] += ahead
        back[:-1] -= ahead
        return np.moveaxis(back, 0, self.axis)


class _Mean:
    """Changes from the mean, along an axis of categories."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def of(self, chances: Floats) -> Floats:
        change: Floats = chances - chances.mean(axis=self.axis, keepdims=True)
        return change

    back = of


def _size(changes: Floats, axis: int) -> Floats:
    """The root mean square of the changes across each plane."""
    others = tuple(other for other in range(changes.ndim) if other != axis)
    size: Floats = np.sqrt((changes**2).mean(axis=others, keepdims=True))
    return size

"""Classification accuracy on Agrawal and Srikant's functions: guided perturbation and ByClass at equal leakage."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from sfumato.experiments._agrawal_srikant import RANGES, generate_people, group_a, policy_with_noise, quartile_codes
from sfumato.keys.key import Key
from sfumato.mining import MINERS
from sfumato.survey import leakage
from sfumato.survey.classifiers import tree_from_guided
from sfumato.survey.guidance import CooccurrenceCounts, spectrum
from sfumato.survey.perturbation import guided_response, one_hot

Array = Any
NAMES = list(RANGES)
BITS = 17.19
"""The entropy of a person's quartile codes, in bits."""

RELEVANT = {
    1: ["age"],
    2: ["age", "salary", "commission"],
    3: ["age", "salary", "commission", "elevel"],
    4: ["salary", "commission", "loan"],
    5: ["salary", "commission", "loan", "hvalue", "hyears", "zipcode"],
}
"""The attributes that each function depends on."""


def accuracy_bound(number: int, rows: int) -> float:
    """The accuracy of the majority class in each cell of quartiles, which no classifier on them can exceed (E16)."""
    people = generate_people(rows, 2)
    codes, _ = quartile_codes(people)
    cell = np.zeros(len(codes), np.int64)
    for name in RELEVANT[number]:
        cell = 10 * cell + codes[:, NAMES.index(name)]
    group = group_a(number, people)
    share = np.bincount(cell, group) / np.maximum(np.bincount(cell), 1)
    return float(np.where(share[cell] > 0.5, group, ~group).mean())


def guided_accuracy(number: int, seed: int, rows: int = 100_000, boot: int = 256) -> tuple[float, float]:
    """A tree's accuracy under the guided protocol (k = 7, refreshed every 100 rows), and the leakage I(t;R)/H(t)."""
    rng, people = np.random.default_rng(seed), generate_people(rows + 5000, seed)
    codes, sizes = quartile_codes(people)
    labels, bits = group_a(number, people).astype(np.int64), one_hot(codes, sizes)
    counts = CooccurrenceCounts.empty(2, 42).add(bits[:boot], labels[:boot])
    sent = np.zeros((rows, 42), np.int64)
    for start in range(boot, rows, 100):
        batch = slice(start, min(start + 100, rows))
        directions = spectrum(counts.pairs)[1][:, :7]
        sent[batch] = guided_response(bits[batch], directions, 0.0, rng.integers(0, 2**53, bits[batch].size))
        counts = counts.add(sent[batch], labels[batch])
    tree = tree_from_guided(sent[boot:], labels[boot:rows], sizes)
    accuracy = float((tree.predict(codes[rows:]) == labels[rows:]).mean())
    return accuracy, leakage.guided(codes[:4000], sizes, directions, rng, draws=1000) / BITS


def noise_for_leakage(values: Array, bins: Array, share: float = 0.25) -> float:
    """The standard deviation of noise at which a noisy value leaks `share` of the entropy of its bin."""
    span, weights = np.ptp(values), np.bincount(bins) / len(bins)
    weights = weights[weights > 0]
    grid = np.linspace(values.min() - 2 * span, values.max() + 2 * span, 2001)
    shares = np.linspace(0.001, 0.999, 400)  # each bin is represented by 400 of its quantiles
    parts = [np.unique(np.quantile(values[bins == one], shares), return_counts=True) for one in np.unique(bins)]

    def leaked(sd: float) -> float:
        densities = [norm.pdf(grid[:, None], at[None], sd) @ (count / count.sum()) for at, count in parts]
        step = grid[1] - grid[0]

        def entropy(density: Array) -> float:
            return float(-(density * np.log2(np.maximum(density, 1e-300))).sum() * step)

        conditional = sum(weight * entropy(density) for weight, density in zip(weights, densities, strict=True))
        marginal = entropy(np.tensordot(weights, densities, 1))
        return float((marginal - conditional) / -(weights * np.log2(weights)).sum())

    low, high = 0.01 * span, span
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if leaked(middle) > share else (low, middle)
    return float(low)


@cache
def noise_deviations() -> dict[str, float]:
    """The standard deviation of the noise of each attribute at a leakage of 25 %."""
    people = generate_people(100_000, 1)
    codes, _ = quartile_codes(people)
    return {name: noise_for_leakage(people[name], codes[:, i]) for i, name in enumerate(NAMES)}


def byclass_accuracy(number: int, seed: int, rows: int = 100_000) -> dict[int, float]:
    """The accuracy of ByClass at a leakage of 25 % per attribute, by the number of its reconstruction iterations."""
    people, fresh = generate_people(rows, seed), generate_people(5000, 98 + seed)
    table = pa.table(people | {"group": np.where(group_a(number, people), "A", "B")})
    key = Key.from_bytes((seed - 1).to_bytes(32, "big"))
    copy = policy_with_noise(table, noise_deviations()).fit(table).release(table, "only", key)
    truth = np.where(group_a(number, fresh), "A", "B")
    trees = {
        steps: MINERS["tree"](
            reconstruction="byclass", joint_columns=1, criterion="entropy", reconstruction_iterations=steps
        )
        for steps in (8, 400)
    }
    return {
        steps: float(np.mean(tree.fit(copy, "group").predict(pa.table(fresh)) == truth))
        for steps, tree in trees.items()
    }

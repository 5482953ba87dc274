"""Five functions of Agrawal and Srikant's people, as zhang2005 has them: guided rows and ByClass at equal leakage."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from sfumato.experiments import _agrawal_srikant as people_of
from sfumato.keys.key import Key
from sfumato.mining import MINERS
from sfumato.survey import leakage
from sfumato.survey.classifiers import tree_from_guided
from sfumato.survey.guidance import Tally, spectrum
from sfumato.survey.perturbation import bits_of, guided

Array = Any
NAMES = list(people_of.RANGES)
BITS = 17.19
"""The entropy of a person in quartiles."""

RELEVANT = {
    1: ["age"],
    2: ["age", "salary", "commission"],
    3: ["age", "salary", "commission", "elevel"],
    4: ["salary", "commission", "loan"],
    5: ["salary", "commission", "loan", "hvalue", "hyears", "zipcode"],
}
"""What each function depends on."""


def ceiling(number: int, rows: int) -> float:
    """The accuracy of the majority in each cell of quartiles: no classifier on them is better (E16)."""
    people = people_of.people(rows, 2)
    codes, _ = people_of.codes(people)
    cell = np.zeros(len(codes), np.int64)
    for name in RELEVANT[number]:
        cell = 10 * cell + codes[:, NAMES.index(name)]
    group = people_of.chosen(number, people)
    ours = np.bincount(cell, group) / np.maximum(np.bincount(cell), 1)
    return float(np.where(ours[cell] > 0.5, group, ~group).mean())


def scheme(number: int, seed: int, rows: int = 100_000, boot: int = 256) -> tuple[float, float]:
    """The whole protocol at k = 7, refreshed every 100 rows: accuracy of a tree, and the share of bits told."""
    rng, people = np.random.default_rng(seed), people_of.people(rows + 5000, seed)
    codes, sizes = people_of.codes(people)
    labels, bits = people_of.chosen(number, people).astype(np.int64), bits_of(codes, sizes)
    tally = Tally.empty(2, 42).add(bits[:boot], labels[:boot])
    sent = np.zeros((rows, 42), np.int64)
    for start in range(boot, rows, 100):
        now = slice(start, min(start + 100, rows))
        directions = spectrum(tally.together)[1][:, :7]
        sent[now] = guided(bits[now], directions, 0.0, rng.integers(0, 2**53, bits[now].size))
        tally = tally.add(sent[now], labels[now])
    tree = tree_from_guided(sent[boot:], labels[boot:rows], sizes)
    right = float((tree.predict(codes[rows:]) == labels[rows:]).mean())
    return right, leakage.guided(codes[:4000], sizes, directions, rng, draws=1000) / BITS


def deviation(values: Array, bins: Array, share: float = 0.25) -> float:
    """Noise under which a value tells `share` of the bits of its bin."""
    span, weights = np.ptp(values), np.bincount(bins) / len(bins)
    weights = weights[weights > 0]
    grid = np.linspace(values.min() - 2 * span, values.max() + 2 * span, 2001)
    shares = np.linspace(0.001, 0.999, 400)  # a bin by 400 of its quantiles
    parts = [np.unique(np.quantile(values[bins == one], shares), return_counts=True) for one in np.unique(bins)]

    def told(sd: float) -> float:
        laws = [norm.pdf(grid[:, None], at[None], sd) @ (count / count.sum()) for at, count in parts]
        step = grid[1] - grid[0]

        def entropy(law: Array) -> float:
            return float(-(law * np.log2(np.maximum(law, 1e-300))).sum() * step)

        inside = sum(weight * entropy(law) for weight, law in zip(weights, laws, strict=True))
        whole = entropy(np.tensordot(weights, laws, 1))
        return float((whole - inside) / -(weights * np.log2(weights)).sum())

    low, high = 0.01 * span, span
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if told(middle) > share else (low, middle)
    return float(low)


@cache
def deviations() -> dict[str, float]:
    """The noise of each attribute at 25 %."""
    people = people_of.people(100_000, 1)
    codes, _ = people_of.codes(people)
    return {name: deviation(people[name], codes[:, at]) for at, name in enumerate(NAMES)}


def byclass(number: int, seed: int, rows: int = 100_000) -> dict[int, float]:
    """The accuracy of ByClass at 25 % of each attribute's bits, by the rounds of its reconstruction."""
    people, fresh = people_of.people(rows, seed), people_of.people(5000, 98 + seed)
    table = pa.table(people | {"group": np.where(people_of.chosen(number, people), "A", "B")})
    sds = deviations()
    key = Key.from_bytes((seed - 1).to_bytes(32, "big"))
    copy = people_of.noisy(table, sds).fit(table).release(table, "only", key)
    truth = np.where(people_of.chosen(number, fresh), "A", "B")
    trees = {
        steps: MINERS["tree"](reconstruction="byclass", together=1, criterion="entropy", steps=steps)
        for steps in (8, 400)
    }
    return {
        steps: float(np.mean(tree.fit(copy, "group").predict(pa.table(fresh)) == truth))
        for steps, tree in trees.items()
    }

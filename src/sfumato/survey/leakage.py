"""How many bits blurred rows tell about people of a known population: for audits and experiments, not for devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.kernels import Floats
from sfumato.survey.perturbation import Integers, bits_of, chances


def entropy(codes: Integers) -> float:
    """Bits of an answer, for people drawn from these rows."""
    counts = np.unique(codes, axis=0, return_counts=True)[1] / len(codes)
    return float(-(counts * np.log2(counts)).sum())


def paper_bound(codes: Integers, sizes: Sequence[int], level: int) -> float:
    """Zhang 2005's bound (29) on the share that guidance of a level can tell; false as stated (E8)."""
    values = np.linalg.svd(bits_of(codes, sizes).astype(float), compute_uv=False)
    return float((values[:level] ** 2).sum() / (len(codes) * len(sizes)))


def exactly(codes: Integers, weights: Floats, sizes: Sequence[int], guidance: Floats, floor: float = 0.0) -> float:
    """`I(t;R)` by going through all rows that can be sent; for few bits."""
    law = chances(bits_of(codes, sizes), guidance, floor)
    sent = (np.arange(2 ** law.shape[1])[:, None] >> np.arange(law.shape[1])) & 1
    given = np.prod(np.where(sent[None], law[:, None], 1 - law[:, None]), axis=2)
    return _entropy_of(weights @ given) - float(weights @ [_entropy_of(row) for row in given])


def _entropy_of(law: Floats) -> float:
    some = law[law > 0]
    return float(-(some * np.log2(some)).sum())


def guided(
    codes: Integers,
    sizes: Sequence[int],
    guidance: Floats,
    rng: np.random.Generator,
    *,
    draws: int = 4000,
    floor: float = 0.0,
) -> float:
    """`I(t;R)` of a guided row, for people drawn from these rows, by simulation."""
    people, counts = np.unique(codes, axis=0, return_counts=True)
    law = chances(bits_of(people, sizes), guidance, floor)
    who = rng.choice(len(people), draws, p=counts / counts.sum())
    sent = (rng.random((draws, law.shape[1])) < law[who]).astype(np.int64)
    return _information(sent, law, who, counts / counts.sum())


def randomised(
    codes: Integers, sizes: Sequence[int], retention: Sequence[float], rng: np.random.Generator, *, draws: int = 4000
) -> float:
    """`I(t;R)` of randomised response, for people drawn from these rows, by simulation."""
    people, counts = np.unique(codes, axis=0, return_counts=True)
    who = rng.choice(len(people), draws, p=counts / counts.sum())
    kept = rng.random((draws, len(sizes))) < np.asarray(retention)
    sent = np.where(kept, people[who], rng.integers(0, np.asarray(sizes), (draws, len(sizes))))
    same = sent[:, None] == people[None]
    other = (1 - np.asarray(retention)) / np.asarray(sizes)
    likely = np.log2(np.where(same, np.asarray(retention) + other, other)).sum(2)
    return _gain(likely, who, counts / counts.sum())


def _information(sent: Integers, law: Floats, who: Integers, weights: Floats) -> float:
    with np.errstate(divide="ignore"):
        ones, zeros = np.log2(law), np.log2(1 - law)
    likely = np.empty((len(sent), len(law)))
    for at, row in enumerate(sent):
        likely[at] = np.where(row, ones, zeros).sum(1)
    return _gain(likely, who, weights)


def _gain(likely: Floats, who: Integers, weights: Floats) -> float:
    """The mean of `log2 P(R|t)/P(R)`."""
    top = likely.max(1, keepdims=True)
    alone = np.log2((np.exp2(likely - top) * weights).sum(1)) + top[:, 0]
    return float((likely[np.arange(len(who)), who] - alone).mean())

"""Privacy checks that a respondent's device makes before it follows guidance (the twin of the browser module's checks).

Every check depends on the guidance alone, never on the answers: a refusal that depended on them would disclose them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from sfumato.errors import GuidanceRefused
from sfumato.kernels import Floats
from sfumato.survey.perturbation import Integers, bit_probabilities, one_hot

_GRID = np.linspace(0, 1, 65)
"""Points at which the largest disclosure of a bit is looked for."""

_CUTS = {1: (1, 2, 3, 4, 5, 6, 8), 2: (1, 2, 3, 4, 5, 6, 8), 3: (2, 3, 4, 6, 8), 4: (2, 4)}
"""Numbers of intervals that each direction is cut into, by the number of directions; all combinations are tried."""


@dataclass(frozen=True)
class Disclosure:
    """How much the collector can learn from an answer that follows some guidance."""

    exposure: tuple[float, ...]
    """For each item: the largest share of its bits that any answers disclose, if all other answers are known."""
    capacity: float
    """An upper bound on the bits disclosed in all, for every prior knowledge of the collector."""


def inspect_guidance(
    guidance: Floats, sizes: Sequence[int], *, seed: str, allowed: int, floor: float, exposure: float, capacity: float
) -> Disclosure:
    """The disclosure of some guidance; raises `GuidanceRefused` if it exceeds the limits.

    Args:
        seed: eight hexadecimal digits unknown to the collector, so that guidance cannot be tuned to pass by luck.
        allowed: the largest disclosure level that the respondent allows.

    """
    _check_matrix(guidance, sizes)
    if guidance.shape[1] > allowed:
        raise GuidanceRefused(f"it asks for {guidance.shape[1]} directions, and {allowed} are allowed")
    largest = max(exposures(guidance, sizes, seed, 0.0))  # the floor must not hide what guidance aims at
    if not largest <= exposure:
        raise GuidanceRefused(f"it aims at a single answer, of which it would disclose {largest:.0%}")
    disclosure = Disclosure(worst_exposures(guidance, sizes, floor), capacity_bound(guidance, sizes, floor))
    if not disclosure.capacity <= capacity * allowed:
        limit = f"{capacity * allowed:g}"
        raise GuidanceRefused(f"it would disclose up to {disclosure.capacity:.1f} bits, and {limit} are allowed")
    return disclosure


def _check_matrix(guidance: Floats, sizes: Sequence[int]) -> None:
    """Refuse a matrix that does not fit the questions, is not finite or is not orthonormal."""
    width = sum(sizes)
    if guidance.ndim != 2 or guidance.shape[0] != width or not 1 <= guidance.shape[1] <= width:
        raise GuidanceRefused("its shape does not fit the questions")
    if not np.isfinite(guidance).all():
        raise GuidanceRefused("it holds values that are not numbers")
    if np.abs(guidance.T @ guidance - np.eye(guidance.shape[1])).max() > 1e-6:
        raise GuidanceRefused("its directions are not orthonormal")


def uniform_stream(seed: str, count: int) -> Floats:
    """Uniform numbers from a seed by the generator mulberry32, whose n-th number is a function of n."""
    state = (int(seed[:8], 16) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x6D2B79F5)) & _WORD
    state = _times(state ^ (state >> np.uint64(15)), state | np.uint64(1))
    state ^= (state + _times(state ^ (state >> np.uint64(7)), state | np.uint64(61))) & _WORD
    return ((state ^ (state >> np.uint64(14))) & _WORD).astype(np.float64) / 2**32


_WORD = np.uint64(0xFFFFFFFF)


def _times(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return ((one & _WORD) * (other & _WORD)) & _WORD


def exposures(guidance: Floats, sizes: Sequence[int], seed: str, floor: float) -> tuple[float, ...]:
    """The exposure `I(a;R | the other answers) / log2 s` of each item, for uniformly distributed answers.

    This is an average over simulated respondents, which finds guidance that aims at one item; `worst_exposures` holds
    for each respondent.
    """
    width = sum(sizes)
    people = max(128, min(1024, 32768 // width))
    uniform = uniform_stream(seed, people * (len(sizes) + width))
    answers = uniform[: people * len(sizes)].reshape(people, -1)
    codes = np.minimum(answers * np.asarray(sizes), np.asarray(sizes) - 1).astype(np.int64)
    draws = uniform[people * len(sizes) :].reshape(people, width)
    return tuple(_exposure(guidance, sizes, item, codes, draws, floor) for item in range(len(sizes)))


def _exposure(guidance: Floats, sizes: Sequence[int], item: int, codes: Integers, draws: Floats, floor: float) -> float:
    size, probabilities = sizes[item], []
    for value in range(size):
        changed = codes.copy()
        changed[:, item] = value
        probabilities.append(bit_probabilities(one_hot(changed, sizes), guidance, floor))
    ambiguity = np.zeros(len(codes))
    for truth in range(size):
        sent = draws < probabilities[truth]
        likelihoods = [np.prod(np.where(sent, p, 1 - p), axis=1) for p in probabilities]
        ambiguity += np.log2(sum(likelihoods) / likelihoods[truth])
    return max(0.0, 1 - float(ambiguity.mean()) / size / float(np.log2(size)))


def worst_exposures(guidance: Floats, sizes: Sequence[int], floor: float) -> tuple[float, ...]:
    """The largest share of its bits that each item can disclose, whatever a person answered.

    The collector is assumed to know all other answers. To answer `v` is to disclose `D(P_v || mean of P_w)` bits, which
    is at most `-log2 mean_w 2^-D(P_v || P_w)` (Haussler and Opper 1997). The divergence of two rows is a sum over their
    bits, and each bit is taken at the worst that the other answers can make of it.
    """
    gram = guidance @ guidance.T
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = [gram[:, low:high] for low, high in pairwise(starts)]
    least, most = (sum(end(part, axis=1) for part in parts) for end in (np.min, np.max))
    return tuple(_worst_exposure(part, least - part.min(1), most - part.max(1), floor) for part in parts)


def _worst_exposure(part: Floats, low: Floats, high: Floats, floor: float) -> float:
    """The worst exposure of an item, from its part of the projections and the range of the rest of them."""
    projection = low + (high - low) * _GRID[:, None] + part.T[:, None]  # by value, grid point and bit
    p = np.clip((1 - 2 * floor) * np.minimum(projection**2, 1) + floor, 1e-12, 1 - 1e-12)
    yes, no = np.log2(p), np.log2(1 - p)
    bits = []
    for one in range(len(p)):
        divergence = (p[one] * (yes[one] - yes) + (1 - p[one]) * (no[one] - no)).max(1).sum(1)
        bits.append(-np.log2(np.exp2(-divergence).mean()))
    return float(max(0.0, *bits) / np.log2(len(p)))


def capacity_bound(guidance: Floats, sizes: Sequence[int], floor: float) -> float:
    """An upper bound, in bits, on the information that a row discloses for every prior: a channel capacity.

    Rows depend on `u = V't` alone, which lies in one of many boxes, so `C <= log2 Σ_box 2^(Σ_j C_j)`, where `C_j` is
    the capacity of bit `j` while `u` stays in the box. It holds for every partition into boxes; the smallest of
    several partitions is returned.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = [guidance[low:high] for low, high in pairwise(starts)]
    low, high = sum(group.min(0) for group in groups), sum(group.max(0) for group in groups)
    partitions = product(_CUTS.get(len(low), (1,)), repeat=len(low))
    bounds = [_bound_by_boxes(guidance, low, high, np.array(parts), len(sizes), floor) for parts in partitions]
    return min([*bounds, float(np.log2(sizes).sum())])


def _bound_by_boxes(guidance: Floats, low: Floats, high: Floats, parts: Integers, items: int, floor: float) -> float:
    step = (high - low) / parts
    corner = low + np.stack(np.meshgrid(*map(np.arange, parts), indexing="ij"), -1).reshape(-1, len(parts)) * step
    nearest = np.maximum(np.maximum(corner, -corner - step), 0)
    middle = corner[(nearest**2).sum(1) <= items] + step / 2  # |V't| <= |t|, whose square is the number of items
    centre, reach = middle @ guidance.T, np.abs(guidance) @ (step / 2)
    ends = [np.maximum(np.abs(centre) - reach, 0), np.abs(centre) + reach]
    probabilities = [(1 - 2 * floor) * np.minimum(end**2, 1) + floor for end in ends]
    bits = _binary_capacity(*probabilities).sum(1)
    return float(bits.max() + np.log2(np.exp2(bits - bits.max()).sum()))


def _binary_capacity(low: Floats, high: Floats) -> Floats:
    """The capacity of a binary channel whose output is 1 with one of two probabilities (Silverman 1955)."""
    gap = high - low
    width = np.where(gap < 1e-9, 1.0, gap)
    h_low, h_high = _binary_entropy(low), _binary_entropy(high)
    capacity = (low * h_high - high * h_low) / width + np.log2(1 + np.exp2((h_low - h_high) / width))
    return np.where(gap < 1e-9, 0.0, np.maximum(capacity, 0))


def _binary_entropy(p: Floats) -> Floats:
    inner = np.clip(p, 1e-300, 1 - 1e-16)
    return np.where((p <= 0) | (p >= 1), 0.0, -inner * np.log2(inner) - (1 - inner) * np.log2(1 - inner))

"""What a respondent's device checks before it follows guidance; the twin of the browser's module.

Every check depends on the guidance alone, never on the answers: a refusal that depended on them would tell something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from sfumato.errors import GuidanceRefused
from sfumato.kernels import Floats
from sfumato.survey.perturbation import Integers, bits_of, chances

_CUTS = {1: (1, 2, 3, 4, 5, 6, 8), 2: (1, 2, 3, 4, 5, 6, 8), 3: (2, 3, 4, 6, 8), 4: (2, 4)}
"""In how many parts each direction is cut, by the number of directions; all combinations are tried."""


@dataclass(frozen=True)
class Foresight:
    """What the collector will be able to tell from an answer that follows some guidance."""

    exposure: tuple[float, ...]
    """For each item: the share of its bits that can be told by somebody who knows all other answers."""
    capacity: float
    """Bits in all that no collector can exceed, whatever it knows of people."""


def inspect(
    guidance: Floats, sizes: Sequence[int], *, seed: str, allowed: int, floor: float, exposure: float, capacity: float
) -> Foresight:
    """What guidance can tell; refused if that is more than was promised.

    Args:
        seed: eight hexadecimal digits that the collector cannot know, so that guidance cannot be tuned to pass by luck.
        allowed: the largest disclosure level that the respondent allows.

    """
    _sound(guidance, sizes)
    if guidance.shape[1] > allowed:
        raise GuidanceRefused(f"it asks for {guidance.shape[1]} directions, and {allowed} are allowed")
    clearest = max(exposures(guidance, sizes, seed, 0.0))  # the floor must not hide what guidance aims at
    if not clearest <= exposure:
        raise GuidanceRefused(f"it aims at a single answer, of which it would read {clearest:.0%}")
    found = Foresight(exposures(guidance, sizes, seed, floor), most_bits(guidance, sizes, floor))
    if not found.capacity <= capacity * allowed:
        raise GuidanceRefused(f"it would tell up to {found.capacity:.1f} bits, and {capacity * allowed:g} are allowed")
    return found


def _sound(guidance: Floats, sizes: Sequence[int]) -> None:
    """Refuse what is no guidance at all."""
    width = sum(sizes)
    if guidance.ndim != 2 or guidance.shape[0] != width or not 1 <= guidance.shape[1] <= width:
        raise GuidanceRefused("its shape does not fit the questions")
    if not np.isfinite(guidance).all():
        raise GuidanceRefused("it holds values that are no numbers")
    if np.abs(guidance.T @ guidance - np.eye(guidance.shape[1])).max() > 1e-6:
        raise GuidanceRefused("its directions are not orthonormal")


def stream(seed: str, count: int) -> Floats:
    """Uniform numbers from a seed: mulberry32, whose n-th number is a function of n."""
    at = (int(seed[:8], 16) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x6D2B79F5)) & _WORD
    at = _times(at ^ (at >> np.uint64(15)), at | np.uint64(1))
    at ^= (at + _times(at ^ (at >> np.uint64(7)), at | np.uint64(61))) & _WORD
    return ((at ^ (at >> np.uint64(14))) & _WORD).astype(np.float64) / 2**32


_WORD = np.uint64(0xFFFFFFFF)


def _times(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return ((one & _WORD) * (other & _WORD)) & _WORD


def exposures(guidance: Floats, sizes: Sequence[int], seed: str, floor: float) -> tuple[float, ...]:
    """`I(a;R | the other answers) / log2 s` of each item, for people who answer anything equally often.

    An average over simulated people, not a bound for every single one.
    """
    width = sum(sizes)
    people = max(128, min(1024, 32768 // width))
    uniform = stream(seed, people * (len(sizes) + width))
    answers = uniform[: people * len(sizes)].reshape(people, -1)
    codes = np.minimum(answers * np.asarray(sizes), np.asarray(sizes) - 1).astype(np.int64)
    coins = uniform[people * len(sizes) :].reshape(people, width)
    return tuple(_exposure(guidance, sizes, item, codes, coins, floor) for item in range(len(sizes)))


def _exposure(guidance: Floats, sizes: Sequence[int], item: int, codes: Integers, coins: Floats, floor: float) -> float:
    size, law = sizes[item], []
    for value in range(size):
        other = codes.copy()
        other[:, item] = value
        law.append(chances(bits_of(other, sizes), guidance, floor))
    ambiguity = np.zeros(len(codes))
    for truth in range(size):
        sent = coins < law[truth]
        likely = [np.prod(np.where(sent, chance, 1 - chance), axis=1) for chance in law]
        ambiguity += np.log2(sum(likely) / likely[truth])
    return max(0.0, 1 - float(ambiguity.mean()) / size / float(np.log2(size)))


def most_bits(guidance: Floats, sizes: Sequence[int], floor: float) -> float:
    """A bound on what a row can tell, for every prior: rows depend on `u = V't` alone, which lies in one of many boxes.

    `C <= log2 Σ_box 2^(Σ_j C_j)`, where `C_j` is the capacity of bit `j` while `u` stays in the box. It holds for
    every way to cut boxes, so that the best of some counts.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = [guidance[low:high] for low, high in pairwise(starts)]
    low, high = sum(group.min(0) for group in groups), sum(group.max(0) for group in groups)
    ways = product(_CUTS.get(len(low), (1,)), repeat=len(low))
    found = [_bits_in_boxes(guidance, low, high, np.array(parts), len(sizes), floor) for parts in ways]
    return min([*found, float(np.log2(sizes).sum())])


def _bits_in_boxes(guidance: Floats, low: Floats, high: Floats, parts: Integers, items: int, floor: float) -> float:
    step = (high - low) / parts
    corner = low + np.stack(np.meshgrid(*map(np.arange, parts), indexing="ij"), -1).reshape(-1, len(parts)) * step
    nearest = np.maximum(np.maximum(corner, -corner - step), 0)
    middle = corner[(nearest**2).sum(1) <= items] + step / 2  # |V't| <= |t|, whose square is the number of items
    centre, reach = middle @ guidance.T, np.abs(guidance) @ (step / 2)
    ends = [np.maximum(np.abs(centre) - reach, 0), np.abs(centre) + reach]
    law = [(1 - 2 * floor) * np.minimum(end**2, 1) + floor for end in ends]
    bits = _binary_capacity(*law).sum(1)
    return float(bits.max() + np.log2(np.exp2(bits - bits.max()).sum()))


def _binary_capacity(low: Floats, high: Floats) -> Floats:
    """The capacity of a bit that is 1 with one of two probabilities (Silverman 1955)."""
    gap = high - low
    width = np.where(gap < 1e-9, 1.0, gap)
    h_low, h_high = _entropy(low), _entropy(high)
    found = (low * h_high - high * h_low) / width + np.log2(1 + np.exp2((h_low - h_high) / width))
    return np.where(gap < 1e-9, 0.0, np.maximum(found, 0))


def _entropy(chance: Floats) -> Floats:
    inner = np.clip(chance, 1e-300, 1 - 1e-16)
    return np.where((chance <= 0) | (chance >= 1), 0.0, -inner * np.log2(inner) - (1 - inner) * np.log2(1 - inner))

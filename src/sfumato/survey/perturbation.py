"""Local perturbation of survey answers, by randomised response or guided by the collector (zhang2005).

These functions are the Python twin of `browser/sfumato-perturbation.js` and agree with it bit for bit. Both consume a
fixed number of random 53-bit integers in a fixed order, whatever the answers are, and compare them with probabilities
by a strict inequality, so that an event of probability 0 never happens (zhang2005, eq. 8 corrected: E10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import Floats

Integers = NDArray[np.int64]
RandomSource = Callable[[int], Integers]
"""A function that returns the requested number of integers, each uniform below 2^53."""

UNIT = float(1 << 53)


def one_hot(codes: Any, sizes: Sequence[int]) -> Integers:
    """One-hot encoding of rows of answer codes: one bit for each option (zhang2005, section 3)."""
    codes = np.atleast_2d(np.asarray(codes, np.int64))
    rows = np.zeros((len(codes), sum(sizes)), np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    np.put_along_axis(rows, codes + starts, 1, axis=1)
    return rows


def randomised_response(codes: Integers, sizes: Sequence[int], retention: Sequence[float], draws: Integers) -> Integers:
    """k-ary randomised response: keep each answer with its retention probability, else draw an option uniformly.

    Args:
        draws: two random integers for each item: whether the answer is kept, and what replaces it.

    """
    pairs = np.asarray(draws).reshape(-1, len(sizes), 2)
    is_kept = pairs[..., 0] / UNIT < np.asarray(retention)
    return np.where(is_kept, codes, pairs[..., 1] % np.asarray(sizes))


def project(bits: Integers, guidance: Floats) -> Floats:
    """The projection `t V V'` on the guidance, summed in a fixed order, so that every device gets the same bits."""
    coordinates = np.zeros((len(bits), guidance.shape[1]))
    for j in range(guidance.shape[0]):
        coordinates += bits[:, j, None] * guidance[j]
    projection = np.zeros((len(bits), guidance.shape[0]))
    for c in range(guidance.shape[1]):
        projection += coordinates[:, c, None] * guidance[:, c]
    return projection


def bit_probabilities(bits: Integers, guidance: Floats, floor: float = 0.0) -> Floats:
    """The probability that each sent bit is 1: `min(t~², 1)` (eq. 8, E7), between the floor and its complement."""
    projection = project(bits, guidance)
    return (1 - 2 * floor) * np.minimum(projection * projection, 1.0) + floor


def guided_response(bits: Integers, guidance: Floats, floor: float, draws: Integers) -> Integers:
    """The perturbed row that is sent to a guided survey (zhang2005, eqs. 7-8)."""
    return (np.asarray(draws).reshape(bits.shape) / UNIT < bit_probabilities(bits, guidance, floor)).astype(np.int64)


def seeded_integers(seed: bytes, count: int) -> Integers:
    """Uniform integers below 2^53 from a seed of 32 bytes, as a device draws them: AES-256 in counter mode."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 - not for experiments

    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update(bytes(8 * count))
    words = np.frombuffer(stream, ">u4").reshape(-1, 2).astype(np.int64)
    return (words[:, 0] >> 11 << 32) + words[:, 1]

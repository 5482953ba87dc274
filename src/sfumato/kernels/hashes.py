"""Hashes of 64-bit words that anybody can compute: to spread numbers evenly, not to hide them."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Words


def hashes(words: Words) -> Words:
    """A hash of each word: the generator SplitMix64, at the position that the word states."""
    mixed = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    drawn: Words = mixed ^ (mixed >> np.uint64(31))
    return drawn

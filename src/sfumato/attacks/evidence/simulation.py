"""Copies of known records, made by the published models: an attacker can blur a sample of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.attacks.evidence.evidence import Categories, Evidence, Records
from sfumato.attacks.evidence.pooling import joint_noise
from sfumato.kernels import Floats, Rows


def simulated(evidence: Evidence, sample: Records) -> Evidence:
    """The evidence, had the records of the sample been released in the place of the others."""
    rng = np.random.default_rng(0)
    noise = _noise(evidence, len(sample), rng)
    places = np.cumsum([0, *(len(part.columns) for part in evidence.numbers)])
    numbers = tuple(
        replace(part, values=sample.numbers(part.columns) + noise[:, places[i] : places[i + 1]])
        for i, part in enumerate(evidence.numbers)
    )
    blurred = {id(part): codes for part, codes in _categories(evidence, sample, rng)}
    categories = tuple(replace(part, codes=blurred[id(part)]) for part in evidence.categories)
    return Evidence(len(sample), numbers, categories)


def _noise(evidence: Evidence, rows: int, rng: np.random.Generator) -> Floats:
    if not evidence.numbers:
        return np.empty((rows, 0))
    values, vectors = np.linalg.eigh(joint_noise(evidence.numbers))
    noise: Floats = rng.normal(size=(rows, len(values))) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    return noise


def _categories(evidence: Evidence, sample: Records, rng: np.random.Generator) -> list[tuple[Categories, Rows]]:
    """Each path from the sample's values to ever more replaced ones (xiao2009, Lemma 1)."""
    found = []
    for name, parts in evidence.attributes().items():
        state: dict[str, tuple[Rows, float]] = {}
        for part in parts:
            codes, kept = state.get(part.path, (sample.codes[name], 1.0))
            stays = rng.random(len(codes)) < part.model.retention / kept
            codes = np.where(stays | (codes < 0), codes, rng.integers(0, part.size, len(codes)))
            state[part.path] = codes, part.model.retention
            found.append((part, codes))
    return found

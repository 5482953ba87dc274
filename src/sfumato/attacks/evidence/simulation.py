"""Simulated copies: an attacker can perturb records that it knows with the published models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.attacks.evidence.evidence import Categories, Evidence, Records
from sfumato.attacks.evidence.pooling import joint_noise
from sfumato.kernels import Floats, Rows


def training_set(evidence: Evidence) -> tuple[Evidence, Records] | None:
    """Evidence about records whose original is known, and that original; a sample has no public columns."""
    knowledge = evidence.knowledge
    if knowledge.known is not None and knowledge.known_rows is not None:
        return evidence.take(knowledge.known_rows), knowledge.known
    return None if knowledge.sample is None else (simulate_copies(evidence, knowledge.sample), knowledge.sample)


def simulate_copies(evidence: Evidence, sample: Records) -> Evidence:
    """The evidence that the same models would give about the records of a sample."""
    rng = np.random.default_rng(0)
    noise = _draw_noise(evidence, len(sample), rng)
    offsets = np.cumsum([0, *(len(part.columns) for part in evidence.numbers)])
    numbers = tuple(
        replace(part, data=sample.numbers(part.columns) + noise[:, offsets[i] : offsets[i + 1]])
        for i, part in enumerate(evidence.numbers)
    )
    perturbed = {id(part): codes for part, codes in _draw_categories(evidence, sample, rng)}
    categories = tuple(replace(part, data=perturbed[id(part)]) for part in evidence.categories)
    return Evidence(len(sample), numbers, categories)


def _draw_noise(evidence: Evidence, rows: int, rng: np.random.Generator) -> Floats:
    """Noise with the joint distribution of all copies' noise, one row per record."""
    if not evidence.numbers:
        return np.empty((rows, 0))
    values, vectors = np.linalg.eigh(joint_noise(evidence.numbers))
    noise: Floats = rng.normal(size=(rows, len(values))) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    return noise


def _draw_categories(evidence: Evidence, sample: Records, rng: np.random.Generator) -> list[tuple[Categories, Rows]]:
    """Perturbed categories along each path, from the most faithful copy to the least (xiao2009, Lemma 1)."""
    perturbed = []
    for name, parts in evidence.attributes().items():
        state: dict[str, tuple[Rows, float]] = {}
        for part in parts:
            codes, before = state.get(part.path, (sample.codes[name], 1.0))
            retained = rng.random(len(codes)) < part.model.retention / before
            codes = np.where(retained | (codes < 0), codes, rng.integers(0, part.size, len(codes)))
            state[part.path] = codes, part.model.retention
            perturbed.append((part, codes))
    return perturbed

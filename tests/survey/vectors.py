"""Test vectors for the browser module and its Python twin: `python -m tests.survey.vectors` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.survey import Survey
from sfumato.survey.device_checks import capacity_bound, exposures, uniform_stream, worst_exposures
from sfumato.survey.guidance import Guidance
from sfumato.survey.perturbation import (
    bit_probabilities,
    guided_response,
    one_hot,
    randomised_response,
    seeded_integers,
)

VECTORS = Path(__file__).with_name("vectors.json")

_DEFINITION = """
title = "Vectors"
consent = "Yes."
deadline = "2030-01-31"
class = "c"
[questions.c]
options = ["a", "b", "ü"]
[questions.n]
kind = "number"
cuts = [-1.5, 0, 2.25]
unit = "kg"
[questions.m]
kind = "multiple"
options = ["x", "y"]
[questions.s]
kind = "scale"
options = ["low", "high"]
[questions.d]
kind = "date"
cuts = [1970-01-01, 2000-02-29]
[questions.r]
kind = "ranking"
options = ["p", "q", "ü"]
[translations.de]
title = "Vektoren"
[translations.de.questions.c]
text = "C?"
options = ["A", "B", "Ü"]
"""


def _orthonormal(rng: np.random.Generator, width: int, level: int) -> Any:
    return np.linalg.qr(rng.standard_normal((width, level)))[0]


def _inputs(rng: np.random.Generator) -> dict[str, Any]:
    sizes = rng.integers(2, 6, rng.integers(2, 9)).tolist()
    width, level = sum(sizes), int(rng.integers(1, 4))
    codes = np.array([int(rng.integers(size)) for size in sizes])
    retention = rng.random(len(sizes)).tolist()
    matrix, floor = _orthonormal(rng, width, level), float(rng.choice([0.0, 0.1, 0.3]))
    draws = rng.integers(0, 2**53, 2 * max(width, len(sizes)))
    return {
        "sizes": sizes,
        "codes": codes.tolist(),
        "retention": retention,
        "draws": draws.tolist(),
        "matrix": matrix.tolist(),
        "floor": floor,
    }


def results(inputs: dict[str, Any]) -> dict[str, Any]:
    """What the Python twin makes of the inputs of a case, which another machine may have drawn."""
    sizes, retention, floor = inputs["sizes"], inputs["retention"], inputs["floor"]
    codes, draws, matrix = (np.array(inputs[name]) for name in ("codes", "draws", "matrix"))
    width, digest = sum(sizes), Guidance("schema", 3, matrix).digest
    bits = one_hot(codes, sizes)
    return {
        "digest": digest,
        "randomised": randomised_response(codes, sizes, retention, draws[: 2 * len(sizes)])[0].tolist(),
        "bits": bits[0].tolist(),
        "bit_probabilities": bit_probabilities(bits, matrix, floor)[0].tolist(),
        "guided": guided_response(bits, matrix, floor, draws[:width])[0].tolist(),
        "stream": uniform_stream(digest, 5).tolist(),
        "seeded": seeded_integers(bytes.fromhex(digest), 5).tolist(),
        "worst_exposures": list(worst_exposures(matrix, sizes, floor)),
        "exposures": list(exposures(matrix, sizes, digest, floor)),
        "bound": capacity_bound(matrix, sizes, floor),
    }


def answers() -> dict[str, Any]:
    survey = Survey.loads(_DEFINITION)
    given = [
        {"c": "a", "n": -1.5, "m": [], "s": "low", "d": "1969-12-31", "r": ["p", "q", "ü"]},
        {"c": "ü", "n": 2.2499999999999996, "m": ["y"], "s": "high", "d": "2000-02-29", "r": ["ü", "p", "q"]},
        {"c": "b", "n": 1e300, "m": ["x", "y"], "s": "low", "d": "1970-01-01", "r": ["q", "ü", "p"]},
    ]
    return {
        "published": survey.published,
        "version": survey.version,
        "answers": given,
        "codes": [survey.encode(one).tolist() for one in given],
    }


def generate(seed: int, count: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    cases = [_inputs(rng) for _ in range(count)]
    return {"seed": seed, "cases": [{**inputs, **results(inputs)} for inputs in cases], "survey": answers()}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(generate(2005, 12)))

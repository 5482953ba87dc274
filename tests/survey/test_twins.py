"""The browser module and its Python twin agree on the same test vectors, bit for bit."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.debian import installed
from tests.survey import vectors

from sfumato.survey.perturbation import guided_response, randomised_response, seeded_integers


def node() -> str:
    """The path of Node, which is installed where it is missing."""
    return installed(lambda: shutil.which("node"), "nodejs")


def _node(file: Path) -> subprocess.CompletedProcess[str]:
    test = Path(__file__).with_name("module.test.mjs")
    environment = {**os.environ, "VECTORS": str(file)}
    return subprocess.run([node(), "--test", str(test)], capture_output=True, text=True, env=environment, check=False)


def test_both_agree_on_the_committed_vectors() -> None:
    committed = json.loads(vectors.VECTORS.read_text())
    for one in committed["cases"]:
        other = vectors.results(one)
        for name in ("randomised", "bits", "bit_probabilities", "guided", "stream", "seeded", "digest"):
            assert one[name] == other[name]
        assert one["worst_exposures"] == pytest.approx(other["worst_exposures"], abs=1e-12)
        assert one["exposures"] == pytest.approx(other["exposures"], abs=1e-12)
        assert one["bound"] == pytest.approx(other["bound"], abs=1e-12)
    assert committed["survey"] == vectors.answers()
    result = _node(vectors.VECTORS)
    assert result.returncode == 0, result.stdout


def test_both_agree_on_new_vectors(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    file = tmp_path / "vectors.json"
    file.write_text(json.dumps(vectors.generate(seed, 12)))
    result = _node(file)
    assert result.returncode == 0, f"seed {seed}\n{result.stdout}"


@pytest.mark.parametrize(
    "field", ["randomised", "bit_probabilities", "digest", "bound", "exposures", "worst_exposures", "seeded"]
)
def test_a_twin_that_differs_is_found(tmp_path: Path, field: str) -> None:
    planted = vectors.generate(1, 2)
    one = planted["cases"][1]
    if field in ("randomised", "seeded"):
        one[field][0] = (one[field][0] + 1) % (one["sizes"][0] if field == "randomised" else 2**53)
    elif field == "bit_probabilities":
        one[field][0] = float(np.nextafter(one[field][0], 2))
    elif field in ("exposures", "worst_exposures"):
        one[field][0] += 1e-6
    else:
        one[field] = one[field] + 1e-6 if field == "bound" else "0" * 64
    file = tmp_path / "vectors.json"
    file.write_text(json.dumps(planted))
    assert _node(file).returncode != 0


def test_the_twins_own_draws_use_all_their_bits() -> None:
    draws = seeded_integers(secrets.token_bytes(32), 20_000)
    assert draws.min() >= 0
    assert draws.max() < 2**53
    ones = [int(((draws >> bit) & 1).sum()) for bit in range(53)]
    assert max(abs(one - 10_000) for one in ones) < 600  # 8.5 standard deviations


def test_what_has_probability_0_never_happens() -> None:
    draws = np.zeros(2, np.int64)
    assert randomised_response(np.array([[1]]), [2], [0.0], draws).tolist() == [[0]]
    assert randomised_response(np.array([[1]]), [2], [1e-9], draws).tolist() == [[1]]
    assert guided_response(np.array([[1, 0]]), np.zeros((2, 1)), 0.0, draws).tolist() == [[0, 0]]

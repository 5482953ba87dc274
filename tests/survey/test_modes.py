"""The advice to operators who choose a mode holds: at equal leakage the default mode trains better classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.survey.modes import PICTURE

from sfumato.experiments._votes import compare


@pytest.mark.slow
def test_the_default_mode_beats_the_guided_one_at_equal_leakage() -> None:
    for one in compare((1, 2, 3, 6), 100, np.random.default_rng(2005)):
        gain, error = one.gain
        assert gain > 2 * error, f"k = {one.level}: {gain:.4f} with an error of {error:.4f}"


def test_the_console_shows_the_figure() -> None:
    assert "<svg" in PICTURE.read_text()
    page = PICTURE.parents[1] / "templates" / "surveys.html"
    assert "/static/survey-modes.svg" in page.read_text()

"""The real data of experiments, for tests; a test without its data, here or on OpenML, is skipped (`conftest.py`)."""

from __future__ import annotations

from sfumato.experiments._data import adult, cancer, iris, letter, salaries, votes

__all__ = ["adult", "cancer", "iris", "letter", "salaries", "votes"]

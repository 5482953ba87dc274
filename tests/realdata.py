"""The experiments' real data, for tests; a test whose data are neither here nor on OpenML is skipped (`conftest.py`)."""

from __future__ import annotations

from sfumato.experiments._data import adult, cancer, iris, letter, salaries, votes

__all__ = ["adult", "cancer", "iris", "letter", "salaries", "votes"]

"""The experiments' real data, for tests: what is neither here nor to be had is skipped."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from sfumato.experiments import _data


def _or_skipped(load: Callable[[], Any]) -> Callable[[], Any]:
    @wraps(load)
    def loaded() -> Any:
        try:
            return load()
        except _data.MissingData as error:
            pytest.skip(str(error))

    return loaded


letter = _or_skipped(_data.letter)
adult = _or_skipped(_data.adult)
salaries = _or_skipped(_data.salaries)
iris = _or_skipped(_data.iris)
cancer = _or_skipped(_data.cancer)
votes = _or_skipped(_data.votes)

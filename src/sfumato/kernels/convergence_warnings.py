"""Silence about fits that did not quite converge, from threads that may all be fitting."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

_TURN = threading.Lock()
"""Python keeps one list of filters for all threads: whoever changes it must be alone in doing so."""


@contextlib.contextmanager
def unconcerned() -> Iterator[None]:
    """Warnings of scipy and scikit-learn that a fit could be better are not shown: near enough is good enough."""
    with _TURN, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # and scikit-learn's ConvergenceWarning, which is one
        yield

"""Suppression of convergence warnings, safe with several threads."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

_LOCK = threading.Lock()
"""Python has one list of warning filters for all threads, so only one thread at a time may change it."""


@contextlib.contextmanager
def ignore_convergence_warnings() -> Iterator[None]:
    """Ignore warnings of scipy and scikit-learn that a fit has not converged, where an approximate fit is enough."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's ConvergenceWarning is a subclass
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
        yield

"""Figures for Prometheus; with several workers, of all of them together."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from sfumato.service.settings import SHARED


class Metrics:
    """What a service counts."""

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        self.seconds = Histogram(
            "sfumato_request_seconds", "How long requests took.", ["route", "method", "status"], registry=self._own
        )
        self.sent = Counter("sfumato_copy_bytes", "Bytes of copies that were sent.", registry=self._own)
        self.copies = Counter("sfumato_copies", "Copies that were sent to their end.", ["format"], registry=self._own)
        self.jobs = Counter("sfumato_jobs", "Jobs that ended.", ["kind", "state"], registry=self._own)

    def text(self) -> bytes:
        """All figures, in Prometheus's format."""
        registry = self._own
        if SHARED in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

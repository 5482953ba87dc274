"""Prometheus metrics of the service, summed over all server workers."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from sfumato.service.settings import METRICS_DIRECTORY_VARIABLE


class Metrics:
    """The counters and histograms of the service."""

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        self.seconds = Histogram(
            "sfumato_request_seconds", "Duration of requests.", ["route", "method", "status"], registry=self._own
        )
        self.sent = Counter("sfumato_copy_bytes", "Bytes of copies sent.", registry=self._own)
        self.copies = Counter("sfumato_copies", "Copies sent completely.", ["format"], registry=self._own)
        self.jobs = Counter("sfumato_jobs", "Jobs finished.", ["kind", "state"], registry=self._own)

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        registry = self._own
        if METRICS_DIRECTORY_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

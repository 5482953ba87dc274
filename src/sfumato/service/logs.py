"""The log: one JSON line an event, on standard error, with nothing in it that a request held."""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    """Let everything be written this way; other libraries' warnings too."""
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what it would say of errors, ours have said
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format='{"event": "%(name)s: %(message)s"}')

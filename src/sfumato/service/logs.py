"""Logging configuration: one JSON line per event on standard error, without request contents."""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    """Send the events of the service, and the warnings of other libraries, to standard error as JSON lines."""
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
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # our own handlers have logged the errors already
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format='{"event": "%(name)s: %(message)s"}')

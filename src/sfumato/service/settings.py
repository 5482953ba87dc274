"""What the operator of a service decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1 << 20

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which workers put their figures together; to be set before Prometheus's client is imported."""


@dataclass(frozen=True)
class Settings:
    """All of it; the defaults are those of a service behind a proxy with TLS."""

    secure: bool = True
    """Cookies go over TLS only, and browsers are told to insist on it; off for plain HTTP on one's own machine."""
    tables: Path | None = None
    """The folder whose tables may be registered by their path; without it, tables are uploaded."""
    body: int = MEGABYTE
    """Bytes of a request, but for a part of an upload."""
    part: int = 16 * MEGABYTE
    """Bytes of a part of an upload."""
    parts: int = 10_000
    """Parts of an upload."""
    rate: int = 1200
    """Requests a minute of one caller, in each worker."""
    tries: int = 20
    """Failed sign-ins or wrong tokens a minute from one address, in each worker."""
    streams: int = 16
    """Copies that may be on their way to one caller at once, in each worker."""
    patience: int = 120
    """Seconds that a client may leave bytes unread before it is given up."""
    recent: float = 0.2
    """Seconds for which a survey's definition is taken to stand; whether it is open is looked at for every answer."""
    waiting: int = 16
    """Jobs that may wait for their turn in a worker."""
    session: int = 8
    """Hours until a signed-in browser must sign in again."""
    proxied: bool = False
    """Whether a proxy in front says who the client is (X-Forwarded-For)."""

"""Settings of the service: security, limits and timeouts that its operator chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.service.openid import Provider

MEGABYTE = 1 << 20

LIMITS = {
    "max_body_bytes": "Bytes of a request, except for a part of an upload.",
    "max_part_bytes": "Bytes of a part of an upload.",
    "max_parts": "Parts of an upload.",
    "max_streams": "Concurrent downloads per caller.",
    "receive_timeout": "Seconds within which a request must arrive.",
    "send_timeout": "Seconds after which a client that reads nothing is disconnected.",
    "max_queued_jobs": "Background jobs that may wait.",
    "session_hours": "Hours after which a browser must sign in again.",
}
"""Limits of `Settings` that an option of their own name sets, as `--max-streams`."""

METRICS_DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which workers share metrics; set it before importing prometheus_client."""


@dataclass(frozen=True)
class Settings:
    """All settings; the defaults are meant for a service behind a TLS proxy. Limits hold in each server worker."""

    secure: bool = True
    """Send cookies over TLS only, with strict transport security; off for plain HTTP on one's own machine."""
    tls: tuple[Path, Path] | None = None
    """The certificate chain and the private key with which the service itself serves HTTPS, as PEM files."""
    tables: Path | None = None
    """Folder whose tables may be registered by path; without it, tables must be uploaded."""
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The URLs of tables that may be chosen by these names; they may hold passwords."""
    openid: Provider | None = None
    """Where operators may sign in instead of with a password here."""
    max_body_bytes: int = MEGABYTE
    """Maximum size of a request body, except for a part of an upload."""
    max_part_bytes: int = 16 * MEGABYTE
    """Maximum size of a part of an upload."""
    max_parts: int = 10_000
    """Maximum number of parts of an upload."""
    requests_per_minute: int = 1200
    """Requests per minute and caller."""
    failures_per_minute: int = 20
    """Failed sign-ins per minute, address and account, and requests without a valid token per minute and address."""
    max_streams: int = 16
    """Maximum number of concurrent downloads per caller."""
    receive_timeout: int = 30
    """Seconds within which a request body must arrive; for a part of an upload, the next piece of it."""
    send_timeout: int = 120
    """Seconds after which a client that reads nothing is disconnected."""
    survey_cache_seconds: float = 0.2
    """Seconds for which a survey's definition is cached; whether it is open is checked for every answer."""
    max_queued_jobs: int = 16
    """Maximum number of queued jobs."""
    session_hours: int = 8
    """Hours after which a browser must sign in again."""
    proxied: bool = False
    """Trust the X-Forwarded-For header of the proxy in front."""

"""API endpoints about the service itself: health, readiness, metrics, public key and the caller's identity."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from sfumato.errors import Unavailable
from sfumato.ledger.database import is_url
from sfumato.service.api import schemas
from sfumato.service.authentication import Authenticated, Caller, require
from sfumato.service.context import context_of
from sfumato.service.problems import problem_responses
from sfumato.vault import Vault
from sfumato.vault.store import FolderStore

router = APIRouter(tags=["service"])

_MIN_FREE_BYTES = 64 << 20
"""Space on a disk below which the service is not ready: the ledger, uploads and copies must be written."""


@router.get("/healthz")
async def check_health() -> dict[str, str]:
    """Check that the process is alive."""
    return {"status": "alive"}


@router.get("/readyz", responses=problem_responses())
def check_readiness(request: Request) -> dict[str, str]:
    """Check that the vault can be read, its keys can be unlocked, and there is space on its disks."""
    vault = context_of(request).vault
    vault.keys()
    for folder in _folders(vault):
        free = shutil.disk_usage(folder).free
        if free < _MIN_FREE_BYTES:
            raise Unavailable(f"the disk of {folder} must have space, and has {free:,} bytes left; free some")
    return {"status": "ready"}


def _folders(vault: Vault) -> Iterator[Path]:
    """The folders of this machine in which the service writes."""
    yield Path(tempfile.gettempdir())
    if not is_url(vault.location):
        yield Path(vault.location)
    files = vault.store.files
    if isinstance(files, FolderStore) and files.root.exists():
        yield files.root


@router.get("/metrics", responses=problem_responses(), response_class=PlainTextResponse)
def get_metrics(
    request: Request,
    caller: Annotated[Caller, Depends(require("owner", "metrics"))],  # noqa: ARG001
) -> Response:
    """Get all metrics in the Prometheus text format."""
    return Response(context_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/api/v1/key")
def get_public_key(request: Request) -> dict[str, str]:
    """Get the owner's public key, with which recipients verify certificates."""
    return {"public": context_of(request).vault.public_key}


@router.get("/api/v1/me", responses=problem_responses())
def get_caller(caller: Authenticated) -> schemas.CallerIdentity:
    """Get the role, the name and the scopes of the caller."""
    return schemas.CallerIdentity(role=caller.role, name=caller.name, scopes=sorted(caller.scopes))

"""The service itself: is it there, is it ready, what does it count, whose word does it give."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from sfumato.service.api import schemas as shapes
from sfumato.service.authentication import Caller, Known, allowed
from sfumato.service.context import desk_of
from sfumato.service.problems import documented

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def alive() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/readyz", responses=documented())
def ready(request: Request) -> dict[str, str]:
    """The vault can be read, and its secret opens it."""
    desk_of(request).vault.keys()
    return {"status": "ready"}


@router.get("/metrics", responses=documented(), response_class=PlainTextResponse)
def metrics(request: Request, who: Annotated[Caller, Depends(allowed("owner", "metrics"))]) -> Response:  # noqa: ARG001
    """Figures for Prometheus."""
    return Response(desk_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/api/v1/key")
def key(request: Request) -> dict[str, str]:
    """What recipients check certificates with."""
    return {"public": desk_of(request).vault.public_key}


@router.get("/api/v1/me", responses=documented())
def me(who: Known) -> shapes.Me:
    """Who asks."""
    return shapes.Me(role=who.role, name=who.name, scopes=sorted(who.scopes))

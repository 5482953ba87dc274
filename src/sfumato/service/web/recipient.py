"""The recipient's page: what I may fetch, what it promises, and how to load it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sfumato.service.api.copies import mine
from sfumato.service.context import desk_of
from sfumato.service.web.rendering import Recipient, here, render

router = APIRouter()


@router.get("/mine")
def page(request: Request, who: Recipient) -> Response:
    """The page."""
    desk = desk_of(request)
    return render(
        "mine.html",
        who,
        grants=mine(desk, who.name),
        public=desk.vault.public_key,
        here=here(request),
    )

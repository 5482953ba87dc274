"""Web page for recipients: their grants, what each copy promises, and how to download and load it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sfumato.service.api.copies import current_grants
from sfumato.service.context import context_of
from sfumato.service.web.rendering import Recipient, service_url
from sfumato.service.web.templating import render

router = APIRouter()


@router.get("/mine")
def downloads_page(request: Request, caller: Recipient) -> Response:
    """Page with the copies that the signed-in recipient may download."""
    context = context_of(request)
    return render(
        "mine.html",
        caller,
        grants=current_grants(context, caller.name),
        public_key=context.vault.public_key,
        service_url=service_url(request),
    )

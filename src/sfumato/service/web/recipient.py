"""Web page for recipients: their grants, what each copy promises, and how to download and load it."""

from __future__ import annotations

from collections.abc import Mapping

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
    grants = current_grants(context, caller.name)
    return render(
        "mine.html",
        caller,
        grants=grants,
        examples={grant.dataset: example(grant.shown) for grant in grants},
        most=context.settings.max_part_bytes >> 20,
        public_key=context.vault.public_key,
        service_url=service_url(request),
    )


def example(columns: Mapping[str, str]) -> str:
    """A question that these columns with their types allow."""
    numbers = [name for name, kind in columns.items() if kind in ("double", "float")]
    texts = [name for name, kind in columns.items() if kind.endswith("string")]
    group, number = (f'"{names[0]}"' if names else "" for names in (texts, numbers))
    outputs = ", ".join(part for part in (group, "count(*) AS records", number and f"avg({number}) AS average") if part)
    return f"SELECT {outputs} FROM copy" + (f" GROUP BY {group}" if group else "")  # noqa: S608 - shown, not run

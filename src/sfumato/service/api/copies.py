"""The recipient's side: what I may have, what it promises, and the copy itself."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from sfumato.errors import GrantError
from sfumato.service.api import schemas as shapes
from sfumato.service.authentication import Caller, Known
from sfumato.service.context import ServiceContext, desk_of
from sfumato.service.copy_responses import MEDIA, Answering, negotiated
from sfumato.service.problems import Refused, documented
from sfumato.service.worker_pool import Wanted
from sfumato.vault.delivery import Delivery

router = APIRouter(prefix="/api/v1", tags=["copies"])

Level = Annotated[str | None, Query(max_length=40, description="A fidelity below that of the grant.")]
Holder = Annotated[str | None, Query(pattern=shapes.NAME, description="For an owner: whose copy.")]

_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The copy.", "content": {media: {} for media in MEDIA.values()}},
    206: {"description": "A part of the copy.", "content": {media: {} for media in MEDIA.values()}},
    304: {"description": "The client has this copy already."},
}


@router.get("/me/grants", responses=documented())
def grants(request: Request, who: Known) -> list[shapes.MyGrant]:
    """What the caller may fetch now."""
    return mine(desk_of(request), holder(who, None))


@router.api_route(
    "/copies/{dataset}",
    methods=["GET", "HEAD"],
    response_class=Response,
    responses=documented(404, 406, 416) | _BYTES,
    operation_id="copy",
)
async def copy(
    request: Request,
    dataset: shapes.Name,
    who: Known,
    level: Level = None,
    format: shapes.Format | None = None,  # noqa: A002 - its name in the query
    recipient: Holder = None,
) -> Response:
    """A copy, made while it is sent. With a name for the bytes (ETag), from any byte on (Range)."""
    form = negotiated(request.headers.get("accept", ""), format)
    wanted = Wanted(who.actor, holder(who, recipient), dataset, level, form)
    return await Answering.reply(request, desk_of(request), wanted)


@router.get("/copies/{dataset}/manifest", responses=documented(404))
async def manifest(
    request: Request, dataset: shapes.Name, who: Known, level: Level = None, recipient: Holder = None
) -> dict[str, Any]:
    """The copy's manifest with its certificate: what it is, what is promised, who vouches for it."""
    desk, wanted = desk_of(request), Wanted(who.actor, holder(who, recipient), dataset, level, "parquet")

    def signed() -> dict[str, Any] | None:
        found = Delivery.of(desk.vault, wanted.recipient, dataset, level).manifest()
        return None if found is None else json.loads(found.dumps())

    made = await asyncio.to_thread(signed)
    if made is None:  # nothing is signed that is not recorded, and nothing is recorded whose digest is not known
        await (await Answering.of(desk, wanted)).made()
        made = await asyncio.to_thread(signed)
    if made is None:
        raise Refused(503, "The dataset or the grant changed meanwhile; ask again.", Retry_After="1")
    return made


def holder(who: Caller, asked: str | None) -> str:
    """Whose copies are spoken of: a recipient's own, and for an owner those of the recipient it names."""
    if who.role == "recipient" and "copies" in who.scopes and asked in (None, who.name):
        return who.name
    if who.role == "owner" and "write" in who.scopes and asked is not None:
        return asked
    raise Refused(403, "This needs a recipient's token with the scope copies, for its own copies.")


def mine(desk: ServiceContext, recipient: str) -> list[shapes.MyGrant]:
    """The grants of a recipient that are in force, with what each promises."""
    out = []
    for grant in desk.vault.grants(recipient=recipient):
        try:
            sending = Delivery.of(desk.vault, recipient, grant.dataset)
        except GrantError:  # it is over
            continue
        out.append(_described(sending))
    return out


def _described(sending: Delivery) -> shapes.MyGrant:
    request = sending.request
    draft = request.scheme.manifest(request.dataset.schema, request.scheme.given(sending.level), request.key)
    grant = request.grant
    return shapes.MyGrant(
        dataset=grant.dataset,
        level=grant.level,
        fidelity=grant.fidelity,
        columns=None if grant.columns is None else list(grant.columns),
        where=grant.where,
        until=grant.until,
        version=request.dataset.version,
        shown=dict(draft.columns),
        promises=list(draft.promises),
        limits=list(draft.limits),
    )

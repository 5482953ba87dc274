"""API endpoints for recipients: list grants, download copies and their manifests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sfumato.errors import GrantError
from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import Query as LedgerQuery
from sfumato.service.api import schemas
from sfumato.service.authentication import Authenticated, Caller
from sfumato.service.context import ServiceContext, context_of
from sfumato.service.copy_responses import MEDIA_TYPES, CopyResponder, negotiate_format
from sfumato.service.problems import HTTPProblem, problem_responses
from sfumato.service.web.templating import report_page
from sfumato.service.worker_pool import CopyRequest
from sfumato.vault import tokens
from sfumato.vault.dataset_entries import APPENDED
from sfumato.vault.delivery import Delivery

router = APIRouter(prefix="/api/v1", tags=["copies"])

Level = Annotated[str | None, Query(max_length=40, description="A fidelity below that of the grant.")]
Since = Annotated[int | None, Query(ge=1, le=10**9, description="Only the rows that were appended after this version.")]
Holder = Annotated[str | None, Query(pattern=schemas.NAME, description="For owners: the recipient of the copy.")]

_LOOKED_AT = 50
"""The latest deliveries of a dataset to a recipient, among which the last whole copy is looked for."""

_COPY_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The copy.", "content": schemas.files(*MEDIA_TYPES.values())},
    206: {"description": "A byte range of the copy.", "content": schemas.files(*MEDIA_TYPES.values())},
    304: {"description": "The client's cached copy is current."},
}


@router.get("/me/grants", responses=problem_responses())
def list_my_grants(request: Request, caller: Authenticated) -> list[schemas.MyGrant]:
    """List the grants of the calling recipient that are in force."""
    return current_grants(context_of(request), copy_holder(caller, None))


@router.get(
    "/copies/{dataset}",
    response_class=Response,
    responses=problem_responses(404, 406, 416) | _COPY_RESPONSES,
    operation_id="copy",
)
@router.head(
    "/copies/{dataset}", response_class=Response, responses=problem_responses(404, 406), operation_id="copy_headers"
)
async def download_copy(
    request: Request,
    dataset: schemas.Name,
    caller: Authenticated,
    level: Level = None,
    format: schemas.Format | None = None,  # noqa: A002 - the name of the query parameter
    recipient: Holder = None,
    since: Since = None,
) -> Response:
    """Download a copy, which is generated while it is sent. Supports ETag, If-None-Match, Range and If-Range."""
    chosen = negotiate_format(request.headers.get("accept", ""), format)
    wanted = CopyRequest(caller.actor, copy_holder(caller, recipient), dataset, level, chosen, since)
    return await CopyResponder.respond(request, context_of(request), wanted)


@router.get("/copies/{dataset}/manifest", responses=problem_responses(404))
async def get_manifest(
    request: Request,
    dataset: schemas.Name,
    caller: Authenticated,
    level: Level = None,
    recipient: Holder = None,
    since: Since = None,
) -> dict[str, Any]:
    """Get the manifest of a copy: its models, what it promises, and the owner's signed certificate."""
    context = context_of(request)
    wanted = CopyRequest(caller.actor, copy_holder(caller, recipient), dataset, level, "parquet", since)

    def signed() -> dict[str, Any] | None:
        delivery = Delivery.of(context.vault, wanted.recipient, dataset, level, since)
        manifest = delivery.manifest()
        if manifest is None:
            return None
        body = delivery.request.access("manifest")
        caller.acting(context.vault).record_access("delivered", body, dataset=dataset, recipient=wanted.recipient)
        return dict(json.loads(manifest.dumps()))

    manifest = await asyncio.to_thread(signed)
    if manifest is None:  # only recorded copies are signed, and a record needs the digest of the whole copy
        await (await CopyResponder.prepare(context, wanted)).generate()
        manifest = await asyncio.to_thread(signed)
    if manifest is None:
        raise HTTPProblem(
            503, "The dataset or the grant has changed in the meantime; send the request again.", Retry_After="1"
        )
    return manifest


@router.post("/copies/{dataset}/answers", responses=problem_responses(404, 413))
async def answer_question(
    request: Request, dataset: schemas.Name, body: schemas.NewQuestion, caller: Authenticated
) -> schemas.Answer:
    """Answer a question in SQL about the original, estimated from the caller's copy, with intervals."""
    context = context_of(request)
    wanted = CopyRequest(caller.actor, copy_holder(caller, None), dataset, body.level, "parquet")
    responder = await CopyResponder.prepare(context, wanted)
    answer = schemas.Answer(**await context.questions.answer(caller.actor, body.question, responder))
    await asyncio.to_thread(responder.check_access, request)  # that may have ended while the question was answered
    await asyncio.to_thread(responder.record, caller, "answered")
    return answer


@router.get("/copies/{dataset}/profile", responses=problem_responses(404, 413), response_class=HTMLResponse)
async def get_profile(
    request: Request,
    dataset: schemas.Name,
    caller: Authenticated,
    level: Level = None,
    recipient: Holder = None,
) -> HTMLResponse:
    """Get a page about what a copy tells of the original: each column with intervals, and what is not known."""
    context = context_of(request)
    wanted = CopyRequest(caller.actor, copy_holder(caller, recipient), dataset, level, "parquet")
    responder = await CopyResponder.prepare(context, wanted)
    page = await context.questions.profile(caller.actor, responder)
    await asyncio.to_thread(responder.check_access, request)  # that may have ended while it was estimated
    await asyncio.to_thread(responder.record, caller, "profiled")
    return report_page(page)


@dataclass(frozen=True)
class _Sent:
    """A copy that the caller sent."""

    content: bytes

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The whole copy."""
        yield self.content


@router.post("/checks", responses=problem_responses(), openapi_extra=schemas.FILE_BODY)
async def check_copy(request: Request, caller: Authenticated) -> schemas.CopyCheck:
    """Check that a copy in Parquet is as this vault signed it; a process of its own reads it, and nothing is kept."""
    if not {"copies", "read"} & caller.scopes:
        raise HTTPProblem(403, "A check of a copy requires a token with the scope copies, or an owner's with read.")
    context = context_of(request)
    with context.stream_slot(caller.actor):
        content = await request.body()  # before a process is taken, which others wait for
    signers = await asyncio.to_thread(_signers, context)
    return schemas.CopyCheck(**await context.questions.check(caller.actor, signers, _Sent(content)))


def _signers(context: ServiceContext) -> list[str]:
    """All public keys that the vault has had."""
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        return [generation.public for generation in reading.generations()]


def copy_holder(caller: Caller, requested: str | None) -> str:
    """The recipient whose copies are requested: the calling recipient, or the one that an owner names."""
    if caller.role == "recipient" and "copies" in caller.scopes and requested in (None, caller.name):
        return caller.name
    if caller.role == "owner" and "write" in caller.scopes and requested is not None:
        return requested
    raise HTTPProblem(
        403,
        "This endpoint requires a recipient's token with the scope copies, or an owner's with the scope write and "
        "the name of a recipient.",
    )


def current_grants(context: ServiceContext, recipient: str) -> list[schemas.MyGrant]:
    """The grants of a recipient that are in force, with what each copy promises."""
    grants = []
    for grant in context.vault.grants(recipient=recipient):
        try:
            delivery = Delivery.of(context.vault, recipient, grant.dataset)
        except GrantError:  # it has expired
            continue
        last, appended = _last_fetch(context, recipient, delivery)
        known = {} if last is None else {"fetched": last.at, "fetched_version": last.body["version"]}
        grants.append(_grant(delivery).model_copy(update={**known, "appended": appended}))
    return grants


def _last_fetch(context: ServiceContext, recipient: str, delivery: Delivery) -> tuple[Entry | None, bool]:
    """The last record of a delivery to a recipient, and whether the versions since then only appended rows."""
    name, version = delivery.request.grant.dataset, delivery.request.dataset.version
    own = {f"recipient {recipient}", *(f"token {one.id}" for one in tokens.list_tokens(context.vault, recipient))}
    fidelity = delivery.request.access("")["fidelity"]
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        query = LedgerQuery(dataset=name, recipient=recipient, action="delivered", last=_LOOKED_AT)
        found = [one for one in reading.accesses(query) if one.actor in own and _is_whole_copy(one.body, fidelity)]
        if not found:
            return None, False
        before = found[-1].body["version"]
        later = reading.entries(LedgerQuery(dataset=name, kind="dataset", action="updated", last=version - before))
    bodies = [entry.body for entry in later if entry.body["version"] > before]
    return found[-1], bool(bodies) and all(APPENDED in body for body in bodies)


def _is_whole_copy(access: dict[str, Any], fidelity: float) -> bool:
    """Whether a delivery was more than the manifest or some bytes of a copy, of the present fidelity."""
    return access["format"] != "manifest" and access["bytes"] is None and access["fidelity"] == fidelity


def _grant(delivery: Delivery) -> schemas.MyGrant:
    request = delivery.request
    draft = request.scheme.manifest(request.dataset.schema, request.scheme.given(delivery.level), request.key)
    grant = request.grant
    return schemas.MyGrant(
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

"""API endpoints for the ledger: list and verify its entries, and trace a leaked copy to its recipient."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import Query as LedgerQuery
from sfumato.service import uploads
from sfumato.service.api import schemas
from sfumato.service.authentication import Eraser, Reader, Writer
from sfumato.service.context import context_of
from sfumato.service.jobs import Job, Result
from sfumato.service.problems import problem_responses
from sfumato.vault.log_query import parse_query
from sfumato.vault.messages import sentence, trace_text, trace_verdict

router = APIRouter(prefix="/api/v1", tags=["ledger"], responses=problem_responses(404))


def _filters(
    dataset: schemas.Filter = None,
    recipient: schemas.Filter = None,
    action: Annotated[str | None, Query(max_length=40)] = None,
    since: Annotated[str | None, Query(max_length=40)] = None,
    until: Annotated[str | None, Query(max_length=40)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> LedgerQuery:
    """The entries that the parameters of a URL select."""
    return parse_query(dataset, recipient, action, since, until, limit, before)


Filters = Annotated[LedgerQuery, Depends(_filters)]


@router.get("/ledger")
def list_entries(
    request: Request,
    caller: Reader,  # noqa: ARG001
    query: Filters,
) -> schemas.LedgerPage:
    """List ledger entries, newest first; pass the returned `before` to get the next page."""
    return _page(context_of(request).vault.log(query), query)


@router.get("/accesses")
def list_accesses(
    request: Request,
    caller: Reader,  # noqa: ARG001
    query: Filters,
) -> schemas.LedgerPage:
    """List the records of the access log, newest first; pass the returned `before` to get the next page."""
    return _page(context_of(request).vault.accesses(query), query)


@router.delete("/accesses")
def erase_accesses(
    request: Request, before: Annotated[str, Query(max_length=40)], caller: Eraser
) -> schemas.LedgerEntry | None:
    """Erase the records of the access log before a day."""
    entry = caller.acting(context_of(request).vault).erase_accesses(before)
    return None if entry is None else ledger_entry(entry)


@router.post("/ledger/verification", status_code=202)
def verify_vault(request: Request, body: schemas.NewVerification, caller: Writer) -> dict[str, str]:
    """Search for edited, removed or reordered entries and for altered files, in a background job."""
    context = context_of(request)
    return {"job": context.jobs.start("verify", "", caller.acting(context.vault), _verified, body)}


def _verified(job: Job, body: schemas.NewVerification) -> Result:
    job.progress.stage("verifying")
    report = job.vault.verify(contains=body.contains, files=body.files, progress=job.progress.advance)
    verdict = "the vault is intact" if report.sound else "VERIFICATION FAILED"
    return {"verdict": verdict, **dataclasses.asdict(report), "sound": report.sound}, ""


@router.post("/datasets/{dataset}/traces", status_code=202)
def trace_leak(request: Request, dataset: schemas.Name, body: schemas.TableSource, caller: Writer) -> dict[str, str]:
    """Find the recipient whose copy a leaked file is, or was made from, in a background job."""
    context = context_of(request)
    context.vault.dataset(dataset)

    return {"job": context.jobs.start("trace", dataset, caller.acting(context.vault), _traced, dataset, body)}


def _traced(job: Job, dataset: str, body: schemas.TableSource) -> Result:
    job.progress.stage("comparing")
    with uploads.open_table(job.vault.store, job.settings, body) as table:
        found = job.vault.trace(dataset, table, progress=job.progress.advance)
    if body.upload:
        uploads.delete(job.vault.store, body.upload)
    said = trace_verdict(found)
    verdict = "; ".join(said) or "not traced to any copy: nobody is accused"
    return {**found.as_json(), "verdict": verdict, "leak": bool(said), "text": trace_text(found, "the file")}, ""


def _page(entries: list[Entry], query: LedgerQuery) -> schemas.LedgerPage:
    """A page of entries, newest first, and the number before which the next page begins."""
    following = entries[0].number if len(entries) == query.last and entries[0].number > 1 else None
    return schemas.LedgerPage(entries=[ledger_entry(entry) for entry in entries[::-1]], before=following)


def ledger_entry(entry: Entry) -> schemas.LedgerEntry:
    """A ledger entry with its description, without the hashes of passwords and tokens."""
    body = {name: value for name, value in entry.body.items() if name != "hash"}
    return schemas.LedgerEntry(**{**entry.__dict__, "body": body}, sentence=sentence(entry))

"""The ledger: what happened, and whether it is whole; and who leaked a copy."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from sfumato.ledger.chain import Entry
from sfumato.service import uploads
from sfumato.service.api import schemas as shapes
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import desk_of
from sfumato.service.jobs import Running
from sfumato.service.problems import documented
from sfumato.vault.log_query import asked
from sfumato.vault.messages import sentence, trace_as_json, trace_in_words

router = APIRouter(prefix="/api/v1", tags=["ledger"], responses=documented(404))


@router.get("/ledger")
def ledger(
    request: Request,
    who: Reader,  # noqa: ARG001
    dataset: shapes.Filter = None,
    recipient: shapes.Filter = None,
    action: Annotated[str | None, Query(max_length=40)] = None,
    since: Annotated[str | None, Query(max_length=40)] = None,
    until: Annotated[str | None, Query(max_length=40)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> shapes.Page:
    """Entries, the latest first; `before` in the answer is where the next page begins."""
    query = asked(dataset, recipient, action, since, until, limit, before)
    found = desk_of(request).vault.log(query)[::-1]
    following = found[-1].number if len(found) == limit and found[-1].number > 1 else None
    return shapes.Page(entries=[shown(entry) for entry in found], before=following)


@router.post("/ledger/verification", status_code=202)
def verify(request: Request, how: shapes.NewCheck, who: Writer) -> dict[str, str]:
    """Find any edited, removed or reordered entry, and any altered file: a job."""
    desk = desk_of(request)

    def work(running: Running) -> tuple[dict[str, Any], str]:
        running.stage("verifying")
        report = desk.vault.verify(contains=how.contains, files=how.files, progress=running.advance)
        verdict = "all is well" if report.sound else "NOT AS IT SHOULD BE"
        return {"verdict": verdict, **dataclasses.asdict(report), "sound": report.sound}, ""

    return {"job": desk.jobs.start("verify", "", who.actor, work)}


@router.post("/datasets/{dataset}/traces", status_code=202)
def trace(request: Request, dataset: shapes.Name, leaked: shapes.Table, who: Writer) -> dict[str, str]:
    """Whose copy a file is, or was made from: a job."""
    desk = desk_of(request)
    desk.vault.dataset(dataset)

    def work(running: Running) -> tuple[dict[str, Any], str]:
        running.stage("comparing")
        with uploads.table(desk.vault.store, desk.settings, leaked.upload, leaked.path) as table:
            found = desk.vault.trace(dataset, table, progress=running.advance)
        if leaked.upload:
            uploads.drop(desk.vault.store, leaked.upload)
        return {**trace_as_json(found), "text": trace_in_words(found, "the file")}, ""

    return {"job": desk.jobs.start("trace", dataset, who.actor, work)}


def shown(entry: Entry) -> shapes.Told:
    """An entry, with what it says in words; what is secret about an account stays in the vault."""
    body = {name: value for name, value in entry.body.items() if name != "hash"}
    return shapes.Told(**{**entry.__dict__, "body": body}, sentence=sentence(entry))

"""Audits and other long work: starting it, watching it, and reading what came of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse

from sfumato.attacks import ATTACKS
from sfumato.audit.messages import text
from sfumato.audit.report import page
from sfumato.errors import UnknownSubject
from sfumato.serialization import plain
from sfumato.service.api import schemas as shapes
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import desk_of
from sfumato.service.jobs import Running
from sfumato.service.problems import documented
from sfumato.service.state import Job

router = APIRouter(prefix="/api/v1", tags=["jobs"], responses=documented(404))

JobId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]

_REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
"""A report is a page of its own, with its style inside, and no script runs in it."""


@router.post("/datasets/{dataset}/audits", status_code=202)
def audit(request: Request, dataset: shapes.Name, new: shapes.NewAudit, who: Writer) -> dict[str, str]:
    """Try all attacks on what recipients hold, alone and together: a job with a report."""
    desk = desk_of(request)
    desk.vault.dataset(dataset)
    for name in new.attacks or ():
        ATTACKS[name]  # refuses a name that no attack has

    def work(running: Running) -> tuple[dict[str, Any], str]:
        found = desk.vault.audit(
            dataset, colluders=new.colluders, attacks=new.attacks, rows=new.rows, stage=running.stage
        )
        running.stage("drawing the report")
        verdict = "no alarm" if found.passed else "ALARM"
        said = {"verdict": verdict, "passed": found.passed, "text": text(found), "summary": plain(found.summary())}
        return said, page(found)

    return {"job": desk.jobs.start("audit", dataset, who.actor, work)}


@router.get("/jobs")
def jobs(
    request: Request,
    who: Reader,  # noqa: ARG001
    kind: Annotated[str | None, Query(max_length=20)] = None,
    dataset: shapes.Filter = None,
) -> list[Job]:
    """The latest jobs."""
    return desk_of(request).state.jobs(kind, dataset)


@router.get("/jobs/{job}")
def one(request: Request, job: JobId, who: Reader) -> Job:  # noqa: ARG001
    """A job: how far it is, or what came of it."""
    found = desk_of(request).state.job(job)
    if found is None:
        raise UnknownSubject(f"there is no job {job}")
    return found


@router.get("/jobs/{job}/report", response_class=HTMLResponse)
def report(request: Request, job: JobId, who: Reader) -> HTMLResponse:  # noqa: ARG001
    """The page that an audit made."""
    made = desk_of(request).state.report(job)
    if not made:
        raise UnknownSubject(f"the job {job} has no report")
    return HTMLResponse(made, headers={"Content-Security-Policy": _REPORT, "X-Frame-Options": "SAMEORIGIN"})

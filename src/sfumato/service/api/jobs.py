"""API endpoints for background jobs: start an audit, follow the progress of a job, and get its result and report."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse

from sfumato.attacks import ATTACKS
from sfumato.audit.messages import notes
from sfumato.errors import UnknownSubject
from sfumato.serialization import json_safe
from sfumato.service.api import schemas
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import context_of
from sfumato.service.jobs import JobProgress
from sfumato.service.problems import problem_responses
from sfumato.service.state import Job

router = APIRouter(prefix="/api/v1", tags=["jobs"], responses=problem_responses(404))

JobId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]

_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
"""Content security policy of a report: a self-contained page with inline styles and without scripts."""


@router.post("/datasets/{dataset}/audits", status_code=202)
def start_audit(request: Request, dataset: schemas.Name, body: schemas.NewAudit, caller: Writer) -> dict[str, str]:
    """Run attacks on the recipients' copies, separately and combined, in a background job with a report."""
    context = context_of(request)
    context.vault.dataset(dataset)
    for name in body.attacks or ():
        ATTACKS[name]  # raises an error for an unknown attack

    def work(progress: JobProgress) -> tuple[dict[str, Any], str]:
        audit = caller.acting(context.vault).audit(
            dataset,
            colluders=body.colluders,
            attacks=body.attacks,
            rows=body.rows,
            without=body.without,
            quasi=body.quasi,
            stage=progress.stage,
        )
        progress.stage("drawing the report")
        summary = json_safe(audit.summary())
        result = {
            "verdict": summary["headline"],
            "passed": audit.passed,
            "state": audit.state.value,
            "text": audit.text(),
            "notes": notes(audit),
            "summary": summary,
        }
        return result, audit.page()

    return {"job": context.jobs.start("audit", dataset, caller.actor, work)}


@router.get("/jobs")
def list_jobs(
    request: Request,
    caller: Reader,  # noqa: ARG001
    kind: Annotated[str | None, Query(max_length=20)] = None,
    dataset: schemas.Filter = None,
) -> list[Job]:
    """List the latest jobs, newest first, without their results."""
    return context_of(request).state.jobs(kind, dataset)


@router.get("/jobs/{job}")
def get_job(request: Request, job: JobId, caller: Reader) -> Job:  # noqa: ARG001
    """Get the progress of a job, or its result."""
    found = context_of(request).state.job(job)
    if found is None:
        raise UnknownSubject(f"there is no job {job}")
    return found


@router.get("/jobs/{job}/report", response_class=HTMLResponse)
def get_report(request: Request, job: JobId, caller: Reader) -> HTMLResponse:  # noqa: ARG001
    """Get the HTML report of an audit."""
    report = context_of(request).state.report(job)
    if not report:
        raise UnknownSubject(f"the job {job} has no report")
    return HTMLResponse(report, headers={"Content-Security-Policy": _REPORT_POLICY, "X-Frame-Options": "SAMEORIGIN"})

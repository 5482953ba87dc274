"""API endpoints for background jobs: start an audit, follow the progress of a job, and get its result and report."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path as FilePath
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from sfumato.attacks import ATTACKS
from sfumato.audit.messages import notes
from sfumato.errors import UnknownSubject
from sfumato.serialization import json_safe
from sfumato.service.api import schemas
from sfumato.service.api.ledger import ledger_entry
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import context_of
from sfumato.service.jobs import Job as Running
from sfumato.service.jobs import Result
from sfumato.service.problems import problem_responses
from sfumato.service.state import Job
from sfumato.service.web.templating import report_page
from sfumato.vault.sign_off import check_format

router = APIRouter(prefix="/api/v1", tags=["jobs"], responses=problem_responses(404))

JobId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]


@router.post("/datasets/{dataset}/audits", status_code=202)
def start_audit(request: Request, dataset: schemas.Name, body: schemas.NewAudit, caller: Writer) -> dict[str, str]:
    """Run attacks on the recipients' copies, separately and combined, in a background job with a report."""
    context = context_of(request)
    context.vault.dataset(dataset)
    for name in body.attacks or ():
        ATTACKS[name]  # raises an error for an unknown attack

    if body.pack:
        check_format(FilePath(f"pack.{body.pack}"))
    started = context.jobs.start("audit", dataset, caller.acting(context.vault), _audited, dataset, body)
    return {"job": started}


def _audited(job: Running, dataset: str, body: schemas.NewAudit) -> Result:
    audit = job.vault.audit(
        dataset,
        colluders=body.colluders,
        attacks=body.attacks,
        rows=body.rows,
        without=body.without,
        quasi=body.quasi,
        risk_utility=body.risk_utility,
        stage=job.progress.stage,
    )
    job.progress.stage("drawing the report")
    summary = json_safe(audit.summary())
    result = {
        "verdict": summary["headline"],
        "passed": audit.passed,
        "state": audit.state.value,
        "text": audit.text(),
        "notes": notes(audit),
        "summary": summary,
    }
    if body.pack:
        job.progress.stage("writing the sign-off pack")
        pack = job.vault.pack(dataset, audit, as_pdf=body.pack == "pdf")
        parts = {"content": pack.content, "signature": pack.signature}
        result["pack"] = {"format": body.pack, **{name: b64encode(part).decode() for name, part in parts.items()}}
    return result, audit.page()


@router.post("/datasets/{dataset}/decisions", status_code=201)
def decide(request: Request, dataset: schemas.Name, body: schemas.NewDecision, caller: Writer) -> schemas.LedgerEntry:
    """Record an officer's decision about the latest sign-off pack of a dataset's current version."""
    vault = caller.acting(context_of(request).vault)
    entry = vault.approve(dataset, body.officer, role=body.role, reason=body.reason, approved=body.approved)
    return ledger_entry(entry)


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
    return report_page(report)


@router.get(
    "/jobs/{job}/pack/{part}",
    response_class=Response,
    responses={200: {"content": schemas.files("application/pdf", "text/html", "application/json")}},
)
def download_pack(
    request: Request,
    job: JobId,
    part: Literal["content", "signature"],
    caller: Reader,  # noqa: ARG001
) -> Response:
    """Download the sign-off pack of an audit, or the signature that belongs beside it."""
    pack = context_of(request).state.pack(job)
    if not pack:
        raise UnknownSubject(f"the job {job} has no sign-off pack")
    kind = {"pdf": "application/pdf", "html": "text/html"}[pack["format"]]
    suffix = f".{pack['format']}"
    if part == "signature":
        kind, suffix = "application/json", f"{suffix}.sig"
    headers = {"Content-Disposition": f'attachment; filename="sign-off-{job}{suffix}"'}
    return Response(b64decode(pack[part]), media_type=kind, headers=headers)


@router.delete("/jobs/{job}")
def cancel_job(request: Request, job: JobId, caller: Writer) -> Job:
    """Cancel a job that waits or runs; a running one stops at its next step, unless it was the last."""
    state = context_of(request).state
    state.cancel(job)
    return get_job(request, job, caller)

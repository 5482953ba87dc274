"""API endpoints for datasets: add and update them, upload tables, preview levels and simulate collusion."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from sfumato.errors import UnknownSubject
from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import Query as LedgerQuery
from sfumato.release.policy import Policy
from sfumato.service import uploads
from sfumato.service.api import schemas
from sfumato.service.api.ledger import ledger_entry
from sfumato.service.authentication import Caller, Eraser, Reader, Writer
from sfumato.service.context import context_of
from sfumato.service.jobs import Job, Result, Work
from sfumato.service.problems import problem_responses
from sfumato.tables.readers import TableFile
from sfumato.vault import preview
from sfumato.vault.dataset_entries import TABLE
from sfumato.vault.grants import existing, require
from sfumato.vault.messages import sentence, version_warnings
from sfumato.vault.names import validated_name
from sfumato.vault.overview import checked_overview, dataset_overview, vault_overview

router = APIRouter(prefix="/api/v1", tags=["datasets"], responses=problem_responses(404))


@router.get("/vault")
def get_vault_overview(request: Request, caller: Reader) -> dict[str, Any]:  # noqa: ARG001
    """Get an overview of the vault."""
    context = context_of(request)
    return checked_overview(lambda: vault_overview(context.vault))


@router.get("/datasets")
def list_datasets(request: Request, caller: Reader) -> list[schemas.Dataset]:  # noqa: ARG001
    """List all datasets at their latest versions."""
    vault = context_of(request).vault
    with vault.ledger.reading(vault.keys()) as reading:
        return [dataset_version(entry) for entry in existing(reading, "dataset")]


@router.post("/datasets", status_code=202)
def add_dataset(request: Request, body: schemas.NewDataset, caller: Writer) -> dict[str, str]:
    """Add a table with its policy to the vault, in a background job."""
    context, policy = context_of(request), Policy.loads(body.policy)
    validated_name("dataset", policy.dataset)
    return {"job": context.jobs.start("add", policy.dataset, caller.acting(context.vault), _added, body)}


def _added(job: Job, body: schemas.NewDataset) -> Result:
    job.progress.stage("fitting the scheme and storing the table")
    with uploads.open_table(job.vault.store, job.settings, body) as table:
        options = body.model_dump(include={"traced", "replace", "accept_overlap"})
        entry = job.vault.add(Policy.loads(body.policy), table, **options, progress=job.progress.advance)
    if body.upload:
        uploads.delete(job.vault.store, body.upload)
    return {"entry": entry.__dict__, "text": sentence(entry)}, ""


@router.get("/datasets/{dataset}")
def get_dataset(request: Request, dataset: schemas.Name, caller: Reader) -> schemas.Dataset:  # noqa: ARG001
    """Get a dataset at its latest version."""
    vault = context_of(request).vault
    with vault.ledger.reading(vault.keys()) as reading:
        return dataset_version(require(reading, "dataset", dataset))


@router.get("/datasets/{dataset}/status")
def get_dataset_overview(request: Request, dataset: schemas.Name, caller: Reader) -> dict[str, Any]:  # noqa: ARG001
    """Get the recipients of a dataset with their levels, and what averaging over its versions would reveal."""
    context = context_of(request)
    return checked_overview(lambda: dataset_overview(context.vault, dataset))


@router.get(
    "/datasets/{dataset}/policy",
    response_class=Response,
    responses={200: {"content": {"application/toml": {"schema": {"type": "string"}}}}},
)
def get_policy(request: Request, dataset: schemas.Name, caller: Reader) -> Response:  # noqa: ARG001
    """Get the policy of a dataset as TOML."""
    policy = context_of(request).vault.dataset(dataset).scheme.policy
    return Response(policy.dumps(), media_type="application/toml")


@router.get("/datasets/{dataset}/versions")
def list_versions(request: Request, dataset: schemas.Name, caller: Reader) -> list[schemas.Dataset]:  # noqa: ARG001
    """List all versions of a dataset, oldest first."""
    vault = context_of(request).vault
    with vault.ledger.reading(vault.keys()) as reading:
        require(reading, "dataset", dataset)
        return [dataset_version(entry) for entry in reading.entries(LedgerQuery(kind="dataset", dataset=dataset))]


@router.post("/datasets/{dataset}/versions", status_code=202)
def update_dataset(request: Request, dataset: schemas.Name, body: schemas.NewVersion, caller: Writer) -> dict[str, str]:
    """Add the next version of a dataset as a whole table, in a background job."""
    return _start_version(request, dataset, body, caller, _updated)


@router.post("/datasets/{dataset}/rows", status_code=202)
def append_rows(request: Request, dataset: schemas.Name, body: schemas.NewRows, caller: Writer) -> dict[str, str]:
    """Add the next version of a dataset, the current one and some more rows, in a background job."""
    return _start_version(request, dataset, body, caller, _appended)


def _start_version(
    request: Request, dataset: str, body: schemas.TableSource, caller: Caller, work: Work
) -> dict[str, str]:
    """Start the background job that adds a version."""
    context = context_of(request)
    context.vault.dataset(dataset)
    return {"job": context.jobs.start("update", dataset, caller.acting(context.vault), work, dataset, body)}


def _updated(job: Job, dataset: str, body: schemas.NewVersion) -> Result:
    with _given(job, body) as table:
        accepted, advance = body.accept_overlap, job.progress.advance
        entry = job.vault.update(dataset, table, replace=body.replace, accept_overlap=accepted, progress=advance)
    return _version_result(entry)


def _appended(job: Job, dataset: str, body: schemas.NewRows) -> Result:
    with _given(job, body) as table:
        entry = job.vault.append(dataset, table, accept_overlap=body.accept_overlap, progress=job.progress.advance)
    return _version_result(entry)


@contextlib.contextmanager
def _given(job: Job, body: schemas.TableSource) -> Iterator[FilePath | TableFile | str]:
    """The table of a new version, whose upload is deleted when the version is there."""
    job.progress.stage("comparing with the previous version and storing the table")
    with uploads.open_table(job.vault.store, job.settings, body) as table:
        yield table
    if body.upload:
        uploads.delete(job.vault.store, body.upload)


def _version_result(entry: Entry) -> Result:
    return {"entry": entry.__dict__, "text": "\n".join([sentence(entry), *version_warnings(entry)])}, ""


@router.delete("/datasets/{dataset}")
def erase_dataset(request: Request, dataset: schemas.Name, caller: Eraser) -> schemas.LedgerEntry:
    """Erase a dataset: nobody can read its content any more, and its grants end."""
    return ledger_entry(caller.acting(context_of(request).vault).erase(dataset))


@router.delete("/datasets/{dataset}/versions/{version}")
def erase_version(
    request: Request, dataset: schemas.Name, version: Annotated[int, Path(ge=1, le=2**31 - 1)], caller: Eraser
) -> schemas.LedgerEntry:
    """Erase an earlier version of a dataset."""
    return ledger_entry(caller.acting(context_of(request).vault).erase(dataset, version=version))


@router.get("/datasets/{dataset}/preview")
def preview_level(
    request: Request,
    dataset: schemas.Name,
    caller: Writer,
    fidelity: Annotated[float, Query(ge=0.001, le=0.999)],
    *,
    originals: bool = False,
) -> dict[str, Any]:
    """Preview a level: ten invented records, or original ones; the disclosure risk and the utility of each column."""
    return preview.preview(caller.acting(context_of(request).vault), dataset, fidelity, originals=originals)


@router.get("/datasets/{dataset}/collusion")
def simulate_collusion(
    request: Request,
    dataset: schemas.Name,
    caller: Writer,
    recipient: Annotated[list[str], Query(min_length=1, max_length=50)],
    *,
    originals: bool = False,
) -> dict[str, Any]:
    """Simulate collusion: the linear estimates of recipients together, of ten invented records, or original ones."""
    return preview.collusion(caller.acting(context_of(request).vault), dataset, recipient, originals=originals)


@router.post("/uploads", status_code=201)
def create_upload(request: Request, body: schemas.NewUpload, caller: Writer) -> schemas.Upload:  # noqa: ARG001
    """Start the upload of a table, which is then sent in parts."""
    context = context_of(request)
    upload = uploads.create(context.vault.store, body.name)
    return schemas.Upload(upload=upload, part=context.settings.max_part_bytes)


@router.put(
    "/uploads/{upload}/parts/{number}", status_code=204, responses=problem_responses(404, 413), response_class=Response
)
async def upload_part(
    request: Request,
    upload: Annotated[str, Path(max_length=80)],
    number: Annotated[int, Path(ge=1, le=99_999)],
    caller: Writer,  # noqa: ARG001
) -> Response:
    """Upload one part of a file as raw bytes; the same number again replaces the part."""
    context = context_of(request)
    if number > context.settings.max_parts:
        raise UnknownSubject(
            f"an upload may have at most {context.settings.max_parts:,} parts, and this is part {number:,}; "
            "send larger parts"
        )
    await uploads.receive_part(context.vault.store, upload, number, request.stream())
    return Response(status_code=204)


@router.delete("/uploads/{upload}", status_code=204, response_class=Response)
def delete_upload(
    request: Request,
    upload: Annotated[str, Path(max_length=80)],
    caller: Writer,  # noqa: ARG001
) -> Response:
    """Cancel an upload and delete its parts."""
    uploads.delete(context_of(request).vault.store, upload)
    return Response(status_code=204)


def dataset_version(entry: Entry) -> schemas.Dataset:
    """The version of a dataset that a ledger entry records."""
    body = entry.body
    return schemas.Dataset(
        dataset=entry.dataset,
        table=body.get(TABLE, ""),
        version=body["version"],
        rows=body["rows"],
        traced=body["traced"],
        columns=body["columns"],
        levels=dict(body["levels"]),
        changed=entry.at,
    )

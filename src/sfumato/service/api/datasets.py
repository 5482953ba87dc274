"""The owner's datasets: adding and updating them, and looking at what a level would show."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from sfumato.errors import UnknownSubject
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Query as Entries
from sfumato.policy.document import Policy
from sfumato.policy.suggest import draft
from sfumato.service import uploads
from sfumato.service.api import schemas as shapes
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import desk_of
from sfumato.service.jobs import Running
from sfumato.service.problems import documented
from sfumato.vault import preview as exploring
from sfumato.vault.grants import known
from sfumato.vault.messages import drift_warning, sentence
from sfumato.vault.overview import of_dataset, of_vault, readable

router = APIRouter(prefix="/api/v1", tags=["datasets"], responses=documented(404))


@router.get("/vault")
def vault(request: Request, who: Reader) -> dict[str, Any]:  # noqa: ARG001
    """The vault at a glance."""
    desk = desk_of(request)
    return readable(lambda: of_vault(desk.vault))


@router.get("/datasets")
def datasets(request: Request, who: Reader) -> list[shapes.Dataset]:  # noqa: ARG001
    """All datasets."""
    with desk_of(request).vault.ledger.reading() as reading:
        return [shown(entry) for entry in reading.current("dataset")]


@router.post("/datasets", status_code=202)
def add(request: Request, new: shapes.NewDataset, who: Writer) -> dict[str, str]:
    """Keep a table with its policy: a job."""
    desk, policy = desk_of(request), Policy.loads(new.policy)
    actor = desk.vault.acting_as(who.actor)

    def work(running: Running) -> tuple[dict[str, Any], str]:
        running.stage("measuring and keeping")
        with uploads.table(desk.vault.store, desk.settings, new.upload, new.path) as table:
            entry = actor.add(policy, table, traced=new.traced, progress=running.advance)
        if new.upload:
            uploads.drop(desk.vault.store, new.upload)
        return {"entry": entry.__dict__, "text": sentence(entry)}, ""

    return {"job": desk.jobs.start("add", policy.dataset, who.actor, work)}


@router.get("/datasets/{dataset}")
def dataset(request: Request, dataset: shapes.Name, who: Reader) -> shapes.Dataset:  # noqa: ARG001
    """One dataset."""
    with desk_of(request).vault.ledger.reading() as reading:
        return shown(known(reading, "dataset", dataset))


@router.get("/datasets/{dataset}/status")
def status(request: Request, dataset: shapes.Name, who: Reader) -> dict[str, Any]:  # noqa: ARG001
    """Who has which level, and what averaging over versions would tell."""
    desk = desk_of(request)
    return readable(lambda: of_dataset(desk.vault, dataset))


@router.get("/datasets/{dataset}/policy", response_class=Response)
def policy(request: Request, dataset: shapes.Name, who: Reader) -> Response:  # noqa: ARG001
    """The policy, as TOML."""
    return Response(desk_of(request).vault.dataset(dataset).scheme.policy.dumps(), media_type="application/toml")


@router.get("/datasets/{dataset}/versions")
def versions(request: Request, dataset: shapes.Name, who: Reader) -> list[shapes.Dataset]:  # noqa: ARG001
    """All versions, the first one first."""
    with desk_of(request).vault.ledger.reading() as reading:
        known(reading, "dataset", dataset)
        return [shown(entry) for entry in reading.entries(Entries(kind="dataset", dataset=dataset))]


@router.post("/datasets/{dataset}/versions", status_code=202)
def update(request: Request, dataset: shapes.Name, new: shapes.Table, who: Writer) -> dict[str, str]:
    """Bring the next version: a job."""
    desk = desk_of(request)
    actor = desk.vault.acting_as(who.actor)
    desk.vault.dataset(dataset)

    def work(running: Running) -> tuple[dict[str, Any], str]:
        running.stage("comparing and keeping")
        with uploads.table(desk.vault.store, desk.settings, new.upload, new.path) as table:
            entry = actor.update(dataset, table, progress=running.advance)
        if new.upload:
            uploads.drop(desk.vault.store, new.upload)
        return {"entry": entry.__dict__, "text": "\n".join([sentence(entry), *drift_warning(entry)])}, ""

    return {"job": desk.jobs.start("update", dataset, who.actor, work)}


@router.get("/datasets/{dataset}/preview")
def preview(
    request: Request,
    dataset: shapes.Name,
    who: Reader,  # noqa: ARG001
    fidelity: Annotated[float, Query(ge=0.001, le=0.999)],
) -> dict[str, Any]:
    """Ten records at a level, and what it leaves to attackers and analysts."""
    return exploring.preview(desk_of(request).vault, dataset, fidelity)


@router.get("/datasets/{dataset}/collusion")
def collusion(
    request: Request,
    dataset: shapes.Name,
    who: Reader,  # noqa: ARG001
    recipient: Annotated[list[str], Query(min_length=1, max_length=50)],
) -> dict[str, Any]:
    """What some recipients could reconstruct together, beside what they could had the noise been independent."""
    return exploring.collusion(desk_of(request).vault, dataset, recipient)


@router.post("/suggestions")
def suggest(request: Request, new: shapes.Suggest, who: Writer) -> shapes.Suggested:  # noqa: ARG001
    """A first draft of a policy for a table."""
    desk = desk_of(request)
    with uploads.table(desk.vault.store, desk.settings, new.upload, new.path) as table:
        text = draft(table, dataset=new.dataset)
    roles = {name: column.role for name, column in Policy.loads(text).columns.items()}
    return shapes.Suggested(policy=text, roles=roles)


@router.post("/uploads", status_code=201)
def begin(request: Request, new: shapes.NewUpload, who: Writer) -> shapes.Upload:  # noqa: ARG001
    """Begin to upload a table."""
    desk = desk_of(request)
    name = uploads.begin(desk.vault.store, new.name)
    return shapes.Upload(upload=name, part=desk.settings.part)


@router.put(
    "/uploads/{upload}/parts/{number}", status_code=204, responses=documented(404, 413), response_class=Response
)
async def part(
    request: Request,
    upload: Annotated[str, Path(max_length=80)],
    number: Annotated[int, Path(ge=1, le=99_999)],
    who: Writer,  # noqa: ARG001
) -> Response:
    """A part of the file, as it is; the same part again replaces it."""
    desk = desk_of(request)
    if number > desk.settings.parts:
        raise UnknownSubject(f"an upload may have {desk.settings.parts:,} parts")
    await uploads.receive(desk.vault.store, upload, number, request.stream())
    return Response(status_code=204)


@router.delete("/uploads/{upload}", status_code=204, response_class=Response)
def forget(request: Request, upload: Annotated[str, Path(max_length=80)], who: Writer) -> Response:  # noqa: ARG001
    """Give an upload up."""
    uploads.drop(desk_of(request).vault.store, upload)
    return Response(status_code=204)


def shown(entry: Entry) -> shapes.Dataset:
    """A version of a dataset, as an entry has it."""
    said = entry.body
    return shapes.Dataset(
        dataset=entry.dataset,
        version=said["version"],
        rows=said["rows"],
        traced=said["traced"],
        columns=said["columns"],
        levels=dict(said["levels"]),
        changed=entry.at,
    )

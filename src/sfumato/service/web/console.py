"""Web console for data owners: datasets, levels, collusion, recipients and jobs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.errors import UnknownSubject
from sfumato.ledger.chain import ERASED, Entry
from sfumato.ledger.database import is_url
from sfumato.ledger.reader import LedgerReader
from sfumato.ledger.reader import Query as LedgerQuery
from sfumato.service.api import schemas
from sfumato.service.api.datasets import dataset_version
from sfumato.service.authentication import Caller
from sfumato.service.context import context_of
from sfumato.service.settings import LIMITS
from sfumato.service.web.ladder import LadderFigure
from sfumato.service.web.rendering import Owner, service_url
from sfumato.service.web.templating import not_found, render
from sfumato.vault import operators, tokens
from sfumato.vault.grants import Grant, existing, require
from sfumato.vault.messages import sentence

router = APIRouter(prefix="/console")

_PAGE = 25
"""The datasets, recipients or grants on one page."""

_OFFERED = 100
"""The most recipients that a form offers for choice; with more, their names are typed."""

_SUGGESTED = 10
"""Recipients that a form suggests where names are typed: those that changed last."""

_LISTED = 5
"""The most datasets of a recipient that the list of recipients names."""

PageNumber = Annotated[int, Query(ge=1, le=1_000_000)]

_AUDITS = 1000
"""The latest audits that are looked at for the verdicts of datasets."""


@dataclass(frozen=True)
class _Pages:
    """One page of the datasets or recipients, which are in the order of their latest changes."""

    entries: list[Entry]
    total: int
    number: int
    more: bool

    @classmethod
    def of(cls, reading: LedgerReader, kind: str, number: int) -> _Pages:
        """A page of those that were not erased."""
        found = reading.recent(kind, _PAGE + 1, _PAGE * (number - 1))
        kept = [entry for entry in found[:_PAGE] if entry.action != ERASED]
        return cls(kept, reading.subjects(kind), number, len(found) > _PAGE)


@router.get("")
def overview_page(request: Request, caller: Owner, page: PageNumber = 1, name: schemas.Filter = None) -> Response:
    """Page with the datasets that changed last, the latest jobs and the latest ledger entries."""
    if name:
        return RedirectResponse(f"/console/datasets/{name}", 303)
    context = context_of(request)
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        pages = _Pages.of(reading, "dataset", page)
        datasets = [dataset_version(entry) for entry in pages.entries]
    verdicts = {one.dataset: one for one in context.vault.accesses(LedgerQuery(action="audited", last=_AUDITS))}
    recent = [(entry, sentence(entry)) for entry in context.vault.log(LedgerQuery(last=8))[::-1]]
    jobs = context.state.jobs()[:6]
    return render("overview.html", caller, pages=pages, datasets=datasets, verdicts=verdicts, recent=recent, jobs=jobs)


@router.get("/datasets/new")
def new_dataset_page(request: Request, caller: Owner) -> Response:
    """Page on which a table is uploaded, or chosen by name, and its policy is drafted."""
    return render("new.html", caller, sources=list(context_of(request).settings.sources))


@router.get("/datasets/{dataset}")
def dataset_page(request: Request, dataset: schemas.Name, caller: Owner, page: PageNumber = 1) -> Response:
    """Page of one dataset with its ladder, recipients, grants, versions and audits."""
    return _dataset_page(request, caller, dataset, "dataset.html", page)


@router.get("/datasets/{dataset}/levels")
def levels_page(request: Request, dataset: schemas.Name, caller: Owner) -> Response:
    """Page on which the levels of a dataset are compared."""
    return _dataset_page(request, caller, dataset, "levels.html")


@router.get("/datasets/{dataset}/collusion")
def collusion_page(request: Request, dataset: schemas.Name, caller: Owner) -> Response:
    """Page on which the collusion of recipients is simulated."""
    return _dataset_page(request, caller, dataset, "collusion.html")


def _dataset_page(request: Request, caller: Caller, name: str, template: str, page: int = 1) -> Response:
    context = context_of(request)
    try:
        with context.vault.ledger.reading(context.vault.keys()) as reading:
            entry = require(reading, "dataset", name)
            versions = reading.entries(LedgerQuery(kind="dataset", dataset=name))
            many = reading.subjects("recipient") > _OFFERED
            known = reading.recent("recipient", _SUGGESTED) if many else existing(reading, "recipient")
            recipients = sorted(one.recipient for one in known if one.action not in ("disabled", ERASED))
            decisions = reading.latest("report", name), reading.latest("approval", name)
    except UnknownSubject as error:
        return not_found(caller, str(error))
    audits = context.vault.accesses(LedgerQuery(action="audited", dataset=name, last=1))
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        stated = reading.current("grant", dataset=name)
        granted = [Grant.of(one) for one in stated if one.action == "granted"]
        grants = sorted(granted, key=lambda grant: (-grant.fidelity, grant.recipient))
        shown = grants[_PAGE * (page - 1) : _PAGE * page]
        found = (reading.latest("release", name, grant.recipient) for grant in shown)
        releases = {one.recipient: one for one in found if one is not None}
        holders = _holders(reading, stated)
    dataset = dataset_version(entry)
    return render(
        template,
        caller,
        dataset=dataset,
        grants=grants,
        shown=shown,
        page=page,
        more=len(grants) > _PAGE * page,
        ladder=LadderFigure.of(dataset.levels, grants),
        versions=[(version, sentence(version)) for version in versions[::-1]],
        recipients=recipients,
        many_recipients=many,
        releases=releases,
        holders=holders,
        jobs=context.state.jobs("audit", name)[:10],
        traces=context.state.jobs("trace", name)[:10],
        audit=audits[-1] if audits else None,
        report=_about(decisions[0], dataset.version),
        decision=_about(decisions[1], dataset.version),
        policy=context.vault.dataset(name).scheme.policy.dumps() if template == "dataset.html" else "",
        service_url=service_url(request),
    )


def _holders(reading: LedgerReader, grants: list[Entry]) -> list[str]:
    """Who may collude, if they are several and few enough to choose from: a copy that was released stays, too."""
    if len(grants) > _OFFERED:
        return []
    held = [one for one in grants if one.action == "granted" or reading.latest("release", one.dataset, one.recipient)]
    return [one.recipient for one in held] if len(held) > 1 else []


def _about(entry: Entry | None, version: int) -> Entry | None:
    """An entry, if it is about this version."""
    return entry if entry is not None and entry.body["version"] == version else None


@router.get("/recipients")
def recipients_page(request: Request, caller: Owner, page: PageNumber = 1, name: schemas.Filter = None) -> Response:
    """Page with the recipients that changed last, and their grants."""
    if name:
        return RedirectResponse(f"/console/recipients/{name}", 303)
    context = context_of(request)
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        pages = _Pages.of(reading, "recipient", page)
        counts = {one.recipient: reading.datasets_of("grant", one.recipient) for one in pages.entries}
        grants = {
            name: [Grant.of(one) for one in reading.current("grant", recipient=name) if one.action == "granted"]
            for name, count in counts.items()
            if count <= _LISTED
        }
    return render("recipients.html", caller, pages=pages, counts=counts, grants=grants)


@router.get("/recipients/{recipient}")
def recipient_page(request: Request, recipient: schemas.Name, caller: Owner) -> Response:
    """Page of one recipient with its tokens, grants and history."""
    context = context_of(request)
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        entry = reading.latest("recipient", recipient=recipient)
        datasets = [one for one in reading.recent("dataset", _LISTED) if one.action != ERASED]
    if entry is None:
        return not_found(caller, f"There is no recipient {recipient!r}.")
    now = context.vault.now()
    return render(
        "recipient.html",
        caller,
        entry=entry,
        datasets=datasets,
        grants=context.vault.grants(recipient=recipient),
        tokens=[(token, token.is_active(now)) for token in tokens.list_tokens(context.vault, recipient)],
        history=[(one, sentence(one)) for one in context.vault.log(LedgerQuery(recipient=recipient, last=20))[::-1]],
        service_url=service_url(request),
    )


@router.get("/team")
def team_page(request: Request, caller: Owner) -> Response:
    """Page of the operators, of one's own password, and of the tokens of the owner's programs."""
    vault = context_of(request).vault
    now = vault.now()
    return render(
        "team.html",
        caller,
        provider=context_of(request).settings.openid,
        operators=operators.list_operators(vault),
        roles=list(operators.ROLES),
        manages="team" in caller.scopes,
        least=operators.MIN_LENGTH,
        tokens=[(token, token.is_active(now)) for token in tokens.list_tokens(vault, "")],
        scopes=tokens.MEANINGS,
        service_url=service_url(request),
    )


@router.get("/settings")
def settings_page(request: Request, caller: Owner) -> Response:
    """Page of the settings of the service, which its operator gives when it starts, and of the vault."""
    context = context_of(request)
    with context.vault.ledger.reading(context.vault.keys()) as reading:
        head, generations = reading.head(), reading.generations()
    return render(
        "settings.html",
        caller,
        settings=context.settings,
        limits={name: (text, getattr(context.settings, name)) for name, text in LIMITS.items()},
        database="PostgreSQL" if is_url(context.vault.location) else "SQLite",
        entries=head.entries,
        generation=generations[-1],
        version=version("sfumato"),
        service_url=service_url(request),
    )


@router.get("/jobs/{job}")
def job_page(request: Request, job: str, caller: Owner) -> Response:
    """Page of one job with its progress or its result."""
    found = context_of(request).state.job(job[:32])
    if found is None:
        return not_found(caller, "There is no such job.")
    return render("job.html", caller, job=found)

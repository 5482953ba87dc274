"""The owner's pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sfumato.errors import UnknownSubject
from sfumato.ledger.ledger import Query as Entries
from sfumato.service.api import schemas as shapes
from sfumato.service.api.datasets import shown
from sfumato.service.authentication import Caller
from sfumato.service.context import desk_of
from sfumato.service.web.ladder import Ladder
from sfumato.service.web.rendering import Owner, here, render
from sfumato.vault import tokens
from sfumato.vault.grants import Grant, known
from sfumato.vault.messages import ACTIONS, sentence

router = APIRouter(prefix="/console")

_PAGE = 50


@router.get("")
def overview(request: Request, who: Owner) -> Response:
    """All datasets, and what happened last."""
    desk = desk_of(request)
    with desk.vault.ledger.reading() as reading:
        datasets = [shown(entry) for entry in reading.current("dataset")]
        head = reading.head()
    recent = [(entry, sentence(entry)) for entry in desk.vault.log(Entries(last=8))[::-1]]
    jobs = desk.state.jobs()[:6]
    return render("overview.html", who, datasets=datasets, counts=head.counts, recent=recent, jobs=jobs)


@router.get("/datasets/new")
def new(who: Owner) -> Response:
    """Upload a table, with a draft of its policy."""
    return render("new.html", who)


@router.get("/datasets/{dataset}")
def dataset(request: Request, dataset: shapes.Name, who: Owner) -> Response:
    """One dataset: its ladder with recipients on it, its grants, versions and audits."""
    return _about(request, who, dataset, "dataset.html")


@router.get("/datasets/{dataset}/levels")
def levels(request: Request, dataset: shapes.Name, who: Owner) -> Response:
    """The level chooser."""
    return _about(request, who, dataset, "levels.html")


@router.get("/datasets/{dataset}/collusion")
def collusion(request: Request, dataset: shapes.Name, who: Owner) -> Response:
    """The collusion explorer."""
    return _about(request, who, dataset, "collusion.html")


def _about(request: Request, who: Caller, dataset: str, template: str) -> Response:
    desk = desk_of(request)
    try:
        with desk.vault.ledger.reading() as reading:
            entry = known(reading, "dataset", dataset)
            versions = reading.entries(Entries(kind="dataset", dataset=dataset))
            everybody = [one.recipient for one in reading.current("recipient") if one.action != "disabled"]
            given = {one.recipient: one for one in reading.current("release", dataset=dataset)}
    except UnknownSubject as error:
        return render("missing.html", who, 404, text=str(error))
    grants = desk.vault.grants(dataset=dataset)
    found = shown(entry)
    return render(
        template,
        who,
        dataset=found,
        grants=grants,
        ladder=Ladder.of(found.levels, grants),
        versions=[(one, sentence(one)) for one in versions[::-1]],
        recipients=everybody,
        given=given,
        jobs=desk.state.jobs("audit", dataset)[:10],
        policy=desk.vault.dataset(dataset).scheme.policy.dumps() if template == "dataset.html" else "",
    )


@router.get("/recipients")
def recipients(request: Request, who: Owner) -> Response:
    """All recipients."""
    desk = desk_of(request)
    with desk.vault.ledger.reading() as reading:
        entries = reading.current("recipient")
    return render("recipients.html", who, entries=entries, grants=_by_recipient(desk.vault.grants()))


@router.get("/recipients/{recipient}")
def recipient(request: Request, recipient: shapes.Name, who: Owner) -> Response:
    """One recipient: tokens, grants and history."""
    desk = desk_of(request)
    with desk.vault.ledger.reading() as reading:
        entry = reading.latest("recipient", recipient=recipient)
        datasets = [shown(one) for one in reading.current("dataset")]
    if entry is None:
        return render("missing.html", who, 404, text=f"There is no recipient called {recipient!r}.")
    now = desk.vault.now()
    return render(
        "recipient.html",
        who,
        entry=entry,
        datasets=datasets,
        grants=desk.vault.grants(recipient=recipient),
        tokens=[(token, token.in_force(now)) for token in tokens.listed(desk.vault, recipient)],
        history=[(one, sentence(one)) for one in desk.vault.log(Entries(recipient=recipient, last=20))[::-1]],
        here=here(request),
    )


@router.get("/jobs/{job}")
def job(request: Request, job: str, who: Owner) -> Response:
    """A job: how far it is, and what came of it."""
    found = desk_of(request).state.job(job[:32])
    if found is None:
        return render("missing.html", who, 404, text="There is no such job.")
    return render("job.html", who, job=found)


@router.get("/ledger")
def ledger(
    request: Request,
    who: Owner,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    dataset: str = "",
    recipient: str = "",
    action: str = "",
) -> Response:
    """What happened, the latest first."""
    desk = desk_of(request)
    query = Entries(
        dataset=dataset or None, recipient=recipient or None, action=action or None, last=_PAGE, before=before
    )
    found = desk.vault.log(query)[::-1]
    following = found[-1].number if len(found) == _PAGE else None
    chosen = {"dataset": dataset, "recipient": recipient, "action": action}
    return render(
        "ledger.html",
        who,
        entries=[(entry, sentence(entry)) for entry in found],
        following=following,
        chosen=chosen,
        actions=ACTIONS,
        jobs=desk.state.jobs("verify")[:1],
    )


def _by_recipient(grants: list[Grant]) -> dict[str, list[Grant]]:
    out: dict[str, list[Grant]] = {}
    for grant in grants:
        out.setdefault(grant.recipient, []).append(grant)
    return out

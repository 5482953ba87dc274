"""Recipients, their tokens and their grants."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from sfumato.ledger.chain import Entry
from sfumato.service.api import schemas as shapes
from sfumato.service.api.ledger import shown
from sfumato.service.authentication import Reader, Writer
from sfumato.service.context import desk_of
from sfumato.service.problems import Refused, documented
from sfumato.vault import tokens
from sfumato.vault.grants import Grant, known

router = APIRouter(prefix="/api/v1", tags=["sharing"], responses=documented(404))


@router.get("/recipients")
def recipients(request: Request, who: Reader) -> list[shapes.Recipient]:  # noqa: ARG001
    """All recipients."""
    with desk_of(request).vault.ledger.reading() as reading:
        return [_recipient(entry) for entry in reading.current("recipient")]


@router.post("/recipients", status_code=201)
def register(request: Request, new: shapes.NewRecipient, who: Writer) -> shapes.Told:
    """Register a recipient; one that is registered already stays as it is."""
    return shown(desk_of(request).vault.acting_as(who.actor).recipient(new.recipient, note=new.note))


@router.patch("/recipients/{recipient}")
def switch(request: Request, recipient: shapes.Name, change: shapes.Switch, who: Writer) -> shapes.Told:
    """Let a recipient receive nothing more, or again."""
    vault = desk_of(request).vault.acting_as(who.actor)
    return shown(vault.enable(recipient) if change.enabled else vault.disable(recipient))


@router.get("/recipients/{recipient}/tokens")
def listed(request: Request, recipient: shapes.Name, who: Reader) -> list[tokens.Token]:  # noqa: ARG001
    """A recipient's tokens; what they are is never shown again."""
    return tokens.listed(desk_of(request).vault, recipient)


@router.post("/recipients/{recipient}/tokens", status_code=201)
def hand_out(request: Request, recipient: shapes.Name, new: shapes.NewToken, who: Writer) -> shapes.Handed:
    """A new token for a recipient; it is shown once."""
    vault = desk_of(request).vault.acting_as(who.actor)
    text, entry = tokens.issue(vault, recipient, scopes=new.scopes, days=new.days, note=new.note)
    return shapes.Handed(token=text, id=entry.dataset, until=entry.body["until"])


@router.get("/tokens")
def all_tokens(request: Request, who: Reader) -> list[tokens.Token]:  # noqa: ARG001
    """All tokens, the owner's own among them."""
    return tokens.listed(desk_of(request).vault)


@router.post("/tokens", status_code=201)
def hand_out_own(request: Request, new: shapes.NewToken, who: Writer) -> shapes.Handed:
    """A new token for the owner's own programs, with no more than the caller's scopes; it is shown once."""
    vault = desk_of(request).vault.acting_as(who.actor)
    if not set(new.scopes or ()) <= who.scopes:
        raise Refused(403, "A token cannot hand out scopes that it has not itself.")
    chosen = new.scopes or sorted(who.scopes)
    text, entry = tokens.issue(vault, scopes=chosen, days=new.days, note=new.note)
    return shapes.Handed(token=text, id=entry.dataset, until=entry.body["until"])


@router.delete("/tokens/{token}")
def withdraw(request: Request, token: Annotated[str, Path(max_length=40)], who: Writer) -> shapes.Told:
    """Let a token open nothing any more."""
    return shown(tokens.withdraw(desk_of(request).vault.acting_as(who.actor), token))


@router.get("/grants")
def grants(
    request: Request,
    who: Reader,  # noqa: ARG001
    dataset: shapes.Filter = None,
    recipient: shapes.Filter = None,
) -> list[Grant]:
    """The grants that were not revoked."""
    return desk_of(request).vault.grants(dataset or "", recipient or "")


@router.put("/grants/{dataset}/{recipient}")
def grant(
    request: Request, dataset: shapes.Name, recipient: shapes.Name, new: shapes.NewGrant, who: Writer
) -> shapes.Told:
    """Let a recipient have a dataset at a level."""
    vault = desk_of(request).vault.acting_as(who.actor)
    return shown(vault.grant(recipient, dataset, new.level, columns=new.columns, where=new.where, until=new.until))


@router.delete("/grants/{dataset}/{recipient}")
def revoke(request: Request, dataset: shapes.Name, recipient: shapes.Name, who: Writer) -> shapes.Told:
    """Let a recipient have a dataset no more."""
    vault = desk_of(request).vault.acting_as(who.actor)
    with vault.ledger.reading() as reading:
        known(reading, "dataset", dataset)
    return shown(vault.revoke(recipient, dataset))


def _recipient(entry: Entry) -> shapes.Recipient:
    return shapes.Recipient(recipient=entry.recipient, note=entry.body["note"], enabled=entry.action != "disabled")

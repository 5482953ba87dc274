"""API endpoints for recipients, their access tokens and their grants."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from sfumato.service.api import schemas
from sfumato.service.api.ledger import ledger_entry
from sfumato.service.authentication import Eraser, Reader, Writer
from sfumato.service.context import context_of
from sfumato.service.problems import HTTPProblem, problem_responses
from sfumato.vault import tokens
from sfumato.vault.grants import Grant, require
from sfumato.vault.recipients import Recipient

router = APIRouter(prefix="/api/v1", tags=["recipients"], responses=problem_responses(404))


@router.get("/recipients")
def list_recipients(request: Request, caller: Reader) -> list[Recipient]:  # noqa: ARG001
    """List all recipients."""
    return context_of(request).vault.recipients()


@router.post("/recipients", status_code=201)
def register_recipient(request: Request, body: schemas.NewRecipient, caller: Writer) -> schemas.LedgerEntry:
    """Register a recipient; registering one again changes nothing."""
    return ledger_entry(caller.acting(context_of(request).vault).recipient(body.recipient, note=body.note))


@router.patch("/recipients/{recipient}")
def enable_or_disable_recipient(
    request: Request, recipient: schemas.Name, body: schemas.RecipientUpdate, caller: Writer
) -> schemas.LedgerEntry:
    """Disable a recipient, who then cannot sign in or receive copies, or enable it again."""
    vault = caller.acting(context_of(request).vault)
    return ledger_entry(vault.enable(recipient) if body.enabled else vault.disable(recipient))


@router.delete("/recipients/{recipient}")
def erase_recipient(request: Request, recipient: schemas.Name, caller: Eraser) -> schemas.LedgerEntry:
    """Erase a recipient with its grants and tokens; which copies it received stays in the ledger."""
    return ledger_entry(caller.acting(context_of(request).vault).erase_recipient(recipient))


@router.get("/recipients/{recipient}/tokens")
def list_recipient_tokens(
    request: Request,
    recipient: schemas.Name,
    caller: Reader,  # noqa: ARG001
) -> list[tokens.Token]:
    """List the tokens of a recipient, without their secrets."""
    return tokens.list_tokens(context_of(request).vault, recipient)


@router.post("/recipients/{recipient}/tokens", status_code=201)
def issue_recipient_token(
    request: Request, recipient: schemas.Name, body: schemas.NewToken, caller: Writer
) -> schemas.IssuedToken:
    """Issue a token to a recipient. The secret is returned only once."""
    vault = caller.acting(context_of(request).vault)
    text, entry = tokens.issue(vault, recipient, scopes=body.scopes, days=body.days, note=body.note)
    return schemas.IssuedToken(token=text, id=entry.dataset, until=entry.body["until"])


@router.get("/tokens")
def list_tokens(request: Request, caller: Reader) -> list[tokens.Token]:  # noqa: ARG001
    """List the tokens of all recipients and of the owner, without their secrets."""
    return tokens.list_tokens(context_of(request).vault)


@router.post("/tokens", status_code=201)
def issue_owner_token(request: Request, body: schemas.NewToken, caller: Writer) -> schemas.IssuedToken:
    """Issue a token to the owner, with at most the caller's own scopes. The secret is returned only once."""
    vault = caller.acting(context_of(request).vault)
    if not set(body.scopes or ()) <= caller.scopes:
        raise HTTPProblem(
            403,
            "A new token can have only scopes that the caller's token has; request fewer scopes, or use another token.",
        )
    scopes = body.scopes or sorted(caller.scopes)
    text, entry = tokens.issue(vault, scopes=scopes, days=body.days, note=body.note)
    return schemas.IssuedToken(token=text, id=entry.dataset, until=entry.body["until"])


@router.delete("/tokens/{token}")
def withdraw_token(request: Request, token: Annotated[str, Path(max_length=40)], caller: Writer) -> schemas.LedgerEntry:
    """Withdraw a token, which is invalid from then on."""
    return ledger_entry(tokens.withdraw(caller.acting(context_of(request).vault), token))


@router.get("/grants")
def list_grants(
    request: Request,
    caller: Reader,  # noqa: ARG001
    dataset: schemas.Filter = None,
    recipient: schemas.Filter = None,
) -> list[Grant]:
    """List all grants that have not been revoked."""
    return context_of(request).vault.grants(dataset or "", recipient or "")


@router.put("/grants/{dataset}/{recipient}")
def grant_level(
    request: Request, dataset: schemas.Name, recipient: schemas.Name, body: schemas.NewGrant, caller: Writer
) -> schemas.LedgerEntry:
    """Grant a recipient copies of a dataset at a level."""
    vault = caller.acting(context_of(request).vault)
    entry = vault.grant(recipient, dataset, body.level, columns=body.columns, where=body.where, until=body.until)
    return ledger_entry(entry)


@router.delete("/grants/{dataset}/{recipient}")
def revoke_grant(
    request: Request, dataset: schemas.Name, recipient: schemas.Name, caller: Writer
) -> schemas.LedgerEntry:
    """Revoke a grant."""
    vault = caller.acting(context_of(request).vault)
    with vault.ledger.reading(vault.keys()) as reading:
        require(reading, "dataset", dataset)
    return ledger_entry(vault.revoke(recipient, dataset))

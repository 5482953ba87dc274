"""Web page of the ledger: its entries by filters, newest first, and their export for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse

from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import Query as LedgerQuery
from sfumato.service.context import context_of
from sfumato.service.web.rendering import Owner
from sfumato.service.web.templating import render
from sfumato.vault.log_query import parse_query
from sfumato.vault.messages import ACTIONS, sentence
from sfumato.vault.protocol import VaultProtocol

router = APIRouter(prefix="/console")

_PAGE_SIZE, EXPORTED = 50, 1000
"""The entries of a page, and those that are read together for an export."""

_COLUMNS = ("number", "at", "actor", "action", "dataset", "recipient", "hash", "sentence")

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the beginning of a formula."""


@dataclass(frozen=True)
class _Filters:
    """The filters of the page; those that are empty select everything."""

    dataset: str = ""
    recipient: str = ""
    action: str = ""
    since: str = ""
    until: str = ""

    def query(self, last: int, before: int | None) -> LedgerQuery:
        """The entries that the filters select, the latest of them."""
        dataset, recipient, action, since, until = (value or None for value in astuple(self))
        return parse_query(dataset, recipient, action, since, until, last, before)


Filters = Annotated[_Filters, Depends()]


@router.get("/ledger")
def ledger_page(
    request: Request,
    caller: Owner,
    filters: Filters,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Page with ledger entries, newest first."""
    context = context_of(request)
    entries = context.vault.log(filters.query(_PAGE_SIZE, before))[::-1]
    return render(
        "ledger.html",
        caller,
        entries=[(entry, sentence(entry)) for entry in entries],
        following=entries[-1].number if len(entries) == _PAGE_SIZE else None,
        filters=asdict(filters),
        actions=ACTIONS,
        jobs=context.state.jobs("verify")[:1],
    )


@router.get("/ledger.csv")
def ledger_file(request: Request, caller: Owner, filters: Filters) -> Response:  # noqa: ARG001
    """Export all entries that the filters select, newest first, in memory that does not grow with the ledger."""
    vault, query = context_of(request).vault, filters.query(EXPORTED, None)
    headers = {"Content-Disposition": 'attachment; filename="ledger.csv"'}
    return StreamingResponse(exported_lines(vault, query), media_type="text/csv; charset=utf-8", headers=headers)


def exported_lines(vault: VaultProtocol, query: LedgerQuery) -> Iterator[str]:
    """The lines of the export, page by page."""
    yield _line(_COLUMNS)
    while entries := vault.log(query)[::-1]:
        yield "".join(_line(_cells(entry)) for entry in entries)
        if len(entries) < EXPORTED:
            return
        query = replace(query, before=entries[-1].number)


def _cells(entry: Entry) -> list[str]:
    found = {**entry.__dict__, "sentence": sentence(entry)}
    return [_cell(str(found[name] or "")) for name in _COLUMNS]


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()

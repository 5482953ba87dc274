"""The HTML report of a reproduction: all figures, claims and verdicts on one self-contained page."""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from sfumato.experiments import AGREES, CHOSEN, CORRECTED, FAILS, VERDICTS, Claim
from sfumato.experiments._runner import Result
from sfumato.pages import page
from sfumato.tables.atomic import write_text

_SYMBOLS = {AGREES: "✓", CHOSEN: "○", CORRECTED: "✎", FAILS: "✗"}


def write(folder: Path, results: Sequence[Result]) -> Path:
    """Write the report into the folder of the figures, and return its path."""
    verdicts = Counter(claim.verdict for result in results for claim in result.claims)
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS)
    quick = any(result.quick for result in results)
    papers = {result.paper: result.heading for result in results}
    sections = (
        f"<h2 id='{paper}'>{html.escape(heading)}</h2>"
        + "".join(_figure(folder, result) for result in results if result.paper == paper)
        for paper, heading in papers.items()
    )
    text = page(
        title="Reproduction of the papers",
        subtitle="Quick run: the verdicts are those of small samples." if quick else "Full-size run.",
        verdict=f"{sum(verdicts.values())} claims: {counts}.",
        body=_overview(papers, results) + "".join(sections) + _errata(results),
        footer="Produced by sfumato reproduce.",
    )
    path = folder / "report.html"
    write_text(path, text)
    return path


def _overview(papers: dict[str, str], results: Sequence[Result]) -> str:
    """The number of verdicts of each paper, with links to its section."""
    rows = []
    for paper, heading in papers.items():
        counts = Counter(claim.verdict for result in results if result.paper == paper for claim in result.claims)
        cells = "".join(f"<td>{counts[verdict]}</td>" for verdict in VERDICTS)
        rows.append(f"<tr><td><a href='#{paper}'>{html.escape(heading)}</a></td>{cells}</tr>")
    head = "".join(f"<th>{verdict}</th>" for verdict in VERDICTS)
    return f"<table><tr><th>paper</th>{head}</tr>{''.join(rows)}</table>"


def _figure(folder: Path, result: Result) -> str:
    """One figure with its caption and its claims."""
    head = f"<h3 id='{result.stem}'>{html.escape(result.title)}</h3>"
    if result.missing_data:
        return f"{head}<p>Not reproduced: {html.escape(result.missing_data)}</p>"
    image = base64.b64encode((folder / f"{result.stem}.png").read_bytes()).decode()
    caption = html.escape(f"{result.description} Data: {result.data}. Seed {result.seed}, {result.seconds:.1f} s.")
    picture = f"<img alt='{html.escape(result.title, quote=True)}' src='data:image/png;base64,{image}'>"
    claims = _table(("verdict", "the paper says", "criterion", "observed"), map(_claim, result.claims))
    return (
        f"{head}<figure>{picture}<figcaption>{caption}</figcaption></figure>"
        f"{claims if result.claims else '<p>There is no claim to check.</p>'}"
    )


def _claim(claim: Claim) -> str:
    """The row of one claim."""
    erratum = f" (<a href='#{claim.erratum}'>{claim.erratum}</a>)" if claim.erratum else ""
    statement = f"{claim.statement} ({claim.reference})"
    cells = (html.escape(cell) for cell in (statement, claim.criterion, claim.observed))
    return _row((f"{_SYMBOLS[claim.verdict]} {claim.verdict}{erratum}", *cells))


def _errata(results: Sequence[Result]) -> str:
    """The errata that verdicts refer to, from the list in this package."""
    text = (resources.files(__package__) / "errata.md").read_text(encoding="utf-8")
    cited = {claim.erratum for result in results for claim in result.claims if claim.erratum}
    rows = [
        _row((f"<span id='{number}'>{number}</span>", *map(html.escape, cells.split(" | "))))
        for number, cells in re.findall(r"^\| \[(\w+)\]\{#\w+\} \| (.*) \|$", text, re.MULTILINE)
        if number in cited
    ]
    return f"<h2>Errata cited</h2>{_table(('#', 'where', 'printed', 'right', 'evidence'), rows)}" if rows else ""


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    """A table of text."""
    return f"<table><tr>{''.join(f'<th class=text>{head}</th>' for head in heads)}</tr>{''.join(rows)}</table>"


def _row(cells: Iterable[str]) -> str:
    """A row of text cells, which are HTML."""
    return f"<tr>{''.join(f'<td class=text>{cell}</td>' for cell in cells)}</tr>"

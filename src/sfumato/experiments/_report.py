"""All figures and verdicts on one page that needs nothing else."""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from sfumato.experiments import AGREES, CORRECTED, FAILS, PAPERS, Claim
from sfumato.experiments._runner import Result
from sfumato.pages import page
from sfumato.tables.atomic import replace_text

_MARKS = {AGREES: ("✓", "good"), CORRECTED: ("✎", "mended"), FAILS: ("✗", "bad")}


def write(folder: Path, found: Sequence[Result]) -> Path:
    """The page, in the folder of the figures."""
    verdicts = Counter(claim.verdict for result in found for claim in result.claims)
    told = ", ".join(f"{verdicts[one]} {one}" for one in (AGREES, CORRECTED, FAILS))
    quick = any(result.quick for result in found)
    body = _overview(found) + "".join(_paper(folder, paper, [r for r in found if r.paper == paper]) for paper in PAPERS)
    text = page(
        title="The papers, redrawn",
        subtitle="At toy size: verdicts are those of small samples." if quick else "At full size.",
        verdict=f"{sum(verdicts.values())} claims: {told}.",
        body=f"<style>{_STYLE}</style>{body}{_errata(found)}",
        foot="Made by sfumato reproduce.",
    )
    path = folder / "report.html"
    replace_text(path, text)
    return path


_STYLE = """
.claims { table-layout: fixed; width: 100%; }
.claims td, .claims th { text-align: left; white-space: normal; vertical-align: top; padding: .3rem; }
.claims th:first-child { width: 15%; } .claims th:nth-child(2) { width: 33%; }
.claims .good { color: #00684c; } .claims .mended { color: #6d4b00; }
.claims .bad { color: #a33a00; font-weight: bold; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #5a6772; }
"""


def _overview(found: Sequence[Result]) -> str:
    """Verdicts by paper, with a way to each."""
    rows = []
    for paper, title in PAPERS.items():
        counts = Counter(claim.verdict for one in found if one.paper == paper for claim in one.claims)
        if counts:
            cells = "".join(f"<td>{counts[verdict]}</td>" for verdict in (AGREES, CORRECTED, FAILS))
            rows.append(f"<tr><td><a href='#{paper}'>{html.escape(title)}</a></td>{cells}</tr>")
    heads = "".join(f"<th>{verdict}</th>" for verdict in (AGREES, CORRECTED, FAILS))
    return f"<table><tr><th></th>{heads}</tr>{''.join(rows)}</table>"


def _paper(folder: Path, paper: str, found: Sequence[Result]) -> str:
    if not found:
        return ""
    return f"<h2 id='{paper}'>{html.escape(PAPERS[paper])}</h2>" + "".join(_figure(folder, one) for one in found)


def _figure(folder: Path, found: Result) -> str:
    head = f"<h3 id='{found.stem}'>{html.escape(found.title)}</h3>"
    if found.missing:
        return f"{head}<p>Not drawn: {html.escape(found.missing)}</p>"
    image = base64.b64encode((folder / f"{found.stem}.png").read_bytes()).decode()
    caption = html.escape(f"{found.about} Data: {found.data}. Seed {found.seed}, {found.seconds:.1f} s.")
    picture = f"<img alt='{html.escape(found.title, quote=True)}' src='data:image/png;base64,{image}'>"
    rows = "".join(_row(claim) for claim in found.claims)
    heads = "<tr><th>verdict</th><th>the paper says</th><th>must hold</th><th>found</th></tr>"
    table = f"<table class='claims'>{heads}{rows}</table>" if rows else "<p>No claim is made of it.</p>"
    return f"{head}<figure>{picture}<figcaption>{caption}</figcaption></figure>{table}"


def _row(claim: Claim) -> str:
    mark, kind = _MARKS[claim.verdict]
    erratum = f" (<a href='#{claim.erratum}'>{claim.erratum}</a>)" if claim.erratum else ""
    says = f"{claim.says} ({claim.where})"
    first = f"<tr><td class='{kind}'>{mark} {claim.verdict}{erratum}</td>"
    return first + "".join(f"<td>{html.escape(cell)}</td>" for cell in (says, claim.must, claim.found)) + "</tr>"


def _errata(found: Sequence[Result]) -> str:
    """What the verdicts refer to, from the errata that come with this package."""
    text = (resources.files(__package__) / "errata.md").read_text(encoding="utf-8")
    used = {claim.erratum for result in found for claim in result.claims if claim.erratum}
    rows = []
    for number, rest in re.findall(r"^\| \[(\w+)\]\{#\w+\} \| (.*) \|$", text, re.MULTILINE):
        if number in used:
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in rest.split(" | "))
            rows.append(f"<tr><td id='{number}'>{number}</td>{cells}</tr>")
    heads = "<tr><th>#</th><th>where</th><th>printed</th><th>right</th><th>evidence</th></tr>"
    return f"<h2>Errata that are referred to</h2><table class='claims'>{heads}{''.join(rows)}</table>" if rows else ""

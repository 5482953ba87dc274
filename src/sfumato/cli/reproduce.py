"""`sfumato reproduce`: every figure and table of the papers, with what they claim and whether it holds here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sfumato.cli.output import as_json_option, progress, say
from sfumato.errors import SourceError


@click.command()
@click.argument("what", nargs=-1, metavar="[PAPER[/FIGURE]]...")
@click.option("--quick", is_flag=True, help="At toy size: every figure in minutes, to see that it works.")
@click.option("--list", "listed", is_flag=True, help="List all figures, and draw none.")
@click.option("--report", is_flag=True, help="Gather all figures and verdicts into one page, report.html.")
@click.option("--fresh", is_flag=True, help="Make again what an earlier run has left.")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to put figures; sfumato-reproduced, or sfumato-reproduced-quick, by default.",
)
@as_json_option
def reproduce(
    what: Sequence[str], quick: bool, listed: bool, report: bool, fresh: bool, folder: Path | None, as_json: bool
) -> None:
    r"""Redraw the papers' figures, and say where they agree, and where a paper is wrong.

    Each figure leaves a table (CSV), a picture (PNG and SVG) and its verdicts (JSON). A run that was stopped goes on
    where it was. Real data are read from the folder SFUMATO_DATA, else fetched from OpenML.

    \b
    Examples:
      sfumato reproduce --list
      sfumato reproduce --quick --report
      sfumato reproduce li2012/fig2 xiao2009
    """
    from sfumato.experiments import _runner as _running
    from sfumato.experiments._report import write

    if listed:
        _list(_running.chosen(what), as_json)
        return
    to = folder or Path("sfumato-reproduced-quick" if quick else "sfumato-reproduced")
    found = []
    with progress(quiet=as_json, unit="%") as (stage, advance):
        for result in _running.reproduce(what, to, quick=quick, fresh=fresh, stage=stage, advance=advance):
            found.append(result)
            if not as_json:
                click.echo(_line(result))
    page = write(to, found) if report else None
    missing = [result for result in found if result.missing]
    verdicts = Counter(claim.verdict for result in found for claim in result.claims)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "no claims"
    text = f"\n{len(found) - len(missing)} figures in {to}: {counts}."
    following = f"open {page}" if page else "sfumato reproduce --report, which gathers them into one page"
    data = {
        "folder": str(to),
        "verdicts": dict(verdicts),
        "report": page and str(page),
        "figures": [_data(r) for r in found],
    }
    say(data, as_json, text, following)
    if missing:
        raise SourceError(f"{len(missing)} figures could not be drawn: {missing[0].missing}")


def _line(result: Any) -> str:
    """One figure: how long it took, its seed, and its verdicts."""
    if result.missing:
        return f"{result.name}: not drawn, its data are not here"
    took = "from an earlier run" if result.cached else f"{result.seconds:.1f} s"
    lines = [f"{result.name}: {result.title} (seed {result.seed}, {took})"]
    for claim in result.claims:
        erratum = f" ({claim.erratum})" if claim.erratum else ""
        lines.append(f"  {claim.verdict}{erratum}: {claim.says}\n    {claim.found}")
    return "\n".join(lines)


def _data(result: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(result)


def _list(names: Sequence[str], as_json: bool) -> None:
    from sfumato.experiments import EXPERIMENTS

    titles = {name: EXPERIMENTS[name.replace("/", "-")].title for name in names}
    text = "\n".join(f"{name:<26}{title}" for name, title in titles.items())
    say({"figures": titles}, as_json, text, "sfumato reproduce --quick")

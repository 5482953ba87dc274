"""`sfumato reproduce`: recompute the figures and tables of the papers, and check what the papers claim about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sfumato.cli.output import as_json_option, print_result, progress
from sfumato.errors import SourceError


@click.command()
@click.argument("figures", nargs=-1, metavar="[PAPER[/FIGURE]]...")
@click.option("--quick", is_flag=True, help="Use small samples: all figures in a few minutes, as a check.")
@click.option("--list", "list_only", is_flag=True, help="List all figures, and compute none.")
@click.option("--report", is_flag=True, help="Write all figures and verdicts to one page, report.html.")
@click.option("--fresh", is_flag=True, help="Ignore the stored results of earlier runs.")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; by default sfumato-reproduced, or sfumato-reproduced-quick.",
)
@as_json_option
def reproduce(
    figures: Sequence[str], quick: bool, list_only: bool, report: bool, fresh: bool, folder: Path | None, as_json: bool
) -> None:
    """Reproduce the figures of the papers, and check their claims.

    Each figure writes a table (CSV), a plot (PNG and SVG) and its verdicts (JSON). An interrupted run resumes where it
    stopped. Real data are read from the folder SFUMATO_DATA, or else downloaded from OpenML.

    \b
    Examples:
      sfumato reproduce --list
      sfumato reproduce --quick --report
      sfumato reproduce li2012/fig2 xiao2009
    """  # noqa: D301 - click takes it for "do not wrap"
    from sfumato.experiments import _runner
    from sfumato.experiments._report import write

    if list_only:
        titles = {name: _runner.experiment(name).title for name in _runner.matching(figures)}
        text = "\n".join(f"{name:<26}{title}" for name, title in titles.items())
        print_result({"figures": titles}, as_json, text, "sfumato reproduce --quick")
        return
    to = folder or Path("sfumato-reproduced-quick" if quick else "sfumato-reproduced")
    results = []
    with progress(quiet=as_json, unit="%") as (stage, advance):
        for result in _runner.reproduce(figures, to, quick=quick, fresh=fresh, stage=stage, advance=advance):
            results.append(result)
            if not as_json:
                click.echo(_summary(result))
    page = write(to, results) if report else None
    _finish(to, results, page, as_json)


def _finish(to: Path, results: Sequence[Any], page: Path | None, as_json: bool) -> None:
    """Print the verdicts of all figures, and fail if data were missing."""
    from dataclasses import asdict

    missing = [result for result in results if result.missing_data]
    verdicts = Counter(claim.verdict for result in results for claim in result.claims)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "no claims"
    data = {
        "folder": str(to),
        "verdicts": dict(verdicts),
        "report": page and str(page),
        "figures": [asdict(result) for result in results],
    }
    following = f"open {page}" if page else "sfumato reproduce --report, which writes them to one page"
    print_result(data, as_json, f"\n{len(results) - len(missing)} figures in {to}: {counts}.", following)
    if missing:
        raise SourceError(f"{len(missing)} figures could not be reproduced: {missing[0].missing_data}")


def _summary(result: Any) -> str:
    """The run time, the seed and the verdicts of one figure."""
    if result.missing_data:
        return f"{result.name}: not reproduced, its data are missing"
    took = "from an earlier run" if result.cached else f"{result.seconds:.1f} s"
    lines = [f"{result.name}: {result.title} (seed {result.seed}, {took})"]
    for claim in result.claims:
        erratum = f" ({claim.erratum})" if claim.erratum else ""
        lines.append(f"  {claim.verdict}{erratum}: {claim.statement}\n    {claim.observed}")
    return "\n".join(lines)

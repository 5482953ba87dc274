"""The `mine` command: statistics of the original, estimated from a perturbed copy with confidence intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli.engines import EngineChoice, engine_options
from sfumato.cli.output import TableName, as_json_option, check_new_file, print_result, progress, shown
from sfumato.pages.svg import figure_class


@click.command()
@click.argument("copy", type=TableName())
@click.argument("question", required=False)
@click.option("--describe", is_flag=True, help="Describe the original as far as the copy allows (the default).")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a report with figures here (.html).")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The confidence level of the intervals.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=FILE",
    help="Another table that the question joins; may be repeated.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "correction", "imputation"]),
    default="auto",
    show_default=True,
    help="Correct for the noise, or impute plausible originals; auto imputes where no correction is narrow enough.",
)
@click.option(
    "--plan",
    "precision",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Instead of the answer: at which level it would be known to this share, such as 0.05.",
)
@engine_options
@as_json_option
def mine(
    copy: Path | str,
    question: str | None,
    describe: bool,
    output: Path | None,
    confidence: float,
    tables: tuple[str, ...],
    method: str,
    precision: float | None,
    engine_choice: EngineChoice,
    as_json: bool,
) -> None:
    """Estimate statistics of the original from a COPY: a description, or the answer to a QUESTION in SQL.

    Every estimate is corrected for the noise and has a confidence interval; a question about single records is refused.

        sfumato mine copy.parquet "select region, count(*) from copy where ward = 'A' group by region"
    """
    from sfumato.mining import ask, with_engine
    from sfumato.mining.report.page import TITLE
    from sfumato.release.manifest import Manifest

    if question is not None and (describe or output is not None):
        raise click.UsageError("give either a QUESTION or --describe and -o, not both")
    if output is not None:
        check_new_file(output, (".html",), replaceable=TITLE)
    if precision is not None:
        _plan(copy, question, precision, tables, confidence, as_json)
        return
    with progress(quiet=as_json, unit="") as (stage, _), engine_choice.open() as engine:
        stage("checking the copy")
        Manifest.of(copy).verify(copy, engine)
        if question is not None:
            stage("answering")
            answer = ask(copy, question, tables=_others(tables), confidence=confidence, method=method)
        else:
            description = _describe(
                with_engine(engine, copy) if isinstance(copy, Path) and copy.is_dir() else copy,
                confidence,
                output,
                stage,
            )
    next_step = f"open {output}" if output else f"sfumato mine {shown(copy)} --describe -o profile.html"
    if question is not None:
        data = {"answer": answer.to_pylist(), "method": _method(answer)}
        print_result(data, as_json, f"{_table(answer)}\n{_how(_method(answer))}", next_step)
        return
    text, data = description
    print_result(data, as_json, text, next_step)


def _plan(
    copy: Path | str,
    question: str | None,
    precision: float,
    tables: tuple[str, ...],
    confidence: float,
    as_json: bool,
) -> None:
    """Say at which level a question could be answered."""
    from sfumato.mining import plan
    from sfumato.mining.sql.plan import FIDELITIES
    from sfumato.release.manifest import Manifest

    if question is None:
        raise click.UsageError("--plan is about a QUESTION; give one")
    with progress(quiet=as_json, unit="levels tried") as (stage, advance):
        stage("simulating copies", len(FIDELITIES))
        Manifest.of(copy).verify(copy)
        others = _others(tables)
        found = plan(copy, question, precision=precision, tables=others, confidence=confidence, progress=advance)
    lines = [
        f"  {fidelity:<6g}{'not known' if width == float('inf') else f'± {width:.1%}'}"
        for fidelity, width in found.half_widths.items()
    ]
    text = "\n".join([found.sentence(), "", "fidelity, and what would be known (by simulation):", *lines])
    data = {"precision": precision, "fidelity": found.fidelity, "half widths": dict(found.half_widths)}
    print_result(data, as_json, text, "ask the owner for a copy of that level")


def _others(stated: tuple[str, ...]) -> dict[str, Any]:
    """The tables that a question joins, by their names."""
    import pyarrow as pa

    from sfumato.tables.source import Source

    found = {}
    for text in stated:
        name, equals, file = text.partition("=")
        if not equals or not name or not file:
            raise click.UsageError(f"--table takes NAME=FILE, as in regions=regions.csv, got {text!r}")
        source = Source.of(TableName().convert(file, None, None))
        found[name] = pa.Table.from_batches(source.batches(), schema=source.schema)
    return found


def _method(answer: Any) -> str:
    return str((answer.schema.metadata or {})[b"method"].decode())


def _how(method: str) -> str:
    """How an answer was found, in a sentence."""
    from sfumato.mining.sql.imputed_answers import IMPUTATIONS

    return {
        "correction": "Each estimate is corrected for the noise of the copy.",
        "exact": "The question is about unchanged columns alone, so that the answer is exact.",
        "imputation": f"Estimated from {IMPUTATIONS} plausible originals, drawn from a joint model of the columns; "
        "it may be wrong where columns are related in a finer way than the model can express.",
    }[method]


def _describe(copy: Any, confidence: float, output: Path | None, stage: Any) -> tuple[str, dict[str, Any]]:
    from sfumato.mining import profile
    from sfumato.mining.report.page import page, text
    from sfumato.tables.atomic import write_text

    if output is not None:
        figure_class()  # refused before the work, not after it
    found = profile(copy, confidence=confidence, densities=output is not None, stage=stage)
    if output is not None:
        stage("writing the report")
        write_text(output, page(found))
    return text(found), found.as_dict()


def _table(answer: Any) -> str:
    """The answer as text columns, each estimate with its confidence interval in brackets."""
    names = answer.column_names
    columns = [n for n in names if not _is_end(n, names)]
    rows = [[_cell(row, name) for name in columns] for row in answer.to_pylist()]
    widths = [max(len(name), *(len(row[i]) for row in rows), 1) + 2 for i, name in enumerate(columns)]
    lines = ["".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in (columns, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def _is_end(name: str, names: list[str]) -> bool:
    return any(name == f"{other}{end}" for other in names for end in ("_low", "_high"))


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if f"{name}_low" not in row:
        return "" if value is None else str(value)
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if value is None:
        return "unknown"
    form = ",.0f" if high - low >= 20 else ",.6g"
    return f"{value:{form}}" if low == high else f"{value:{form}} ({low:{form}} to {high:{form}})"

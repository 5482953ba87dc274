"""The `mine` command: statistics of the original, estimated from a perturbed copy with confidence intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli.engines import EngineChoice, engine_options
from sfumato.cli.output import TableName, as_json_option, check_new_file, print_result, progress, shown


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
@click.option(
    "--predict",
    "target",
    metavar="COLUMN",
    help="Instead of a description: how well the other columns predict this one, on the original.",
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
    target: str | None,
    engine_choice: EngineChoice,
    as_json: bool,
) -> None:
    """Estimate statistics of the original from a COPY: a description, or the answer to a QUESTION in SQL.

    Every estimate is corrected for the noise and has a confidence interval; a question about single records is refused.

        sfumato mine copy.parquet "select region, count(*) from copy where ward = 'A' group by region"
    """
    if question is not None and (describe or output is not None or target is not None):
        raise click.UsageError("give a QUESTION, or --predict, or --describe and -o, not both")
    if target is not None:
        _predict(copy, target, confidence, as_json)
    elif precision is not None:
        _plan(copy, question, precision, tables, confidence, as_json)
    elif question is not None:
        _answer(copy, question, tables, confidence, method, engine_choice, as_json)
    else:
        _describe(copy, confidence, output, engine_choice, as_json)


def _answer(
    copy: Path | str,
    question: str,
    tables: tuple[str, ...],
    confidence: float,
    method: str,
    engine_choice: EngineChoice,
    as_json: bool,
) -> None:
    """Answer a question in SQL."""
    from sfumato.mining import ask
    from sfumato.mining.sql.explanation import explanation, method_of
    from sfumato.release.manifest import Manifest

    with progress(quiet=as_json, unit="") as (stage, _), engine_choice.open() as engine:
        stage("checking the copy")
        manifest = Manifest.of(copy)
        manifest.verify(copy, engine)
        stage("answering")
        answer = ask(copy, question, tables=_others(tables), confidence=confidence, method=method)
    data = {"answer": answer.to_pylist(), "method": method_of(answer)}
    next_step = f"sfumato mine {shown(copy)} --describe -o profile.html"
    print_result(data, as_json, f"{_table(answer)}\n{explanation(answer, manifest, question)}", next_step)


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


def _predict(copy: Path | str, target: str, confidence: float, as_json: bool) -> None:
    """Say how well a column can be predicted by a model that is learned from the copy."""
    from sfumato.mining import performance
    from sfumato.mining.features.performance import FOLDS, usual_model
    from sfumato.release.manifest import Manifest

    with progress(quiet=as_json, unit="folds") as (stage, advance):
        stage("learning from the copy", FOLDS)
        Manifest.of(copy).verify(copy)
        model = usual_model(copy, target)
        found = performance(model, copy, target, confidence=confidence, progress=advance)
    lines = [
        f"  {_METRICS[name]}: {one.estimate:.3f} ({one.low:.3f} to {one.high:.3f}), without learning {one.baseline:.3f}"
        for name, one in found.items()
    ]
    heading = f"How well a model that is learned from this copy predicts {target} for unperturbed records:"
    text = "\n".join([heading, *lines])
    data = {name: vars(one) for name, one in found.items()}
    print_result(data, as_json, text, f"in Python: {type(model).__name__}().fit({str(copy)!r}, {target!r})")


_METRICS = {
    "accuracy": "share of records whose class is right (accuracy)",
    "roc_auc": "how often a record of the one class ranks above one of the other (area under the curve)",
    "r2": "share of the variance that is explained (R²)",
}


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


def _describe(
    copy: Path | str, confidence: float, output: Path | None, engine_choice: EngineChoice, as_json: bool
) -> None:
    """Describe the original as far as the copy allows, with figures if a report is asked for."""
    from sfumato.mining import profile, with_engine
    from sfumato.mining.report.page import TITLE, page, text
    from sfumato.release.manifest import Manifest
    from sfumato.tables.atomic import write_text

    if output is not None:
        check_new_file(output, (".html",), replaceable=TITLE)
    with progress(quiet=as_json, unit="") as (stage, _), engine_choice.open() as engine:
        stage("checking the copy")
        Manifest.of(copy).verify(copy, engine)
        opened = with_engine(engine, copy) if isinstance(copy, Path) and copy.is_dir() else copy
        found = profile(opened, confidence=confidence, densities=output is not None, stage=stage)
        if output is not None:
            stage("writing the report")
            write_text(output, page(found))
    next_step = f"open {output}" if output else f"sfumato mine {shown(copy)} --describe -o profile.html"
    print_result(found.as_dict(), as_json, text(found), next_step)


def _table(answer: Any) -> str:
    """The answer as text columns, each estimate with its confidence interval in brackets."""
    from sfumato.mining.sql.explanation import cells

    columns, rows = cells(answer)
    widths = [max(len(name), *(len(row[i]) for row in rows), 1) + 2 for i, name in enumerate(columns)]
    lines = ["".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in (columns, *rows)]
    return "\n".join(line.rstrip() for line in lines)

"""Commands about surveys."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import as_json_option, new_file, progress, say
from sfumato.cli.vault_options import connected, is_service, local_vault, vault_options
from sfumato.errors import SurveyError

if TYPE_CHECKING:
    from sfumato.survey import Survey

_ADVICE = (
    "\n\nGuided mode tells more than randomised mode for the same classifier, needs unblurred answers to begin with, "
    'and its promise rests on checks in each browser. Prefer `mode = "randomised"` unless you repeat zhang2005 '
    "(docs/survey.md shows both)."
)


@click.group()
def survey() -> None:
    """Collect answers that are blurred in the respondent's own browser."""


def _surveys(location: str, key_path: Path | None) -> Any:
    if is_service(location):
        return connected(location).surveys
    from sfumato.survey.surveys import Surveys

    return Surveys(local_vault(location, key_path))


@survey.command()
@click.argument("name")
@click.argument("definition", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--example", is_flag=True, help="Print a definition to begin with, and stop.")
@click.option("--invited", is_flag=True, help="Only people with a ticket may answer.")
@vault_options
@as_json_option
def new(
    name: str,
    definition: Path | None,
    example: bool,
    invited: bool,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Draft the survey NAME from a DEFINITION in TOML; drafting it again replaces it until it is opened."""
    from sfumato.survey import Survey
    from sfumato.survey.example import EXAMPLE

    if example:
        click.echo(EXAMPLE, nl=False)
        return
    if definition is None:
        raise click.UsageError("name a file with the definition, or see `sfumato survey new NAME --example`")
    try:
        text = definition.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SurveyError(f"a survey must be written in TOML, as UTF-8 text, and {definition} is not") from None
    found = Survey.loads(text)
    entry = _surveys(location, key_path).new(name, text, invited=invited)
    each = ", ".join(
        f"{level} ε {epsilon:g} a question, {total:g} in all"
        for (level, epsilon), total in zip(found.levels, found.totals, strict=True)
    )
    said = f"Drafted {name}: {len(found.questions)} questions, {found.mode}"
    said += "." + _ADVICE if found.mode == "guided" else f"; {each}."
    say({"survey": name, "entry": entry.number, "mode": found.mode}, as_json, said, f"sfumato survey open {name}")


@survey.command("open")
@click.argument("name")
@vault_options
@as_json_option
def open_(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let the survey NAME take answers; from now on it cannot be changed."""
    entry = _surveys(location, key_path).open(name)
    following = f"serve the vault (`sfumato serve`), and send people to /answer/{name}"
    say({"survey": name, "entry": entry.number}, as_json, f"Opened {name}.", following)


@survey.command()
@click.argument("name")
@vault_options
@as_json_option
def close(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let the survey NAME take no answers any more."""
    entry = _surveys(location, key_path).close(name)
    say({"survey": name, "entry": entry.number}, as_json, f"Closed {name}.", f"sfumato survey status {name}")


@survey.command("list")
@vault_options
@as_json_option
def list_(location: str, key_path: Path | None, as_json: bool) -> None:
    """Show all surveys."""
    found = _surveys(location, key_path).listed()
    lines = [f"{one.survey:<20} {one.state:<7} {one.mode:<11} {one.title}" for one in found]
    text = "\n".join(lines) or "There is no survey yet."
    say(
        {"surveys": [asdict(one) for one in found]},
        as_json,
        text,
        "sfumato survey status NAME" if found else "sfumato survey new NAME --example",
    )


@survey.command()
@click.argument("name")
@click.option("--count", type=click.IntRange(1, 100_000), default=10, show_default=True)
@vault_options
@as_json_option
def invite(name: str, count: int, location: str, key_path: Path | None, as_json: bool) -> None:
    """Make tickets for the people invited to the survey NAME; they are shown once."""
    made = _surveys(location, key_path).invite(name, count)
    text = "\n".join(f"/answer/{name}#ticket={one}" for one in made)
    say({"survey": name, "tickets": made}, as_json, text, "send each person one of these, after your service's address")


@survey.command()
@click.argument("name")
@vault_options
@as_json_option
def status(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Show what the survey NAME received, and how people answered."""
    found = _surveys(location, key_path).status(name)
    levels = ", ".join(f"{level} {count:,}" for level, count in found.levels.items()) or "none yet"
    lines = [f"{found.title}: {found.state}, {found.mode}, until {found.deadline}."]
    lines += [f"{found.answers:,} blurred answers ({levels})."]
    if found.mode == "guided":
        lines += [f"{found.clear:,} unblurred answers to begin with; guidance {found.epoch}."]
    lines += [f"Fingerprint {found.fingerprint}: whoever is asked the same sees the same."]
    lines += [f"ALARM {text}" for text in found.alarms] + [""]
    width = max([len(f"{one.item}: {one.answer}") for one in found.shares], default=0)
    lines += [
        f"{f'{one.item}: {one.answer}':<{width}}  {one.share:7.1%}  ({one.low:.1%} to {one.high:.1%})"
        for one in found.shares
    ]
    say(asdict(found), as_json, "\n".join(lines), f"sfumato survey model {name}")


@survey.command()
@click.argument("name")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the models here (.joblib), for scikit-learn.")
@click.option(
    "--test",
    "test_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Unblurred answers (CSV, a column a question) to try the models on.",
)
@vault_options
@as_json_option
def model(
    name: str, out: Path | None, test_path: Path | None, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Train a naive Bayes and a decision tree for the class question of the survey NAME."""
    surveys = _surveys(location, key_path)
    if is_service(location):
        if out is not None:
            raise SurveyError("models are written where the vault is; leave out --out, or run it there")
        qualities = surveys.qualities(name, _rows(test_path, lambda: _published(location, name)))
    else:
        if out is not None:
            new_file(out, (".joblib",))
        found = surveys.model(name, _rows(test_path, lambda: surveys.known(name).survey))
        qualities = found.qualities
        if out is not None:
            _dump(found, out)
    lines = [f"{one.model:<12} {one.accuracy:6.1%}  ({one.low:.1%} to {one.high:.1%})" for one in qualities]
    text = f"Right so often, on {qualities[0].seen_on}:\n" + "\n".join(lines)
    data = {"survey": name, "qualities": [asdict(one) for one in qualities], "file": out and str(out)}
    say(
        data, as_json, text, f"joblib.load({str(out)!r})" if out else f"sfumato survey model {name} --out {name}.joblib"
    )


def _published(url: str, name: str) -> Survey:
    from sfumato.survey.respondent import Line, Respondent

    return Respondent(Line(url), name).survey()


def _dump(found: Any, out: Path) -> None:
    import joblib

    from sfumato.tables.atomic import replacing

    with replacing(out) as part:
        joblib.dump({"naive Bayes": found.bayes, "tree": found.tree, "classes": found.classes}, part)


def _rows(path: Path | None, definition: Callable[[], Survey]) -> list[dict[str, Any]]:
    """Answers from a CSV file with a column for each question."""
    if path is None:
        return []
    questions = definition().questions
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        lost = [one.name for one in questions if one.name not in (rows.fieldnames or ())]
        if lost:
            raise SurveyError(f"{path} must have a column for each question, and {lost[0]!r} is not there")
        return [{one.name: one.read(row[one.name] or "") for one in questions} for row in rows]


@survey.command()
@click.argument("name")
@click.argument("out", type=click.Path(path_type=Path))
@vault_options
@as_json_option
def export(name: str, out: Path, location: str, key_path: Path | None, as_json: bool) -> None:
    """Write the blurred answers to the survey NAME to OUT (.csv or .parquet)."""
    import pyarrow.csv
    import pyarrow.parquet

    from sfumato.tables.atomic import replacing

    new_file(out, (".csv", ".parquet"))
    table = _surveys(location, key_path).export(name)
    with replacing(out) as part:
        (pyarrow.csv.write_csv if out.suffix == ".csv" else pyarrow.parquet.write_table)(table, str(part))
    text = f"Wrote {table.num_rows:,} blurred answers to {out}."
    say({"survey": name, "rows": table.num_rows, "file": str(out)}, as_json, text, f"sfumato survey model {name}")


@survey.command()
@click.argument("url")
@click.argument("name")
@click.option("--people", type=click.IntRange(1, 1_000_000), default=200, show_default=True)
@click.option(
    "--answers",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV of answers to draw people from; else at random.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@as_json_option
def simulate(url: str, name: str, people: int, path: Path | None, seed: int, as_json: bool) -> None:
    """Let simulated PEOPLE answer the survey NAME at the service at URL: 17 % careful, 56 % pragmatic, 27 % open."""
    import numpy as np

    from sfumato.survey.simulation import simulate

    with progress(quiet=as_json, unit="people") as (stage, advance):
        stage("answering", people)
        rows = _rows(path, lambda: _published(url, name)) or None
        found = simulate(url, name, people, np.random.default_rng(seed), rows=rows, progress=advance)
    kinds = ", ".join(f"{count:,} {kind}s" for kind, count in found.temperaments.items())
    text = (
        f"{found.people:,} people ({kinds}): {found.counted:,} blurred answers counted, {found.clear:,} unblurred ones "
        f"to begin with, {found.waiting:,} wait since more is asked than they allow, {found.refused:,} refused it."
    )
    say(asdict(found), as_json, text, f"sfumato survey status {name}")

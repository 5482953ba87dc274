"""Commands for surveys: draft, open, close, invite, status, model, export and simulate."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import as_json_option, check_new_file, print_result, progress
from sfumato.cli.vault_options import is_service, open_surveys, vault_options
from sfumato.errors import SurveyError

if TYPE_CHECKING:
    from sfumato.survey import Survey
    from sfumato.survey.frequencies import AnswerShare

_ADVICE = (
    "\n\nFor the same accuracy of classifiers, guided mode discloses more than randomised mode; it sends the answer to "
    "the class question unperturbed, needs some fully unperturbed answers to start, and its guarantee relies on checks "
    "in each browser. "
    'Prefer `mode = "randomised"` unless you reproduce zhang2005 (docs/survey.md compares both).'
)


@click.group()
def survey() -> None:
    """Run surveys whose answers are perturbed in the respondent's own browser."""


@survey.command()
@click.argument("name")
@click.argument("definition", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--example", is_flag=True, help="Print an example of a definition, and exit.")
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
    """Draft the survey NAME from a DEFINITION in TOML; a draft can be replaced until it is opened."""
    from sfumato.survey import Survey
    from sfumato.survey.example import EXAMPLE

    if example:
        click.echo(EXAMPLE, nl=False)
        return
    if definition is None:
        raise click.UsageError("a DEFINITION file is required; `sfumato survey new NAME --example` prints an example")
    text = _text_of(definition)
    draft = Survey.loads(text).check_protection()
    entry = open_surveys(location, key_path).new(name, text, invited=invited)
    levels = ", ".join(
        f"{level} ε {epsilon:g} per question, {total:g} in total ({protection} protection)"
        for (level, epsilon), total, protection in zip(draft.levels, draft.totals, draft.protections, strict=True)
    )
    message = f"Drafted {name}: {len(draft.questions)} questions, {draft.mode}"
    message += "." + _ADVICE if draft.mode == "guided" else f"; {levels}."
    print_result(
        {"survey": name, "entry": entry.number, "mode": draft.mode}, as_json, message, f"sfumato survey open {name}"
    )


@survey.command("open")
@click.argument("name")
@vault_options
@as_json_option
def open_(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Open the survey NAME for answers; from then on it cannot be changed."""
    entry = open_surveys(location, key_path).open(name)
    following = f"serve the vault (`sfumato serve`), and send people to /answer/{name}"
    print_result({"survey": name, "entry": entry.number}, as_json, f"Opened {name}.", following)


@survey.command()
@click.argument("name")
@vault_options
@as_json_option
def close(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Close the survey NAME, which then accepts no more answers."""
    entry = open_surveys(location, key_path).close(name)
    print_result({"survey": name, "entry": entry.number}, as_json, f"Closed {name}.", f"sfumato survey status {name}")


@survey.command("list")
@vault_options
@as_json_option
def list_(location: str, key_path: Path | None, as_json: bool) -> None:
    """List all surveys."""
    summaries = open_surveys(location, key_path).summaries()
    lines = [f"{one.survey:<20} {one.state:<7} {one.mode:<11} {one.title}" for one in summaries]
    text = "\n".join(lines) or "There is no survey yet."
    print_result(
        {"surveys": [asdict(one) for one in summaries]},
        as_json,
        text,
        "sfumato survey status NAME" if summaries else "sfumato survey new NAME --example",
    )


@survey.command()
@click.argument("name")
@click.option("--count", type=click.IntRange(1, 100_000), default=10, show_default=True, help="The number of tickets.")
@click.option("--group", default="", help="The group of these people, whose answers are counted; at least ten people.")
@click.option("--quota", type=click.IntRange(1), help="After so many answers of the group, others are refused.")
@vault_options
@as_json_option
def invite(
    name: str, count: int, group: str, quota: int | None, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Issue tickets for the people invited to the survey NAME; they are shown only once."""
    tickets = open_surveys(location, key_path).invite(name, count, group, quota)
    text = "\n".join(f"/answer/{name}#ticket={one}" for one in tickets)
    print_result(
        {"survey": name, "tickets": tickets},
        as_json,
        text,
        "send each person one link, after the service's address",
    )


@survey.command()
@click.argument("name")
@vault_options
@as_json_option
def status(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Show the number of answers to the survey NAME, and the estimated share of each answer."""
    surveys = open_surveys(location, key_path)
    found, groups = surveys.status(name), surveys.groups(name)
    levels = ", ".join(f"{level} {count:,}" for level, count in found.levels.items()) or "none yet"
    lines = [f"{found.title}: {found.state}, {found.mode}, until {found.deadline}."]
    lines += [f"{found.answers:,} perturbed answers ({levels})."]
    for one in groups:
        quota = "" if one.quota is None else f", of {one.quota:,} that are wanted"
        lines += [f"{one.name}: {one.answered:,} of {one.invited:,} invited people answered{quota}."]
    if found.mode == "guided":
        lines += [f"{found.clear:,} unperturbed answers to start with; guidance {found.epoch}."]
    if found.disclosure is not None:
        lines += [
            f"Degree of privacy disclosure l_p {found.disclosure:.2f} (share of a respondent's information in a row), "
            f"degree of error l_e {found.error:.2f} (of differences between classes), for respondents like those who "
            "answered unperturbed; every class answer is sent unperturbed."
        ]
    if found.influence is not None:
        lines += [
            f"One forged answer changes a share by up to {100 * found.influence:.1f} points; the intervals assume that "
            "all answers are honest."
        ]
    lines += [f"Fingerprint {found.fingerprint}: everybody who is asked in the same way sees the same one."]
    lines = [lines[0], *(f"ALARM {text}." for text in found.alarms), *lines[1:], ""]
    lines += share_lines(found.shares)
    data = {**found.as_dict(), "groups": [asdict(one) for one in groups]}
    print_result(data, as_json, "\n".join(lines), f"sfumato survey model {name}")


@survey.command()
@click.argument("definition", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--people", type=click.IntRange(1, 10**9), default=400, show_default=True, help="Respondents.")
@click.option("--points", type=click.FloatRange(0.01, 50), default=5.0, show_default=True, help="The accuracy wanted.")
@as_json_option
def plan(definition: Path, people: int, points: float, as_json: bool) -> None:
    """Say how accurate the shares of a DEFINITION in TOML will be, level by level, and how many people that takes."""
    from sfumato.survey import Survey
    from sfumato.survey.planner import plan

    known = Survey.loads(_text_of(definition)).check_protection()
    found = plan(known, people, points)
    text = "\n".join(["If everybody chooses one level, 95 % confidence intervals are:", *found.sentences()])
    print_result(found.as_dict(), as_json, text, f"sfumato survey new NAME {definition}")


@survey.command()
@click.argument("name")
@click.argument("first")
@click.argument("second")
@vault_options
@as_json_option
def cross(name: str, first: str, second: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Show the shares of respondents with each pair of answers to the questions FIRST and SECOND of the survey NAME."""
    found = open_surveys(location, key_path).cross_table(name, first, second)
    width = max(len(f"{a}, {b}") for a, b, _ in found.cells)
    lines = [f"{found.first} and {found.second}, from {found.rows:,} answers, with 95 % confidence intervals:"]
    lines += [
        f"{f'{a}, {b}':<{width}}  {one.estimate:7.1%}  ({one.low:.1%} to {one.high:.1%})" for a, b, one in found.cells
    ]
    print_result(found.as_dict(), as_json, "\n".join(lines), f"sfumato survey methods {name}")


@survey.command()
@click.argument("name")
@click.argument("question")
@click.option("--share", "shares", multiple=True, required=True, metavar="ANSWER=SHARE", help="Of the population.")
@vault_options
@as_json_option
def weigh(
    name: str, question: str, shares: tuple[str, ...], location: str, key_path: Path | None, as_json: bool
) -> None:
    """Show the shares of all answers to the survey NAME, if the answers to QUESTION had those of the population.

    Give the share of each answer: --share yes=0.4 --share no=0.6.
    """
    population = {}
    for one in shares:
        label, _, share = one.rpartition("=")
        try:
            population[label] = float(share)
        except ValueError:
            raise click.UsageError(f"--share takes an answer and its share, as in yes=0.4, got {one!r}.") from None
    found = open_surveys(location, key_path).weighted(name, question, population)
    lines = [f"Weighted by {question}, with 95 % confidence intervals:", *share_lines(found)]
    data = {"survey": name, "question": question, "shares": [one.as_dict() for one in found]}
    print_result(data, as_json, "\n".join(lines), f"sfumato survey cross {name} {question} ANOTHER")


@survey.command()
@click.argument("name")
@vault_options
@as_json_option
def methods(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Print a paragraph about the method of the survey NAME, for a report."""
    text = open_surveys(location, key_path).methods(name)
    print_result({"survey": name, "text": text}, as_json, text, f"sfumato survey export {name} answers.parquet")


@survey.command()
@click.argument("name")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the scikit-learn models here (.joblib).")
@click.option(
    "--test",
    "test_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Unperturbed answers to evaluate the models on (CSV, one column per question).",
)
@vault_options
@as_json_option
def model(
    name: str, out: Path | None, test_path: Path | None, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Train a naive Bayes classifier and a decision tree for the class question of the survey NAME."""
    surveys = open_surveys(location, key_path)
    if is_service(location):
        if out is not None:
            raise SurveyError("models are written only where the vault is; leave out --out, or run the command there")
        qualities = surveys.qualities(name, _rows(test_path, lambda: _published(location, name)))
    else:
        if out is not None:
            check_new_file(out, (".joblib",))
        found = surveys.model(name, _rows(test_path, lambda: surveys.get(name).survey))
        qualities = found.qualities
        if out is not None:
            _dump(found, out)
    alarms = surveys.status(name).alarms
    lines = [
        f"{one.model:<12} {one.accuracy.estimate:6.1%}  ({one.accuracy.low:.1%} to {one.accuracy.high:.1%})"
        for one in qualities
    ]
    text = "\n".join([*(f"ALARM {one}." for one in alarms), f"Accuracy on {qualities[0].evaluated_on}:", *lines])
    data = {
        "survey": name,
        "alarms": list(alarms),
        "qualities": [one.as_dict() for one in qualities],
        "file": out and str(out),
    }
    print_result(
        data, as_json, text, f"joblib.load({str(out)!r})" if out else f"sfumato survey model {name} --out {name}.joblib"
    )


def _published(url: str, name: str) -> Survey:
    from sfumato.survey.respondent import HttpConnection, Respondent

    return Respondent(HttpConnection(url), name).survey()


def _dump(found: Any, out: Path) -> None:
    import joblib

    from sfumato.tables.atomic import atomic_path

    with atomic_path(out) as part:
        joblib.dump({"naive Bayes": found.bayes, "tree": found.tree, "classes": found.classes}, part)


def _rows(path: Path | None, definition: Callable[[], Survey]) -> list[dict[str, Any]]:
    """Answers from a CSV file with a column for each question."""
    if path is None:
        return []
    questions = definition().questions
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        missing = [one.name for one in questions if one.name not in (rows.fieldnames or ())]
        if missing:
            raise SurveyError(f"{path} must have a column for each question, and {missing[0]!r} is missing")
        return [{one.name: one.parse_answer(row[one.name] or "") for one in questions} for row in rows]


@survey.command()
@click.argument("name")
@click.argument("out", type=click.Path(path_type=Path))
@vault_options
@as_json_option
def export(name: str, out: Path, location: str, key_path: Path | None, as_json: bool) -> None:
    """Write the perturbed answers to the survey NAME to the file OUT (.csv or .parquet)."""
    import pyarrow.csv
    import pyarrow.parquet

    from sfumato.tables.atomic import atomic_path

    check_new_file(out, (".csv", ".parquet"))
    table = open_surveys(location, key_path).export(name)
    with atomic_path(out) as part:
        (pyarrow.csv.write_csv if out.suffix == ".csv" else pyarrow.parquet.write_table)(table, str(part))
    text = f"Wrote {table.num_rows:,} perturbed answers to {out}."
    print_result(
        {"survey": name, "rows": table.num_rows, "file": str(out)}, as_json, text, f"sfumato survey model {name}"
    )


@survey.command()
@click.argument("url")
@click.argument("name")
@click.option(
    "--people", type=click.IntRange(1, 1_000_000), default=200, show_default=True, help="How many people answer."
)
@click.option(
    "--answers",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="True answers to sample people from (CSV, one column per question); without it they are random, and depend on "
    "the class.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of the simulation.")
@as_json_option
def simulate(url: str, name: str, people: int, path: Path | None, seed: int, as_json: bool) -> None:
    """Let simulated people answer the survey NAME at the service at URL.

    By their attitude to privacy, 17 % are fundamentalists, 56 % pragmatists and 27 % unconcerned (zhang2005).
    """
    import numpy as np

    from sfumato.survey.simulation import simulate

    with progress(quiet=as_json, unit="people") as (stage, advance):
        stage("answering", people)
        rows = _rows(path, lambda: _published(url, name)) or None
        found = simulate(url, name, people, np.random.default_rng(seed), rows=rows, progress=advance)
    segments = ", ".join(f"{count:,} {segment}" for segment, count in found.segments.items())
    text = (
        f"{found.people:,} people ({segments}): {found.counted:,} perturbed answers counted, {found.clear:,} "
        f"unperturbed ones to start with, {found.waiting:,} wait because the survey asks for more than they allow, and "
        f"{found.refused:,} refused the guidance."
    )
    print_result(asdict(found), as_json, text, f"sfumato survey status {name}")


def share_lines(shares: Sequence[AnswerShare]) -> list[str]:
    """Shares with their intervals, a line for each."""
    width = max([len(f"{one.item}: {one.answer}") for one in shares], default=0)
    return [
        f"{f'{one.item}: {one.answer}':<{width}}  {one.share.estimate:7.1%}  "
        f"({one.share.low:.1%} to {one.share.high:.1%})"
        for one in shares
    ]


def _text_of(definition: Path) -> str:
    try:
        return definition.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SurveyError(f"a survey must be written in TOML, as UTF-8 text, and {definition} is not") from None

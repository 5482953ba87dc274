"""The `attack` command: reconstruction and inference attacks on copies, scored against the original."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.engines import EngineChoice, engine_options
from sfumato.cli.forecast import of_coalition, of_dataset, print_forecast, short
from sfumato.cli.output import TableName, as_json_option, check_new_file, print_result, progress
from sfumato.cli.partitioned import attack_partitioned
from sfumato.cli.vault_options import vault_options
from sfumato.errors import AttackError

if TYPE_CHECKING:
    from sfumato.attacks import Score
    from sfumato.models import Model


@dataclass(frozen=True)
class _Background:
    """The options about the background knowledge of the attacker, and about the original that it is scored with."""

    truth: Path | str | None
    perfect: bool
    samples: int | None
    sample: Path | str | None
    known: float | None
    arrange: tuple[Path, Path] | None

    @property
    def has_only_truth(self) -> bool:
        """Whether the original is used for nothing but the score."""
        return not (self.perfect or self.known is not None or self.samples or self.sample or self.arrange)

    def check(self) -> None:
        """Refuse knowledge that is taken from the original, without an original."""
        if self.truth is None and (self.perfect or self.known is not None):
            raise click.UsageError("--perfect and --known need the original; name it with --truth")

    def original(self, copies: Sequence[Path | str]) -> Any:
        """The original in the row order of the copies; None without --truth."""
        if self.truth is None:
            return None
        if self.arrange is None:
            _refuse_shuffled(copies)
            return self.truth
        return _arranged(self.truth, copies, *self.arrange)


@click.command()
@click.argument("name", required=False)
@click.argument("copies", nargs=-1, type=TableName())
@click.option("--list", "listed", is_flag=True, help="List all attacks.")
@click.option("--truth", type=TableName(), help="The original, to score the attack with.")
@click.option("--perfect", is_flag=True, help="The attacker knows the mean and covariance of the original exactly.")
@click.option("--samples", type=click.IntRange(2), help="The number of records that it estimates statistics from.")
@click.option("--sample", type=TableName(), help="It has these other records of the same population.")
@click.option(
    "--known",
    type=click.FloatRange(0, min_open=True),
    help="It knows this share of the records, or from 1 on this number of records.",
)
@click.option(
    "--arrange",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="KEY POLICY",
    help="Put --truth in the secret row order of rotated copies: the key file and the policy of their release.",
)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="A parameter of the attack.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="The relative error up to which an estimate counts as a breach.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the estimate to this file (.parquet).")
@click.option("--predict", is_flag=True, help="Run no attack: the disclosure risk of copies or levels, in closed form.")
@click.option("--level", "levels", multiple=True, help="With --predict: a level that the coalition holds; repeatable.")
@click.option(
    "--domain", type=click.IntRange(2), default=10, show_default=True, help="With --predict: number of categories."
)
@click.option("--dataset", help="With --predict: the columns of this dataset in the vault, at --level or all levels.")
@engine_options
@vault_options
@as_json_option
def attack(
    name: str | None,
    copies: tuple[Path | str, ...],
    listed: bool,
    truth: Path | str | None,
    perfect: bool,
    samples: int | None,
    sample: Path | str | None,
    known: float | None,
    arrange: tuple[Path, Path] | None,
    options: tuple[str, ...],
    epsilon: float,
    output: Path | None,
    predict: bool,
    levels: tuple[str, ...],
    domain: int,
    dataset: str | None,
    engine_choice: EngineChoice,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Attack COPIES with the attack NAME, as their holders could.

    \b
    sfumato attack llse hospital.parquet insurer.parquet --truth clinic.parquet
    sfumato attack learned hospital.parquet --truth clinic.parquet --known 0.1
    sfumato attack --predict --level 0.6 --level 0.5 --level 0.4
    sfumato attack --list
    """  # noqa: D301 - click takes it for "do not wrap"
    if listed:
        _list(as_json)
        return
    if predict:
        files = [TableName().convert(name, None, None), *copies] if name else list(copies)
        forecast = of_dataset(dataset, levels, location, key_path) if dataset else of_coalition(files, levels, domain)
        print_forecast(forecast, as_json)
        return
    if name is None or not copies:
        raise click.UsageError("name an attack and at least one copy; `sfumato attack --list` lists the attacks")
    background = _Background(truth, perfect, samples, sample, known, arrange)
    background.check()
    parameters = _parsed(options)
    if any(map(_is_partitioned, copies)) or not engine_choice.is_local:
        usable = truth if background.has_only_truth and output is None else None
        attack_partitioned(name, copies, usable, parameters, engine_choice, as_json)
        return
    _attack(name, copies, background, parameters, epsilon, output, as_json)


def _is_partitioned(copy: Path | str) -> bool:
    from sfumato.tables.filesystem import is_folder
    from sfumato.tables.lake import is_lake

    return not is_lake(copy) and is_folder(copy)


def _refuse_shuffled(copies: Sequence[Path | str]) -> None:
    """Refuse copies in a secret row order before the attack, since its estimate could not be scored."""
    import pyarrow as pa

    from sfumato.audit.alignment import in_secret_order, require_aligned, shared_identifiers
    from sfumato.release.manifest import Manifest

    manifests = [Manifest.of(copy) for copy in copies]
    secret = not shared_identifiers(manifests) and in_secret_order(manifests)
    require_aligned(pa.table({}), in_secret_order=secret)


def _arranged(truth: Path | str, copies: Sequence[Path | str], key: Path, policy_path: Path) -> Any:
    """The original in the secret row order of the copies."""
    from sfumato.audit.alignment import in_secret_order
    from sfumato.keys.key import Key
    from sfumato.release.manifest import Manifest
    from sfumato.release.policy import Policy
    from sfumato.tables.row_order import arranged
    from sfumato.tables.source import Source

    policy, secret, manifests = Policy.load(policy_path), Key.load(key), [Manifest.of(copy) for copy in copies]
    for manifest in manifests:
        if manifest.key != secret.fingerprint() or manifest.policy != policy.digest():
            what = "key" if manifest.key != secret.fingerprint() else "policy"
            raise AttackError(f"--arrange needs the {what} that the copies were made with, and this is another one")
    ids, own = tuple(policy.options("id")), secret.derive("dataset", policy.dataset)
    return arranged(Source.of(truth), ids, own, shuffle=in_secret_order(manifests))


def _attack(
    name: str,
    copies: Sequence[Path | str],
    background: _Background,
    parameters: dict[str, Any],
    epsilon: float,
    output: Path | None,
    as_json: bool,
) -> None:
    from sfumato.audit.attack import CopySet, make_attack, score
    from sfumato.audit.attack import attack as run

    truth = background.original(copies)
    make_attack(name, parameters)
    if output is not None:
        check_new_file(output, (".parquet",))
    with progress(quiet=as_json) as (stage, advance):
        stage(f"attacking with {name}", CopySet.of(copies).rows)
        knowledge = _knowledge(background, copies, truth)
        estimate = run(name, copies, **knowledge, progress=advance, **parameters)
        stage("scoring")
        known = None if knowledge["known"] is None else knowledge["known"][0]
        found = None if truth is None else score(estimate, truth, epsilon=epsilon, leave_out=known)
        if output is not None:
            _write(estimate, output)
    unscored = f"{len(estimate):,} records were estimated; --truth scores the estimate."
    text = (f"Wrote {output}. " if output else "") + (_score_text(found) if found else unscored)
    text += _of_scores(estimate.models) + _diagnostics(estimate.explanation)
    data = {"attack": name, "records": len(estimate), "score": found and found.summary()}
    data |= {"explanation": dict(estimate.explanation)} if estimate.explanation else {}
    print_result(data, as_json, text, "sfumato audit, which runs all attacks")


def _knowledge(background: _Background, copies: Sequence[Path | str], truth: Any) -> dict[str, Any]:
    """The background knowledge as arguments of `sfumato.audit.attack.attack`."""
    from sfumato.audit.attack import choose_known_records

    return {
        "statistics": truth if background.perfect else None,
        "samples": background.samples,
        "sample": background.sample,
        "known": None if background.known is None else choose_known_records(copies, truth, background.known),
    }


def _diagnostics(explanation: Mapping[str, Any]) -> str:
    """The diagnostics that an attack reports about itself."""
    lines = []
    for name, value in explanation.items():
        text = ", ".join(f"{k} {v:.4g}" for k, v in value.items()) if isinstance(value, dict) else f"{value:.6g}"
        lines.append(f"  {name}: {text}")
    return "\n".join(["", "Diagnostics of the attack:", *lines]) if lines else ""


def _write(estimate: Any, output: Path) -> None:
    """Write the estimates, by column, with the identifiers of the records."""
    import pyarrow as pa
    import pyarrow.parquet

    from sfumato.tables.atomic import atomic_path

    columns = {} if estimate.records is None else {n: estimate.records.column(n) for n in estimate.records.column_names}
    columns |= {name: estimate.values[:, i] for i, name in enumerate(estimate.columns)}
    columns |= {" x ".join(posterior.columns): posterior.mode() for posterior in estimate.posteriors}
    with atomic_path(output) as part:
        pyarrow.parquet.write_table(pa.table(columns), part)


def _score_text(found: Score) -> str:
    from sfumato.audit.messages import table

    rows = [_row(f"{one.column}: root mean square error", one.rmse, short) for one in found.numbers]
    rows += [_row(f"{one.column}: residual error, share of variance", one.error, _percent) for one in found.numbers]
    for category in found.categories:
        name = " x ".join(category.columns)
        rows += [_row(f"{name}: accuracy", category.success, _percent)]
        rows += [_row(f"{name}: probability given to the truth", category.reconstruction, _percent)]
    distances = {"euclidean": "the whole record", "entry": "one of its columns", "cosine": "its direction"}
    for name, breach in found.breaches.items():
        if breach.baseline.estimate < 0.995:  # else an estimate without any copy is as close
            rows.append(_row(f"records found within {found.epsilon:.0%}: {distances[name]}", breach, _percent))
    headings = [f"{found.attack}, {found.rows:,} records", "attack", "95 % interval", "without a copy", "on a control"]
    note = "A control is a record that was not released: success there is no disclosure."
    return f"{table('', headings, rows, texts=1)}{note}"


def _of_scores(models: Sequence[Model]) -> str:
    """Which estimates are of normal scores, so that nobody takes them for values."""
    from sfumato.models import of_type
    from sfumato.models.gaussian_copula import GaussianCopula

    names = dict.fromkeys(name for model in of_type(models, GaussianCopula) for name in model.columns)
    if not names:
        return ""
    return (
        f"\nOf {', '.join(names)}, the normal scores were estimated, whose variance is about 1; sfumato audit says "
        "what that tells of the values."
    )


def _row(label: str, measure: Any, write: Callable[[float], str]) -> list[str]:
    interval = f"{write(measure.attack.low)} to {write(measure.attack.high)}"
    others = (measure.baseline.estimate, measure.control.estimate)
    return [label, write(measure.attack.estimate), interval, *map(write, others)]


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _parsed(options: Sequence[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not sign:
            raise click.UsageError(f"a parameter must be written like components=5, got {option!r}")
        try:
            parameters[name] = json.loads(value)
        except ValueError:
            parameters[name] = value
    return parameters


def _list(as_json: bool) -> None:
    from sfumato.attacks import ATTACKS

    attacks = {
        name: {
            "models": sorted(attack_class.supports),
            "description": (attack_class.__doc__ or "").split("\n")[0],
            "reference": attack_class.reference,
            "parameters": list(attack_class.__dataclass_fields__),
        }
        for name, attack_class in ATTACKS.members().items()
    }
    text = "\n".join(f"{name:<14}{one['description']}\n{'':<14}({one['reference']})" for name, one in attacks.items())
    print_result(attacks, as_json, text, "sfumato attack llse COPY... --truth ORIGINAL")

"""The command that attacks copies, or says beforehand what they give away."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.engines import Where, engine_options
from sfumato.cli.output import as_json_option, new_file, progress, say
from sfumato.cli.partitioned import attack_folders
from sfumato.cli.vault_options import location_option
from sfumato.errors import AttackError

if TYPE_CHECKING:
    from sfumato.attacks import Score
    from sfumato.audit.forecast import Forecast


@click.command()
@click.argument("name", required=False)
@click.argument("copies", nargs=-1, type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="Name all attacks.")
@click.option("--truth", type=click.Path(path_type=Path), help="The original: say how right the attack was.")
@click.option("--perfect", is_flag=True, help="The attacker knows mean and covariance of the original exactly.")
@click.option("--samples", type=click.IntRange(2), help="It estimates them from so many records of its copies.")
@click.option("--sample", type=click.Path(path_type=Path), help="It has other records of the same population.")
@click.option(
    "--known", type=click.FloatRange(0, min_open=True), help="It knows this share of the records; from 1 on, so many."
)
@click.option(
    "--arrange",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="KEY POLICY",
    help="Put --truth in the secret order of turned copies: the key file and the policy they were made with.",
)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="A parameter of the attack.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="How near counts as a breach.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the estimate here, as Parquet.")
@click.option("--predict", is_flag=True, help="No attack: what copies or --level give away at most, in closed form.")
@click.option("--level", "levels", multiple=True, help="With --predict: a level of the coalition; repeat it.")
@click.option("--domain", type=click.IntRange(2), default=10, show_default=True, help="With --predict: categories.")
@click.option("--dataset", help="With --predict: the columns of this dataset in the vault, at --level or all levels.")
@engine_options
@location_option
@as_json_option
def attack(
    name: str | None,
    copies: tuple[Path, ...],
    listed: bool,
    truth: Path | None,
    perfect: bool,
    samples: int | None,
    sample: Path | None,
    known: float | None,
    arrange: tuple[Path, Path] | None,
    options: tuple[str, ...],
    epsilon: float,
    output: Path | None,
    predict: bool,
    levels: tuple[str, ...],
    domain: int,
    dataset: str | None,
    where: Where,
    location: str,
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
        files = [Path(name), *copies] if name else list(copies)
        _predict(_forecast(files, levels, domain, dataset, location), as_json)
        return
    if name is None or not copies:
        raise click.UsageError("name an attack and at least one copy; `sfumato attack --list` has the attacks")
    if truth is None and (perfect or known is not None):
        raise click.UsageError("--perfect and --known take what the attacker knows from --truth; name the original")
    if any(copy.is_dir() for copy in copies) or not where.is_local:
        alone = None if perfect or known is not None or samples or sample or arrange or output else truth
        attack_folders(name, copies, alone, _parsed(options), where, as_json)
        return
    original = _arranged(truth, copies, *arrange) if truth is not None and arrange else truth
    if truth is not None and not arrange:
        _refuse_shuffled(copies)
    _attack(name, copies, original, perfect, samples, sample, known, _parsed(options), epsilon, output, as_json)


def _refuse_shuffled(copies: Sequence[Path]) -> None:
    """Before anything is attacked that could then not be scored."""
    import pyarrow as pa

    from sfumato.audit.alignment import aligned
    from sfumato.release.manifest import Manifest

    aligned(pa.table({}), [model for copy in copies for model in Manifest.of(copy).models])


def _arranged(truth: Path, copies: Sequence[Path], key: Path, policy: Path) -> Any:
    from sfumato.keys.key import Key
    from sfumato.policy.document import Policy
    from sfumato.release.manifest import Manifest
    from sfumato.tables.row_order import arranged
    from sfumato.tables.source import Source

    said, secret = Policy.load(policy), Key.load(key)
    for manifest in map(Manifest.of, copies):
        if manifest.key != secret.fingerprint() or manifest.policy != said.digest():
            what = "key" if manifest.key != secret.fingerprint() else "policy"
            raise AttackError(f"--arrange needs the {what} that the copies were made with, and this is another one")
    return arranged(Source.of(truth), tuple(said.options("id")), secret.derive("dataset", said.dataset))


def _attack(
    name: str,
    copies: Sequence[Path],
    truth: Any,
    perfect: bool,
    samples: int | None,
    sample: Path | None,
    known: float | None,
    options: dict[str, Any],
    epsilon: float,
    output: Path | None,
    as_json: bool,
) -> None:
    from sfumato.audit.attack import Opened, known_share, make, score
    from sfumato.audit.attack import attack as run

    make(name, options)
    if output is not None:
        new_file(output, (".parquet",))
    with progress(quiet=as_json) as (stage, advance):
        stage(f"attacking with {name}", Opened.of(copies).rows)
        told = known_share(copies, truth, known) if truth is not None and known is not None else None
        exact = truth if perfect else None
        estimate = run(
            name, copies, statistics=exact, samples=samples, sample=sample, known=told, progress=advance, **options
        )
        stage("scoring")
        left_out = None if told is None else told[0]
        found = None if truth is None else score(estimate, truth, epsilon=epsilon, leave_out=left_out)
        if output is not None:
            _write(estimate, output)
    wrote = f"Wrote {output}. " if output else ""
    text = wrote + (_score_text(found) if found else f"{len(estimate):,} records were guessed; --truth says how well.")
    text += _explained(estimate.explanation)
    data = {"attack": name, "records": len(estimate), "score": found and found.summary()}
    data |= {"explanation": dict(estimate.explanation)} if estimate.explanation else {}
    say(data, as_json, text, "sfumato audit, which tries all attacks at once")


def _explained(said: Mapping[str, Any]) -> str:
    """What an attack says of itself."""
    lines = []
    for name, value in said.items():
        inner = ", ".join(f"{k} {v:.4g}" for k, v in value.items()) if isinstance(value, dict) else f"{value:.6g}"
        lines.append(f"  {name}: {inner}")
    return "\n".join(["", "What it says of itself:", *lines]) if lines else ""


def _write(estimate: Any, output: Path) -> None:
    """The guesses, by column, with the ids of the records."""
    import pyarrow as pa
    import pyarrow.parquet

    from sfumato.tables.atomic import replacing

    columns = {} if estimate.records is None else {n: estimate.records.column(n) for n in estimate.records.column_names}
    columns |= {name: estimate.values[:, i] for i, name in enumerate(estimate.columns)}
    columns |= {" x ".join(belief.columns): belief.guess() for belief in estimate.beliefs}
    with replacing(output) as part:
        pyarrow.parquet.write_table(pa.table(columns), part)


def _score_text(found: Score) -> str:
    from sfumato.audit.messages import table

    rows = [_line(f"{n.column}: root mean square error", n.rmse, _short) for n in found.numbers]
    rows += [_line(f"{n.column}: error left, of its variance", n.error, _share) for n in found.numbers]
    for c in found.categories:
        name = " x ".join(c.columns)
        rows += [_line(f"{name}: guessed right", c.success, _share)]
        rows += [_line(f"{name}: probability given to the truth", c.reconstruction, _share)]
    near = {"euclidean": "the whole record", "entry": "one of its columns", "cosine": "its direction"}
    for name, breach in found.breaches.items():
        if breach.baseline.value < 0.995:  # else anybody's guess is as near
            rows.append(_line(f"records found within {found.epsilon:.0%}: {near[name]}", breach, _share))
    heads = [f"{found.attack}, {found.rows:,} records", "reached", "95 % interval", "without a copy", "on a control"]
    note = "A control is a record that was not released: what is reached there needs no copy of it."
    return f"{table('', heads, rows, texts=1)}{note}"


def _line(label: str, value: Any, form: Callable[[float], str]) -> list[str]:
    a = value.attack
    interval = f"{form(a.low)} to {form(a.high)}"
    return [label, form(a.value), interval, form(value.baseline.value), form(value.control.value)]


def _share(value: float) -> str:
    return f"{value:.1%}"


def _short(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"


def _parsed(options: Sequence[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not sign:
            raise click.UsageError(f"an option must read like components=5, got {option!r}")
        try:
            out[name] = json.loads(value)
        except ValueError:
            out[name] = value
    return out


def _list(as_json: bool) -> None:
    from sfumato.attacks import ATTACKS

    rows = {
        name: {
            "undoes": sorted(ATTACKS[name].supports),
            "does": (ATTACKS[name].__doc__ or "").split("\n")[0],
            "after": ATTACKS[name].reference,
            "parameters": list(ATTACKS[name].__dataclass_fields__),
        }
        for name in ATTACKS.names()
    }
    text = "\n".join(f"{name:<14}{said['does']}\n{'':<14}({said['after']})" for name, said in rows.items())
    say(rows, as_json, text, "sfumato attack llse COPY... --truth ORIGINAL")


def _forecast(
    files: Sequence[Path], levels: Sequence[str], domain: int, dataset: str | None, location: str
) -> Forecast:
    from sfumato.audit import forecast as prediction
    from sfumato.levels import Level
    from sfumato.release.manifest import Manifest
    from sfumato.vault import Vault

    if dataset is not None:
        held = Vault.open(location).dataset(dataset)
        ladder = held.scheme.policy.ladder
        asked = [ladder.level(level) for level in levels or ladder.levels]
        return prediction.of_models([held.scheme.models(held.schema, level) for level in asked])
    if files and levels:
        raise click.UsageError("--predict takes copies or --level, and got both; leave one out")
    if not files and not levels:
        raise click.UsageError("--predict needs copies, --level or --dataset, as in --predict --level 0.6 --level 0.5")
    if files:
        return prediction.of_copies([Manifest.of(path) for path in files])
    return prediction.of_levels([Level(_fidelity(level)) for level in levels], domain)


def _predict(forecast: Forecast, as_json: bool) -> None:
    from dataclasses import asdict

    say(asdict(forecast), as_json, _forecast_text(forecast), "sfumato audit DATASET, which tries it on the data")


def _fidelity(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise AttackError(f"a level must be a fidelity between 0 and 1, got {text!r}; see `sfumato level`") from None


def _forecast_text(forecast: Forecast) -> str:
    lines = []
    if forecast.numbers:
        lines.append(_heads("numbers: error left to the best linear attack"))
        lines += [f"  {n.column:<50}{n.ours:>14.2%}{n.independent:>14.2%}" for n in forecast.numbers]
        lines.append(_heads("numbers: its root mean square error"))
        lines += [f"  {n.column:<50}{_short(n.rmse[0]):>14}{_short(n.rmse[1]):>14}" for n in forecast.numbers]
    if forecast.categories:
        lines.append(_heads("categories: epsilon"))
        lines += [f"  {_of(c):<50}{c.epsilon:>14.4g}{c.independent_epsilon:>14.4g}" for c in forecast.categories]
        lines.append(
            f"{'categories: what a belief of 1 in that many rises to':<52}{'these copies':>14}{'independent':>14}"
        )
        lines += [f"  {_of(c):<50}{c.posterior:>14.2%}{c.independent_posterior:>14.2%}" for c in forecast.categories]
    return "\n".join(lines)


def _heads(label: str) -> str:
    return f"{label:<52}{'these copies':>14}{'independent':>14}"


def _of(category: Any) -> str:
    return f"{category.column} ({category.size:,} values)"

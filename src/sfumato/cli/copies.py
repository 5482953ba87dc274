"""Commands about copies: making one, and saying what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.frame import as_json_option, progress, say
from sfumato.cli.opening import connected, open_vault, vault_options
from sfumato.errors import PolicyError

if TYPE_CHECKING:
    from sfumato.client import Remote
    from sfumato.release.manifest import Manifest
    from sfumato.vault import Vault


@click.command()
@click.argument("dataset", required=False)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The file to write; by default DATASET.parquet.")
@click.option("--level", help="A fidelity below that of the grant.")
@click.option(
    "--url", required=True, envvar="SFUMATO_VAULT", help="The service. Also SFUMATO_VAULT; with SFUMATO_TOKEN."
)
@as_json_option
def fetch(dataset: str | None, out: Path | None, level: str | None, url: str, as_json: bool) -> None:
    """Fetch your copy of a DATASET from a service; without one, say what you may fetch."""
    remote = connected(url)
    if dataset is None:
        grants = remote.grants()
        lines = [
            f"{one['dataset']} (version {one['version']}) at {one['level']}, fidelity {one['fidelity']:.6g}"
            f"{', until ' + one['until'][:10] if one['until'] else ''}"
            for one in grants
        ]
        say({"grants": grants}, as_json, "\n".join(lines) or "Nothing.", f"sfumato fetch DATASET --url {url}")
        return
    with progress(quiet=as_json, unit="bytes") as (stage, advance):
        stage("fetching")
        path, manifest = remote.fetch(dataset, out or f"{dataset}.parquet", level=level, progress=advance)
    text = f"Wrote {path}: {manifest.rows:,} rows of {dataset} (version {manifest.version}) at {manifest.given:.10g}."
    say({"path": str(path), "manifest": json.loads(manifest.dumps())}, as_json, text, f"sfumato mine {path} --describe")


@click.command()
@click.argument("first", metavar="TABLE|RECIPIENT")
@click.argument("second", metavar="OUT|DATASET")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="From a vault: the file to write.")
@click.option(
    "--level", help="A declared level's name, or a fidelity between 0 and 1; from a vault, one below the grant."
)
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), help="Without a vault: the policy file.")
@click.option(
    "--scheme",
    "scheme_path",
    type=click.Path(path_type=Path),
    help="Without a vault: a fitted scheme; read if it exists, else fitted and kept here for later versions.",
)
@click.option("--threads", type=click.IntRange(min=1), help="How many cores to use; by default all.")
@vault_options
@as_json_option
def release(
    first: str,
    second: str,
    out: Path | None,
    level: str | None,
    policy_path: Path | None,
    scheme_path: Path | None,
    threads: int | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Make a copy: of a vault's DATASET for a RECIPIENT, or without a vault of TABLE to OUT at a --level.

    The copy is written as Parquet, CSV or Arrow, by the ending of its name.
    """
    from sfumato.schema.table import FORMATS

    if policy_path is None and scheme_path is None:
        if Path(first).suffix.lower() in FORMATS:
            raise click.UsageError("a release of a table, without a vault, needs --policy or --scheme.")
        _from_vault(open_vault(location, key_path), first, second, out, level, threads, as_json)
        return
    if level is None:
        raise click.UsageError("a release with --policy or --scheme needs --level.")
    if key_path is None:
        raise click.UsageError("a release without a vault, with --policy or --scheme, needs --key-file.")
    if out is not None:
        raise click.UsageError("a release without a vault is written to its second argument, not to --out.")
    if policy_path is None and (scheme_path is None or not scheme_path.exists()):
        raise click.UsageError("a release needs --policy, or --scheme with a scheme that exists.")
    _of_table(Path(first), Path(second), level, key_path, policy_path, scheme_path, threads, as_json)


def _from_vault(
    vault: Vault | Remote,
    recipient: str,
    dataset: str,
    out: Path | None,
    level: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    from sfumato.vault import Vault

    here = isinstance(vault, Vault)
    rows = vault.dataset(dataset).body["rows"]
    with progress(quiet=as_json, unit="rows" if here else "bytes") as (stage, advance):
        stage("blurring" if here else "fetching", rows if here else None)
        path, manifest = vault.release(recipient, dataset, out, level=level, threads=threads, progress=advance)
    text = (
        f"Wrote {path}: {manifest.rows:,} rows of {dataset} (version {manifest.version}) for {recipient} at fidelity "
        f"{manifest.given:.10g}{f' ({manifest.level})' if manifest.level else ''}, signed and recorded."
    )
    say({"path": str(path), "manifest": json.loads(manifest.dumps())}, as_json, text, f"sfumato check {path}")


def _of_table(
    table: Path,
    out: Path,
    level: str,
    key_path: Path,
    policy_path: Path | None,
    scheme_path: Path | None,
    threads: int | None,
    as_json: bool,
) -> None:
    from sfumato.keys.key import Key
    from sfumato.release.run import release_file
    from sfumato.schema.table import Source

    secret = Key.load(key_path)
    source = Source.of(table)
    with progress(quiet=as_json) as (stage, advance):
        stage("measuring")
        scheme, fresh = _scheme(source, policy_path, scheme_path, threads, advance)
        stage("blurring", source.rows)
        manifest = release_file(scheme, source, out, level, secret, threads=threads, progress=advance)
    if scheme_path is not None and fresh:
        scheme.save(scheme_path)
    name = f" ({manifest.level})" if manifest.level else ""
    rounded = "" if manifest.given == manifest.asked else f", rounded down from {manifest.asked:.10g}"
    text = f"Wrote {out}: {manifest.rows:,} rows at fidelity {manifest.given:.10g}{name}{rounded}."
    if scheme_path is None:
        text += (
            "\nThe noise has the shape of this table as it is now. With `--scheme scheme.json` the shape is kept, and "
            "a later\nversion of the table gets the same noise; without it, the noise would be independent and could "
            "be averaged."
        )
    say({"path": str(out), "manifest": json.loads(manifest.dumps())}, as_json, text, f"sfumato show {out}")


def _scheme(
    source: Any,
    policy_path: Path | None,
    scheme_path: Path | None,
    threads: int | None,
    advance: Callable[[int], None],
) -> tuple[Any, bool]:
    """The scheme to use, the kept one or else one fitted now, and whether it is fresh."""
    from sfumato.release.plan import TableScheme
    from sfumato.schema.policy import Policy

    policy = None if policy_path is None else Policy.load(policy_path)
    if policy is not None and (scheme_path is None or not scheme_path.exists()):
        return policy.fit(source, threads=threads, progress=advance), True
    scheme = TableScheme.load(str(scheme_path))
    if policy is not None and policy.digest() != scheme.policy.digest():
        raise PolicyError(
            f"the scheme {scheme_path} was fitted with another policy; leave out --policy to use it, or name a new "
            "file to fit again"
        )
    return scheme, False


@click.command()
@click.argument("copy", type=click.Path(path_type=Path))
@as_json_option
def show(copy: Path, as_json: bool) -> None:
    """Say in plain words what a copy is, check that it is whole, and what it promises."""
    from sfumato.release.manifest import Manifest

    manifest = Manifest.of(copy)
    manifest.verify(copy)
    say(json.loads(manifest.dumps()), as_json, "\n".join(_shown(manifest)), f"sfumato mine {copy}")


@click.command()
@click.argument("copy", type=click.Path(path_type=Path))
@click.option("--signer", help="The public key of the vault that must have signed it, or a file that holds it.")
@as_json_option
def check(copy: Path, signer: str | None, as_json: bool) -> None:
    """Verify a copy's certificate, and print the guarantee in plain words. No secret is needed."""
    from sfumato.release.certificate import check as checked

    manifest = checked(str(copy), signer)
    known = "the key that you named" if signer else "the key"
    text = [f"The certificate is valid: unaltered since {known} {manifest.signer} signed it"]
    text[0] += f" for {manifest.recipient}, from version {manifest.version}." if manifest.recipient else "."
    if signer is None:
        text.append("Compare that key with the one that the owner told you, or name it with --signer.")
    following = f"sfumato mine {copy}"
    say(json.loads(manifest.dumps()), as_json, "\n".join([*text, "", *_shown(manifest)]), following)


def _shown(manifest: Manifest) -> list[str]:
    """A manifest in plain words."""
    name = f", level {manifest.level}" if manifest.level else ""
    text = [f"{manifest.dataset}{name}: {manifest.rows:,} rows, {len(manifest.columns)} columns, unaltered.", ""]
    text += [f"  {column}: {_describe(column, kind, manifest.models)}" for column, kind in manifest.columns]
    signs = ["+" if promise[1].islower() else "!" for promise in manifest.promises]  # a warning begins in capitals
    text += ["", *[f"{sign} {promise}" for sign, promise in zip(signs, manifest.promises, strict=True)]]
    return text + [f"- {limit}" for limit in manifest.limits]


def _describe(column: str, kind: str, models: Any) -> str:
    from sfumato.models import GaussianNoise, Rotation, UniformReplacement

    model = next(model for model in models if column in model.columns)
    if isinstance(model, GaussianNoise):
        place = model.columns.index(column)
        deviation = model.covariance[place][place] ** 0.5
        return f"noise of standard deviation {_amount(deviation, kind)}, in steps of {_amount(model.step[place], kind)}"
    if isinstance(model, UniformReplacement):
        count = model.domains[model.columns.index(column)]["count"]
        together = f", together with {len(model.columns) - 1} more" if len(model.columns) > 1 else ""
        return f"retained with probability {model.retention:.4g}, else one of {count:,} at random{together}"
    if isinstance(model, Rotation):
        noise = ", after noise" if model.noise else ""
        return f"a mixture of {len(model.sources)} columns, {model.kind}{noise}"
    return "as it is"


def _amount(value: float, kind: str) -> str:
    """A number to four digits, times in days or seconds."""
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    unit = next((size for name, size in units.items() if f"[{name}" in kind), None)
    if unit is not None and not kind.startswith("date"):
        days = value * unit / 86_400
        return f"{_short(days)} days" if days >= 1 else f"{_short(value * unit)} s"
    return f"{_short(value)}{' days' if kind.startswith('date32') else ''}"


def _short(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"

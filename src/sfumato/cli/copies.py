"""Commands for single copies: `fetch`, `declare` and `adopt` (copies by other software), `show` and `check`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.output import TableName, as_json_option, check_new_file, print_result, progress, shown, table_stem
from sfumato.cli.vault_options import connect_service

if TYPE_CHECKING:
    from sfumato.release.manifest import Manifest


@click.command()
@click.argument("dataset", required=False)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The file to write; by default DATASET.parquet.")
@click.option("--level", help="A lower fidelity than that of the grant.")
@click.option("--since", type=int, help="Only the rows that were appended after this version, which you have.")
@click.option(
    "--url", required=True, envvar="SFUMATO_VAULT", help="The service. Also SFUMATO_VAULT; with SFUMATO_TOKEN."
)
@as_json_option
def fetch(dataset: str | None, out: Path | None, level: str | None, since: int | None, url: str, as_json: bool) -> None:
    """Download your copy of a DATASET from a service; without a DATASET, list your grants."""
    remote = connect_service(url)
    if dataset is None:
        grants = remote.own_grants()
        lines = [
            f"{one['dataset']} (version {one['version']}) at {one['level']}, fidelity {one['fidelity']:.6g}"
            f"{', until ' + one['until'][:10] if one['until'] else ''}"
            for one in grants
        ]
        text = "\n".join(lines) or "There is no grant for you."
        print_result({"grants": grants}, as_json, text, f"sfumato fetch DATASET --url {url}")
        return
    with progress(quiet=as_json, unit="bytes") as (stage, advance):
        stage("downloading")
        path, manifest = remote.fetch(dataset, out or f"{dataset}.parquet", level=level, since=since, progress=advance)
    text = (
        f"Wrote {path}: {manifest.rows:,} rows of {dataset} (version {manifest.version}) at {manifest.fidelity:.10g}."
    )
    data = {"path": str(path), "manifest": json.loads(manifest.dumps())}
    print_result(data, as_json, text, f"sfumato mine {path} --describe")


@click.command()
@click.argument("table", type=TableName())
@click.option(
    "--noise",
    "noises",
    multiple=True,
    help="The noise of a column, as income=gaussian:sd=3 or ward=uniform:retention=0.8; gaussian:sd=3 is for all "
    "other numbers. May be repeated.",
)
@click.option(
    "--covariance",
    type=click.Path(path_type=Path),
    help="A CSV file with the covariance of normal noise: one column and one line per column of the table.",
)
@click.option("--rotation", help="Columns that are others under a secret rotation, as y1,y2=age,income.")
@click.option("--id", "ids", multiple=True, help="A column that identifies records; may be repeated.")
@click.option("--dataset", help="A name for the dataset; by default that of the file.")
@as_json_option
def declare(
    table: Path | str,
    noises: tuple[str, ...],
    covariance: Path | None,
    rotation: str | None,
    ids: tuple[str, ...],
    dataset: str | None,
    as_json: bool,
) -> None:
    """State the noise of a TABLE that Sfumato did not make, in a manifest beside it.

    Attacks, mining and audits then take it for a copy: `sfumato attack`, `sfumato mine`, and `sfumato audit
    --original`, which tests whether the noise is what was stated. Columns without noise are taken as unchanged.
    """
    from sfumato.release.outputs import write_beside
    from sfumato.release.stated_noise import StatedNoise, StatedRotation, read_covariance, stated_manifest

    if not noises and covariance is None and rotation is None:
        raise click.UsageError("state some noise, as in --noise income=gaussian:sd=3, a --covariance or a --rotation")
    stated = [StatedNoise.parse(text) for text in noises]
    matrix = None if covariance is None else read_covariance(covariance)
    mapped = None if rotation is None else StatedRotation.parse(rotation)
    manifest = stated_manifest(
        table, stated, covariance=matrix, rotation=mapped, ids=ids, dataset=dataset or table_stem(table)
    )
    where = write_beside(table, manifest)
    text = "\n".join([f"Wrote {where}.", "", *_description(manifest)])
    attack = "llse" if mapped is None else "known-input"
    print_result(json.loads(manifest.dumps()), as_json, text, f"sfumato attack {attack} {shown(table)}")


@click.command()
@click.argument("table", type=TableName())
@click.argument("earlier", type=TableName())
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Write the policy here.")
@click.option("--joined", type=click.Path(path_type=Path), required=True, help="Write the table to release from here.")
@click.option("--id", "ids", multiple=True, help="A column that identifies records; may be repeated.")
@click.option("--noise", "noises", multiple=True, help="Known noise of a column, as income=gaussian:sd=3; repeatable.")
@click.option("--dataset", help="A name for the dataset; by default that of the file.")
@as_json_option
def adopt(
    table: Path | str,
    earlier: Path | str,
    output: Path,
    joined: Path,
    ids: tuple[str, ...],
    noises: tuple[str, ...],
    dataset: str | None,
    as_json: bool,
) -> None:
    """Continue safely after a copy of TABLE was released: EARLIER, made by other software with normal noise.

    Drafts a policy whose level `earlier` is that copy: all further copies lie on one path with it, so that recipients
    who combine them with it learn nothing beyond the best. Refused where the noise does not fit.
    """
    import pyarrow.parquet as pq

    from sfumato.release.adoption import EARLIER, adopt
    from sfumato.release.stated_noise import StatedNoise
    from sfumato.tables.atomic import atomic_path, write_text

    check_new_file(joined, (".parquet",))
    check_new_file(output, (".toml",))
    stated = [StatedNoise.parse(text) for text in noises]
    sizes = {one.column: one.value for one in stated if one.column and one.kind == "gaussian"}
    if len(sizes) < len(stated):
        raise click.UsageError("earlier copies are adopted where they have normal noise: --noise income=gaussian:sd=3")
    made = adopt(table, earlier, by=ids, sizes=sizes, dataset=dataset or table_stem(table))
    with atomic_path(joined) as path:
        pq.write_table(made.table, path)
    write_text(output, made.policy.dumps())
    fidelity = made.policy.settings["adopted"]["fidelity"]
    lines = [f"{name}: normal noise with standard deviation {sd:g}" for name, sd in made.sizes.items()]
    lines += [f"{name} was released as it is: no noise can take that back." for name in made.unchanged]
    lines += [
        "",
        f"The earlier copy is the level {EARLIER!r}, of fidelity {fidelity:g}. Grant it to those who have it.",
    ]
    lines += [f"{joined} holds the original values: delete it once they are in a vault."]
    data = {"adopted": made.sizes, "fidelity": fidelity, "unchanged": list(made.unchanged)}
    text = "\n".join([f"Wrote {output} and {joined}.", "", *lines])
    print_result(data, as_json, text, f"sfumato add {joined} --policy {output}")


@click.command()
@click.argument("copy", type=TableName())
@as_json_option
def show(copy: Path | str, as_json: bool) -> None:
    """Verify that a copy is unaltered, and describe its columns, its guarantees and their limits."""
    from sfumato.release.manifest import Manifest

    manifest = Manifest.of(copy)
    manifest.verify(copy)
    print_result(
        json.loads(manifest.dumps()), as_json, "\n".join(_description(manifest)), f"sfumato mine {shown(copy)}"
    )


_READ = "That is no verdict: read the one in it, and decide with `sfumato approve` (or `--reject`)."


@click.command()
@click.argument("copy", type=TableName())
@click.option("--signer", help="The public key of the vault that must have signed the copy, or a file with that key.")
@click.option("--succession", help="The signature with which that key named the one that replaced it (`rekey`).")
@as_json_option
def check(copy: Path | str, signer: str | None, succession: str | None, as_json: bool) -> None:
    """Verify the certificate of a copy, and describe its guarantees; or verify a sign-off pack. No secret is needed."""
    from sfumato.release.certificate import check as check_certificate
    from sfumato.release.certificate import check_report, is_report

    if isinstance(copy, Path) and is_report(copy):
        key = check_report(copy, signer)
        advice = "" if signer else " Compare that key with the one that the owner told you, or name it with --signer."
        print_result(
            {"signer": key}, as_json, f"The sign-off pack is as {key} signed it.{advice} {_READ}", "sfumato log"
        )
        return
    manifest = check_certificate(str(copy), signer, succession)
    named = "the key that you named" if succession is None else "the key that you named, or its successor"
    key = "the key" if signer is None else named
    text = [f"The certificate is valid: unaltered since {key} {manifest.signer} signed it"]
    text[0] += f" for {manifest.recipient}, from version {manifest.version}." if manifest.recipient else "."
    if signer is None:
        text.append("Compare that key with the one that the owner told you, or name it with --signer.")
    data = json.loads(manifest.dumps())
    print_result(data, as_json, "\n".join([*text, "", *_description(manifest)]), f"sfumato mine {shown(copy)}")


def _description(manifest: Manifest) -> list[str]:
    """A manifest in plain words: `+` is a guarantee, `!` a warning, `-` a limit."""
    from sfumato.models import model_of

    name = f", level {manifest.level}" if manifest.level else ""
    lines = [f"{manifest.dataset}{name}: {manifest.rows:,} rows, {len(manifest.columns)} columns, unaltered.", ""]
    for column, kind in manifest.columns:
        described = model_of(manifest.models, column).describe(column, partial(_amount, kind=kind))
        lines.append(f"  {column}: {described}")
    lines += ["", *(f"! {warning}" for warning in manifest.warnings)]
    lines += [f"+ {promise}" for promise in manifest.promises]
    return lines + [f"- {limit}" for limit in manifest.limits]


def _amount(value: float, kind: str) -> str:
    """A number to four digits; for dates and times, in days or seconds."""
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    unit = next((size for name, size in units.items() if f"[{name}" in kind), None)
    if unit is not None and not kind.startswith("date"):
        days = value * unit / 86_400
        return f"{_short(days)} days" if days >= 1 else f"{_short(value * unit)} s"
    return f"{_short(value)}{' days' if kind.startswith('date32') else ''}"


def _short(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"

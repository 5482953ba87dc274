"""Commands about copies: making one, and saying what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import as_json_option, progress, say
from sfumato.cli.vault_options import connected

if TYPE_CHECKING:
    from sfumato.release.manifest import Manifest


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
    text = f"Wrote {path}: {manifest.rows:,} rows of {dataset} (version {manifest.version}) at {manifest.fidelity:.10g}."
    say({"path": str(path), "manifest": json.loads(manifest.dumps())}, as_json, text, f"sfumato mine {path} --describe")


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
    from sfumato.models.gaussian_noise import GaussianNoise
    from sfumato.models.rotation import Rotation
    from sfumato.models.uniform_replacement import UniformReplacement

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

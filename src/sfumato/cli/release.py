"""The `release` command: a perturbed copy, from a vault or from a table and its policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.engines import EngineChoice, engine_options
from sfumato.cli.output import TableName, as_json_option, print_result, progress, shown
from sfumato.cli.vault_options import open_vault, vault_options
from sfumato.errors import PolicyError

if TYPE_CHECKING:
    from sfumato.engines import Engine
    from sfumato.keys.key import Key
    from sfumato.policy.document import PolicyDocument
    from sfumato.release.manifest import Manifest
    from sfumato.tables.source import Source
    from sfumato.vault.protocol import VaultProtocol


@click.command()
@click.argument("first", metavar="TABLE|RECIPIENT")
@click.argument("second", metavar="OUT|DATASET")
@click.option("-o", "--out", type=TableName(), help="From a vault: what to write, a file or a URL.")
@click.option(
    "--level", help="The name of a declared level, or a fidelity between 0 and 1; from a vault, one below the grant."
)
@click.option("--since", type=int, help="From a vault: the rows alone that were appended after this version.")
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), help="Without a vault: the policy file.")
@click.option(
    "--scheme",
    "scheme_path",
    type=click.Path(path_type=Path),
    help="Without a vault: the file of the fitted scheme, read if it exists, else written for later versions.",
)
@click.option("--format", "form", help="With --engine spark: read TABLE with Spark's reader (delta, iceberg, ...).")
@engine_options
@vault_options
@as_json_option
def release(
    first: str,
    second: str,
    out: Path | str | None,
    level: str | None,
    since: int | None,
    policy_path: Path | None,
    scheme_path: Path | None,
    form: str | None,
    engine_choice: EngineChoice,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Release a copy of a vault's DATASET to a RECIPIENT or, without a vault, of TABLE to OUT at a --level.

    The copy is written as Parquet, CSV, Arrow, ORC, JSON lines, Excel, SPSS or Stata, by the ending of its name, here
    or in an object store (s3://, gs://, az://), to a table in a database (postgresql://...?table=copy), or to one of
    Delta Lake (a folder NAME.delta). TABLE may be a partitioned table: a folder of files, or a large Parquet file,
    which is shared out by its row groups. Then OUT may be a folder too, and an --engine may do the work.
    """
    from sfumato.tables.readers import FORMATS

    if policy_path is None and scheme_path is None:
        if not engine_choice.is_local:
            raise click.UsageError("an --engine releases tables without a vault; give --policy or --scheme.")
        if Path(first).suffix.lower() in FORMATS:
            raise click.UsageError("a release of a table, without a vault, needs --policy or --scheme.")
        asked = {"level": level, "since": since, "threads": engine_choice.threads}
        _from_vault(open_vault(location, key_path), first, second, out, asked, as_json)
        return
    if since is not None:
        raise click.UsageError("--since needs a vault, which knows the versions of its datasets.")
    if level is None:
        raise click.UsageError("a release with --policy or --scheme needs --level.")
    secret = _key(key_path)
    if out is not None:
        raise click.UsageError("a release without a vault is written to its second argument, not to --out.")
    if policy_path is None and (scheme_path is None or not scheme_path.exists()):
        raise click.UsageError("a release needs --policy, or --scheme with a scheme that exists.")
    if form is not None and engine_choice.engine != "spark":
        raise click.UsageError("--format needs --engine spark, whose readers it names.")
    with engine_choice.open() as engine:
        _of_table(first, second, form, level, secret, policy_path, scheme_path, engine, as_json)


def _key(key_path: Path | None) -> Key:
    """The key of a release without a vault: from a file, or from the environment."""
    from sfumato.keys.key import Key
    from sfumato.vault.unlocking import key_from_environment

    found = key_from_environment() if key_path is None else Key.load(key_path)
    if found is None:
        raise click.UsageError(
            "a release without a vault, with --policy or --scheme, needs a key: --key-file, SFUMATO_KEY_FILE or "
            "SFUMATO_KEY."
        )
    return found


def _from_vault(
    vault: VaultProtocol,
    recipient: str,
    dataset: str,
    out: Path | str | None,
    asked: dict[str, Any],
    as_json: bool,
) -> None:
    from sfumato.vault.names import tables_of

    members, texts, results = tables_of(vault, dataset), [], []
    with progress(quiet=as_json, unit=vault.release_unit) as (stage, advance):
        for name in members:
            target = out if out is None or name == dataset else _in_folder(out, name.removeprefix(f"{dataset}."))
            stage(f"releasing {name}", vault.dataset(name).rows if vault.release_unit == "rows" else None)
            path, manifest = vault.release(recipient, name, target, **asked, progress=advance)
            level = f" ({manifest.level})" if manifest.level else ""
            texts.append(
                f"Wrote {shown(path)}: {manifest.rows:,} rows of {name} ({_versions(manifest)}) for {recipient} at "
                f"fidelity {manifest.fidelity:.10g}{level}, signed and recorded."
            )
            results.append({"path": shown(path), "manifest": json.loads(manifest.dumps())})
    data = results[0] if members == [dataset] else {"copies": results}
    first = results[0]["path"]
    beside = f"{first}.manifest.json"
    together = f"; send {first} and {beside} together" if Path(beside).exists() else ""
    print_result(data, as_json, "\n".join(texts), f"sfumato check {first}{together}")


def _in_folder(out: Path | str, table: str) -> Path | str:
    """The file of one table of several in a folder, which is made if need be."""
    if isinstance(out, str):
        return f"{out.rstrip('/')}/{table}.parquet"
    out.mkdir(parents=True, exist_ok=True)
    return out / f"{table}.parquet"


def _versions(manifest: Manifest) -> str:
    """The versions that the rows of the copy are from."""
    since = f", appended since version {manifest.since}" if manifest.since else ""
    return f"version {manifest.version}{since}"


def _of_table(
    table: str,
    out: str,
    form: str | None,
    level: str,
    secret: Key,
    policy_path: Path | None,
    scheme_path: Path | None,
    engine: Engine,
    as_json: bool,
) -> None:
    from sfumato.release.outputs import check_output

    with progress(quiet=as_json) as (stage, advance):
        stage("fitting")
        if form is None:
            source = _shared_out(_stated_policy(policy_path, scheme_path).source(table), out)
            _check_engine(source, out, engine)
            if not _to_folder(source, out):
                check_output(source, out)
            scheme, fresh = _scheme(source, policy_path, scheme_path, engine, advance)
            stage("perturbing", source.rows)
            manifest = _written(scheme, source, out, level, secret, engine, advance)
        else:
            scheme, fresh, manifest = _read_by_spark(table, out, form, level, secret, policy_path, scheme_path, engine)
    if scheme_path is not None and fresh:
        scheme.save(scheme_path)
    name = f" ({manifest.level})" if manifest.level else ""
    rounded = (
        ""
        if manifest.fidelity == manifest.requested_fidelity
        else f", rounded down from {manifest.requested_fidelity:.10g}"
    )
    text = f"Wrote {shown(out)}: {manifest.rows:,} rows at fidelity {manifest.fidelity:.10g}{name}{rounded}."
    if scheme_path is None:
        text += (
            "\nThe noise has the shape of this table as it is now. With `--scheme scheme.json` the shape is kept, and "
            "a later\nversion of the table gets the same noise; without it, the noise would be independent and could "
            "be averaged."
        )
    print_result(
        {"path": shown(out), "manifest": json.loads(manifest.dumps())}, as_json, text, f"sfumato show {shown(out)}"
    )


def _check_engine(source: Source, out: str, engine: Engine) -> None:
    if not _to_folder(source, out) and engine.is_distributed:
        raise click.UsageError("a cluster releases a folder, or a Parquet file, to a folder; TABLE or OUT is not one.")


def _to_folder(source: Source, out: str) -> bool:
    return bool(source.parts) and _is_folder_name(out)


def _shared_out(source: Source, out: str) -> Source:
    """A Parquet file that is copied to a folder is shared out by its row groups."""
    from sfumato.tables.filesystem import is_folder

    named = not Path(out).suffix and not out.startswith("-")  # any other ending is a mistake
    return source.by_row_groups() if _is_folder_name(out) and (named or is_folder(out)) else source


def _is_folder_name(out: str) -> bool:
    from sfumato.tables.database import is_database
    from sfumato.tables.lake import is_delta_name
    from sfumato.tables.readers import FORMATS

    return not is_database(out) and Path(out).suffix.lower() not in FORMATS and not is_delta_name(out)


def _written(
    scheme: Any, source: Source, out: str, level: str, secret: Key, engine: Engine, advance: Callable[[int], None]
) -> Manifest:
    from sfumato.release.files import release_file
    from sfumato.release.partitioned import release_folder

    if _to_folder(source, out):
        return release_folder(scheme, source, out, level, secret, engine=engine, progress=advance)
    threads = engine.threads
    return release_file(scheme, source, out, level, secret, threads=threads, progress=advance)


def _read_by_spark(
    table: str,
    out: str,
    form: str,
    level: str,
    secret: Key,
    policy_path: Path | None,
    scheme_path: Path | None,
    engine: Any,
) -> tuple[Any, bool, Manifest]:
    """A copy of whatever one of Spark's readers reads."""
    from sfumato.release.spark import release_read

    frame = engine.session.read.format(form).load(table)
    scheme, fresh = _scheme(frame, policy_path, scheme_path, engine, lambda _: None)
    return scheme, fresh, release_read(scheme, engine, frame, out, level, secret)


def _stated_policy(policy_path: Path | None, scheme_path: Path | None) -> PolicyDocument:
    """The policy that says how the table is read: the one that is given, else that of the scheme."""
    from sfumato.release.policy import Policy
    from sfumato.release.scheme import TableScheme

    return Policy.load(policy_path) if policy_path is not None else TableScheme.load(str(scheme_path)).policy


def _scheme(
    source: Any,
    policy_path: Path | None,
    scheme_path: Path | None,
    engine: Engine,
    advance: Callable[[int], None],
) -> tuple[Any, bool]:
    """The scheme to use, the kept one or else one fitted now, and whether it is fresh."""
    from sfumato.release.policy import Policy
    from sfumato.release.scheme import TableScheme
    from sfumato.tables.source import Source

    policy = None if policy_path is None else Policy.load(policy_path)
    if policy is not None and (scheme_path is None or not scheme_path.exists()):
        if not isinstance(source, Source):
            return policy.fit_spark(source), True
        return policy.fit(source, engine=engine, progress=advance), True
    scheme = TableScheme.load(str(scheme_path))
    if policy is not None and policy.digest() != scheme.policy.digest():
        raise PolicyError(
            f"the scheme {scheme_path} was fitted with another policy; leave out --policy to use it, or name a new "
            "file to fit again"
        )
    return scheme, False

"""Commands for a vault: creating and filling it, its status, backups, and its secret and master key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import TableName, as_json_option, named_tables, print_result, progress
from sfumato.cli.vault_options import (
    key_option,
    local_vault,
    new_secret,
    open_vault,
    vault_options,
)

if TYPE_CHECKING:
    from sfumato.ledger.chain import Entry

_STORE = click.option(
    "--store", help="The store of tables: a path, or a URL that fsspec supports; by default the folder."
)
_FILE = click.Path(path_type=Path)
_ACCEPT_OVERLAP = click.option(
    "--accept-overlap", metavar="REASON", help="Why records of TABLE may also be in another dataset, with other noise."
)


@click.command()
@click.argument("location", metavar="[VAULT]", default="vault", envvar="SFUMATO_VAULT")
@key_option
@_STORE
@click.option("--master-key", type=_FILE, help="The key file of earlier copies, to make more that fit them.")
@as_json_option
def init(location: str, key_path: Path | None, store: str | None, master_key: Path | None, as_json: bool) -> None:
    """Create a VAULT: a folder, or tables in a PostgreSQL database given by its URL.

    It is locked with a passphrase, or with a key file: --key-file names one, which is created if it does not exist;
    without a terminal to ask for a passphrase, VAULT.key is created. The default VAULT is the folder vault.
    """
    from sfumato.keys.key import Key
    from sfumato.vault import Vault
    from sfumato.vault.unlocking import key_file

    secret = new_secret(key_path, "Passphrase (empty: a key file beside the vault)", location=location)
    master = None if master_key is None else Key.load(master_key)
    vault = Vault.create(location, secret=secret, store=store, key=master)
    path = key_path or key_file(location)
    lock = "a passphrase" if isinstance(secret, str) else f"the key file {path}" if path else "a key"
    text = (
        f"Created the vault {vault.ledger.database.name}, locked with {lock}. Keep that safe, apart from the vault:\n"
        "without it, nobody can read the tables, nor make copies with the same noise.\n"
        f"Recipients verify copies with the public key {vault.public_key}"
    )
    result = {"vault": vault.ledger.database.name, "public key": vault.public_key, "opens with": vault.opens_with}
    print_result(
        result, as_json, text, "sfumato suggest TABLE -o policy.toml, then sfumato add TABLE --policy policy.toml"
    )


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE | NAME=TABLE...")
@click.option("--policy", "policy_path", type=_FILE, required=True, help="The policy file.")
@click.option(
    "--trace", "traced", is_flag=True, help="Fingerprint the copies of each recipient, so that a leak can be traced."
)
@click.option(
    "--replace", is_flag=True, help="Replace the dataset of this name, which nobody has a grant for or a copy of yet."
)
@_ACCEPT_OVERLAP
@vault_options
@as_json_option
def add(
    tables: tuple[str, ...],
    policy_path: Path,
    traced: bool,
    replace: bool,
    accept_overlap: str | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Add TABLE with its policy to the vault, under the name in the policy.

    With a policy of several tables, name each: sfumato add patients=patients.csv visits=visits.csv --policy clinic.toml
    """
    from sfumato.release.policy import Policy
    from sfumato.vault.linked_tables import add_tables
    from sfumato.vault.messages import sentence

    linked = named_tables(tables)
    policies = None if linked is None else Policy.load_tables(policy_path)
    vault = open_vault(location, key_path)
    with progress(quiet=as_json) as (stage, advance):
        stage("fitting and storing")
        options: dict[str, Any] = {"traced": traced, "replace": replace}
        options |= {"accept_overlap": accept_overlap, "progress": advance}
        if policies is None or linked is None:
            entries = [vault.add(policy_path, TableName().convert(tables[0], None, None), **options)]
        else:
            entries = add_tables(vault, policies, linked, **options)
    levels, name = [level for level, _ in entries[0].body["levels"]], entries[0].dataset
    name = name if policies is None else name.rpartition(".")[0]
    next_step = f"sfumato recipient add NAME, then sfumato grant NAME {name} --level LEVEL ({', '.join(levels)})"
    data = entries[0].__dict__ if policies is None else {"entries": [entry.__dict__ for entry in entries]}
    print_result(data, as_json, "\n".join(map(sentence, entries)), next_step)


@click.command()
@click.argument("dataset")
@click.argument("table", type=TableName())
@click.option(
    "--replace", is_flag=True, help="Accept a TABLE that lacks, or without an id column moves, over 5 % of the records."
)
@_ACCEPT_OVERLAP
@vault_options
@as_json_option
def update(
    dataset: str,
    table: Path | str,
    replace: bool,
    accept_overlap: str | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Add the next version of a DATASET: the whole TABLE, old records and new ones. To add rows only, see append."""
    vault = open_vault(location, key_path)
    before = vault.dataset(dataset).version
    with progress(quiet=as_json) as (stage, advance):
        stage("comparing and storing")
        entry = vault.update(dataset, table, replace=replace, accept_overlap=accept_overlap, progress=advance)
    unchanged = f"No released value has changed: {dataset} stays at version {before}."
    _print_version(entry, before, unchanged, as_json)


@click.command()
@click.argument("dataset")
@click.argument("table", type=TableName())
@_ACCEPT_OVERLAP
@vault_options
@as_json_option
def append(
    dataset: str, table: Path | str, accept_overlap: str | None, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Add the next version of a DATASET: its current records and the rows of TABLE, which are new ones."""
    vault = open_vault(location, key_path)
    before = vault.dataset(dataset).version
    with progress(quiet=as_json) as (stage, advance):
        stage("comparing and storing")
        entry = vault.append(dataset, table, accept_overlap=accept_overlap, progress=advance)
    unchanged = f"These rows were the last that were appended: {dataset} stays at version {before}."
    _print_version(entry, before, unchanged, as_json)


def _print_version(entry: Entry, before: int, unchanged: str, as_json: bool) -> None:
    """Print how a version differs from the one before, or that there is no new one."""
    from sfumato.vault.messages import sentence, version_warnings

    is_new = entry.body["version"] != before
    text = "\n".join([sentence(entry), *version_warnings(entry)]) if is_new else unchanged
    print_result(entry.__dict__, as_json, text, f"sfumato release RECIPIENT {entry.dataset}")


@click.command()
@click.argument("dataset", required=False)
@vault_options
@as_json_option
def status(dataset: str | None, location: str, key_path: Path | None, as_json: bool) -> None:
    """Show the vault, or the recipients of one DATASET with their levels and residual errors."""
    from sfumato.vault.overview import overview_text

    found = open_vault(location, key_path).overview(dataset)
    next_step = "sfumato log" if dataset else "sfumato status DATASET, or sfumato log"
    print_result(found, as_json, overview_text(found), next_step)


@click.command()
@click.argument("target", type=_FILE)
@vault_options
@as_json_option
def backup(target: Path, location: str, key_path: Path | None, as_json: bool) -> None:
    """Write the vault, with its keys still locked, to one file, without released copies: they can be reproduced."""
    vault = local_vault(location, key_path)
    head = vault.backup(target)
    text = (
        f"Wrote {target}. Note the hash of its last entry, apart from the vault: it proves later that no entry was "
        f"replaced.\n{head}"
    )
    print_result({"path": str(target), "head": head}, as_json, text, f"sfumato verify --contains {head[:16]}")


@click.command()
@click.argument("file", type=_FILE)
@click.argument("location", metavar="VAULT")
@_STORE
@key_option
@as_json_option
def restore(file: Path, location: str, store: str | None, key_path: Path | None, as_json: bool) -> None:
    """Create a VAULT, in a new folder or an empty database, from a backup FILE and its passphrase or key."""
    from sfumato.vault import Vault

    secret = new_secret(key_path, "Passphrase of the vault", location=location, known=True)
    vault = Vault.restore(file, location, secret=secret, store=store)
    name = vault.ledger.database.name
    text = f"Restored {name} from {file}: all entries and files are authentic. The same secret unlocks it."
    key = " --key-file KEY" if vault.opens_with == "key" else ""
    print_result({"vault": name, "public key": vault.public_key}, as_json, text, f"sfumato verify --vault {name}{key}")


@click.command()
@vault_options
@as_json_option
def encrypt(location: str, key_path: Path | None, as_json: bool) -> None:
    """Encrypt the tables that an earlier version of sfumato stored in plain; stop a running service first."""
    from sfumato.vault.messages import sentence

    entries = local_vault(location, key_path).encrypt()
    text = "\n".join(map(sentence, entries)) or "All files of the vault are encrypted."
    result = {"entries": [entry.__dict__ for entry in entries]}
    print_result(result, as_json, text, "sfumato verify, then sfumato backup: older backups hold the tables in plain")


@click.command()
@click.option(
    "--new-key-file", type=_FILE, help="Lock the vault with this key file, which is created if it does not exist."
)
@vault_options
@as_json_option
def passphrase(new_key_file: Path | None, location: str, key_path: Path | None, as_json: bool) -> None:
    """Change the passphrase or the key file of the vault. Also SFUMATO_NEW_PASSPHRASE."""
    vault = local_vault(location, key_path)
    vault.relock(_new(new_key_file))
    print_result(
        {"opens with": vault.opens_with},
        as_json,
        f"Only the new {vault.opens_with} unlocks the vault now.",
        "sfumato verify",
    )


@click.command()
@click.option("--lost", is_flag=True, help="The old passphrase or key is lost.")
@click.option(
    "--new-key-file", type=_FILE, help="Lock the vault with this key file, which is created if it does not exist."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@vault_options
@as_json_option
def rekey(
    lost: bool, new_key_file: Path | None, yes: bool, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Replace the master key, and show the disclosure risk: later noise is independent of that in earlier copies."""
    from sfumato.vault import Vault
    from sfumato.vault.messages import rekey_cost_text, sentence

    vault = Vault.open(location) if lost else local_vault(location, key_path)
    cost = vault.rekey_cost(lost=lost)
    click.echo(rekey_cost_text(cost, lost=lost), err=True)
    if not yes:
        click.confirm("Replace the master key?", abort=True, err=True)
    secret = _new(new_key_file) if lost or new_key_file is not None else None
    entry = vault.rekey(secret=secret, lost=lost)
    print_result(
        {"entry": entry.__dict__, "cost": cost},
        as_json,
        sentence(entry) + _succession_text(entry),
        "sfumato verify, and send recipients the new public key",
    )


def _succession_text(entry: Entry) -> str:
    """What recipients who know the old public key need to trust the new one."""
    signature = entry.body.get("succession")
    return (
        ""
        if signature is None
        else (
            f"\nThe new public key is {entry.body['public']}. Recipients who know the old one verify new copies with\n"
            f"sfumato check COPY --signer {entry.body['previous public']} --succession {signature}"
        )
    )


def _new(key_path: Path | None) -> Any:
    """The new secret of a vault, from the environment, a key file, or a prompt."""
    import os

    from sfumato.errors import CustodyError

    typed = os.environ.get("SFUMATO_NEW_PASSPHRASE") if key_path is None else None
    secret = typed or new_secret(key_path, "New passphrase")
    if secret is None:
        raise CustodyError(
            "a vault must be locked with a passphrase or a key; set SFUMATO_NEW_PASSPHRASE, or use --new-key-file"
        )
    return secret

"""Commands about a vault's life: making it, filling it, and keeping it safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli.output import as_json_option, progress, say
from sfumato.cli.vault_options import (
    connected,
    is_service,
    key_option,
    local_vault,
    location_option,
    new_secret,
    open_vault,
    vault_options,
)

_STORE = click.option(
    "--store", help="Where tables are kept: a path or a URL that fsspec knows; by default the folder."
)
_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("location", metavar="VAULT", default="vault", envvar="SFUMATO_VAULT")
@key_option
@_STORE
@click.option("--master-key", type=_FILE, help="A key file that copies were made with already.")
@as_json_option
def init(location: str, key_path: Path | None, store: str | None, master_key: Path | None, as_json: bool) -> None:
    """Make a VAULT: a folder, or tables in a PostgreSQL database given by its URL.

    It is locked with a passphrase, or with a key file: --key-file names one, which is made if it does not exist.
    """
    from sfumato.keys.key import Key
    from sfumato.vault import Vault
    from sfumato.vault.unlocking import key_file

    secret = new_secret(key_path, "Passphrase (none: a key file beside the vault)", location=location)
    master = None if master_key is None else Key.load(master_key)
    vault = Vault.create(location, secret=secret, store=store, key=master)
    beside = key_path or key_file(location)
    lock = "a passphrase" if isinstance(secret, str) else f"the key file {beside}" if beside else "a key"
    text = (
        f"Made the vault {vault.ledger.database.name}, locked with {lock}. Keep that safe and apart from the vault: "
        f"without it\nno further copy fits those already given. Recipients check copies with the public key\n"
        f"{vault.public_key}"
    )
    result = {"vault": vault.ledger.database.name, "public key": vault.public_key, "opens with": vault.opens_with}
    say(result, as_json, text, "sfumato suggest TABLE -o policy.toml, then sfumato add TABLE --policy policy.toml")


@click.command()
@click.argument("table", type=_FILE)
@click.option("--policy", "policy_path", type=_FILE, required=True, help="The policy file.")
@click.option("--trace", "traced", is_flag=True, help="Let recipients of one level be told apart if a copy leaks.")
@vault_options
@as_json_option
def add(table: Path, policy_path: Path, traced: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Keep TABLE with its policy in the vault, under the name that the policy gives it."""
    from sfumato.vault.messages import sentence

    vault = open_vault(location, key_path)
    with progress(quiet=as_json) as (stage, advance):
        stage("measuring and keeping")
        entry = vault.add(policy_path, table, traced=traced, progress=advance)
    level = entry.body["levels"][0][0]
    following = f"sfumato recipient add NAME, then sfumato grant NAME {entry.dataset} --level {level}"
    say(entry.__dict__, as_json, sentence(entry), following)


@click.command()
@click.argument("dataset")
@click.argument("table", type=_FILE)
@vault_options
@as_json_option
def update(dataset: str, table: Path, location: str, key_path: Path | None, as_json: bool) -> None:
    """Bring the next version of a DATASET; says what became of its records."""
    from sfumato.vault.messages import drift_warning, sentence

    vault = open_vault(location, key_path)
    before = vault.dataset(dataset).version
    with progress(quiet=as_json) as (stage, advance):
        stage("comparing and keeping")
        entry = vault.update(dataset, table, progress=advance)
    if entry.body["version"] == before:
        text = f"Nothing that a copy shows has changed: {dataset} stays at version {before}."
    else:
        text = "\n".join([sentence(entry), *drift_warning(entry)])
    say(entry.__dict__, as_json, text, f"sfumato release RECIPIENT {dataset}")


@click.command()
@click.argument("dataset", required=False)
@location_option
@as_json_option
def status(dataset: str | None, location: str, as_json: bool) -> None:
    """Say what the vault holds, or what became of one DATASET: who has which level, and what averaging would tell."""
    from sfumato.vault import Vault
    from sfumato.vault.overview import of_dataset, of_vault, readable, shown

    found: dict[str, Any]
    if is_service(location):
        found = connected(location).overview(dataset)
    else:
        vault = Vault.open(location)
        found = readable(lambda: of_vault(vault) if dataset is None else of_dataset(vault, dataset))
    say(found, as_json, shown(found), "sfumato log" if dataset else "sfumato status DATASET, or sfumato log")


@click.command()
@click.argument("target", type=_FILE)
@vault_options
@as_json_option
def backup(target: Path, location: str, key_path: Path | None, as_json: bool) -> None:
    """Write the whole vault, its keys still locked, to one file, without released copies: they can be made again."""
    vault = local_vault(location, key_path)
    head = vault.backup(target)
    text = (
        f"Wrote {target}. Write down the hash of its last entry, apart from the vault: with it, nobody can replace the "
        f"history unseen.\n{head}"
    )
    say({"path": str(target), "head": head}, as_json, text, f"sfumato verify --contains {head[:16]}")


@click.command()
@click.argument("file", type=_FILE)
@click.argument("location", metavar="VAULT")
@_STORE
@key_option
@as_json_option
def restore(file: Path, location: str, store: str | None, key_path: Path | None, as_json: bool) -> None:
    """Make a VAULT, in a new folder or an empty database, from a backup FILE, with the secret that opens it."""
    from sfumato.vault import Vault

    secret = new_secret(key_path, "Passphrase of the vault", location=location, known=True)
    vault = Vault.restore(file, location, secret=secret, store=store)
    name = vault.ledger.database.name
    text = f"Restored {name} from {file}: its keys vouch for every entry and every file. The same secret opens it."
    key = " --key-file KEY" if vault.opens_with == "key" else ""
    say({"vault": name, "public key": vault.public_key}, as_json, text, f"sfumato verify --vault {name}{key}")


@click.command()
@click.option("--new-key-file", type=_FILE, help="Lock it with this key file, which is made if it does not exist.")
@vault_options
@as_json_option
def passphrase(new_key_file: Path | None, location: str, key_path: Path | None, as_json: bool) -> None:
    """Lock the vault with another passphrase, or another key file, from now on. Also SFUMATO_NEW_PASSPHRASE."""
    vault = local_vault(location, key_path)
    vault.relock(_new(new_key_file))
    say(
        {"opens with": vault.opens_with},
        as_json,
        f"The vault opens with the new {vault.opens_with} only.",
        "sfumato verify",
    )


@click.command()
@click.option("--lost", is_flag=True, help="The old passphrase or key is lost.")
@click.option("--new-key-file", type=_FILE, help="Lock it with this key file, which is made if it does not exist.")
@click.option("--yes", is_flag=True, help="Do it, knowing what it costs.")
@vault_options
@as_json_option
def rekey(
    lost: bool, new_key_file: Path | None, yes: bool, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Take another master key, and say what it costs: noise that is independent of all copies already given."""
    from sfumato.vault import Vault
    from sfumato.vault.messages import rekey_cost, sentence

    vault = Vault.open(location) if lost else local_vault(location, key_path)
    cost = vault.rekey_cost()
    click.echo(rekey_cost(cost, lost=lost), err=True)
    if not yes:
        click.confirm("Go on?", abort=True, err=True)
    secret = _new(new_key_file) if lost or new_key_file is not None else None
    entry = vault.rekey(secret=secret, lost=lost)
    say(
        {"entry": entry.__dict__, "cost": cost},
        as_json,
        sentence(entry),
        "sfumato verify, and tell recipients the new key",
    )


def _new(key_path: Path | None) -> Any:
    """The new secret of a vault."""
    import os

    from sfumato.errors import CustodyError

    typed = os.environ.get("SFUMATO_NEW_PASSPHRASE") if key_path is None else None
    secret = typed or new_secret(key_path, "New passphrase")
    if secret is None:
        raise CustodyError("a vault must be locked with something: set SFUMATO_NEW_PASSPHRASE, or use --new-key-file")
    return secret

"""Commands about a service: running it, and letting people and programs in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from sfumato.cli.output import as_json_option, say
from sfumato.cli.vault_options import key_option, local_vault, open_vault, vault_options
from sfumato.errors import ServiceError, VaultError


@click.command()
@click.argument("location", metavar="[VAULT]", default="vault", envvar="SFUMATO_VAULT")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="More than one on PostgreSQL."
)
@click.option(
    "--tables",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Tables in this folder may be registered by their path.",
)
@click.option(
    "--insecure", is_flag=True, help="Plain HTTP, to try it on this machine; else a proxy with TLS is in front."
)
@click.option("--proxied", is_flag=True, help="Believe the proxy in front about who the client is.")
@click.option(
    "--rate", type=click.IntRange(1), default=1200, show_default=True, help="Requests a minute of one caller."
)
@click.option(
    "--tries", type=click.IntRange(1), default=20, show_default=True, help="Failures a minute to say who one is."
)
@click.option("--check", "only_check", is_flag=True, help="Say what is missing, and stop.")
@key_option
@as_json_option
def serve(
    location: str,
    host: str,
    port: int,
    workers: int,
    tables: Path | None,
    insecure: bool,
    proxied: bool,
    rate: int,
    tries: int,
    only_check: bool,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Serve a VAULT over HTTP: copies for recipients, and a console for its owner."""
    from sfumato.service.deployment_check import check
    from sfumato.service.server import serve
    from sfumato.service.settings import Settings

    settings = Settings(secure=not insecure, tables=tables, proxied=proxied, rate=rate, tries=tries)
    vault = local_vault(location, key_path)
    findings = list(check(vault, settings, host, workers))
    lacking = [one for one in findings if not one.good and one.needed]
    if only_check:
        text = "\n".join(f"{'+' if one.good else '!' if one.needed else '-'} {one.text}" for one in findings)
        data = {"ready": not lacking, "findings": [one.__dict__ for one in findings]}
        say(data, as_json, text, f"sfumato serve {location}" if not lacking else "put right what is marked with !")
        raise click.exceptions.Exit(1 if lacking else 0)
    if lacking:
        raise ServiceError(f"the service cannot start: {lacking[0].text}")
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    click.echo(f"Serving {location} at {address} (console: {address}/console). Stop it with Ctrl-C.", err=True)
    serve(vault.pooled, settings, host, port, workers)


@click.group()
def token() -> None:
    """Hand out and withdraw the tokens that programs show to a service."""


@token.command("add")
@click.argument("recipient", required=False)
@click.option("--owner", is_flag=True, help="For the owner's own programs, not for a recipient.")
@click.option("--scope", "scopes", multiple=True, help="Of an owner's token: read, write, metrics; repeat it.")
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True)
@click.option("--note", default="", help="What it is for.")
@vault_options
@as_json_option
def token_add(
    recipient: str | None,
    owner: bool,
    scopes: tuple[str, ...],
    days: int,
    note: str,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Hand out a token to a RECIPIENT, or with --owner to the owner's programs. It is shown once."""
    if owner == (recipient is not None):
        raise click.UsageError("a token is for a RECIPIENT, or for the owner with --owner.")
    vault = open_vault(location, key_path)
    made = vault.token(recipient or "", scopes=scopes or None, days=days, note=note)
    text = f"{made['token']}\n\nThis token is shown once, and opens until {made['until'][:10]}. Hand it over safely."
    say(made, as_json, text, "SFUMATO_TOKEN=... sfumato fetch DATASET --url URL")


@token.command("list")
@vault_options
@as_json_option
def token_list(location: str, key_path: Path | None, as_json: bool) -> None:
    """List all tokens: whose they are, and until when; not what they are."""
    found = open_vault(location, key_path).tokens()
    lines = [
        f"{one.id}  {one.holder or 'the owner':<20} {', '.join(one.scopes):<22} until {one.until[:10]}"
        f"{'  withdrawn' if one.withdrawn else ''}{f'  ({one.note})' if one.note else ''}"
        for one in found
    ]
    say(
        {"tokens": [one.__dict__ for one in found]},
        as_json,
        "\n".join(lines) or "No token.",
        "sfumato token withdraw ID",
    )


@token.command("withdraw")
@click.argument("name", metavar="ID")
@vault_options
@as_json_option
def token_withdraw(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let a token open nothing any more."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).withdraw(name)
    say(entry.__dict__, as_json, sentence(entry), "sfumato token list")


@click.group()
def operator() -> None:
    """Say who may sign in to the console."""


@operator.command("add")
@click.argument("name")
@vault_options
@as_json_option
def operator_add(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let NAME sign in, with a password that is asked for (or SFUMATO_OPERATOR_PASSWORD); again, to change it."""
    from sfumato.vault import operators
    from sfumato.vault.messages import sentence

    password = os.environ.get("SFUMATO_OPERATOR_PASSWORD")
    if password is None and not sys.stdin.isatty():
        raise VaultError("a password must be given; set SFUMATO_OPERATOR_PASSWORD, or run this where you can be asked")
    if password is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    entry = operators.enrol(local_vault(location, key_path), name, str(password))
    say(entry.__dict__, as_json, sentence(entry), "sfumato serve")


@operator.command("list")
@vault_options
@as_json_option
def operator_list(location: str, key_path: Path | None, as_json: bool) -> None:
    """List all who may sign in."""
    from sfumato.vault import operators

    found = operators.names(local_vault(location, key_path))
    say({"operators": found}, as_json, "\n".join(found) or "Nobody.", "sfumato operator add NAME")


@operator.command("dismiss")
@click.argument("name")
@vault_options
@as_json_option
def operator_dismiss(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let NAME sign in no more."""
    from sfumato.vault import operators
    from sfumato.vault.messages import sentence

    entry = operators.dismiss(local_vault(location, key_path), name)
    say(entry.__dict__, as_json, sentence(entry), "sfumato operator list")

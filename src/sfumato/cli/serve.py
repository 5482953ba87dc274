"""Commands for the service: `serve` runs it, `token` and `operator` manage access to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.config import config_option
from sfumato.cli.output import as_json_option, print_result
from sfumato.cli.vault_options import key_option, local_vault, open_vault, vault_options
from sfumato.errors import ServiceError, VaultError, install_hint
from sfumato.service.settings import LIMITS, Settings

if TYPE_CHECKING:
    from sfumato.service.deployment_check import Finding

_PEM_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
ENVIRONMENT = "SFUMATO_SERVE"
"""Each option of the service has a variable: this, and its name in capitals, as SFUMATO_SERVE_PORT."""

_DEFAULTS = Settings()


def _limits(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each limit."""
    for name, text in reversed(LIMITS.items()):
        option, default = f"--{name.replace('_', '-')}", getattr(_DEFAULTS, name)
        command = click.option(option, type=click.IntRange(1), default=default, show_default=True, help=text)(command)
    return command


@click.command(context_settings={"auto_envvar_prefix": ENVIRONMENT})
@click.argument("location", metavar="[VAULT]", default="vault", envvar="SFUMATO_VAULT")
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="The port to listen on.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes; more than one needs PostgreSQL.",
)
@click.option(
    "--tables",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder whose tables may be registered by their path.",
)
@click.option(
    "--sources",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file in TOML with URLs of tables in databases, by names that owners choose from: name = "postgresql://...".',
)
@click.option(
    "--openid",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file in TOML with the OpenID Connect provider at which operators may sign in: issuer, client_id, "
    "client_secret.",
)
@click.option("--tls-certificate", type=_PEM_FILE, help="Serve HTTPS with this certificate chain, a PEM file.")
@click.option("--tls-key", type=_PEM_FILE, help="The private key of the certificate, a PEM file.")
@click.option("--insecure", is_flag=True, help="Plain HTTP without a TLS proxy, for a trial on this machine only.")
@click.option("--proxied", is_flag=True, help="A TLS proxy is in front; trust the client address that it reports.")
@click.option("--rate", type=click.IntRange(1), default=1200, show_default=True, help="Requests per minute and caller.")
@click.option(
    "--tries", type=click.IntRange(1), default=20, show_default=True, help="Failed sign-ins per minute and address."
)
@_limits
@click.option("--check", "only_check", is_flag=True, help="Check the deployment, and exit.")
@key_option
@as_json_option
def serve(
    location: str,
    host: str,
    port: int,
    workers: int,
    tables: Path | None,
    sources: Path | None,
    openid: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    insecure: bool,
    proxied: bool,
    rate: int,
    tries: int,
    only_check: bool,
    key_path: Path | None,
    as_json: bool,
    **limits: int,
) -> None:
    """Serve a VAULT over HTTP, with copies for recipients and a console for its owner.

    It needs TLS: its own, with a certificate, or that of a proxy on this machine, or elsewhere with --proxied. Each
    option can also be set in a file (--config) or by a variable, as SFUMATO_SERVE_PORT: see `sfumato config`.
    """
    try:
        from sfumato.service.deployment_check import check
        from sfumato.service.openid import read_provider
        from sfumato.service.server import serve
        from sfumato.service.sources import read_sources
    except ModuleNotFoundError as error:
        raise ServiceError(f"the service needs {error.name}; {install_hint('serve')}") from None

    settings = Settings(
        secure=not insecure,
        tls=_tls_files(tls_certificate, tls_key, insecure=insecure),
        tables=tables,
        sources=read_sources(sources) if sources else {},
        openid=read_provider(openid) if openid else None,
        proxied=proxied,
        requests_per_minute=rate,
        failures_per_minute=tries,
        **limits,
    )
    vault = local_vault(location, key_path)
    name = vault.ledger.database.name  # without a password
    _require_ready(list(check(vault, settings, host, workers)), name, only_check=only_check, as_json=as_json)
    _announce(name, f"{'http' if settings.tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}")
    serve(vault.pooled, settings, host, port, workers)


def _tls_files(certificate: Path | None, key: Path | None, *, insecure: bool) -> tuple[Path, Path] | None:
    """The files for HTTPS, if they were given."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--tls-certificate and --tls-key must be given together.")
    if insecure:
        raise click.UsageError("--insecure is plain HTTP, and --tls-certificate is HTTPS; give one of them.")
    return certificate, key


def _announce(name: str, address: str) -> None:
    click.echo(f"Serving {name} at {address} (console: {address}/console). Stop it with Ctrl-C.", err=True)


def _require_ready(findings: Sequence[Finding], name: str, *, only_check: bool, as_json: bool) -> None:
    """Go on only if nothing that is needed is missing; where only a check is wanted, report all and exit."""
    failed = [one for one in findings if not one.good and one.needed]
    if only_check:
        _report(findings, f"sfumato serve {name}" if not failed else "fix the findings with !", as_json=as_json)
        raise click.exceptions.Exit(1 if failed else 0)
    if failed:
        raise ServiceError(f"the service cannot start: {failed[0].text}")


def _report(findings: Sequence[Finding], following: str, *, as_json: bool) -> None:
    """What a check of the deployment found."""
    text = "\n".join(f"{_sign(one)} {one.text}" for one in findings)
    ready = all(one.good or not one.needed for one in findings)
    print_result({"ready": ready, "findings": [one.__dict__ for one in findings]}, as_json, text, following)


def _sign(finding: Finding) -> str:
    """`+` for a check that passed, `!` for a failure that prevents the start, `-` for a recommendation."""
    return "+" if finding.good else "!" if finding.needed else "-"


@click.group()
def token() -> None:
    """Issue and revoke access tokens for programs."""


@token.command("add")
@click.argument("recipient", required=False)
@click.option("--owner", is_flag=True, help="Issue a token for the owner's programs, not for a recipient.")
@click.option(
    "--scope", "scopes", multiple=True, help="A scope for --owner: read, write, metrics or erase; repeatable."
)
@click.option(
    "--link", metavar="URL", help="Print a link to the service at URL instead, which opens once, in a browser."
)
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires.  [default: 90, and 7 for a link]")
@click.option("--note", default="", help="A note on its purpose.")
@vault_options
@as_json_option
def token_add(
    recipient: str | None,
    owner: bool,
    scopes: tuple[str, ...],
    link: str | None,
    days: int | None,
    note: str,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Issue a token to a RECIPIENT, or with --owner to the owner's programs. It is shown only once."""
    if owner == (recipient is not None):
        raise click.UsageError("a token needs either a RECIPIENT or --owner.")
    if link is not None and (owner or scopes or not link.startswith(("https://", "http://"))):
        raise click.UsageError(
            "--link is for a RECIPIENT, without --scope, and the address of a service, such as https://data.example."
        )
    vault = open_vault(location, key_path)
    if link is not None:
        issued = vault.token(recipient or "", scopes=["link"], days=days or 7, note=note)
        address = f"{link.rstrip('/')}/open#{issued.pop('token')}"
        told = f"{address}\n\nIt opens once, until {issued['until'][:10]}, and is not shown again. Send it securely."
        print_result({"link": address, **issued}, as_json, told, "sfumato token list")
        return
    issued = vault.token(recipient or "", scopes=scopes or None, days=days or 90, note=note)
    text = f"{issued['token']}\n\nIt is shown only once, and expires on {issued['until'][:10]}. Send it securely."
    print_result(issued, as_json, text, "SFUMATO_TOKEN=... sfumato fetch DATASET --url URL")


@token.command("list")
@vault_options
@as_json_option
def token_list(location: str, key_path: Path | None, as_json: bool) -> None:
    """List all tokens with holder, scopes and expiry; the tokens themselves are not stored."""
    found = open_vault(location, key_path).tokens()
    lines = [
        f"{one.id}  {one.holder or 'the owner':<20} {', '.join(one.scopes):<22} until {one.until[:10]}  "
        f"{_last_use(one.last_use)}"
        f"{'  revoked' if one.withdrawn else ''}{f'  ({one.note})' if one.note else ''}"
        for one in found
    ]
    print_result(
        {"tokens": [one.__dict__ for one in found]},
        as_json,
        "\n".join(lines) or "There is no token.",
        "sfumato token withdraw ID",
    )


def _last_use(at: str) -> str:
    return f"last used {at[:16]}".replace("T", " ") if at else "never used"


@token.command("withdraw")
@click.argument("name", metavar="ID")
@vault_options
@as_json_option
def token_withdraw(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Revoke a token."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).withdraw(name)
    print_result(entry.__dict__, as_json, sentence(entry), "sfumato token list")


@click.group()
def operator() -> None:
    """Manage the operators, who may sign in to the console."""


@operator.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "editor", "administrator"]),
    help="Look; also change; or everything, with erasing and the team.  [default: administrator, or the present role]",
)
@click.option(
    "--identity",
    metavar="ID",
    help="Sign in through the OpenID Connect provider of `serve --openid`, which must confirm this identity, such "
    "as an e-mail address; no password is asked for.",
)
@vault_options
@as_json_option
def operator_add(
    name: str, role: str | None, identity: str | None, location: str, key_path: Path | None, as_json: bool
) -> None:
    """Add the operator NAME, or change password and role; the password is typed, or in SFUMATO_OPERATOR_PASSWORD."""
    from sfumato.vault import operators
    from sfumato.vault.messages import sentence

    password = os.environ.get("SFUMATO_OPERATOR_PASSWORD")
    if password is None and identity is None:
        if not sys.stdin.isatty():
            raise VaultError("a password is required; set SFUMATO_OPERATOR_PASSWORD, or run the command in a terminal")
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    entry = operators.enrol(local_vault(location, key_path), name, password, role, identity)
    print_result(entry.__dict__, as_json, sentence(entry), "sfumato serve")


@operator.command("list")
@vault_options
@as_json_option
def operator_list(location: str, key_path: Path | None, as_json: bool) -> None:
    """List the operators with their roles."""
    from sfumato.vault import operators

    found = operators.list_operators(local_vault(location, key_path))
    lines = [
        f"{one.name:<20} {one.role:<14} {_last_use(one.last_use)}{f'  {one.identity}' if one.identity else ''}"
        for one in found
    ]
    data = {"operators": [one.__dict__ for one in found]}
    print_result(data, as_json, "\n".join(lines) or "There is no operator.", "sfumato operator add NAME")


@operator.command("dismiss")
@click.argument("name")
@vault_options
@as_json_option
def operator_dismiss(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Remove the operator NAME, who can then no longer sign in."""
    from sfumato.vault import operators
    from sfumato.vault.messages import sentence

    entry = operators.dismiss(local_vault(location, key_path), name)
    print_result(entry.__dict__, as_json, sentence(entry), "sfumato operator list")

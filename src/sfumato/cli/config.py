"""`sfumato config`: the settings of the service, where they come from, and a file to write them in."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any, cast

import click
from click.core import ParameterSource

from sfumato.cli.output import as_json_option, print_result, shown
from sfumato.errors import ServiceError
from sfumato.serialization import json_safe

_NOT_SETTINGS = ("config", "only_check", "as_json", "help", "quiet")

_SHARED = {"vault": "SFUMATO_VAULT", "key_file": "SFUMATO_KEY_FILE"}
"""Variables that other commands use, too."""

_SOURCES = {
    ParameterSource.DEFAULT: "default",
    ParameterSource.DEFAULT_MAP: "file",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.COMMANDLINE: "command line",
}


def _settings(command: click.Command) -> dict[str, click.Parameter]:
    """The parameters of the service by the names that they have in a file."""
    names = {"location": "vault", "key_path": "key_file"}
    return {names.get(str(one.name), str(one.name)): one for one in command.params if one.name not in _NOT_SETTINGS}


def _read(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Take the settings of a file as defaults, which options and the environment override."""
    if path is None:
        return
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ServiceError(f"the configuration {path} must be a file in TOML, and could not be read: {error}") from None
    known = _settings(context.command)
    unknown = [name for name in found if name not in known]
    if unknown:
        raise ServiceError(
            f"a configuration may set {', '.join(known)}, and {path} sets {unknown[0]!r}; see `sfumato config`"
        )
    context.default_map = {str(known[name].name): value for name, value in found.items()}


config_option = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    envvar="SFUMATO_SERVE_CONFIG",
    callback=_read,
    help="A file in TOML with these options.",
)


@click.command()
@click.option("--show", is_flag=True, help="Print the settings in force, and where each comes from.")
@click.option("--config", "path", type=click.Path(dir_okay=False, path_type=Path), help="The file to read them from.")
@as_json_option
@click.pass_context
def config(context: click.Context, show: bool, path: Path | None, as_json: bool) -> None:
    """Print a commented configuration file for `sfumato serve`, or with --show the settings in force.

    Options override variables of the environment, these override the file, and the file overrides defaults.
    """
    serve = cast("click.Command", cast("click.Group", context.find_root().command).get_command(context, "serve"))
    words = [] if path is None else ["--config", str(path)]
    with serve.make_context("serve", words) as served:
        found = [_setting(served, name, one) for name, one in _settings(serve).items()]
    if show or as_json:
        width = max(len(one["name"]) for one in found)
        text = "\n".join(f"{one['name']:<{width}}  {_shown(one['value']):<24} {one['source']}" for one in found)
        print_result({"settings": found}, as_json, text, "sfumato serve --check")
    else:
        click.echo("\n".join(_template(one) for one in found))


def _setting(context: click.Context, name: str, parameter: click.Parameter) -> dict[str, Any]:
    value, source = context.params[str(parameter.name)], context.get_parameter_source(str(parameter.name))
    variable = _SHARED.get(name, f"{context.auto_envvar_prefix}_{name.upper()}")
    if value is None and variable in os.environ:  # the key file, which is read where it is needed
        value, source = os.environ[variable], ParameterSource.ENVIRONMENT
    return {
        "name": name,
        "value": shown(value) if name == "vault" else json_safe(value),
        "source": _SOURCES.get(source or ParameterSource.DEFAULT, "default"),
        "variable": variable,
        "help": getattr(parameter, "help", None) or "The vault: a folder, or the URL of a database.",
    }


def _shown(value: Any) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _template(one: dict[str, Any]) -> str:
    value = one["value"]
    stated = f"{one['name']} = {json.dumps(value)}" if value is not None else f"{one['name']} = "
    return f"# {one['help']} ({one['variable']})\n# {stated}"

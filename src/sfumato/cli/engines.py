"""Which engine a command's work is done by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sfumato.engines import Engine

_ENGINE = click.option(
    "--engine",
    default="local",
    show_default=True,
    help="Where the work is done: local, or a cluster (dask, spark) for a table in a folder of files.",
)
_SCHEDULER = click.option("--scheduler", help="Of a Dask cluster, tcp://host:port; without it, one on this machine.")
_MASTER = click.option("--master", help="Of a Spark cluster, spark://host:port; without it, one on this machine.")
_THREADS = click.option("--threads", type=click.IntRange(min=1), help="How many cores to use here; by default all.")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command whose work can be done by a cluster."""
    return _ENGINE(_SCHEDULER(_MASTER(_THREADS(command))))


def engine_of(name: str, scheduler: str | None, master: str | None, threads: int | None) -> Engine:
    """The engine that the options name."""
    from sfumato.engines import ENGINES

    kind = ENGINES[name]
    said = {"--scheduler": scheduler, "--master": master}
    for option, address in said.items():
        if address is not None and option != kind.address_option:
            raise click.UsageError(f"{option} is not for --engine {name}.")
    engine: Engine = kind.at(said.get(kind.address_option), threads)
    return engine

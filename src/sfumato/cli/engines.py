"""Options that choose the engine of a command: this process, or a Dask or Spark cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sfumato.engines import Engine

_ENGINE = click.option(
    "--engine",
    default="local",
    show_default=True,
    help="The engine: local, or for a partitioned table a cluster (dask, spark).",
)
_SCHEDULER = click.option(
    "--scheduler", help="The scheduler of a Dask cluster, tcp://host:port; by default a cluster on this machine."
)
_MASTER = click.option(
    "--master", help="The master of a Spark cluster, spark://host:port; by default a cluster on this machine."
)
_THREADS = click.option("--threads", type=click.IntRange(min=1), help="The number of threads; by default all cores.")


@dataclass(frozen=True)
class EngineChoice:
    """The engine that the options of a command choose."""

    engine: str
    scheduler: str | None
    master: str | None
    threads: int | None

    @property
    def is_local(self) -> bool:
        """Whether the work is done by this process."""
        return self.engine == "local"

    def open(self) -> Engine:
        """Open the engine."""
        from sfumato.engines import ENGINES

        kind = ENGINES[self.engine]
        addresses = {"--scheduler": self.scheduler, "--master": self.master}
        for option, address in addresses.items():
            if address is not None and option != kind.address_option:
                raise click.UsageError(f"{option} does not apply to --engine {self.engine}.")
        engine: Engine = kind.at(addresses.get(kind.address_option), self.threads)
        return engine


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the engine options to a command, which receives them as `engine_choice`."""

    @functools.wraps(command)
    def with_choice(
        *args: Any, engine: str, scheduler: str | None, master: str | None, threads: int | None, **options: Any
    ) -> Any:
        return command(*args, engine_choice=EngineChoice(engine, scheduler, master, threads), **options)

    return _ENGINE(_SCHEDULER(_MASTER(_THREADS(with_choice))))

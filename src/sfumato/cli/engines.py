"""Which engine a command's work is done by."""

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
    help="Where the work is done: local, or a cluster (dask, spark) for a table in a folder of files.",
)
_SCHEDULER = click.option("--scheduler", help="Of a Dask cluster, tcp://host:port; without it, one on this machine.")
_MASTER = click.option("--master", help="Of a Spark cluster, spark://host:port; without it, one on this machine.")
_THREADS = click.option("--threads", type=click.IntRange(min=1), help="How many cores to use here; by default all.")


@dataclass(frozen=True)
class Where:
    """What the options said."""

    engine: str
    scheduler: str | None
    master: str | None
    threads: int | None

    @property
    def is_local(self) -> bool:
        """Whether all is done by this process."""
        return self.engine == "local"

    def open(self) -> Engine:
        """The engine that the options name."""
        from sfumato.engines import ENGINES

        kind = ENGINES[self.engine]
        said = {"--scheduler": self.scheduler, "--master": self.master}
        for option, address in said.items():
            if address is not None and option != kind.address_option:
                raise click.UsageError(f"{option} is not for --engine {self.engine}.")
        engine: Engine = kind.at(said.get(kind.address_option), self.threads)
        return engine


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command whose work can be done by a cluster; it is told `where`."""

    @functools.wraps(command)
    def told(
        *words: Any, engine: str, scheduler: str | None, master: str | None, threads: int | None, **more: Any
    ) -> Any:
        return command(*words, where=Where(engine, scheduler, master, threads), **more)

    return _ENGINE(_SCHEDULER(_MASTER(_THREADS(told))))

"""Every figure and table of the five papers, one file each, and what we claim beyond them.

A figure is a file `PAPER_FIGURE.py` in this folder with one final class derived from `Experiment`: `run` makes a table,
`draw` a picture of that table, and `claims` holds what the paper states against it. Pictures and verdicts are made from
the table alone, so that a stored table can be drawn and judged again. The command line, the report, the gallery of the
documentation and the tests find it by its name.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.experiments._claims import AGREES, CORRECTED, FAILS, Claim, claim
from sfumato.experiments._tables import cells, distinct, rows_of
from sfumato.family import Family
from sfumato.keys.key import Key

__all__ = [
    "AGREES",
    "CORRECTED",
    "EXPERIMENTS",
    "FAILS",
    "PAPERS",
    "Claim",
    "Experiment",
    "Job",
    "cells",
    "claim",
    "distinct",
    "rows_of",
]

PAPERS = {
    "li2012": "Li, Chen, Li, Zhang: Enabling Multi-level Trust in Privacy Preserving Data Mining (2012)",
    "xiao2009": "Xiao, Tao, Chen: Optimal Random Perturbation at Multiple Privacy Levels (2009)",
    "huang2005": "Huang, Du, Chen: Deriving Private Information from Randomized Data (2005)",
    "giannella2010": "Giannella, Liu, Kargupta: On the Privacy of Euclidean Distance Preserving Data Perturbation "
    "(2010)",
    "zhang2005": "Zhang, Wang, Zhao: A New Scheme on Privacy-Preserving Data Classification (2005)",
    "beyond": "Beyond the papers",
}

EXPERIMENTS = Family("sfumato.experiments", "Experiment")


@dataclass(frozen=True)
class Job:
    """How an experiment is to be run."""

    quick: bool
    """At toy size, to see that it works; else at the paper's."""
    seed: int
    advance: Callable[[int], None] = field(default=lambda _: None)
    """Told as work gets done, in hundredths of all of it."""

    def size(self, full: Any, toy: Any) -> Any:
        """The one or the other."""
        return toy if self.quick else full

    def rng(self, *path: int) -> np.random.Generator:
        """A generator of its own for each part of the work."""
        return np.random.default_rng([self.seed, *path])

    def key(self, *path: int) -> Key:
        """A key for releases: of an experiment that can be repeated, not of a release that must be kept secret."""
        return Key.from_bytes(self.rng(999, *path).bytes(32))

    def steps(self, items: Any, parts: int = 1) -> Any:
        """Go through some items, and tell how far it is; of so many equal parts of the work, these are one."""
        items = list(items)
        share = 100 // parts
        for at, item in enumerate(items):
            yield item
            self.advance(share * (at + 1) // len(items) - share * at // len(items))


class Experiment(abc.ABC):
    """One figure or table."""

    title: ClassVar[str]
    about: ClassVar[str]
    """What it shows and how it was set up, for the report and the gallery."""
    data: ClassVar[str]
    """Which data it uses; stand-ins are named as such."""
    size: ClassVar[tuple[float, float]] = (7.2, 4.0)
    """Inches."""
    seed: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """Its address, as in `li2012/fig2`."""
        return type(self).__module__.rpartition(".")[2].replace("_", "/", 1).replace("_", "-")

    def source(self) -> str:
        """The data that it was made from here, where a stand-in depends on what is to be had."""
        return self.data

    @abc.abstractmethod
    def run(self, job: Job) -> pa.Table:
        """The figures behind the picture."""

    @abc.abstractmethod
    def draw(self, figure: Any, table: pa.Table) -> None:
        """Draw on a figure of Matplotlib's."""

    @abc.abstractmethod
    def claims(self, table: pa.Table) -> list[Claim]:
        """What the paper states, and whether it holds here."""

"""Reproduction of the figures and tables of five papers, one file per figure, and figures for our own claims.

To add a figure, write one file `PAPER_FIGURE.py` (such as `li2012_fig2.py`) with one class derived from `Experiment`:

    class Figure2(Experiment):
        'The estimation error against the number of copies.'

        title = "li2012, Fig. 2: error of joint estimation"
        description = "30 copies with noise between 0.25 and 1 of the variance."
        data = "synthetic normal records"

        def run(self, job: Job) -> pa.Table:
            rows = job.size(full=100_000, quick=2_000)
            return to_table({"copies": m, "error": ...} for m in job.track(range(1, 31)))

        def draw(self, figure: Any, table: pa.Table) -> None:
            figure.subplots().plot(select(table, "copies"), select(table, "error"))

        def claims(self, table: pa.Table) -> list[Claim]:
            last = select(table, "error")[-1]
            return [claim("the error falls", "section 6.2", "below 0.1 at M = 30", f"{last:.3f}", last < 0.1)]

`run` computes a table, `draw` plots that table and `claims` compares it with the paper's statements. Plots and verdicts
depend on the table alone, so a stored table can be plotted and judged again. `job.size` holds the small size at which
`sfumato reproduce --quick` and the conformance tests run the figure.

The file goes into this package, or into an installed package that declares it in its own `pyproject.toml`:

    [project.entry-points."sfumato.experiments"]
    smith2020-fig1 = "my_package.smith2020_fig1"

A figure of a paper that is not in `PAPERS` sets `citation`. Nothing else has to be edited: `EXPERIMENTS` is a mapping
from names (`li2012-fig2`) to classes, and the command line, the report, the gallery of the documentation and
`tests/conformance/test_experiments.py` iterate over it. `sfumato.testing.check_experiment` runs the conformance suite
on a figure of another package.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.experiments._claims import AGREES, CHOSEN, CORRECTED, FAILS, VERDICTS, Claim, claim
from sfumato.experiments._tables import distinct, select, to_table
from sfumato.family import Family
from sfumato.keys.key import Key

__all__ = [
    "AGREES",
    "CHOSEN",
    "CORRECTED",
    "EXPERIMENTS",
    "FAILS",
    "PAPERS",
    "VERDICTS",
    "Claim",
    "Experiment",
    "Job",
    "claim",
    "distinct",
    "select",
    "to_table",
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
"""The papers whose figures are in this package, in the order of the report."""

EXPERIMENTS = Family("sfumato.experiments", "Experiment")

Item = TypeVar("Item")


@dataclass(frozen=True)
class Job:
    """The settings of one run of an experiment: its size, its seed, and where progress is reported."""

    quick: bool
    """Whether to run at the small size, as a check, rather than at the paper's size."""
    seed: int
    advance: Callable[[int], None] = field(default=lambda _: None)
    """Called with the progress made since the last call, in percent of the whole run."""

    def size(self, full: Any, quick: Any) -> Any:
        """The setting for a run of this size: `full` for the paper's size, `quick` for a check."""
        return quick if self.quick else full

    def rng(self, *path: int) -> np.random.Generator:
        """An independent random generator for one part of the work, identified by numbers."""
        return np.random.default_rng([self.seed, *path])

    def key(self, *path: int) -> Key:
        """A reproducible key, for copies that an experiment releases to itself; never use it for a real release."""
        return Key.from_bytes(self.rng(999, *path).bytes(32))

    def track(self, items: Iterable[Item], parts: int = 1) -> Iterator[Item]:
        """Iterate over items and report progress; these items are one of `parts` equal parts of the run."""
        items = list(items)
        share = 100 // parts
        for i, item in enumerate(items):
            yield item
            self.advance(share * (i + 1) // len(items) - share * i // len(items))


class Experiment(abc.ABC):
    """One figure or table of a paper, with the claims that the paper makes about it."""

    title: ClassVar[str]
    description: ClassVar[str]
    """What the figure shows and how it was set up: its caption in the report and in the gallery."""
    data: ClassVar[str]
    """The data it uses; substitutes for data that are not public are named as such."""
    citation: ClassVar[str] = ""
    """The paper's authors, title and year; needed only for a paper that is not in `PAPERS`."""
    figsize: ClassVar[tuple[float, float]] = (7.2, 4.0)
    """Width and height in inches."""
    seed: ClassVar[int] = 1
    measures_time: ClassVar[bool] = False
    """Whether verdicts depend on measured run times, hence on the machine; such a table has a column `seconds`."""
    chosen_settings: ClassVar[str] = ""
    """The settings that the paper does not state, and on which verdicts depend; those that agree say so."""
    quick_is_enough: ClassVar[bool] = True
    """Whether the small size of `--quick` is large enough to give the verdicts of the full size."""
    makes_claims: ClassVar[bool] = True
    """Whether there is any claim to check; a figure that only describes data has none."""

    @property
    def name(self) -> str:
        """The name on the command line, `PAPER/FIGURE`, such as `li2012/fig2`."""
        return type(self).__module__.rpartition(".")[2].replace("_", "/", 1).replace("_", "-")

    @property
    def paper(self) -> str:
        """The short name of the paper, such as `li2012`."""
        return self.name.partition("/")[0]

    @property
    def heading(self) -> str:
        """The citation under which reports list the figure."""
        return self.citation or PAPERS.get(self.paper, self.paper)

    def data_source(self) -> str:
        """The data actually used; differs from `data` where a substitute depends on which files are available."""
        return self.data

    @abc.abstractmethod
    def run(self, job: Job) -> pa.Table:
        """Compute the numbers behind the figure."""

    @abc.abstractmethod
    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot the table on a Matplotlib figure."""

    @abc.abstractmethod
    def claims(self, table: pa.Table) -> list[Claim]:
        """Compare the paper's statements with the table."""

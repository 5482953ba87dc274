"""li2012, Figure 1: the distribution of the sensitive values Age and Income."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, cells, rows_of
from sfumato.pages.svg import BLUE


class Figure1(Experiment):
    """What the experiments of the paper blur."""

    title = "li2012, Fig. 1: distribution of sensitive values Age and Income"
    about = "The first 100,000 tuples, as in section 6.1. The paper states nothing of its shape beyond Table 3."
    data = "CENSUS"
    size = (7.2, 3.2)

    def source(self) -> str:
        """The stand-in."""
        return _census.source()

    def run(self, job: Job) -> pa.Table:
        """Shares of people by value."""
        table, out = _census.people(job.size(100_000, 5000)), []
        for name in _census.NAMES:
            counts, edges = np.histogram(table.column(name).to_numpy(), 50)
            shares = counts / counts.sum()
            out += [
                {"attribute": name, "value": value, "share": share}
                for value, share in zip((edges[1:] + edges[:-1]) / 2, shares, strict=True)
            ]
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two histograms."""
        for axis, name, unit in zip(figure.subplots(1, 2), _census.NAMES, ("years", "steps of the code"), strict=True):
            value = cells(table, "value", attribute=name)
            axis.bar(value, 100 * cells(table, "share", attribute=name), value[1] - value[0], color=BLUE)
            axis.set_xlabel(f"{name} ({unit})")
            axis.set_ylabel("tuples (%)")

    def claims(self, table: pa.Table) -> list[Claim]:  # noqa: ARG002
        """None is made of it."""
        return []

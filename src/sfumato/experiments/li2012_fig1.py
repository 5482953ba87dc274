"""li2012, Figure 1: the distribution of the sensitive values Age and Income."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, select, to_table
from sfumato.pages.svg import BLUE


class Figure1(Experiment):
    """Histograms of the data that the paper perturbs."""

    title = "li2012, Fig. 1: distribution of sensitive values Age and Income"
    description = "The first 100,000 tuples, as in section 6.1. The paper does not describe the shape beyond Table 3."
    data = "CENSUS"
    figsize = (7.2, 3.2)
    makes_claims = False

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _census.data_source()

    def run(self, job: Job) -> pa.Table:
        """Compute the share of people in each bin."""
        table, out = _census.people(job.size(100_000, 5000)), []
        for name in _census.NAMES:
            values = table.column(name).to_numpy()
            width = np.ceil(np.ptp(values) / 50)  # as many whole numbers in each bin, or some would be false spikes
            counts, edges = np.histogram(values, np.arange(values.min() - 0.5, values.max() + width, width))
            shares = counts / counts.sum()
            out += [
                {"attribute": name, "value": value, "share": share}
                for value, share in zip((edges[1:] + edges[:-1]) / 2, shares, strict=True)
            ]
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two histograms."""
        for axis, name, unit in zip(figure.subplots(1, 2), _census.NAMES, ("years", "coded units"), strict=True):
            value = select(table, "value", attribute=name)
            axis.bar(value, 100 * select(table, "share", attribute=name), value[1] - value[0], color=BLUE)
            axis.set_xlabel(f"{name} ({unit})")
            axis.set_ylabel("tuples (%)")

    def claims(self, table: pa.Table) -> list[Claim]:  # noqa: ARG002
        """Return no claim: the paper makes none about this figure."""
        return []

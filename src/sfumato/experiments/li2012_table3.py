"""li2012, Table 3: statistics of the original data Age and Income."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, claim, select, to_table
from sfumato.experiments._plotting import bars, legend

PRINTED = {"Age": (50.06, 303.03), "Income": (16.57, 219.92)}


class Table3(Experiment):
    """The means and variances of Age and Income, ours and the printed ones."""

    title = "li2012, Table 3: statistics of the original data"
    description = "Mean and variance of the first 100,000 tuples, and the printed values."
    data = "CENSUS"
    figsize = (7.2, 3.2)

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _census.data_source()

    def run(self, job: Job) -> pa.Table:
        """Compute our means and variances, next to the printed ones."""
        table, out = _census.people(job.size(100_000, 20_000)), []
        for name in _census.NAMES:
            values = table.column(name).to_numpy()
            for what, ours, printed in (
                ("mean", values.mean(), PRINTED[name][0]),
                ("variance", values.var(), PRINTED[name][1]),
            ):
                out.append({"attribute": name, "what": what, "whose": "paper", "value": printed})
                out.append({"attribute": name, "what": what, "whose": "here", "value": float(ours)})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot pairs of bars."""
        for axis, what in zip(figure.subplots(1, 2), ("mean", "variance"), strict=True):
            bars(axis, table, "attribute", "value", "whose", what=what)
            axis.set_ylabel(f"{what} (coded units{'²' if what == 'variance' else ''})")
            axis.margins(y=0.2)
            legend(axis, 2, loc="upper right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Compare the means and variances with the printed ones, to which the substitute was coded."""
        out = []
        for name, printed in PRINTED.items():
            mean, variance = (
                select(table, "value", attribute=name, what=w, whose="here")[0] for w in ("mean", "variance")
            )
            near = abs(mean / printed[0] - 1) < 0.02 and abs(variance / printed[1] - 1) < 0.02
            out.append(
                claim(
                    f"{name}: mean {printed[0]}, variance {printed[1]}",
                    "Table 3",
                    "within 2 % (the substitute was coded to these, so this says nothing about the original data)",
                    f"mean {mean:.2f}, variance {variance:.2f}",
                    near,
                )
            )
        return out

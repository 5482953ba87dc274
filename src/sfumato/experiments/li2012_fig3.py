"""li2012, Figure 3: histograms and cumulative histograms of the estimation error."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.attack import attack
from sfumato.experiments import Claim, Experiment, Job, _census, claim, select, to_table
from sfumato.experiments._census import INDEPENDENT, NAMES, OURS
from sfumato.experiments._plotting import COLOURS, legend_above

COUNTS = (5, 10, 20, 30)
LARGEST = {"Age": 30.0, "Income": 26.0}


class Figure3(Experiment):
    """The distribution of the absolute estimation error over all tuples."""

    title = "li2012, Fig. 3: histogram and cumulative histogram of the estimation error"
    description = (
        "The absolute error of each tuple's joint linear estimate with perfect knowledge, for M = 5, "
        "10, 20 and 30 copies of Fig. 2. The weights of all copies are fitted to half of the original "
        "records and tested on the others, whatever the manifests say about the copies."
    )
    data = "CENSUS"
    figsize = (7.6, 6.0)

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _census.data_source()

    def run(self, job: Job) -> pa.Table:
        """Count the errors in forty bins."""
        table = _census.people(job.size(100_000, 10_000))
        known, tested = np.arange(0, len(table), 2), np.arange(1, len(table), 2)
        noises, out = job.rng().uniform(0.25, 1, 30), []
        for how in job.track((OURS, INDEPENDENT)):
            copies = _census.copies(table, noises, how, job.key())
            for count in COUNTS:
                estimate = attack("regression", copies[:count], known=(known, table.take(known)))
                for i, name in enumerate(NAMES):
                    error = np.abs(estimate.values[:, i] - table.column(name).to_numpy())[tested]
                    edges = np.linspace(0, LARGEST[name], 41)
                    shares = np.histogram(np.minimum(error, LARGEST[name]), edges)[0] / len(error)
                    out += [
                        {"scheme": how, "copies": count, "attribute": name, "error": edge, "share": share, "sum": total}
                        for edge, share, total in zip(edges[1:], shares, shares.cumsum(), strict=True)
                    ]
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot histograms above, and cumulative histograms below."""
        axes = figure.subplots(2, 2, sharex="col")
        for column, name in enumerate(NAMES):
            for how, dash in ((INDEPENDENT, "--"), (OURS, "-")):
                for i, count in enumerate(COUNTS):
                    where = {"scheme": how, "copies": count, "attribute": name}
                    for row, what in enumerate(("share", "sum")):
                        axes[row][column].plot(
                            select(table, "error", **where),
                            100 * select(table, what, **where),
                            dash,
                            color=COLOURS[i],
                            label=f"{how}, M = {count}",
                            linewidth=1.3,
                        )
            axes[0][column].set_title(f"({'ab'[column]}) {name}", fontsize=9.5)
            axes[1][column].set_xlabel(f"absolute error ({'years' if name == 'Age' else 'coded units'})")
        axes[0][0].set_ylabel("tuples (%)")
        axes[1][0].set_ylabel("cumulative (%)")
        legend_above(axes[0][0], 4)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that our cumulative histograms stay, and those of independent noise approach the axis."""
        total = _cumulative(table)
        # the bin of the median error: the smaller, the better for the attacker
        median = {key: float(np.searchsorted(sums, 0.5)) for key, sums in total.items()}
        slower = min((median[OURS, m, n] + 1) / (median[INDEPENDENT, m, n] + 1) for m in (10, 20, 30) for n in NAMES)
        moves = max(float(np.abs(total[OURS, m, n] - total[OURS, 30, n]).max()) for m in COUNTS for n in NAMES)
        independent = max(float(np.abs(total[INDEPENDENT, 5, n] - total[INDEPENDENT, 30, n]).max()) for n in NAMES)
        approaches = _approaches_axis(total)
        where = "section 6.2, Fig. 3"
        return [
            claim(
                "the cumulative histograms of our scheme approach 1 much slower than those of IN",
                where,
                "the median error is at least 1.5 times as large, from M = 10 on",
                f"at least {slower:.1f} times",
                slower >= 1.5,
            ),
            claim(
                "as M increases, the cumulative histograms of our scheme are almost identical",
                where,
                "within 0.08 of M = 30 for all M (less noisy copies may still arrive), and a quarter of IN's change",
                f"within {moves:.3f}; IN moves by {independent:.3f}",
                moves < 0.08 and moves < independent / 4,
            ),
            claim(
                "those by the independent noise scheme approach the vertical axis",
                where,
                "each M nowhere below the previous M by more than 0.002, in the left half",
                "true everywhere" if approaches else "not everywhere",
                approaches,
            ),
        ]


def _cumulative(table: pa.Table) -> dict[tuple[str, int, str], Any]:
    """The cumulative histogram of each scheme, number of copies and attribute."""
    return {
        (how, m, name): select(table, "sum", scheme=how, copies=m, attribute=name)
        for how in (OURS, INDEPENDENT)
        for m in COUNTS
        for name in NAMES
    }


def _approaches_axis(total: dict[tuple[str, int, str], Any]) -> bool:
    """Whether small errors become more frequent with every further copy with independent noise."""
    return all(
        (total[INDEPENDENT, b, name][:20] >= total[INDEPENDENT, a, name][:20] - 0.002).all()
        for a, b in pairwise(COUNTS)
        for name in NAMES
    )

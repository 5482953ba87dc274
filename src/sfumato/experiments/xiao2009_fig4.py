"""xiao2009, Figure 4: the distributions of sensitive values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _uniform_copies as _replacing
from sfumato.pages.svg import BLUE

KEPT = 0.5
"""Charlie's retention."""
SIZES = {"uniform": 50, "Gaussian": 50, "Salary": 50, "Occupation": 27}


class Figure4(Experiment):
    """The four choices of pdf(x)."""

    title = "xiao2009, Fig. 4: distributions of sensitive values"
    about = (
        "What the values of Figures 5 and 6 are drawn from. The mean and deviation of the Gaussian "
        "are not stated; ours is centred with six deviations across the domain."
    )
    data = "Adult (IPUMS)"
    size = (7.6, 4.6)

    def source(self) -> str:
        """The stand-in."""
        return _replacing.source()

    def run(self, job: Job) -> pa.Table:  # noqa: ARG002 - at any size
        """Probabilities."""
        return rows_of(
            {"law": name, "value": value, "share": float(share)}
            for name, law in _replacing.laws().items()
            for value, share in enumerate(law)
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Four histograms."""
        for axis, name, mark in zip(figure.subplots(2, 2).flat, _replacing.KINDS, "abcd", strict=True):
            axis.bar(cells(table, "value", law=name), 100 * cells(table, "share", law=name), 0.9, color=BLUE)
            axis.set_title(f"({mark}) {name}", fontsize=9.5)
            axis.set_xlabel("value")
            axis.set_ylabel("share (%)")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Domain sizes."""
        found = {name: len(cells(table, "value", law=name)) for name in SIZES}
        hidden = {}
        for name, size in SIZES.items():
            law = cells(table, "share", law=name)
            # given y, value x has probability law[x]·(p·[x = y] + (1-p)/s): y is passed over where another x beats it
            shown = law * (KEPT + (1 - KEPT) / size)
            other = np.array([np.delete(law, y).max() for y in range(size)]) * (1 - KEPT) / size
            hidden[name] = int((shown < other).sum())
        return [
            claim(
                "the domain size of Salary (Occupation) is 50 (27), that of the synthetic ones 50",
                "section 7",
                "the same sizes (the stand-ins are coded so)",
                ", ".join(f"{name} {size}" for name, size in found.items()),
                found == SIZES,
            ),
            claim(
                "the perturbed value always has the highest chance in the reconstructed distribution",
                "section 7, on Figs. 4 and 5",
                "for every value that Charlie (50 %) may receive, in all four distributions, exactly",
                ", ".join(f"{name}: {count} values where not" for name, count in hidden.items()),
                not any(hidden.values()),
                "X7",
            ),
        ]

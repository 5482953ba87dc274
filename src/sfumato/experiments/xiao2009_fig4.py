"""xiao2009, Figure 4: the distributions of sensitive values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _uniform_copies, claim, select, to_table
from sfumato.pages.svg import BLUE

RETENTION = 0.5
"""The retention probability of Charlie's copy."""
SIZES = {"uniform": 50, "Gaussian": 50, "Salary": 50, "Occupation": 27}


class Figure4(Experiment):
    """Histograms of the four distributions pdf(x)."""

    title = "xiao2009, Fig. 4: distributions of sensitive values"
    description = (
        "The distributions of the values in Figures 5 and 6. The paper does not state the mean and the "
        "standard deviation of the Gaussian; ours is centred, with six standard deviations across the domain."
    )
    data = "Adult (IPUMS)"
    figsize = (7.6, 4.6)

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _uniform_copies.data_source()

    def run(self, job: Job) -> pa.Table:  # noqa: ARG002 - the same at any size
        """Compute the probabilities."""
        return to_table(
            {"distribution": name, "value": value, "share": float(share)}
            for name, distribution in _uniform_copies.distributions().items()
            for value, share in enumerate(distribution)
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot four histograms."""
        for axis, name, letter in zip(figure.subplots(2, 2).flat, _uniform_copies.NAMES, "abcd", strict=True):
            axis.bar(
                select(table, "value", distribution=name),
                100 * select(table, "share", distribution=name),
                0.9,
                color=BLUE,
            )
            axis.set_title(f"({letter}) {name}", fontsize=9.5)
            axis.set_xlabel("value")
            axis.set_ylabel("share (%)")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the domain sizes, and where the received value is the likeliest original."""
        sizes = {name: len(select(table, "value", distribution=name)) for name in SIZES}
        passed_over = {}
        for name in SIZES:
            prior = select(table, "share", distribution=name)
            # given y, x has posterior weight prior[x]·(p·[x = y] + (1-p)/s); y is not the mode where another x has more
            size = len(prior)
            received = prior * (RETENTION + (1 - RETENTION) / size)
            other = np.array([np.delete(prior, y).max() for y in range(size)]) * (1 - RETENTION) / size
            passed_over[name] = int((received < other).sum())
        return [
            claim(
                "the domain size of Salary (Occupation) is 50 (27), that of the synthetic ones 50",
                "section 7",
                "the same sizes (the substitutes are coded to them)",
                ", ".join(f"{name} {size}" for name, size in sizes.items()),
                sizes == SIZES,
            ),
            claim(
                "the perturbed value always has the highest chance in the reconstructed distribution",
                "section 7, on Figs. 4 and 5",
                "for every value that Charlie (50 %) may receive, in all four distributions, exactly",
                ", ".join(f"{name}: {count} values where it has not" for name, count in passed_over.items()),
                not any(passed_over.values()),
                "X7",
            ),
        ]

"""giannella2010, Figure 1: the known-input attack on Gaussian data, by the number of known inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._known_inputs import means_by_known, plot_by_known
from sfumato.experiments._plotting import straightness
from sfumato.experiments._rotation_attacks import gaussian_records, known_input_breaches


class Figure1(Experiment):
    """Linked records, run time and breach probability against the number of known inputs."""

    title = "giannella2010, Fig. 1: known-input attack on Gaussian data (100-variate), ε = 0.15"
    description = (
        "100,000 tuples of a 100-variate Gaussian whose mean and covariance are drawn as in footnote "
        "18. |I| is the number of known inputs linked with certainty; ρ(ε) is the largest breach "
        "probability of any other tuple. Bars: one standard deviation over ten attacks."
    )
    data = "synthetic, footnote 18"
    figsize = (7.8, 3.4)
    measures_time = True

    def run(self, job: Job) -> pa.Table:
        """Run ten attacks for each number of known inputs."""
        data = gaussian_records(job.size(100_000, 20_000))
        counts = job.track(
            job.size(
                (10, 20, 30, 40, 50, 54, 58, 60, 62, 64, 66, 68, 70, 74, 80, 90, 100), (10, 50, 60, 64, 70, 80, 100)
            )
        )
        return to_table(known_input_breaches(data, counts, job.size(10, 2), job, [0.15]))

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot three panels."""
        plot_by_known(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that linking is perfect, the transition sharp and the run time short and linear."""
        known, linked, rho, seconds = means_by_known(table)
        where = "section IV-E, Fig. 1"
        wrong = int(sum(select(table, "wrong")))
        paper = np.array([np.median(select(table, "paper_seconds", known=count)) for count in known])
        return [
            claim(
                "on synthetic data the linking is perfect: all known tuples have their perturbed tuple inferred",
                where,
                "|I| = a in every attack, none wrong",
                f"smallest |I|/a {(linked / known).min():.2f}, {wrong} wrong",
                bool((linked == known).all()) and not wrong,
            ),
            claim(
                "the transition from ρ = 0 to 1 occurs very sharply around a = 60",
                where,
                "below 0.1 at a = 50, above 0.9 at a = 80, and one half crossed between 56 and 72",
                f"one half crossed at a = {np.interp(0.5, rho, known):.0f}",
                bool(
                    rho[known <= 50].max() < 0.1
                    and rho[known >= 80].min() > 0.9
                    and 56 < np.interp(0.5, rho, known) < 72
                ),
            ),
            claim(
                "less than 450 s with 100 known tuples",
                "section IV-E",
                "less than 450 s",
                f"{paper.max():.2f} s at most by the paper's algorithm, on our machine",
                bool(paper.max() < 450),
            ),
            claim(
                "the average computation time exhibits a linear trend in the number of known inputs",
                where,
                "a rising straight line explains 90 % of the median times of the paper's algorithm (IV-A.3, corrected)",
                f"{straightness(known, paper):.0%}, {paper.max():.2f} s at most; of our algorithm, which compares "
                f"candidates in one matrix product, {straightness(known, seconds):.0%}",
                straightness(known, paper) > 0.9,
            ),
        ]

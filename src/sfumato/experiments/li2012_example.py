"""li2012, sections 4.2.1 and 4.3: Alice and Bob, with independent and with corner-wave noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import ATTACKS, Knowledge
from sfumato.attacks.evidence.arrays import noisy_copies, records
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._plotting import bars, legend

NOISES = (1.0, 4.0)
EXACT = {"Alice": 0.5, "Bob": 0.8, "both, independent noise": 4 / 9, "both, proposed noise": 0.5}


class Example(Experiment):
    """The estimation error of Alice, of Bob, and of both together."""

    title = "li2012, worked example: Alice (σ² = 1) and Bob (σ² = 4) estimate X = [9, 11]"
    description = (
        "The mean square error of the LLSE estimate over many draws of the noise, by the attack "
        "`regression`, whose weights are fitted to one half of the draws and tested on the other."
    )
    data = "X = [9, 11], mean 10, variance 1"
    figsize = (7.2, 3.4)

    def run(self, job: Job) -> pa.Table:
        """Draw the noise many times, and estimate each time."""
        rng, count = job.rng(), job.size(2_000_000, 100_000)
        original = np.tile([[9.0], [11.0]], (count // 2, 1))
        one, two = rng.normal(size=(2, count, 1))
        first = original + one
        seconds = {"independent": original + 2 * two, "proposed": first + np.sqrt(3) * two}
        known, tested = np.split(np.arange(count), 2)
        knowledge = Knowledge(known=records(original[known]), known_rows=known)

        def error(*copies: Any) -> float:
            """The error of the best linear estimate; the scales and the path that are stated do not matter to it."""
            evidence = noisy_copies(
                copies, np.eye(1), [1.0] * len(copies), collusion_resistant=True, knowledge=knowledge
            )
            estimate = ATTACKS["regression"]().estimate(evidence).values
            return float(np.mean((estimate - original)[tested] ** 2))

        errors = {
            "Alice": error(first),
            "Bob": error(seconds["independent"]),
            "both, independent noise": error(first, seconds["independent"]),
            "both, proposed noise": error(first, seconds["proposed"]),
        }
        return to_table(
            {"who": who, "whose": whose, "error": value}
            for who in EXACT
            for whose, value in (("paper", EXACT[who]), ("here", errors[who]))
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot bars."""
        axis = figure.subplots()
        bars(axis, table, "who", "error", "whose", "{:.3f}")
        axis.set_ylabel("mean square error\n(variance of X is 1)")
        axis.margins(y=0.15)
        legend(axis, 2, loc="upper right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the four estimation errors that the paper computes."""
        errors = {who: select(table, "error", who=who, whose="here")[0] for who in EXACT}
        return [
            claim(
                f"{who}: average estimation error {EXACT[who]:.4g}",
                "section 4.2.1" if "proposed" not in who else "section 4.3",
                "within 1.5 %",
                f"{errors[who]:.4f}",
                abs(errors[who] / EXACT[who] - 1) < 0.015,
                "L3" if who == "Bob" else "",
            )
            for who in EXACT
        ]

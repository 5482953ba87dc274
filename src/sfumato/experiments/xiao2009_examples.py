"""xiao2009, Examples 1 and 2: the release probabilities computed in section 5.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, distinct, select, to_table
from sfumato.experiments._paper_algorithms import MultiPert
from sfumato.experiments._plotting import bars, legend

SIZE, A, LOW, HIGH = 10, 0.4, 0.2, 0.8
WHERE = "section 5.1"


class Examples(Experiment):
    """The probabilities of what Bob receives, when he is less and when he is more trusted than Alice."""

    title = "xiao2009, Examples 1 and 2: what Bob receives after Alice (p = 40 %, s = 10)"
    description = (
        "Example 1: Bob at 20 %; Example 2: Bob at 80 %, by the printed algorithm with equations 3 and 4. "
        "The third case of equation 7 is computed from equations 3 and 4."
    )
    data = "one value, a domain of 10"
    figsize = (7.6, 3.4)

    def run(self, job: Job) -> pa.Table:
        """Evaluate the formulas, and simulate the printed algorithm."""
        rng, count = job.rng(), job.size(200_000, 20_000)
        hiv = np.zeros(count, np.int64)
        first = MultiPert(rng, hiv, SIZE)
        alice = float((first.release(A) == 0).mean())
        bob = float((first.release(LOW) == 0).mean())
        coin = MultiPert(rng, hiv[:1], SIZE).coin_probabilities
        u, v = coin(HIGH, 1.0, A, same=True)
        other = coin(HIGH, 1.0, A, same=False)
        third = other[1] + (1 - sum(other)) / SIZE  # Bob gets Alice's wrong value: kept, or drawn again
        rows = {
            "Example 1: Alice gets HIV": (0.46, alice, True),
            "Example 1: Bob gets HIV": (0.28, bob, True),
            "Example 2: u": (0.8, u, False),
            "Example 2: v": (0.178, v, False),
            "Example 2: HIV surely": (0.978, u + v, False),
            "eq. 7, third case, as printed": (0.18667, third, False),
            "eq. 7, third case, corrected": (0.18333, third, False),
        }
        return to_table(
            {
                "what": what,
                "whose": whose,
                "value": value,
                "error": np.sqrt(printed * (1 - printed) / count) * is_simulated,
            }
            for what, (printed, ours, is_simulated) in rows.items()
            for whose, value in (("paper", printed), ("here", ours))
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot bars."""
        axis = figure.subplots()
        bars(axis, table, "what", "value", "whose", "{:.3f}")
        axis.set_xticks(
            axis.get_xticks(),
            [label.get_text().replace(": ", ":\n").replace(", ", ",\n") for label in axis.get_xticklabels()],
            fontsize=7.5,
        )
        axis.set_ylabel("probability")
        axis.margins(y=0.15)
        legend(axis, 2, loc="upper left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check each printed number."""
        out = []
        for what in distinct(table, "what"):
            printed, ours = (float(value) for value in select(table, "value", what=what))
            error = float(select(table, "error", what=what)[0])
            if what == "eq. 7, third case, as printed":
                off = abs(ours - printed)
            elif what == "eq. 7, third case, corrected":
                out.append(
                    claim(
                        "eq. 7, third case: (1-pb)/(1-pa)·(pa/pb + (1-pa)/s)",
                        WHERE,
                        "with (1-pa/pb)/s in the last term, as in eq. 20, equal to the result of eqs. 3 and 4 to 1e-5; "
                        "as printed, not",
                        f"{ours:.5f} from eqs. 3 and 4; corrected {printed:.5f}, printed off by {off:.4f}",
                        abs(ours - printed) < 1e-5 and off > 1e-3,
                        "X1",
                    )
                )
            else:
                criterion = "within five standard errors of the simulation" if error else "equal to the printed digits"
                holds = abs(printed - ours) < (5 * error or 0.0005)
                out.append(claim(f"{what}: {printed:.4g}", WHERE, criterion, f"{ours:.4f}", holds))
        return out

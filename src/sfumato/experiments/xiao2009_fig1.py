"""xiao2009, Figure 1: the failure of independent perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import ATTACKS, Knowledge
from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _array_evidence as lab
from sfumato.experiments._plotting import bars

ALICE, BOB, SIZE = 0.4, 0.2, 1000


class Figure1(Experiment):
    """HIV shows in both copies: what that says."""

    title = "xiao2009, Fig. 1: belief that the value is HIV, when HIV is received"
    about = (
        "Retention 40 % for Alice and 20 % for Bob, 1,000 diseases, all equally likely before. The "
        "posterior of the attack "
        "`collusion` when both receive HIV."
    )
    data = "one value, a domain of 1,000"
    size = (7.2, 3.4)

    def run(self, job: Job) -> pa.Table:  # noqa: ARG002 - it is exact
        """Posteriors of four holders."""
        even = Knowledge(prior={("x",): np.full(SIZE, 1 / SIZE)})

        def belief(*kept: float, collusion_resistant: bool) -> float:
            evidence = lab.categories(
                [np.zeros(2, np.int64)] * len(kept), SIZE, kept, collusion_resistant=collusion_resistant, knowledge=even
            )
            return float(ATTACKS["collusion"]().estimate(evidence).beliefs[0].probability(np.zeros(2, np.int64))[0])

        found = {
            "Alice (40 %)": belief(ALICE, collusion_resistant=True),
            "Bob (20 %)": belief(BOB, collusion_resistant=True),
            "both, independent": belief(ALICE, BOB, collusion_resistant=False),
            "both, multi-pert": belief(ALICE, BOB, collusion_resistant=True),
        }
        return rows_of({"who": who, "belief": value, "what": "posterior"} for who, value in found.items())

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Bars."""
        axis = figure.subplots()
        bars(axis, table, "who", "belief", "what", "{:.3f}")
        axis.set_ylabel("probability that the\noriginal is HIV")
        axis.set_ylim(0, 1.1)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Low alone, high together."""
        found = {who: cells(table, "belief", who=who)[0] for who in table.column("who").to_pylist()}
        alice, bob, apart, ours = found.values()
        return [
            claim(
                "to Alice (Bob), the HIV value may have been a random value with 60 % (80 %) probability",
                "section 1.1",
                "beliefs 40 % and 20 %, within half a point",
                f"{alice:.2%} and {bob:.2%}",
                abs(alice - 0.4) < 0.005 and abs(bob - 0.2) < 0.005,
            ),
            claim(
                "the chance for both independently perturbed values to be HIV is small (it is less than 1 %)",
                "section 1.1 and footnote 2",
                "read as: that neither was retained, given that both are HIV; below 1 %, as 1 less the belief",
                f"{1 - apart:.3%}",
                apart > 0.99,
                "X6",
            ),
            claim(
                "Alice and Bob learn nothing more than Alice herself",
                "section 1.2",
                "the same belief to 1e-9",
                f"{ours:.4f} against {alice:.4f}",
                abs(ours - alice) < 1e-9,
            ),
        ]

"""xiao2009, Figure 1: the failure of independent perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import ATTACKS, Knowledge
from sfumato.attacks.evidence.arrays import categorical_copies
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._plotting import bars

ALICE, BOB, SIZE = 0.4, 0.2, 1000


class Figure1(Experiment):
    """The posterior probability of HIV for recipients of one copy or of two."""

    title = "xiao2009, Fig. 1: posterior probability of HIV, when HIV is received"
    description = (
        "Retention 40 % for Alice and 20 % for Bob, 1,000 diseases, with equal prior probability. "
        "The posterior probability by the attack `collusion` when both receive HIV."
    )
    data = "one value, a domain of 1,000"
    figsize = (7.2, 3.4)

    def run(self, job: Job) -> pa.Table:  # noqa: ARG002 - it is exact
        """Compute four posterior probabilities."""
        uniform = Knowledge(prior={("x",): np.full(SIZE, 1 / SIZE)})

        def posterior(*retentions: float, collusion_resistant: bool) -> float:
            evidence = categorical_copies(
                [np.zeros(2, np.int64)] * len(retentions),
                SIZE,
                retentions,
                collusion_resistant=collusion_resistant,
                knowledge=uniform,
            )
            estimate = ATTACKS["collusion"]().estimate(evidence)
            return float(estimate.posteriors[0].probability(np.zeros(2, np.int64))[0])

        probabilities = {
            "Alice (40 %)": posterior(ALICE, collusion_resistant=True),
            "Bob (20 %)": posterior(BOB, collusion_resistant=True),
            "both, independent": posterior(ALICE, BOB, collusion_resistant=False),
            "both, multi-pert": posterior(ALICE, BOB, collusion_resistant=True),
        }
        return to_table({"who": who, "probability": value, "what": "posterior"} for who, value in probabilities.items())

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot bars."""
        axis = figure.subplots()
        bars(axis, table, "who", "probability", "what", "{:.3f}")
        axis.set_ylabel("probability that the\noriginal is HIV")
        axis.set_ylim(0, 1.1)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that posteriors are low for one copy, and high only for two independent copies."""
        alice, bob, independent, ours = select(table, "probability")
        return [
            claim(
                "to Alice (Bob), the HIV value may have been a random value with 60 % (80 %) probability",
                "section 1.1",
                "posterior probabilities 40 % and 20 %, within half a point",
                f"{alice:.2%} and {bob:.2%}",
                abs(alice - 0.4) < 0.005 and abs(bob - 0.2) < 0.005,
            ),
            claim(
                "the chance for both independently perturbed values to be HIV is small (it is less than 1 %)",
                "section 1.1 and footnote 2",
                "read as the probability that neither was retained, given that both are HIV (1 minus the posterior): "
                "below 1 %",
                f"{1 - independent:.3%}",
                independent > 0.99,
                "X6",
            ),
            claim(
                "Alice and Bob learn nothing more than Alice herself",
                "section 1.2",
                "the same posterior to 1e-9",
                f"{ours:.4f} against {alice:.4f}",
                abs(ours - alice) < 1e-9,
            ),
        ]

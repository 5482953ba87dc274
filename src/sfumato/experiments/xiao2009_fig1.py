"""xiao2009, Figure 1: the failure of independent perturbation."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._categories import copies
from sfumato.experiments._plotting import bars

ALICE, BOB, SIZE = 0.4, 0.2, 1000


class Figure1(Experiment):
    """The posterior probability of HIV for recipients of one copy or of two."""

    title = "xiao2009, Fig. 1: posterior probability of HIV, when HIV is received"
    description = (
        "Retention 40 % for Alice and 20 % for Bob, 1,000 diseases, with equal prior probability. "
        "The posterior probability is counted: the share of records with the received value as their "
        "original, among those that show it in the copy, or in both copies."
    )
    data = "uniformly distributed categories, a domain of 1,000"
    figsize = (7.2, 3.4)

    def run(self, job: Job) -> pa.Table:
        """Count the records of two pairs of copies."""
        truth = job.rng().integers(0, SIZE, job.size(4_000_000, 200_000))
        shown = {
            independent: [
                copy.column("x").to_numpy()
                for copy in copies(pa.table({"x": truth}), (ALICE, BOB), SIZE, job.key(), independent=independent)
            ]
            for independent in (False, True)
        }

        def posterior(first: Any, second: Any) -> float:
            """The share of true values among those on which both copies agree; any value serves as HIV."""
            return float((first == truth)[first == second].mean())

        alice, bob = shown[False]
        probabilities = {
            "Alice (40 %)": posterior(alice, alice),
            "Bob (20 %)": posterior(bob, bob),
            "both, independent": posterior(*shown[True]),
            "both, multi-pert": posterior(alice, bob),
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
                "the same posterior, within one point",
                f"{ours:.2%} against {alice:.2%}",
                abs(ours - alice) < 0.01,
            ),
        ]

"""Beyond the papers: the local differential privacy ε of colluding recipients is their maximum, not the sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit import forecast
from sfumato.audit.attack import attack
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._categories import copies
from sfumato.experiments._plotting import legend, lines
from sfumato.levels import Level

SIZE = 20
OURS, INDEPENDENT = "Sfumato", "independent copies"


class Composition(Experiment):
    """The ε of m colluding recipients: the maximum on one path, the sum for independent copies."""

    title = "Beyond: ε of m colluding recipients, measured from their copies"
    description = (
        "m recipients with retentions from 0.50 down to 0.36, a domain of 20. ε of copies on one path is "
        "counted in the records on which all copies agree: the logarithm of how many times likelier they "
        "are to show the original than any other value. For independent copies it is the largest "
        "log-likelihood ratio that the attack `collusion` finds in any record, since an agreement of all "
        "of them is almost never wrong. Dashed: theory, the maximum and the sum."
    )
    data = "uniformly distributed categories, a domain of 20"
    figsize = (7.2, 3.8)

    def run(self, job: Job) -> pa.Table:
        """Attack a growing number of copies together."""
        rows = job.size(2_000_000, 400_000)
        table = pa.table({"x": job.rng().integers(0, SIZE, rows)})
        retentions = np.linspace(0.5, 0.36, 8)
        out = []
        for name in (OURS, INDEPENDENT):
            released = copies(table, retentions, SIZE, job.key(), independent=name == INDEPENDENT)
            for count in job.track(range(1, len(retentions) + 1), 2):
                epsilon = (
                    _counted_epsilon(released[:count], table) if name == OURS else _stated_epsilon(released[:count])
                )
                [theory] = forecast.of_levels([Level(float(p)) for p in retentions[:count]], SIZE).categories
                best = theory.epsilon if name == OURS else theory.independent_epsilon
                out.append({"scheme": name, "m": count, "epsilon": epsilon, "theory": best})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot the measured points, and the theory as dashed lines."""
        axis = figure.subplots()
        lines(axis, table, "m", "epsilon", "scheme")
        for name in (OURS, INDEPENDENT):
            axis.plot(
                select(table, "m", scheme=name),
                select(table, "theory", scheme=name),
                "--",
                color="#22303c",
                linewidth=0.9,
            )
        axis.set_xlabel("number m of colluding recipients")
        axis.set_ylabel("ε of all recipients together")
        axis.set_ylim(bottom=0)
        legend(axis, loc="upper left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that ε composes by the maximum on one path and by the sum for independent copies."""
        off = {
            name: float(np.abs(select(table, "epsilon", scheme=name) / select(table, "theory", scheme=name) - 1).max())
            for name in (OURS, INDEPENDENT)
        }
        last = {name: float(select(table, "epsilon", scheme=name)[-1]) for name in (OURS, INDEPENDENT)}
        return [
            claim(
                "copies on one path compose by the maximum",
                "docs/guarantee.md",
                "the same ε for every m, within 1 %",
                f"{last[OURS]:.3f} for 8 recipients, off by {off[OURS]:.1e}",
                off[OURS] < 0.01,
            ),
            claim(
                "independent copies compose by the sum",
                "docs/guarantee.md",
                "reached by some record, within 1 %",
                f"{last[INDEPENDENT]:.2f} for 8 recipients, off by {off[INDEPENDENT]:.1e}",
                off[INDEPENDENT] < 0.01,
            ),
        ]


def _counted_epsilon(released: list[pa.Table], table: pa.Table) -> float:
    """The log-likelihood ratio of a value that all copies show, from the frequency with which it is the original."""
    shown = np.column_stack([copy.column("x").to_numpy() for copy in released])
    agreed = (shown == shown[:, :1]).all(axis=1)
    right = int((shown[:, 0] == table.column("x").to_numpy())[agreed].sum())
    wrong = (int(agreed.sum()) - right) / (SIZE - 1)
    return float(np.log((right + 0.5) / (wrong + 0.5)))


def _stated_epsilon(released: list[pa.Table]) -> float:
    """The largest log-likelihood ratio of any record, by the models of the copies."""
    return float(np.log(attack("collusion", released).posteriors[0].likelihood_ratios).max())

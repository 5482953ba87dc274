"""xiao2009, Figure 7: the vulnerability of independent perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.attack import attack, score
from sfumato.experiments import Claim, Experiment, Job, _data, cells, claim, rows_of
from sfumato.experiments._categories import copies
from sfumato.experiments._plotting import legend, lines

OURS, APART = "multi-pert (Sfumato)", "independent perturbation"


class Figure7(Experiment):
    """The reconstruction probability against the number of recipients."""

    title = "xiao2009, Fig. 7: average reconstruction probability when m recipients collude"
    about = (
        "Salary as the sensitive attribute, retention probabilities uniform in [0.001, 0.5]; the "
        "attack `collusion` with the prior that it reads off the copies (Appendix 2)."
    )
    data = "Adult (IPUMS)"
    size = (7.2, 3.8)
    seed = 6

    def source(self) -> str:
        """The stand-in."""
        return _data.working()[1]

    def run(self, job: Job) -> pa.Table:
        """Pool more and more copies."""
        table = pa.table({"salary": _data.salaries()[: job.size(600_000, 20_000)]})
        kept, out = job.rng().uniform(0.001, 0.5, 30), []
        for name in (OURS, APART):
            held = copies(table, kept, 50, job.key(), apart=name == APART)
            for count in job.steps(job.size((1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 25, 30), (1, 2, 5, 10, 20, 30)), 2):
                found = score(attack("collusion", held[:count]), table).categories[0].reconstruction.attack.value
                out.append({"scheme": name, "m": count, "probability": float(found), "best": float(kept[:count].max())})
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two lines."""
        axis = figure.subplots()
        lines(axis, table, "m", "probability", "scheme")
        axis.set_xlabel("number m of recipients that collude")
        axis.set_ylabel("average reconstruction\nprobability")
        axis.set_ylim(0, 1.05)
        legend(axis, loc="center right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Nearly 1, and around 30 %."""
        apart, ours = (cells(table, "probability", scheme=name) for name in (APART, OURS))
        best = cells(table, "best", scheme=OURS)
        moved = np.diff(ours)[np.diff(best) == 0]
        still = float(np.abs(moved).max()) if len(moved) else 0.0
        return [
            claim(
                "the average reconstruction probability of independent perturbation surges to nearly 1 after "
                "only 30 releases",
                "section 7, Fig. 7",
                "above 0.95 at m = 30",
                f"{apart[-1]:.3f}",
                bool(apart[-1] > 0.95),
            ),
            claim(
                "multi-pert retains an average reconstruction probability of around 30 %",
                "section 7, Fig. 7",
                "between 0.25 and 0.35 at m = 30",
                f"{ours[-1]:.3f}",
                bool(0.25 < ours[-1] < 0.35),
            ),
            claim(
                "recipients gain nothing more than having only the data of the most trustable",
                "section 1.2",
                "more copies without a better one change nothing, to 1e-9",
                f"largest change {still:.1e}",
                still < 1e-9,
            ),
        ]

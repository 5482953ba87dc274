"""xiao2009, Figure 7: the vulnerability of independent perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.attack import attack, score
from sfumato.experiments import Claim, Experiment, Job, _data, claim, select, to_table
from sfumato.experiments._categories import copies
from sfumato.experiments._plotting import legend, lines

OURS, INDEPENDENT = "multi-pert (Sfumato)", "independent perturbation"


class Figure7(Experiment):
    """The average reconstruction probability against the number of colluding recipients."""

    title = "xiao2009, Fig. 7: average reconstruction probability when m recipients collude"
    description = (
        "Salary as the sensitive attribute, retention probabilities uniform in [0.001, 0.5]; the "
        "posterior of Appendix 2, with a prior estimated from the copies. The attack `regression` fits the "
        "weight of every copy to known records, whatever the manifests say about the copies."
    )
    data = "Adult (IPUMS)"
    figsize = (7.2, 3.8)
    seed = 6

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _data.working_adults()[1]

    def run(self, job: Job) -> pa.Table:
        """Attack a growing number of copies together."""
        table = pa.table({"salary": _data.salaries()[: job.size(600_000, 20_000)]})
        known = np.arange(0, min(len(table), 40_000), 2)
        retentions, out = job.rng().uniform(0.001, 0.5, 30), []
        for name in (OURS, INDEPENDENT):
            released = copies(table, retentions, 50, job.key(), independent=name == INDEPENDENT)
            for count in job.track(job.size((1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 25, 30), (1, 2, 5, 10, 20, 30)), 2):
                estimate = attack("regression", released[:count], known=(known, table.take(known)))
                result = score(estimate, table, leave_out=known)
                probability = float(result.categories[0].reconstruction.attack.estimate)
                best = float(retentions[:count].max())
                out.append({"scheme": name, "m": count, "probability": probability, "best": best})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two lines."""
        axis = figure.subplots()
        lines(axis, table, "m", "probability", "scheme")
        axis.set_xlabel("number m of colluding recipients")
        axis.set_ylabel("average reconstruction\nprobability")
        axis.set_ylim(0, 1.05)
        legend(axis, loc="center right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that the probability is nearly 1 for independent copies, and around 30 % for ours."""
        independent, ours = (select(table, "probability", scheme=name) for name in (INDEPENDENT, OURS))
        best = select(table, "best", scheme=OURS)
        unchanged = np.diff(ours)[np.diff(best) == 0]
        change = float(np.abs(unchanged).max(initial=0.0))
        return [
            claim(
                "the average reconstruction probability of independent perturbation surges to nearly 1 after "
                "only 30 releases",
                "section 7, Fig. 7",
                "above 0.95 at m = 30",
                f"{independent[-1]:.3f}",
                bool(independent[-1] > 0.95),
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
                "more copies without a better one change the probability by less than 0.01",
                f"largest change {change:.4f}",
                change < 0.01,
            ),
        ]

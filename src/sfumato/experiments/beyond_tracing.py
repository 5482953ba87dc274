"""Beyond the papers: traitor tracing, the share of leaks whose recipient is identified, by leaked rows."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato.experiments import Claim, Experiment, Job, claim, distinct, select, to_table
from sfumato.experiments._leaked_copies import patients, two_significant_digits, vault_with_recipients
from sfumato.experiments._plotting import legend, lines
from sfumato.vault import Vault

RECIPIENTS = 8
UNCHANGED, ALTERED = "unchanged", "rounded to two digits, a tenth of the values altered"


class Tracing(Experiment):
    """The shares of leaks in which the leaker and anyone innocent is accused, by the number of leaked rows."""

    title = "Beyond: share of leaks that are traced, by the number of leaked rows"
    description = (
        "Eight recipients of one level of a traced dataset of four numbers; random rows of one copy "
        "are leaked, unchanged or altered. The false-alarm rate, the probability of accusing anyone "
        "innocent, is below 1e-6."
    )
    data = "synthetic: four correlated columns"
    seed = 9

    def run(self, job: Job) -> pa.Table:
        """Leak rows of copies, and trace them."""
        rng, rows = job.rng(), job.size(20_000, 4000)
        table = patients(rows, rng)
        with tempfile.TemporaryDirectory() as folder:
            vault = vault_with_recipients(folder, table, RECIPIENTS)
            copies = [pyarrow.parquet.read_table(vault.release(f"r{i}", "clinic")[0]) for i in range(RECIPIENTS)]
            return to_table(self._leaks(job, vault, copies))

    def _leaks(self, job: Job, vault: Vault, copies: list[pa.Table]) -> Any:
        """Trace leaks of several sizes, and yield how often the leaker and anyone else was accused."""
        for count in job.track(job.size((10, 30, 60, 100, 200, 400, 1000, 3000), (30, 300, 3000))):
            for how in (UNCHANGED, ALTERED):
                right = wrong = 0
                tries = job.size(16, 2)
                for run in range(tries):
                    rng, leaker = job.rng(count, run), run % RECIPIENTS
                    rows = np.sort(rng.choice(len(copies[0]), count, replace=False))
                    result = vault.trace("clinic", _altered(copies[leaker].take(rows), how, rng))
                    named = {name for one in result.accused for name in one.recipients}
                    right += f"r{leaker}" in named
                    wrong += bool(named - {f"r{leaker}"})
                yield {"leak": how, "rows": count, "found": right / tries, "wrong": wrong, "tries": tries}

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two lines."""
        axis = figure.subplots()
        lines(axis, table, "rows", "found", "leak")
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.08)
        axis.set_xlabel("leaked rows")
        axis.set_ylabel("share of leaks traced")
        legend(axis, loc="lower right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that leaks are traced, and that nobody innocent is accused."""
        wrong, tries = int(sum(select(table, "wrong"))), int(sum(select(table, "tries")))
        most = {how: float(select(table, "found", leak=how)[-1]) for how in distinct(table, "leak")}
        return [
            claim(
                "no innocent recipient is accused", "docs/tracing.md", "none", f"{wrong} of {tries} leaks", wrong == 0
            ),
            claim(
                "a leak of a few thousand rows is traced, altered or not",
                "docs/tracing.md",
                "all leaks of 3,000 rows",
                ", ".join(f"{how}: {share:.0%}" for how, share in most.items()),
                min(most.values()) == 1.0,
            ),
        ]


def _altered(copy: pa.Table, how: str, rng: np.random.Generator) -> pa.Table:
    if how == UNCHANGED:
        return copy
    out = {"id": copy.column("id")}
    for name in copy.column_names[1:]:
        values = np.array(copy.column(name).to_numpy(), float)
        values = np.where(rng.random(len(values)) < 0.1, rng.permutation(values), values)
        out[name] = two_significant_digits(values)
    return pa.table(out)

"""Beyond the papers: how much of a copy must leak before its recipient is found."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato.experiments import Claim, Experiment, Job, cells, claim, distinct, rows_of
from sfumato.experiments._leaked_copies import patients, two_digits, vault_of
from sfumato.experiments._plotting import legend, lines
from sfumato.vault import Vault

RECIPIENTS = 8
WHOLE, ROUNDED = "as it was given", "rounded to two digits, a tenth of the cells altered"


class Tracing(Experiment):
    """The accused and the innocent, by the rows that leak."""

    title = "Beyond: how often a leak is traced, by the rows that leak"
    about = (
        "Eight recipients of one level of a traced dataset of four numbers; random rows of one copy "
        "are leaked, whole or damaged. Nobody is accused unless the chance of accusing anybody "
        "innocent is below one in a million."
    )
    data = "synthetic: four correlated columns"
    seed = 9

    def run(self, job: Job) -> pa.Table:
        """Leak and trace."""
        rng, rows = job.rng(), job.size(20_000, 4000)
        table = patients(rows, rng)
        with tempfile.TemporaryDirectory() as folder:
            vault = vault_of(folder, table, RECIPIENTS)
            copies = [pyarrow.parquet.read_table(vault.release(f"r{i}", "clinic")[0]) for i in range(RECIPIENTS)]
            return rows_of(self._leaks(job, vault, copies))

    def _leaks(self, job: Job, vault: Vault, copies: list[pa.Table]) -> Any:
        for count in job.steps(job.size((10, 30, 60, 100, 200, 400, 1000, 3000), (30, 300, 3000))):
            for how in (WHOLE, ROUNDED):
                right = wrong = 0
                tries = job.size(16, 2)
                for run in range(tries):
                    rng, thief = job.rng(count, run), run % RECIPIENTS
                    some = np.sort(rng.choice(len(copies[0]), count, replace=False))
                    found = vault.trace("clinic", _damaged(copies[thief].take(some), how, rng))
                    named = {name for one in found.accused for name in one.recipients}
                    right += f"r{thief}" in named
                    wrong += bool(named - {f"r{thief}"})
                yield {"leak": how, "rows": count, "found": right / tries, "wrong": wrong, "tries": tries}

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two lines."""
        axis = figure.subplots()
        lines(axis, table, "rows", "found", "leak")
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.08)
        axis.set_xlabel("rows that leak")
        axis.set_ylabel("share of leaks that are traced")
        legend(axis, loc="lower right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Found, and nobody else."""
        wrong, tries = int(sum(cells(table, "wrong"))), int(sum(cells(table, "tries")))
        most = {how: float(cells(table, "found", leak=how)[-1]) for how in distinct(table, "leak")}
        return [
            claim(
                "no innocent recipient is accused", "docs/tracing.md", "none", f"{wrong} of {tries} leaks", wrong == 0
            ),
            claim(
                "a leak of some thousand rows is traced, damaged or not",
                "docs/tracing.md",
                "all leaks of 3,000 rows",
                ", ".join(f"{how}: {share:.0%}" for how, share in most.items()),
                min(most.values()) == 1.0,
            ),
        ]


def _damaged(copy: pa.Table, how: str, rng: np.random.Generator) -> pa.Table:
    if how == WHOLE:
        return copy
    out = {"id": copy.column("id")}
    for name in copy.column_names[1:]:
        values = np.array(copy.column(name).to_numpy(), float)
        values = np.where(rng.random(len(values)) < 0.1, rng.permutation(values), values)
        out[name] = two_digits(values)
    return pa.table(out)

"""The walk-through of the demonstration: release three copies, audit their collusion, and trace a leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from sfumato.audit.attack import attack
from sfumato.audit.messages import table as text_table
from sfumato.audit.report import page
from sfumato.audit.result import Audit
from sfumato.audit.value_risk import score_error, value_estimates
from sfumato.demo.clinic import POLICY, clinic
from sfumato.demo.figure import PLOTTED_COLUMN, ColumnErrors, FigureData, draw
from sfumato.errors import ReleaseError
from sfumato.kernels import Floats
from sfumato.keys.key import Key
from sfumato.models import of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.release.files import release_file
from sfumato.release.manifest import Manifest
from sfumato.release.policy import Policy
from sfumato.tables.atomic import write_text
from sfumato.tables.columns import contiguous
from sfumato.tables.margin import Margin
from sfumato.vault import Vault
from sfumato.vault.messages import trace_text
from sfumato.vault.tracing import Trace

_NUMBERS = ("age", "income", "systolic", "diastolic")
_ALL_COPIES, _INDEPENDENT = "collusion", "collusion, independent noise"

_README = """\
# Three copies of one clinic's table

| file | content |
|---|---|
| `picture.png` | a figure that summarises the demonstration |
| `clinic.parquet` | the original table: {rows:,} synthetic patients |
| `policy.toml` | how each column is perturbed, and the trust levels |
| `vault/` | the owner's vault: the table, its policy, the recipients, and the ledger of releases |
| `vault.key` | the owner's secret key, which opens the vault |
| `copies/` | the copy of each recipient, signed, with its manifest |
| `independent/` | copies of the same levels from a tool that adds independent noise to each copy |
| `audit.html` | the audit report: every attack on single copies and on all copies together |
| `leaked.csv` | a leaked file: half of the rows of one copy in another order, rounded to two digits |

## Residual error

The residual error is that of the best attack: its mean square error as a share of the variance, of the normal scores
that the noise is in. A higher error is a lower disclosure risk. `audit.html` has the results of all attacks, and what
they tell of the values themselves.

{table}

If all three recipients collude, they learn no more from Sfumato's copies than the level of the {best} allows: the
copies are collusion-resistant. Copies with independent noise are not, since averaging them reduces the noise.

## Leak tracing

{leak}

## Next steps

Run these commands in this folder (after `make demo`, the command `sfumato` is in `.venv/bin` of the project):

```console
sfumato check copies/insurer.parquet     # verify a copy, and read what it guarantees
sfumato log                              # list who received what
sfumato verify                           # check the integrity of the ledger, the table and the copies
sfumato trace clinic leaked.csv          # find the copy that a leaked file was made from
sfumato audit clinic -o audit.html       # attack the copies of all recipients, alone and in collusion
sfumato mine copies/insurer.parquet      # estimate statistics of the original, with confidence intervals
sfumato attack llse independent/*.parquet --truth clinic.parquet   # the best linear attack on independent copies
```
"""


@dataclass(frozen=True)
class DemoResult:
    """The results of the demonstration."""

    folder: Path
    recipients: tuple[str, ...]
    """The recipients, from the most to the least trusted."""
    errors: tuple[ColumnErrors, ...]
    trace: Trace

    def summary(self) -> dict[str, Any]:
        """The results as JSON."""
        return {
            "folder": str(self.folder),
            "residual_errors": {
                errors.column: {
                    "single_copy": dict(zip(self.recipients, errors.single_copy, strict=True)),
                    "all_copies": errors.all_copies,
                    "independent_noise": errors.independent_noise,
                }
                for errors in self.errors
            },
            "leaked_by": [name for suspect in self.trace.accused for name in suspect.recipients],
        }

    def headings(self) -> list[str]:
        """The column headings of the table of residual errors."""
        return ["column", *self.recipients, _ALL_COPIES, _INDEPENDENT]

    def rows(self) -> list[list[str]]:
        """The rows of the table of residual errors, as text."""
        return [
            [one.column, *(f"{value:.1%}" for value in (*one.single_copy, one.all_copies, one.independent_noise))]
            for one in self.errors
        ]

    def text(self) -> str:
        """The results for a terminal."""
        title = "Residual error of the best attack, as a share of the variance of a column's scores"
        table = text_table(title, self.headings(), self.rows(), texts=1)
        return (
            f"{table}\nIf all three recipients collude, they learn no more than the level of the {self.recipients[0]} "
            "allows.\nWith independent noise, collusion would reduce the residual error of every column.\n\n"
            f"{trace_text(self.trace, 'leaked.csv')}\n\nAll files are in {self.folder}/."
        )

    def markdown(self) -> str:
        """The table of residual errors in Markdown."""
        headings = self.headings()
        rule = "|".join(["---", *["---:"] * (len(headings) - 1)])
        return "\n".join(
            [f"| {' | '.join(headings)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in self.rows())]
        )

    def readme(self, patients: int) -> str:
        """The README of the folder."""
        leak = " ".join(trace_text(self.trace, "`leaked.csv`").split())
        return _README.format(rows=patients, table=self.markdown(), best=self.recipients[0], leak=leak)


def run_demo(folder: Path, rows: int, stage: Callable[[str], None]) -> DemoResult:
    """Fill a folder with the demonstration: table, vault, copies, audit report, leaked file, figure and README."""
    _prepare(folder)
    stage("generating the clinic's table")
    table = clinic(rows)
    pyarrow.parquet.write_table(table, folder / "clinic.parquet")
    write_text(folder / "policy.toml", POLICY)
    policy = Policy.load(folder / "policy.toml")
    stage("creating the vault")
    vault = _vault(folder, policy, table)
    stage("releasing the copies")
    recipients = tuple(policy.ladder.levels)
    paths = [vault.release(name, "clinic", folder / f"copies/{name}.parquet")[0] for name in recipients]
    copies = [pyarrow.parquet.read_table(path) for path in paths]
    fidelities = [Manifest.of(path).fidelity for path in paths]
    independent = _independent_copies(policy, table, fidelities, folder / "independent")
    audited = vault.audit("clinic", stage=stage)
    write_text(folder / "audit.html", page(audited))
    estimates = {"all_copies": _estimated(copies, table), "independent_noise": _estimated(independent, table)}
    stage("tracing a leak")
    pyarrow.csv.write_csv(_leaked(copies[-1]), folder / "leaked.csv")
    result = DemoResult(folder, recipients, _column_errors(audited), vault.trace("clinic", folder / "leaked.csv"))
    stage("drawing the figure")
    named_copies = dict(zip(recipients, copies, strict=True))
    draw(folder / "picture.png", FigureData(table, named_copies, result.errors, estimates))
    write_text(folder / "README.md", result.readme(rows))
    return result


def _estimated(copies: list[Any], table: pa.Table) -> Floats:
    """The blood pressures that an attacker with all copies estimates, in the row order of the table."""
    estimate = attack("llse", copies)
    [model] = of_type(Manifest.of(copies[0]).models, GaussianCopula)
    margin = Margin.decode(model.margins[model.columns.index(PLOTTED_COLUMN)])
    scores = estimate.values[:, estimate.columns.index(PLOTTED_COLUMN)]
    rows = pc.index_in(table.column("patient"), value_set=estimate.records.column("patient"))
    truth = margin.mean_scores(margin.cells(contiguous(table.column(PLOTTED_COLUMN)), PLOTTED_COLUMN))
    in_order = scores[rows.to_numpy()]
    return margin.step * value_estimates(in_order, score_error(in_order, truth), margin)


def _vault(folder: Path, policy: Policy, table: pa.Table) -> Vault:
    """A vault with the table and one recipient per level; the vault of an earlier demonstration is reused."""
    new = not (folder / "vault.key").exists()
    vault = Vault.create(folder / "vault") if new else Vault.open(folder / "vault")
    if new:
        vault.add(policy, table, traced=True)
    else:
        vault.update("clinic", table, replace=True)  # another number of rows
    for name in policy.ladder.levels:
        vault.recipient(name)
        vault.grant(name, "clinic", name)
    return vault


def _leaked(copy: pa.Table) -> pa.Table:
    """Every second row of a copy in reverse order, with numbers rounded to two digits and without other columns."""
    rows = np.arange(copy.num_rows)[::-2]
    columns = {name: copy.column(name).to_numpy()[rows] for name in _NUMBERS}
    return pa.table({name: [float(f"{value:.2g}") for value in column] for name, column in columns.items()})


def _prepare(folder: Path) -> None:
    """Create the folders, in a folder that is new, empty, or that of an earlier demonstration."""
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / "clinic.parquet").exists():
            raise ReleaseError(
                f"the folder of the demonstration must be new or empty, and {folder} has other files; choose another"
            )
        for path in (folder, folder / "copies", folder / "independent"):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReleaseError(f"the folder {folder} could not be created: {error.strerror}; choose another") from None


def _independent_copies(policy: Policy, table: pa.Table, fidelities: list[float], folder: Path) -> list[pa.Table]:
    """Copies at the same fidelities with independent noise: each has a key of its own, which is discarded."""
    scheme, paths = policy.fit(table), [folder / f"{name}.parquet" for name in policy.ladder.levels]
    for path, fidelity in zip(paths, fidelities, strict=True):
        release_file(scheme, table, path, fidelity, Key.generate())
    return [pyarrow.parquet.read_table(path) for path in paths]


def _column_errors(audited: Audit) -> tuple[ColumnErrors, ...]:
    """The residual errors of each column's scores by the best of all attacks."""
    out = []
    for risk in audited.column_risks:
        alone = tuple(min(run.residual_errors(risk.column))[0] for run in audited.single_copy)
        out.append(ColumnErrors(risk.column, alone, risk.all_copies, risk.independent_noise))
    return tuple(out)

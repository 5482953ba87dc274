"""The demonstration: make the table, give three copies, pool them, and say what was learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.audit import messages as words
from sfumato.audit.attack import attack
from sfumato.audit.report import page
from sfumato.audit.result import Audit
from sfumato.demo.clinic import POLICY, clinic
from sfumato.demo.figure import Panel, draw
from sfumato.errors import ReleaseError
from sfumato.keys.key import Key
from sfumato.policy.document import Policy
from sfumato.release.files import release_file
from sfumato.release.manifest import Manifest
from sfumato.tables.atomic import replace_text
from sfumato.vault import Vault
from sfumato.vault.messages import trace_in_words
from sfumato.vault.tracing import Trace

NUMBERS = ("age", "income", "systolic", "diastolic", "visit")
CATEGORIES = ("diagnosis", "region")

_README = """\
# Three copies of one clinic

| file | what it is |
|---|---|
| `picture.png` | everything below, in one picture |
| `clinic.parquet` | the original: {rows:,} invented patients |
| `policy.toml` | what becomes of each column, and the trust levels |
| `vault/` | the owner's vault: the table, its policy, the recipients, and the ledger of what was given to whom |
| `vault.key` | the owner's secret, which opens the vault |
| `copies/` | what each recipient was given, signed, with its manifest beside it |
| `independent/` | what they would have been given by a tool that blurs each copy by itself |
| `audit.html` | every attack on these copies, alone and together, with pictures |
| `leaked.csv` | a file found in public: one copy, half of its rows in another order, rounded to two digits |

What the best of all known attacks leaves unknown: for numbers, the mean square error of its estimate as a share of the
column's variance (more is safer); for categories, how often its likeliest value is wrong. `audit.html` has all of them.

{table}

Pooling Sfumato's three copies gives no more than the hospital's copy alone. Pooling independent ones does.

Who leaked `leaked.csv`? {leak}

Go on in this folder (after `make demo`, the command `sfumato` is in `.venv/bin` of the project):

```console
sfumato check copies/insurer.parquet     # what a recipient can verify, and what is promised
sfumato log                              # what was given to whom
sfumato verify                           # that nobody has touched the ledger, the table or the copies
sfumato trace clinic leaked.csv          # whose copy that is
sfumato audit clinic -o audit.html       # every attack on what the three hold, alone and together
sfumato mine copies/insurer.parquet      # what a recipient learns of the original, with intervals
sfumato attack llse independent/*.parquet --truth clinic.parquet   # the best linear one, on independent copies
```
"""


@dataclass(frozen=True)
class Row:
    """The errors left in one column."""

    column: str
    alone: tuple[float, ...]
    pooled: float
    independent: float


@dataclass(frozen=True)
class Story:
    """What the demonstration found."""

    folder: Path
    recipients: tuple[str, ...]
    rows: tuple[Row, ...]
    leak: Trace

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "folder": str(self.folder),
            "errors": {
                row.column: dict(zip(self.recipients, row.alone, strict=True))
                | {"all three, Sfumato": row.pooled, "all three, independent": row.independent}
                for row in self.rows
            },
            "leaked by": [name for suspect in self.leak.accused for name in suspect.recipients],
        }

    def heads(self) -> list[str]:
        """The columns of the table."""
        return ["column", *self.recipients, "all three, Sfumato", "all three, independent"]

    def lines(self) -> list[list[str]]:
        """The rows of the table."""
        return [
            [row.column, *(f"{value:.1%}" for value in (*row.alone, row.pooled, row.independent))] for row in self.rows
        ]

    def text(self) -> str:
        """For a terminal."""
        title = "Error left to the best attacker (numbers: share of variance; categories: wrong guesses)"
        shown = words.table(title, self.heads(), self.lines(), texts=1)
        leak = trace_in_words(self.leak, "leaked.csv")
        return (
            f"{shown}\nAll three pooled know no more than the {self.recipients[0]} alone. Had the noise been "
            f"independent, they would.\n\n{leak}\n\nEverything is in {self.folder}/."
        )

    def markdown(self) -> str:
        """For a README."""
        heads, lines = self.heads(), self.lines()
        rule = "|".join(["---", *["---:"] * (len(heads) - 1)])
        return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])


def tell(folder: Path, rows: int, stage: Callable[[str], None]) -> Story:
    """Fill the folder and measure."""
    _prepare(folder)
    stage("making the clinic's table")
    table = clinic(rows)
    pyarrow.parquet.write_table(table, folder / "clinic.parquet")
    replace_text(folder / "policy.toml", POLICY)
    policy = Policy.load(folder / "policy.toml")
    stage("filling the vault")
    vault = _vault(folder, policy, table)
    stage("releasing the copies")
    paths = [vault.release(name, "clinic", folder / f"copies/{name}.parquet")[0] for name in policy.ladder.levels]
    safe = [pyarrow.parquet.read_table(path) for path in paths]
    naive = _independent(_naive(policy), table, [Manifest.of(path).fidelity for path in paths], folder / "independent")
    audited = vault.audit("clinic", stage=stage)
    replace_text(folder / "audit.html", page(audited))
    guesses = {"pooled": attack("llse", safe).values, "independent": attack("llse", naive).values}
    stage("tracing a leak")
    pyarrow.csv.write_csv(_stolen(safe[-1]), folder / "leaked.csv")
    leak = vault.trace("clinic", folder / "leaked.csv")
    story = Story(folder, tuple(policy.ladder.levels), _rows(audited), leak)
    stage("drawing")
    draw(folder / "picture.png", Panel(table, dict(zip(policy.ladder.levels, safe, strict=True)), story, guesses))
    said = " ".join(trace_in_words(leak, "It").split())
    replace_text(folder / "README.md", _README.format(rows=rows, table=story.markdown(), leak=said))
    return story


def _vault(folder: Path, policy: Policy, table: pa.Table) -> Vault:
    """A vault with the table, and a recipient for each level; that of an earlier demonstration is used again."""
    new = not (folder / "vault.key").exists()
    vault = Vault.create(folder / "vault") if new else Vault.open(folder / "vault")
    if new:
        vault.add(policy, table, traced=True)
    else:
        vault.update("clinic", table)
    for name in policy.ladder.levels:
        vault.recipient(name)
        vault.grant(name, "clinic", name)
    return vault


def _stolen(copy: pa.Table) -> pa.Table:
    """Every second row of a copy, backwards, its numbers rounded to two digits, without ids, dates and categories."""
    rows = np.arange(copy.num_rows)[::-2]
    columns = {name: copy.column(name).to_numpy()[rows] for name in NUMBERS if name != "visit"}
    return pa.table({name: [float(f"{value:.2g}") for value in column] for name, column in columns.items()})


def _prepare(folder: Path) -> None:
    """Make the folders, in one that is new, empty, or an earlier demonstration."""
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / "clinic.parquet").exists():
            raise ReleaseError(
                f"the demonstration needs a new folder, and {folder} holds other files; name another one"
            )
        for place in (folder, folder / "copies", folder / "independent"):
            place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReleaseError(f"the folder {folder} could not be made: {error.strerror}") from None


def _naive(policy: Policy) -> Policy:
    """The same policy with noise that is independent between copies."""
    text = POLICY.replace('role = "gaussian"', 'role = "independent"\nof = "gaussian"')
    text = text.replace('role = "uniform"', 'role = "independent"\nof = "uniform"')
    for name, column in policy.columns.items():
        if column.role == "gaussian" and not column.options:
            text = text.replace(f'{name} = "gaussian"', f'{name} = {{ role = "independent", of = "gaussian" }}')
    return Policy.loads(text)


def _independent(policy: Policy, table: pa.Table, levels: list[float], folder: Path) -> list[pa.Table]:
    """Copies as good as the others, each blurred by itself; their key is not kept."""
    scheme, key = policy.fit(table), Key.generate()
    paths = [folder / f"{name}.parquet" for name in policy.ladder.levels]
    for path, level in zip(paths, levels, strict=True):
        release_file(scheme, table, path, level, key)
    return [pyarrow.parquet.read_table(path) for path in paths]


def _rows(audited: Audit) -> tuple[Row, ...]:
    """What the best of all attacks leaves of each column: for categories, how often it is wrong."""
    rows = []
    for worth in audited.worth:
        if worth.measure == "error":
            alone = [min(trial.errors(worth.column))[0] for trial in audited.alone]
            rows.append(Row(worth.column, tuple(alone), worth.pooled, worth.independent))
        else:
            wrong = [1 - max(trial.successes((worth.column,)))[0] for trial in audited.alone]
            rows.append(Row(worth.column, tuple(wrong), 1 - worth.pooled, 1 - worth.independent))
    return tuple(rows)

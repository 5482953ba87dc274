"""Every figure: made at toy size by the command, drawn, judged, and judged otherwise when its table is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.experiments import AGREES, CORRECTED, EXPERIMENTS, FAILS, PAPERS, Experiment
from sfumato.experiments._runner import load, names

ROOT = Path(__file__).parents[2]
GALLERY = json.loads((ROOT / "docs/_static/gallery/verdicts.json").read_text())
SILENT = {"li2012/fig1"}
"""Of which the paper claims nothing."""
TIMED = {
    "li2012/fig5",
    "giannella2010/fig2",
    "li2012/table2",
    "xiao2009/fig8b",
    "giannella2010/fig1",
    "giannella2010/fig4",
    "beyond/cost",
}
"""Whose verdicts depend on the machine, and on what else runs on it: faults are planted in times that we set."""
SMALL = {"zhang2005/fig3", "giannella2010/fig7", "li2012/fig4"}
"""Whose verdicts toy sizes are too small for."""


STUCK = {"xiao2009/fig4": [0]}
"""Claims that none of the planted faults moves: about the number of rows."""


def experiment(name: str) -> Experiment:
    made: Experiment = EXPERIMENTS[name.replace("/", "-")]()
    return made


def test_every_figure_is_made_drawn_and_judged(tmp_path: Path) -> None:
    """All of them, as a user makes them, in a minute or two; one test, so that they are made once."""
    command = [
        str(Path(sys.executable).with_name("sfumato")),
        "reproduce",
        "--quick",
        "--report",
        "--json",
        "--to",
        "quick",
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1500)
    figures = json.loads(run.stdout)["figures"]
    missing = [figure["name"] for figure in figures if figure["missing"]]
    assert run.returncode == (1 if missing else 0), run.stderr
    assert not missing or "SFUMATO_DATA" in run.stderr
    assert [figure["name"] for figure in figures] == names()
    report = (tmp_path / "quick" / "report.html").read_text()
    for name in sorted(set(names()) - set(missing)):
        stem = tmp_path / "quick" / name.replace("/", "-")
        assert f"id='{stem.name}'" in report
        _is_made(name, stem)
        if name not in SILENT:
            _can_fail(name, pyarrow.csv.read_csv(stem.with_suffix(".csv")))


def _is_made(name: str, stem: Path) -> None:
    assert stem.with_suffix(".png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "<svg" in stem.with_suffix(".svg").read_text()
    result = load(stem.with_suffix(".json"))
    assert result is not None
    assert result.quick
    assert bool(result.claims) is (name not in SILENT)
    assert {claim.verdict for claim in result.claims} <= {AGREES, CORRECTED, FAILS}
    if name not in TIMED | SMALL:  # else toy size is enough for the gallery's verdicts
        assert {claim.says: claim.verdict for claim in result.claims} == GALLERY[name], name


def _can_fail(name: str, table: pa.Table) -> None:
    """Planted faults: for each claim there is a wrong table that is judged otherwise."""
    seen: list[set[str]] = [set() for _ in experiment(name).claims(table)]
    for start in _clocked(table) if name in TIMED else [table]:
        for one in (start, *_faults(start)):
            verdicts = _verdicts(name, one)
            if verdicts is not None and len(verdicts) == len(seen):
                for known, verdict in zip(seen, verdicts, strict=True):
                    known.add(verdict)
    stuck = [at for at, known in enumerate(seen) if len(known) < 2]
    assert stuck == STUCK.get(name, []), (name, [experiment(name).claims(table)[at].says for at in stuck])


def _verdicts(name: str, table: pa.Table) -> list[str] | None:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [claim.verdict for claim in experiment(name).claims(table)]
    except (ValueError, IndexError, ZeroDivisionError, KeyError):
        return None


def _clocked(table: pa.Table) -> Iterator[pa.Table]:
    """The table with times that a quiet machine could show: a power of a size, and unlike from series to series."""
    at = table.column_names.index("seconds")
    for field in table.schema:
        if field.name == "seconds":
            continue
        size = table.column(field.name).to_numpy()
        if pa.types.is_string(field.type):
            size = np.unique(size, return_inverse=True)[1]
        for power in (1, 2):
            yield table.set_column(at, "seconds", pa.array(1e-3 * (1.0 + size) ** power))


def _faults(table: pa.Table) -> Iterator[pa.Table]:
    """One column of numbers, or all, in another order, turned round, stretched, squeezed or all the same."""
    rng = np.random.default_rng(1)
    changes: list[Callable[[Any], Any]] = [
        *[lambda values: values[rng.permutation(len(values))]] * 5,
        lambda values: values * np.linspace(2, 1, len(values)) ** (1 + np.arange(len(values)) % 3),
        lambda values: np.where(np.arange(len(values)) % 3 == 0, 2 * values, values),
        lambda values: values.max() + values.min() - values,
        lambda values: 3 * values + 1,
        lambda values: values / 100,
        lambda values: 1e5 * values,
        np.sort,
        lambda values: np.sort(values)[::-1],
        lambda values: values * 0 + values.mean(),
        lambda values: values**3,
        lambda values: values + rng.normal(size=len(values)) * values.std(),
    ]
    floats = [f.name for f in table.schema if pa.types.is_floating(f.type) or pa.types.is_integer(f.type)]
    for chosen in ([one] for one in floats):
        for change in changes:
            columns = {
                name: pa.array(change(table.column(name).to_numpy().astype(float)))
                if name in chosen
                else table.column(name)
                for name in table.column_names
            }
            yield pa.table(columns)


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    """Unless its code has changed; what is damaged, or was cut off, is made again."""
    from sfumato.experiments._runner import reproduce

    [first] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
    [again] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
    assert not first.cached
    assert again.cached
    path = tmp_path / "xiao2009-fig1.json"
    text = path.read_text()
    (tmp_path / "xiao2009-fig1.png").unlink()
    path.write_text(text.replace(first.look, "0" * 16))  # only its drawing has changed
    [redrawn] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
    assert (tmp_path / "xiao2009-fig1.png").exists()
    assert redrawn.claims == first.claims
    for damage in (text.replace(first.digest, "0" * 16), text[:100], ""):
        path.write_text(damage)
        [made_again] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
        assert not made_again.cached
    [full] = reproduce(["xiao2009/fig1"], tmp_path, quick=False)
    assert not full.cached


@pytest.mark.parametrize("name", names())
def test_a_figure_says_what_it_is(name: str) -> None:
    made = experiment(name)
    paper = name.split("/", maxsplit=1)[0]
    assert paper in PAPERS
    assert made.title.startswith("Beyond" if paper == "beyond" else paper)
    assert made.about.endswith(".")
    assert made.data
    assert type(made).__doc__


def test_the_gallery_is_complete_and_its_errata_exist() -> None:
    errata = (ROOT / "src/sfumato/experiments/errata.md").read_text()
    gallery = (ROOT / "docs/gallery.md").read_text()
    assert list(GALLERY) == names()
    for name in names():
        assert f"`sfumato reproduce {name}`" in gallery
    for number in set(re.findall(r"errata\.md#(\w+)", gallery)):
        assert f"{{#{number}}}" in errata, number


def test_refusals() -> None:
    program = Path(sys.executable).with_name("sfumato")
    run = subprocess.run([program, "reproduce", "li2013"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "no paper or figure is called 'li2013'" in run.stderr
    assert "li2012" in run.stderr

"""Every figure of the family: computed in a quick run by the command, drawn, judged, and refuted by a wrong table."""

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
from tests.planted_faults import plant_independent_noise

from sfumato.errors import UnknownMember
from sfumato.experiments import EXPERIMENTS, FAILS, PAPERS, VERDICTS, Job
from sfumato.experiments._data import MissingData
from sfumato.experiments._runner import experiment, load, names, reproduce

ROOT = Path(__file__).parents[2]
GALLERY = json.loads((ROOT / "docs/_static/gallery/verdicts.json").read_text())


SHORT = (
    *("beyond/composition", "beyond/frontier", "giannella2010/fig2", "giannella2010/fig11", "huang2005/fig3"),
    *("huang2005/theorem52", "li2012/example", "li2012/fig2", "li2012/fig3", "xiao2009/examples", "xiao2009/fig7"),
    *("xiao2009/fig8a", "zhang2005/fig5"),
)
"""Two or so of each paper, which run always; the others run in the sweep, for a few seconds each."""
LONG = tuple(name for name in names() if name not in SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [SHORT, LONG], ids=["short", "long"])
def test_every_figure_is_computed_drawn_and_judged(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    """The figures as a user computes them, in a minute or two; one test, so that they are computed once."""
    command = [
        str(Path(sys.executable).with_name("sfumato")),
        "reproduce",
        *chosen,
        "--quick",
        "--report",
        "--json",
        "--to",
        "quick",
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1500)
    figures = json.loads(run.stdout)["figures"]
    missing = [figure["name"] for figure in figures if figure["missing_data"]]
    assert run.returncode == (1 if missing else 0), run.stderr
    assert not missing or "SFUMATO_DATA" in run.stderr
    assert {figure["name"] for figure in figures} == set(chosen)
    report = (tmp_path / "quick" / "report.html").read_text()
    for name in sorted(set(chosen) - set(missing)):
        stem = tmp_path / "quick" / name.replace("/", "-")
        assert f"id='{stem.name}'" in report
        _check_files(name, stem)
        if experiment(name).makes_claims:
            _check_refutable(name, pyarrow.csv.read_csv(stem.with_suffix(".csv")))


def _check_files(name: str, stem: Path) -> None:
    chosen = experiment(name)
    assert stem.with_suffix(".png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "<svg" in stem.with_suffix(".svg").read_text()
    result = load(stem.with_suffix(".json"))
    assert result is not None
    assert result.quick
    assert bool(result.claims) is chosen.makes_claims
    assert {claim.verdict for claim in result.claims} <= set(VERDICTS)
    if name in GALLERY and chosen.quick_is_enough and not chosen.measures_time:
        assert {claim.statement: claim.verdict for claim in result.claims} == GALLERY[name], name


def _check_refutable(name: str, table: pa.Table) -> None:
    """For each claim there is a wrong table that gets another verdict."""
    verdicts: list[set[str]] = [set() for _ in experiment(name).claims(table)]
    for start in _with_ideal_times(table) if experiment(name).measures_time else [table]:
        for wrong in (start, *_faults(start)):
            found = _verdicts(name, wrong)
            if found is not None and len(found) == len(verdicts):
                for known, verdict in zip(verdicts, found, strict=True):
                    known.add(verdict)
    constant = [i for i, known in enumerate(verdicts) if len(known) < 2]
    assert not constant, (name, [experiment(name).claims(table)[i].statement for i in constant])


def _verdicts(name: str, table: pa.Table) -> list[str] | None:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [claim.verdict for claim in experiment(name).claims(table)]
    except (ValueError, IndexError, ZeroDivisionError, KeyError):
        return None


def _with_ideal_times(table: pa.Table) -> Iterator[pa.Table]:
    """The table with run times of an idle machine: a power of each column, so that series differ."""
    times = [name for name in table.column_names if name.endswith("seconds")]
    for field in table.schema:
        if field.name in times:
            continue
        size = table.column(field.name).to_numpy()
        if pa.types.is_string(field.type):
            size = np.unique(size, return_inverse=True)[1]
        for power in (1, 2):
            ideal = table
            for name in times:
                at = table.column_names.index(name)
                ideal = ideal.set_column(at, name, pa.array(1e-3 * (1.0 + size) ** power))
            yield ideal


def _faults(table: pa.Table) -> Iterator[pa.Table]:
    """Wrong tables: one numeric column permuted, reversed, scaled, made constant or noisy; or the last rows missing."""
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
    for field in table.schema:
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            index = table.column_names.index(field.name)
            values = table.column(field.name).to_numpy().astype(float)
            for change in changes:
                yield table.set_column(index, field.name, pa.array(change(values)))
    yield table.slice(0, 9 * len(table) // 10)


class SmallJob(Job):
    """A run at a quarter of the small size."""

    def size(self, full: Any, quick: Any) -> Any:
        return quick // 4 if isinstance(quick, int) else quick


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("li2012/fig2", ["drops only when", "overlaps with", "matches Theorem 4"]),
        ("li2012/fig3", ["approach 1 much slower", "almost identical"]),
        ("xiao2009/fig1", ["nothing more than Alice"]),
        ("xiao2009/fig7", ["around 30 %", "gain nothing more"]),
        ("beyond/composition", ["compose by the maximum"]),
        ("beyond/nonlinear", ["considers only linear attacks"]),
    ],
)
def test_claims_fail_if_the_noise_of_copies_is_independent(
    name: str, failing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in the mechanism, with manifests that still state one path, must show in the verdicts."""
    plant_independent_noise(monkeypatch)
    chosen = experiment(name)
    try:
        claims = chosen.claims(chosen.run(SmallJob(True, chosen.seed)))
    except MissingData as error:
        pytest.skip(str(error))
    for words in failing:
        [found] = [claim for claim in claims if words in claim.statement]
        assert found.verdict == FAILS, found


def test_a_stored_result_is_reused(tmp_path: Path) -> None:
    """A result is computed again if its code has changed, or if its file is damaged or incomplete."""
    [first] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
    [again] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
    assert not first.cached
    assert again.cached
    path = tmp_path / "xiao2009-fig1.json"
    text = path.read_text()
    (tmp_path / "xiao2009-fig1.png").unlink()
    path.write_text(text.replace(first.presentation_digest, "0" * 16))  # only the code of its plot has changed
    [redrawn] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
    assert (tmp_path / "xiao2009-fig1.png").exists()
    assert redrawn.claims == first.claims
    for damaged in (text.replace(first.table_digest, "0" * 16), text[:100], ""):
        path.write_text(damaged)
        [computed] = reproduce(["xiao2009/fig1"], tmp_path, quick=True)
        assert not computed.cached
    [full] = reproduce(["xiao2009/fig1"], tmp_path, quick=False)
    assert not full.cached


@pytest.mark.parametrize("name", names())
def test_a_figure_describes_itself(name: str) -> None:
    chosen = experiment(name)
    assert chosen.name == name
    assert chosen.paper in PAPERS or chosen.citation
    assert chosen.title.startswith("Beyond" if chosen.paper == "beyond" else chosen.paper)
    assert chosen.description.endswith(".")
    assert chosen.data
    assert type(chosen).__doc__


def test_names_come_from_the_family() -> None:
    assert len(names()) == len(EXPERIMENTS)
    assert all(name.replace("/", "-") in EXPERIMENTS for name in names())


def test_the_gallery_is_complete_and_its_errata_exist() -> None:
    errata = (ROOT / "src/sfumato/experiments/errata.md").read_text()
    gallery = (ROOT / "docs/gallery.md").read_text()
    own = [name for name in names() if type(experiment(name)).__module__.startswith("sfumato.experiments.")]
    assert list(GALLERY) == own
    for name in own:
        assert f"`sfumato reproduce {name}`" in gallery
        assert f"### {experiment(name).title}\n" in gallery
        assert experiment(name).description in gallery
    for number in set(re.findall(r"errata\.md#(\w+)", gallery)):
        assert f"{{#{number}}}" in errata, number


def test_refusals() -> None:
    program = Path(sys.executable).with_name("sfumato")
    run = subprocess.run([program, "reproduce", "li2013"], capture_output=True, text=True, check=False)
    assert run.returncode == UnknownMember.exit_code
    assert "no paper or figure is called 'li2013'" in run.stderr
    assert "li2012" in run.stderr

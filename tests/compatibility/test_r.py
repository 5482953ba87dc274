"""docs/howto-r.md in a real R, with reticulate, on copies of the demonstration's table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.debian import installed

import sfumato as sf
from sfumato.demo.clinic import POLICY, clinic

PAGE = Path(__file__).parents[2] / "docs/howto-r.md"


def _rscript() -> str | None:
    """R with reticulate, if it is installed."""
    program = shutil.which("Rscript")
    if program is None:
        return None
    found = subprocess.run([program, "-e", "library(reticulate)"], capture_output=True, check=False)
    return program if found.returncode == 0 else None


@pytest.mark.server
@pytest.mark.long
def test_the_page_for_r_runs(tmp_path: Path) -> None:
    table = clinic(3000)
    plain = sf.Policy.suggest(table, dataset="clinic", plain_noise=True)
    for name, policy in (("university", sf.Policy.loads(POLICY)), ("plain", plain)):
        level = "university" if name == "university" else "partner"
        pq.write_table(policy.fit(table).release(table, level, sf.Key.generate()), tmp_path / f"{name}.parquet")
    blocks = re.findall(r"```r\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) > 4
    (tmp_path / "page.R").write_text("\n".join(blocks))
    done = subprocess.run(
        [installed(_rscript, "r-cran-reticulate"), "page.R"],
        cwd=tmp_path,
        env={**os.environ, "RETICULATE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clinic at fidelity" in done.stdout
    assert "the extremes of single records are not shown" in done.stdout  # the refusal is an error with its reason
    slope, low, high = map(float, re.findall(r"slope ([\d.]+) between ([\d.]+) and ([\d.]+)", done.stdout)[0])
    age, pressure = (table.column(name).to_numpy() for name in ("age", "systolic"))
    truth = float(((age - age.mean()) * (pressure - pressure.mean())).sum() / ((age - age.mean()) ** 2).sum())
    spread = (high - low) / 2
    assert low < slope < high
    assert abs(slope - truth) < 3 * spread  # six standard errors

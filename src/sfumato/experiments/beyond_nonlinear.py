"""Beyond the papers: collusion resistance against nonlinear and learned attacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.attack import attack, score
from sfumato.experiments import Claim, Experiment, Job, _census, claim, distinct, select, to_table
from sfumato.experiments._census import INDEPENDENT, OURS
from sfumato.experiments._plotting import bars, legend_above
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.manifest import Manifest, attach

NOISES = (0.5, 0.6, 0.7, 0.85, 1.0)
ATTACKS: dict[str, dict[str, Any]] = {"llse": {}, "udr": {}, "mixture": {"components": 4}, "learned": {}}
BEST, COMBINED, SEPARATE = "best copy alone", "five copies, Sfumato", "five copies, independent"


class Nonlinear(Experiment):
    """The residual error of attacks of all kinds; the guarantee holds for them because the path is Markov."""

    title = "Beyond: residual error of linear, nonlinear and learned attacks"
    description = (
        "A bimodal and a skewed column, five copies. `llse` is the best linear attack; `udr` estimates "
        "the density by deconvolution, `mixture` fits a mixture of normal distributions, `learned` learns "
        "from known records. Five copies are attacked twice, as copies on one path and as independent "
        "ones, whatever their manifests say, and the better result counts. Error divided by variance, "
        "mean of both columns."
    )
    data = "synthetic: a bimodal and a skewed column"
    figsize = (7.6, 3.8)
    seed = 3

    def run(self, job: Job) -> pa.Table:
        """Run each attack on one copy, on five of ours, and on five independent ones."""
        rng, rows = job.rng(), job.size(100_000, 10_000)
        low = rng.random(rows) < 0.5
        bimodal = np.where(low, rng.normal(-3, 0.6, rows), rng.normal(3, 0.6, rows))
        table = pa.table({"bimodal": bimodal, "skewed": rng.exponential(1.0, rows) + 0.3 * bimodal})
        copies = {how: _census.copies(table, np.array(NOISES), how, job.key()) for how in (OURS, INDEPENDENT)}
        cases = {BEST: copies[OURS][:1], COMBINED: copies[OURS], SEPARATE: copies[INDEPENDENT]}
        known = np.arange(0, rows, 20)
        out = []
        for name, options in job.track(ATTACKS.items()):
            knowledge: dict[str, Any] = {"known": (known, table.take(known))} if name == "learned" else {}
            for case, combined in cases.items():
                readings = [combined] if case == BEST else [combined, _read_as_independent(combined)]
                estimates = [attack(name, reading, **knowledge, **options) for reading in readings]
                results = [score(one, table, leave_out=known if knowledge else None) for one in estimates]
                errors = [np.mean([n.error.attack.estimate for n in result.numbers]) for result in results]
                out.append({"attack": name, "case": case, "error": float(min(errors))})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot grouped bars."""
        axis = figure.subplots()
        bars(axis, table, "attack", "error", "case", "{:.3f}")
        axis.set_ylabel("residual error (share of variance)")
        axis.set_xlabel("attack")
        legend_above(axis, 3)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that no attack gains from further copies, except from independent ones."""
        error = {
            (a, c): float(select(table, "error", attack=a, case=c)[0])
            for a in distinct(table, "attack")
            for c in (BEST, COMBINED, SEPARATE)
        }
        gains = {a: 1 - error[a, COMBINED] / error[a, BEST] for a in ATTACKS}
        best = min(ATTACKS, key=lambda a: error[a, BEST])
        ratio = max(error[a, SEPARATE] / error[a, BEST] for a in ATTACKS)
        return [
            claim(
                "limited: considers only linear attacks",
                "li2012, section 7",
                "too modest: no attack gains more than 2 % from four further copies",
                ", ".join(f"{a} {g:+.2%}" for a, g in gains.items()),
                max(gains.values()) < 0.02,
                "L6",
            ),
            claim(
                "more powerful adversaries may apply nonlinear techniques and recover more",
                "li2012, section 7",
                "the best nonlinear attack has a smaller residual error than llse on one copy",
                f"llse {error['llse', BEST]:.3f}, {best} {error[best, BEST]:.3f}",
                best != "llse" and error[best, BEST] < 0.95 * error["llse", BEST],
            ),
            claim(
                "independent noise helps every attacker",
                "docs/guarantee.md",
                "the residual error of every attack falls below 80 % of that on one copy",
                f"at most {ratio:.0%}",
                ratio < 0.8,
            ),
        ]


def _read_as_independent(copies: list[pa.Table]) -> list[pa.Table]:
    """The same copies, for an attacker who does not believe that they lie on one path."""
    changed = []
    for copy in copies:
        manifest = Manifest.of(copy)
        models = [replace(model, collusion_resistant=False) for model in of_type(manifest.models, GaussianNoise)]
        changed.append(attach(copy, replace(manifest, models=tuple(models))))
    return changed

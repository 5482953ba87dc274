"""Beyond the papers: nonlinear and learned adversaries gain nothing from further copies either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.attack import attack, score
from sfumato.experiments import Claim, Experiment, Job, _census, cells, claim, distinct, rows_of
from sfumato.experiments._census import INDEPENDENT, OURS
from sfumato.experiments._plotting import above, bars

NOISES = (0.5, 0.6, 0.7, 0.85, 1.0)
ATTACKS: dict[str, dict[str, Any]] = {"llse": {}, "udr": {}, "mixture": {"components": 4}, "learned": {}}
ALONE, POOLED, APART = "best copy alone", "five copies, Sfumato", "five copies, independent"


class Nonlinear(Experiment):
    """li2012 proves its guarantee for linear attacks; the path is Markov, so that it holds for all."""

    title = "Beyond: what linear, nonlinear and learned attackers are left with"
    about = (
        "Two-humped and skewed columns, five copies. `llse` is the best linear attack; `udr` finds "
        "the density behind the noise, "
        "`mixture` fits a mixture of normals, `learned` trains a network on known records. Error "
        "over variance, mean of both columns."
    )
    data = "synthetic: a two-humped and a skewed column"
    size = (7.6, 3.8)
    seed = 3

    def run(self, job: Job) -> pa.Table:
        """Each attack on one copy, on five of ours, on five independent ones."""
        rng, rows = job.rng(), job.size(100_000, 10_000)
        low = rng.random(rows) < 0.5
        humps = np.where(low, rng.normal(-3, 0.6, rows), rng.normal(3, 0.6, rows))
        table = pa.table({"humps": humps, "skewed": rng.exponential(1.0, rows) + 0.3 * humps})
        held = {how: _census.copies(table, np.array(NOISES), how, job.key()) for how in (OURS, INDEPENDENT)}
        cases = {ALONE: held[OURS][:1], POOLED: held[OURS], APART: held[INDEPENDENT]}
        known = np.arange(0, rows, 20)
        out = []
        for name, options in job.steps(ATTACKS.items()):
            for case, copies in cases.items():
                told: dict[str, Any] = {"known": (known, table.take(known))} if name == "learned" else {}
                guess = attack(name, copies, **told, **options)
                found = score(guess, table, leave_out=known if told else None)
                out.append(
                    {
                        "attack": name,
                        "case": case,
                        "error": float(np.mean([n.error.attack.value for n in found.numbers])),
                    }
                )
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Groups of bars."""
        axis = figure.subplots()
        bars(axis, table, "attack", "error", "case", "{:.3f}")
        axis.set_ylabel("error left (share of variance)")
        axis.set_xlabel("attack")
        above(axis, 3)

    def claims(self, table: pa.Table) -> list[Claim]:
        """No attack gains; nonlinear ones beat the linear one; independent copies lose."""
        of = {
            (a, c): float(cells(table, "error", attack=a, case=c)[0])
            for a in distinct(table, "attack")
            for c in (ALONE, POOLED, APART)
        }
        gains = {a: 1 - of[a, POOLED] / of[a, ALONE] for a in ATTACKS}
        best = min(ATTACKS, key=lambda a: of[a, ALONE])
        lost = max(of[a, APART] / of[a, ALONE] for a in ATTACKS)
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
                "the best of the others leaves less than llse on one copy",
                f"llse {of['llse', ALONE]:.3f}, {best} {of[best, ALONE]:.3f}",
                best != "llse" and of[best, ALONE] < 0.95 * of["llse", ALONE],
            ),
            claim(
                "independent noise gives more to every attacker",
                "docs/guarantee.md",
                "every attack leaves less than 80 % of what it leaves on one copy",
                f"at most {lost:.0%}",
                lost < 0.8,
            ),
        ]

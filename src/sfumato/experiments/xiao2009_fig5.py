"""xiao2009, Figure 5: what collusion adds, in the combination where it seems to add most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _uniform_copies as _replacing
from sfumato.experiments._plotting import above, against


class Figure5(Experiment):
    """Both sides of equation 14."""

    title = "xiao2009, Fig. 5: belief about X after and before collusion, at its worst"
    about = (
        "Alice (30 %), Bob (10 %) and Charlie (50 %), in this order; each value is released thrice "
        "by the product's keyed core, and "
        "F[x, ya, yb, yc] is counted. 10⁹ values for each distribution (the paper: 10¹⁰). Only "
        "combinations that came 1,000 times are looked at."
    )
    data = "Adult (IPUMS)"
    size = (7.6, 5.2)

    def source(self) -> str:
        """The stand-in."""
        return _replacing.source()

    def run(self, job: Job) -> pa.Table:
        """Count, and find the most dissimilar pair."""
        out = []
        for kind, law in _replacing.laws().items():
            tuples = job.size(1_000_000_000, 2_000_000)
            counts = _replacing.simulate(law, tuples, job.seed, job.advance, whole=True)
            out += _worst(kind, counts, job.size(1000, 50))
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Four panels."""
        for axis, kind, mark in zip(figure.subplots(2, 2).flat, _replacing.KINDS, "abcd", strict=True):
            places, found, expected = (cells(table, name, law=kind) for name in ("x", "together", "alone"))
            against(axis, places, found, expected, ("f(x | ya, yb, yc), all three", "f(x | yc), Charlie alone"))
            ya, yb, yc = (cells(table, name, law=kind)[0] for name in ("ya", "yb", "yc"))
            axis.set_title(f"({mark}) {kind}: ya = {ya}, yb = {yb}, yc = {yc}", fontsize=8.5, loc="right")
            axis.set_xlabel("x")
            axis.set_ylabel("probability")
        above(figure.axes[0], 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """They agree, as far as so many simulations can tell."""
        out = []
        for kind, mark in zip(_replacing.KINDS, "abcd", strict=True):
            least, looked, seen = (cells(table, name, law=kind)[0] for name in ("least_p", "looked", "seen"))
            p = float(min(least * looked, 1))
            distance = float(
                np.sqrt(((cells(table, "together", law=kind) - cells(table, "alone", law=kind)) ** 2).sum())
            )
            out.append(
                claim(
                    f"({mark}) {kind}: both sides of equation 14 agree with each other very well",
                    "section 7, Fig. 5",
                    "the most dissimilar of all combinations is no more so than chance allows (p > 0.001, for "
                    "the number looked at)",
                    f"L2 distance {distance:.4f}, seen {seen:,} times; p = {p:.3f} over {looked:,} combinations",
                    p > 0.001,
                )
            )
        return out


def _worst(kind: str, counts: Any, least: int) -> list[dict[str, Any]]:
    """The combination whose counts differ most from what Charlie's copy alone makes one expect."""
    alone = counts.sum(axis=(1, 2))
    alone = alone / alone.sum(axis=0)
    seen = counts.sum(axis=0)
    distance, least_p = np.zeros(seen.shape), 1.0
    for ya in range(len(alone)):  # a slice at a time, for memory
        some, count = seen[ya] >= least, counts[:, ya]
        expected = seen[ya] * alone[:, None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance[ya] = np.where(some, np.sqrt(((count / seen[ya] - alone[:, None, :]) ** 2).sum(axis=0)), 0.0)
            least_p = min(least_p, float(_p(count, expected)[some].min(initial=1.0)))
    at = np.unravel_index(distance.argmax(), distance.shape)
    together = counts[(slice(None), *at)] / seen[at]
    shared = {
        "law": kind,
        "ya": int(at[0]),
        "yb": int(at[1]),
        "yc": int(at[2]),
        "seen": int(seen[at]),
        "least_p": least_p,
        "looked": int((seen >= least).sum()),
    }
    return [
        {**shared, "x": x, "together": float(together[x]), "alone": float(alone[x, at[2]])} for x in range(len(alone))
    ]


def _p(count: Any, expected: Any) -> Any:
    """Pearson's test for each combination, with all values that are expected fewer than 25 times as one."""
    often = expected >= 25
    rest = np.where(often, 0.0, expected).sum(axis=0)
    gap = np.where(often, 0.0, count - expected).sum(axis=0)
    statistic = np.where(often, (count - expected) ** 2 / expected, 0.0).sum(axis=0)
    statistic += np.where(rest >= 25, gap**2 / np.maximum(rest, 1e-9), 0.0)
    return chi2.sf(statistic, np.maximum(often.sum(axis=0) + (rest >= 25) - 1, 1))

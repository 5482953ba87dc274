"""xiao2009, Figure 6: each copy alone is the output of uniform perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _uniform_copies as _replacing
from sfumato.experiments._plotting import above, against


class Figure6(Experiment):
    """Equation 16, in its most erroneous distribution."""

    title = "xiao2009, Fig. 6: a released value against uniform perturbation, at its worst"
    about = (
        "Releases as in Figure 5, with fresh values, 10⁸ for each distribution; of all originals "
        "that came 1,000 times, the recipient and the "
        "original value with the largest L2 error."
    )
    data = "Adult (IPUMS)"
    size = (7.6, 5.2)
    seed = 2

    def source(self) -> str:
        """The stand-in."""
        return _replacing.source()

    def run(self, job: Job) -> pa.Table:
        """Count, and find the worst."""
        out = []
        for kind, law in _replacing.laws().items():
            counts = _replacing.simulate(law, job.size(100_000_000, 1_000_000), job.seed, job.advance, whole=False)
            out += _worst(kind, counts)
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Four panels."""
        for axis, kind, mark in zip(figure.subplots(2, 2).flat, _replacing.KINDS, "abcd", strict=True):
            places, found, expected = (cells(table, name, law=kind) for name in ("y", "found", "theory"))
            against(axis, places, found, expected, ("found", "equation 16"))
            who, x = cells(table, "who", law=kind)[0], cells(table, "x", law=kind)[0]
            axis.set_title(f"({mark}) {kind}: i = {who}, x = {x}", fontsize=8.5, loc="right")
            axis.set_yscale("log")
            axis.set_xlabel("y")
            axis.set_ylabel("Pr[Y = y | X = x]")
        above(figure.axes[0], 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """A perfect match, as far as can be told."""
        out = []
        for kind, mark in zip(_replacing.KINDS, "abcd", strict=True):
            statistic, freedom, looked, seen = (
                cells(table, name, law=kind)[0] for name in ("statistic", "freedom", "looked", "seen")
            )
            p = float(min(chi2.sf(statistic, freedom) * looked, 1))
            gap = float(np.sqrt(((cells(table, "found", law=kind) - cells(table, "theory", law=kind)) ** 2).sum()))
            out.append(
                claim(
                    f"({mark}) {kind}: the empirical values perfectly match the theoretical ones",
                    "section 7, Fig. 6",
                    "the worst of all distributions is within chance (p > 0.001, for the number looked at)",
                    f"L2 error {gap:.5f}, from {seen:,} values; p = {p:.3f} over {looked} distributions",
                    p > 0.001,
                )
            )
        return out


def _worst(kind: str, counts: Any) -> list[dict[str, Any]]:
    size = counts.shape[1]
    kept = np.array(list(_replacing.RETENTIONS.values()))[:, None, None]
    theory = kept * np.eye(size) + (1 - kept) / size
    seen = counts.sum(axis=2, keepdims=True)
    some = seen[:, :, 0] >= 1000
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(some, ((counts - seen * theory) ** 2 / (seen * theory)).sum(axis=2), 0.0)
        error = np.where(some, np.sqrt(((counts / seen - theory) ** 2).sum(axis=2)), 0.0)
    who, x = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
    shared = {
        "law": kind,
        "who": "abc"[who],
        "x": x,
        "seen": int(seen[who, x, 0]),
        "statistic": float(statistic.max()),
        "freedom": size - 1,
        "looked": int(some.sum()),
    }
    return [
        {**shared, "y": y, "found": float(counts[who, x, y] / seen[who, x, 0]), "theory": float(theory[who, x, y])}
        for y in range(size)
    ]

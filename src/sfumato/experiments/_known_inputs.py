"""What Figures 1 and 2 of giannella2010 have in common: three panels over the number of known inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments._tables import cells, distinct
from sfumato.pages.svg import BLUE


def by_known(table: pa.Table) -> tuple[Any, Any, Any, Any]:
    """Numbers of known inputs, and the means of records linked, ρ and seconds."""
    known = distinct(table, "known")
    means = [np.array([cells(table, what, known=a).mean() for a in known]) for what in ("linked", "rho", "seconds")]
    return np.array(known), means[0], means[1], means[2]


def draw_known(figure: Any, table: pa.Table) -> None:
    """Left, centre and right, as in the paper."""
    known = distinct(table, "known")
    for axis, (what, label) in zip(
        figure.subplots(1, 3),
        (("linked", "linked records |I|"), ("seconds", "time to link (s)"), ("rho", "breach probability ρ(0.15)")),
        strict=True,
    ):
        found = [cells(table, what, known=a) for a in known]
        axis.errorbar(
            known,
            [f.mean() for f in found],
            [f.std() for f in found],
            color=BLUE,
            marker="o",
            markersize=3.5,
            capsize=2,
            linewidth=1.3,
        )
        axis.set_xlabel("known inputs a")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25)

"""Shared by Figures 1 and 2 of giannella2010: the known-input attack in three panels, by number of known inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments._tables import distinct, select
from sfumato.pages.svg import BLUE


def means_by_known(table: pa.Table) -> tuple[Any, Any, Any, Any]:
    """The numbers of known inputs, and for each the mean of linked records, of ρ and of seconds."""
    known = distinct(table, "known")
    linked, rho, seconds = (
        np.array([select(table, column, known=a).mean() for a in known]) for column in ("linked", "rho", "seconds")
    )
    return np.array(known), linked, rho, seconds


def plot_by_known(figure: Any, table: pa.Table) -> None:
    """Linked records, time and breach probability, from left to right as in the paper."""
    known = distinct(table, "known")
    for axis, (column, label) in zip(
        figure.subplots(1, 3),
        (("linked", "linked records |I|"), ("seconds", "time to link (s)"), ("rho", "breach probability ρ(0.15)")),
        strict=True,
    ):
        values = [select(table, column, known=a) for a in known]
        axis.errorbar(
            known,
            [v.mean() for v in values],
            [v.std() for v in values],
            color=BLUE,
            marker="o",
            markersize=3.5,
            capsize=2,
            linewidth=1.3,
        )
        axis.set_xlabel("known inputs a")
        axis.set_ylabel(label)
        axis.set_ylim(0, 1.05 if column == "rho" else None)
        axis.grid(alpha=0.25)

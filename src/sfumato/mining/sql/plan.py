"""Plans: at which level a question could be answered, and how precisely, found by simulation before one asks for it.

A plausible original of the copy is perturbed again at other levels, as their manifests would state it, and the question
is put to each of these copies: how wide its intervals are there is how wide they would be about the original itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.levels import Level
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.imputation import impute
from sfumato.mining.copies.perturbed_again import is_plain, perturbed_again
from sfumato.mining.sql.answers import ask

FIDELITIES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
"""The levels that are tried."""


@dataclass(frozen=True)
class Plan:
    """How precisely a question would be answered at some levels."""

    precision: float
    """What was asked for: the half-width of an interval, as a share of its estimate."""
    half_widths: Mapping[float, float]
    """For each fidelity, the largest half-width of all numbers of the answer; infinite where it is refused."""

    @property
    def fidelity(self) -> float | None:
        """The lowest level tried from which on the answer is as precise as asked; none if no level is enough."""
        enough = None
        for fidelity in sorted(self.half_widths, reverse=True):
            if not self.half_widths[fidelity] <= self.precision:
                break
            enough = fidelity
        return enough

    def sentence(self) -> str:
        """The plan for people."""
        if self.fidelity is None:
            at, best = min(self.half_widths.items(), key=lambda item: item[1])
            most = f"; the best is ± {best:.0%}, at {at:g}" if np.isfinite(best) else ""
            return f"No level answers this to ± {self.precision:.0%}{most}. Ask about more records at a time."
        return f"This is answered to ± {self.precision:.0%} from about fidelity {self.fidelity:g} on."


def plan(
    copy: Any,
    query: str,
    *,
    precision: float = 0.05,
    tables: Mapping[str, pa.Table] | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Plan:
    """At which level a question could be answered to a precision, by simulation on a plausible original of a copy.

        plan("copy.parquet", "select avg(income) from copy where age > 60").fidelity

    Args:
        copy: a copy with the roles gaussian, uniform and keep, as a table or a path.
        query: one SELECT, as for `ask`.
        precision: the half-width of intervals that is enough, as a share of the estimate.
        tables: other tables that the query joins, by their names.
        confidence: the confidence level of the intervals.
        random_state: the seed.
        progress: called after each level.

    """
    if not 0 < precision < 1:
        raise MiningError(f"a precision is a share between 0 and 1, such as 0.05, got {precision!r}")
    best = Copy.of(copy)
    for model in best.manifest.models:
        if model.is_perturbed and not is_plain(model):
            raise MiningError(
                "a plan is made for copies with plain noise, the roles gaussian and uniform, and this one has others "
                f"({', '.join(model.columns)}); ask at another level instead"
            )
    original = impute(best, 2, random_state=random_state)[0]
    widths, options = {}, {"tables": tables, "confidence": confidence, "random_state": random_state}
    for number, fidelity in enumerate(FIDELITIES):
        simulated = perturbed_again(best, original, np.random.default_rng([random_state, number]), Level(fidelity))
        widths[fidelity] = _half_width(lambda simulated=simulated: ask(simulated, query, **options))  # type: ignore[arg-type, misc]
        progress(1)
    if not any(np.isfinite(width) for width in widths.values()):
        ask(best, query, tables=tables, confidence=confidence, random_state=random_state)  # which says why
    return Plan(precision, widths)


def _half_width(answered: Callable[[], pa.Table]) -> float:
    """The largest half-width of an answer's intervals, as a share of the estimate; infinite where it is refused."""
    try:
        answer = answered()
    except MiningError:
        return float("inf")
    widest = 0.0 if answer.num_rows else float("inf")
    for name in answer.column_names:
        if f"{name}_low" in answer.column_names:
            estimate, low, high = (_floats(answer, f"{name}{end}") for end in ("", "_low", "_high"))
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = np.where(high == low, 0.0, (high - low) / 2 / np.abs(estimate))
            widest = max(widest, float(np.where(np.isnan(shares), np.inf, shares).max(initial=0.0)))
    return widest


def _floats(answer: pa.Table, name: str) -> Floats:
    """A column of an answer; NaN where nothing is known."""
    values: Floats = answer.column(name).cast(pa.float64()).to_numpy()
    return values

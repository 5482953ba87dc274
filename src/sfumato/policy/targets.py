"""Risk targets: what no attack may achieve on a column, in one grammar for policies and for calibration.

income: rmse >= 5000          the root mean square error of the best estimate, in the column's units
age: error >= 0.3             the residual error: its square, as a share of the column's variance
diagnosis: success <= 0.6     the accuracy: how often the most probable category is the true one

These follow from the level alone, and hold against any attacker:

diagnosis: rho2(0.1) <= 0.5   ρ1-ρ2 privacy: what was believed with 0.1 at most is believed with 0.5 at most
diagnosis: growth <= 0.3      δ-growth: by how much any belief may rise
diagnosis: epsilon <= 2       local differential privacy of the category
age: dissimilarity <= 0.01    of the correlations of data and noise (huang2005, Definition 8.1)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfumato.errors import PolicyError, nearest

SIGNS = {
    "rmse": ">=",
    "error": ">=",
    "success": "<=",
    "rho2": "<=",
    "growth": "<=",
    "epsilon": "<=",
    "dissimilarity": "<=",
}
CLOSED_FORM = frozenset({"rho2", "growth", "epsilon", "dissimilarity"})
"""The measures that follow from the model of a copy, whatever an attacker does."""

_UNBOUNDED = {"rmse", "epsilon"}
_FORM = re.compile(r"\s*(?P<measure>\w+)\s*(\((?P<prior>[-+.\w]+)\))?\s*(?P<sign>[<>]=?|=)\s*(?P<bound>[-+.\w]+)\s*")


@dataclass(frozen=True)
class Target:
    """What must hold for one column against every attack."""

    column: str
    measure: str
    bound: float
    prior: float | None = None
    """Of ρ1-ρ2 privacy: the prior belief ρ1."""

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target in a text like `column: measure >= bound`."""
        column, colon, rest = text.rpartition(":")
        if not colon or not column.strip():
            raise PolicyError(f"a target must read like 'income: rmse >= 5000', got {text!r}")
        return cls.of(column.strip(), rest.strip())

    @classmethod
    def of(cls, column: str, stated: object) -> Target:
        """The target that is stated for a column, as in `rmse >= 5000`."""
        found = _FORM.fullmatch(stated) if isinstance(stated, str) else None
        if found is None:
            raise PolicyError(f"a target of {column!r} must read like 'rmse >= 5000', got {stated!r}")
        measure, sign = found["measure"], found["sign"]
        if measure not in SIGNS:
            raise PolicyError(f"a target has no measure {measure!r}; {nearest(measure, SIGNS)}")
        if sign != SIGNS[measure]:
            raise PolicyError(f"a target of {column!r} must say `{measure} {SIGNS[measure]}` a bound, got {stated!r}")
        try:
            bound, prior = float(found["bound"]), float(found["prior"]) if found["prior"] else None
        except ValueError:
            raise PolicyError(f"a target of {column!r} must end in a number, got {found['bound']!r}") from None
        most = float("inf") if measure in _UNBOUNDED else 1.0
        if not 0 < bound < most:
            raise PolicyError(
                f"the bound on the {measure} of {column!r} must lie between 0 and {most:g}, got {bound:g}"
            )
        if (prior is not None) != (measure == "rho2") or not 0 < (prior or bound / 2) < bound:
            raise PolicyError(
                f"ρ1-ρ2 privacy of {column!r} must read like rho2(0.1) <= 0.5, the smaller belief first, and no other "
                f"measure has a prior; got {stated!r}"
            )
        return cls(column, measure, bound, prior)

    def met(self, value: float) -> bool:
        """Whether an attack that achieved this value is within the bound."""
        return value >= self.bound if SIGNS[self.measure] == ">=" else value <= self.bound

    def requirement(self) -> str:
        """The target as it is written in a policy."""
        prior = "" if self.prior is None else f"({self.prior:.10g})"
        return f"{self.measure}{prior} {SIGNS[self.measure]} {self.bound:.10g}"

    def __str__(self) -> str:
        return f"{self.column}: {self.requirement()}"

"""Soundness checks: statistical tests that copies match their manifests, with exact or conservative p-values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A statistical test of one property of sound copies."""

    subject: str
    """The copies and columns that were tested."""
    fault: str
    """What is wrong with the copies if the check fails."""
    p_value: float
    """The probability that sound copies look at least as unsound as these."""
    copies: tuple[str, ...] = ()
    """The names of the copies that were tested."""


@dataclass(frozen=True)
class Soundness:
    """All checks on some copies, with a bound on the probability of a false alarm."""

    checks: tuple[Check, ...]
    false_alarm_rate: float
    """The probability that sound copies fail at least one of all checks, at most."""
    unchecked: tuple[str, ...] = ()
    """The names of copies with too few records to check anything."""

    @property
    def alarms(self) -> tuple[Check, ...]:
        """The failed checks, the smallest p-value first, at a level that is corrected by Bonferroni's union bound."""
        level = self.false_alarm_rate / max(len(self.checks), 1)
        failed = (check for check in self.checks if not check.p_value >= level)  # NaN fails too
        return tuple(sorted(failed, key=lambda check: check.p_value))

    @property
    def sound(self) -> bool:
        """Whether every copy was checked and no check failed."""
        return not self.alarms and not self.unchecked

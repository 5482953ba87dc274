"""Checks: whether copies are what their manifests say, each with an exact or conservative p-value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that sound copies do, and how likely sound copies are to look as unsound as these."""

    subject: str
    """Which copies and columns."""
    fault: str
    """What is wrong if the check fails."""
    p: float
    copies: tuple[str, ...] = ()
    """The names of the copies."""


@dataclass(frozen=True)
class Soundness:
    """All checks on some copies."""

    checks: tuple[Check, ...]
    rate: float
    """The probability that sound copies raise an alarm, over all checks together."""
    unchecked: tuple[str, ...] = ()
    """Copies of which nothing could be checked, for want of records."""

    @property
    def alarms(self) -> tuple[Check, ...]:
        """The checks that failed, the surest first. By the union bound, sound copies have none but at the `rate`."""
        level = self.rate / max(len(self.checks), 1)
        return tuple(sorted((check for check in self.checks if not check.p >= level), key=lambda check: check.p))

    @property
    def sound(self) -> bool:
        """Whether all was checked and nothing is wrong."""
        return not self.alarms and not self.unchecked

"""Settings of a guided survey (zhang2005) that are fixed before anybody answers."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import SurveyError


@dataclass(frozen=True)
class GuidanceSettings:
    """Settings of a guided survey, fixed in its definition; respondents' devices enforce the privacy limits."""

    error: float = 0.15
    """μ of zhang2005, eq. 6: directions weaker than this share of the strongest are not asked for."""
    refresh: int = 100
    """Rows between two guidances; more than one, since the difference of two guidances would disclose a single row."""
    floor: float = 0.1
    """Every bit is flipped with at least this probability, whatever the guidance."""
    bootstrap: int = 64
    """Unperturbed rows, from respondents who consent to send them, that the first guidance is computed from."""
    exposure: float = 0.6
    """The largest share of its own bits that any single answer may disclose; devices accept no larger value."""
    capacity: float = 3.0
    """Bits that a row may disclose for each direction that a respondent allows; devices accept no larger value."""

    def __post_init__(self) -> None:
        require(0 < self.error < 1, "guided.error must lie between 0 and 1", self.error)
        require(5 <= self.refresh <= 1_000_000, "guided.refresh must be at least 5 rows", self.refresh)
        require(0 <= self.floor <= 0.45, "guided.floor must lie between 0 and 0.45", self.floor)
        require(16 <= self.bootstrap <= 100_000, "guided.bootstrap must be at least 16 rows", self.bootstrap)
        require(0 < self.exposure <= 0.6, "guided.exposure must lie between 0 and 0.6", self.exposure)
        require(0 < self.capacity <= 3, "guided.capacity must lie between 0 and 3 bits", self.capacity)


def require(condition: bool, requirement: str, got: object) -> None:
    """Raise `SurveyError` with the requirement and the value that was got, unless the condition holds."""
    if not condition:
        raise SurveyError(f"{requirement}, got {str(got)[:200]!r}")

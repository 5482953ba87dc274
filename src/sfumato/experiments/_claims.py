"""What a paper states, held against what was found."""

from __future__ import annotations

from dataclasses import dataclass

AGREES, CORRECTED, FAILS = "agrees", "agrees after correction", "does not reproduce"


@dataclass(frozen=True)
class Claim:
    """One statement and its verdict."""

    says: str
    """The statement, in the paper's words where they are short."""
    where: str
    """Section, theorem or figure: the texts at hand do not show where pages end."""
    must: str
    """What must hold of our figures for it to hold, with its tolerance."""
    found: str
    """Our figures."""
    verdict: str
    erratum: str = ""
    """The entry in the errata that corrects it, or that gives our evidence against it."""


def claim(says: str, where: str, must: str, found: str, holds: bool, erratum: str = "") -> Claim:
    """A verdict: with an erratum, `holds` is about the corrected statement."""
    verdict = FAILS if not holds else CORRECTED if erratum else AGREES
    return Claim(says, where, must, found, verdict, erratum)

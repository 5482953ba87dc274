"""Claims: the statements of a paper, each with the criterion it is tested by and the verdict of our reproduction."""

from __future__ import annotations

from dataclasses import dataclass

AGREES, CORRECTED, FAILS = "agrees", "agrees after correction", "does not reproduce"
CHOSEN = "agrees under settings chosen by us"
"""The paper does not state all settings, and the statement holds for those that we chose; for others it may not."""
VERDICTS = (AGREES, CHOSEN, CORRECTED, FAILS)


@dataclass(frozen=True)
class Claim:
    """One statement of a paper and whether our results support it."""

    statement: str
    """What the paper says, in its own words where they are short."""
    reference: str
    """Section, theorem or figure; page numbers are missing because our texts of the papers have none."""
    criterion: str
    """What must hold in our results for the statement to be confirmed, with its tolerance."""
    observed: str
    """Our results."""
    verdict: str
    erratum: str = ""
    """The entry of the errata that corrects the statement, or that gives our evidence against it."""


def claim(statement: str, reference: str, criterion: str, observed: str, holds: bool, erratum: str = "") -> Claim:
    """A claim with its verdict; where an erratum is given, `holds` is about the corrected statement."""
    verdict = FAILS if not holds else CORRECTED if erratum else AGREES
    return Claim(statement, reference, criterion, observed, verdict, erratum)

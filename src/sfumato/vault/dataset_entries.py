"""What the ledger's entry of a dataset's version says: the keys of its body, and how far its variance has drifted."""

from __future__ import annotations

from typing import Any

from sfumato.levels import Level

DRIFT = 1.25
"""The growth of the variance ratio from which a version is reported as drifting."""

RATIO, FIRST_RATIO = "stretch", "first stretch"
"""The keys of the variance ratio in the ledger: of a version, and of the first version."""

APPENDED = "appended digest"
"""The key of the digest of the rows that a version appended, by which a repeated command is recognised."""

TABLE = "table"
"""The key of the name of a table among those of a dataset of several."""

ENTITY_ROWS = "entity rows"
"""The key, in the entry of a later version, of the largest number of rows that an entity has, or may have."""

GIVEN = "given"
"""The key, in the entry of a version, of the fidelity that copies at each declared level have.

Nothing of it where copies are fingerprinted, since each recipient's then has a fidelity of its own.
"""

OVERLAPS = "overlaps"
"""The key, in the entry of a version, of the datasets that share records with it, with reasons."""


def variance_ratio(body: dict[str, Any]) -> float:
    """The largest ratio of a version's variance to the one its noise was fitted to, from the body of its entry."""
    return float(body[RATIO])


def first_variance_ratio(body: dict[str, Any]) -> float:
    """The variance ratio of the first version: above 1 where the policy makes the noise smaller."""
    return float(body[FIRST_RATIO])


def is_drifting(body: dict[str, Any]) -> bool:
    """Whether a version varies more than the first one, to which the noise was fitted."""
    return variance_ratio(body) > DRIFT * first_variance_ratio(body)


def residual_error(fidelity: float, ratio: float) -> float:
    """The share of variance that the best linear estimate leaves where the variance ratio is `ratio`.

    With `f = 1/(1+σ²)`, and noise `σ²/ratio` in units of the data's variance.
    """
    noise = Level(fidelity).noise / ratio
    return noise / (1 + noise)

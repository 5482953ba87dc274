"""Re-keying: what it costs when another master key takes the place of the one that copies were made with."""

from __future__ import annotations

from typing import Any

from sfumato.ledger.ledger import Query, Reading
from sfumato.schema.levels import Level


def cost(reading: Reading) -> list[dict[str, Any]]:
    """For each dataset and recipient, what is left to an attacker now, and after one more release with a new key.

    Noises that are independent between generations leave `1/(1+Σ1/σi²)` of the variance (li2012, Theorem 3), with the
    best copy of each generation counted.
    """
    out = []
    for latest in reading.current("release"):
        history = reading.entries(Query(kind="release", dataset=latest.dataset, recipient=latest.recipient))
        best: dict[int, float] = {}
        for entry in history:
            generation, fidelity = entry.body["generation"], entry.body["fidelity"]
            best[generation] = max(best.get(generation, 0.0), fidelity)
        now = sum(1 / Level(fidelity).noise for fidelity in best.values())
        then = now + 1 / Level(latest.body["fidelity"]).noise
        out.append(
            {
                "dataset": latest.dataset,
                "recipient": latest.recipient,
                "fidelity": latest.body["fidelity"],
                "generations": len(best),
                "error": 1 / (1 + now),
                "error after": 1 / (1 + then),
            }
        )
    return out

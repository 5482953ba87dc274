"""Re-keying: what it costs when another master key takes the place of the one that copies were made with."""

from __future__ import annotations

from typing import Any

from sfumato.ledger.ledger import Reading
from sfumato.vault.datasets import Dataset
from sfumato.vault.records import exposure
from sfumato.vault.releases import held, seen
from sfumato.vault.store import Store


def cost(reading: Reading, store: Store) -> list[dict[str, Any]]:
    """For each dataset and recipient, what is left to an attacker now, and after one more release with a new key.

    Noises that are independent between generations leave `1/(1+Σ1/σi²)` of the variance (li2012, Theorem 3).
    """
    out = []
    head = reading.head()
    datasets = {entry.dataset: Dataset.of(entry, store) for entry in reading.current("dataset")}
    for latest in reading.current("release"):
        dataset = datasets[latest.dataset]
        copies = held(reading, latest.dataset, latest.recipient)
        fresh = seen(dataset.body, latest.body["fidelity"], head.generation + 1)
        now, then = (exposure(store, some, numbers=dataset.has_numbers) for some in (copies, [*copies, fresh]))
        out.append(
            {
                "dataset": latest.dataset,
                "recipient": latest.recipient,
                "fidelity": latest.body["fidelity"],
                "draws": int(max(now["draws"], key=int, default="0")),
                "error": now["error"],
                "draws after": int(max(then["draws"], key=int, default="0")),
                "error after": then["error"],
            }
        )
    return out

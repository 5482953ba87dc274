"""Re-keying: another lock for the master key, or another master key, and what the latter costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.keys.lock import Secret
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Generation, Ledger, LedgerReader, LedgerWriter, Query
from sfumato.vault.datasets import Dataset
from sfumato.vault.record_changes import exposure
from sfumato.vault.releases import held, seen
from sfumato.vault.store import Store
from sfumato.vault.unlocking import locked


def cost(reading: LedgerReader, store: Store) -> list[dict[str, Any]]:
    """For each dataset and recipient, what is left to an attacker now, and after one more release with a new key.

    Noises that are independent between generations leave `1/(1+Σ1/σi²)` of the variance (li2012, Theorem 3).
    """
    out = []
    head = reading.head()
    datasets = {entry.dataset: Dataset.of(entry, store) for entry in reading.current("dataset")}
    for latest in reading.current("release"):
        dataset = datasets[latest.dataset]
        copies = held(reading, latest.dataset, latest.recipient)
        given = reading.entries(Query(kind="release", dataset=latest.dataset, recipient=latest.recipient))
        best = max(entry.body["fidelity"] for entry in given)
        fresh = seen(dataset.body, best, head.generation + 1)
        now, then = (exposure(store, some, numbers=dataset.has_numbers) for some in (copies, [*copies, fresh]))
        out.append(
            {
                "dataset": latest.dataset,
                "recipient": latest.recipient,
                "fidelity": best,
                "draws": int(max(now["draws"], key=int, default="0")),
                "error": now["error"],
                "draws after": int(max(then["draws"], key=int, default="0")),
                "error after": then["error"],
            }
        )
    return out


def relock(writing: LedgerWriter, seen: list[Generation], keys: Mapping[int, Key], secret: Secret) -> None:
    """Put the keys behind another lock, unless somebody else has changed the locks since they were seen."""
    if [one.lock for one in writing.generations()] != [one.lock for one in seen]:
        raise VaultError("the vault's locks were changed meanwhile; look at the log, and run the command again")
    for number, master in keys.items():
        writing.lock(locked(writing.head().name, number, master, secret))


def rekey(
    ledger: Ledger, seen: list[Generation], keys: dict[int, Key], secret: Secret, current: int, *, lost: bool
) -> Entry:
    """Take a fresh master key after the current generation; without the old keys, if they are lost."""
    master = Key.generate()
    with ledger.writing(keys or {current: master}, sealed=not lost) as writing:
        relock(writing, seen, keys | {current + 1: master}, secret)
        for generation in seen if lost else ():
            writing.lock(replace(generation, lost=1))
        writing.turn(current + 1, master)
        return writing.append("rekeyed", "vault", {"key": master.fingerprint(), "lost": lost})

"""Key rotation: another secret for the master key, or a new master key, and the disclosure risk of the latter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.keys.lock import Secret
from sfumato.keys.signature import public_key, sign, succession
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger, LedgerWriter
from sfumato.ledger.reader import Generation, LedgerReader, Query
from sfumato.vault.data_keys import rewrap
from sfumato.vault.datasets import Dataset, adds_noise
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.record_changes import exposure
from sfumato.vault.releases import held_copies, held_copy, held_elsewhere
from sfumato.vault.unlocking import wrap_master_key


def rekey_cost(reading: LedgerReader, store: EncryptedStore) -> list[dict[str, Any]]:
    """The residual error of each recipient's copies now, and after one more release with a new master key.

    Noise that is independent between keys leaves `1/(1+Σ1/σi²)` of the variance (li2012, Theorem 3).
    """
    out = []
    head = reading.head()
    datasets = {entry.dataset: entry.body for entry in reading.current("dataset")}
    for latest in reading.current("release"):
        body = datasets[latest.dataset]
        noisy = any(adds_noise(role) for role in body["columns"].values())
        if store.is_readable(body["scheme"]):
            noisy = noisy or Dataset(latest.dataset, body, store).has_additive_noise
        copies = held_copies(reading, latest.dataset, latest.recipient)
        releases = reading.entries(Query(kind="release", dataset=latest.dataset, recipient=latest.recipient))
        best = max(entry.body["fidelity"] for entry in releases)
        fresh = held_copy(body, best, head.generation + 1)
        elsewhere = held_elsewhere(reading, latest.dataset, latest.recipient)
        now, after = (exposure(store, some, numbers=noisy, elsewhere=elsewhere) for some in (copies, [*copies, *fresh]))
        out.append(
            {
                "dataset": latest.dataset,
                "recipient": latest.recipient,
                "fidelity": best,
                "draws": int(max(now["draws"], key=int, default="0")),
                "residual error": now["error"],
                "draws after": int(max(after["draws"], key=int, default="0")),
                "residual error after": after["error"],
            }
        )
    return out


def relock(writing: LedgerWriter, expected: list[Generation], keys: Mapping[int, Key], secret: Secret) -> None:
    """Wrap the master keys with another secret, unless somebody else has done so since `expected` was read."""
    if [one.lock for one in writing.generations()] != [one.lock for one in expected]:
        raise VaultError("the vault was locked with another secret meanwhile; check the log, and run the command again")
    for number, master in keys.items():
        writing.save_generation(wrap_master_key(writing.head().name, number, master, secret))


def rekey(
    ledger: Ledger, expected: list[Generation], keys: dict[int, Key], secret: Secret, current: int, *, lost: bool
) -> Entry:
    """Replace the master key by a new one; `keys` is empty if the old ones are lost."""
    master = Key.generate()
    with ledger.writing(keys or {current: master}, check_seal=not lost) as writing:
        relock(writing, expected, keys | {current + 1: master}, secret)
        for generation in expected if lost else ():
            writing.save_generation(replace(generation, lost=1))
        rewrap(writing, None if lost else keys[current], master)
        writing.rotate_key(current + 1, master)
        old = next(one.public for one in expected if one.number == current)
        body = {"key": master.fingerprint(), "lost": lost, "public": public_key(master), "previous public": old}
        if not lost:
            body["succession"] = sign(keys[current], succession(old, public_key(master)))
        return writing.append("rekeyed", "vault", body)

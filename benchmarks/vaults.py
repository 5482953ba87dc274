"""A vault of 1,000 datasets, 10,000 recipients and 250,000 entries against a small one, and encrypted tables."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
from tests import wards
from tests.postgres import running
from tests.serving import PASSWORD, serving

import sfumato as sf
from measure import Line, at_most, compare, seconds
from sfumato.ledger.chain import Authenticator, Entry
from sfumato.ledger.reader import Query
from sfumato.ledger.subject_index import MemoryIndex, rebuild
from sfumato.ledger.tables import ENTRIES
from sfumato.tables.source import Source
from sfumato.vault import operators
from sfumato.vault.grants import FINGERPRINT
from sfumato.vault.overview import vault_overview

SECRET = sf.Key.from_bytes(bytes(32))
PAGES = {
    "all datasets": "/console",
    "a dataset": "/console/datasets/d5",
    "all recipients": "/console/recipients",
    "a recipient": "/console/recipients/r7",
    "the ledger": "/console/ledger",
}
SMALL, LARGE, LARGEST = (25, 20, 100), (1_000, 10_000, 250_000), (1_000, 10_000, 1_000_000)

_CHILD = r"""
import re, sys
from pathlib import Path
import sfumato as sf
report = sf.Vault.open(sys.argv[1], secret=sf.Key.from_bytes(bytes(32))).verify(files=False)
assert report.sound, report.problems
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def filled(location: str, store: str | None, size: tuple[int, int, int]) -> sf.Vault:
    """A vault with a number of datasets, recipients and entries, inserted in bulk in the vault's own format."""
    vault = sf.Vault.create(location, store=store, secret=SECRET)
    first = vault.add(wards.policy(), wards.table(100))
    authenticator = Authenticator(vault.keys()[1])
    with vault.ledger.writing(vault.keys()) as writing:
        head, index = writing.head(), MemoryIndex(writing.cipher.token)
        for entry in writing.history():
            index.record(entry)
        number, previous = head.entries, head.head
        entries = itertools.islice(_entries(first, *size[:2]), size[2] - number)
        while page := list(itertools.islice(entries, 10_000)):
            rows = []
            for action, kind, dataset, recipient, body in page:
                number += 1
                entry = Entry(number, first.at, "bench", action, kind, dataset, recipient, body, 1, salt="0" * 32)
                entry = entry.chained(previous, authenticator)
                previous = entry.hash
                rows.append(writing.cipher.row(ENTRIES, entry))
                index.record(entry)
            writing.connection.insert(ENTRIES, *rows)
        root = rebuild(writing.connection, index, writing.cipher.token).root
        writing._write_head(replace(head, entries=number, head=previous, root=root))
    return vault


def _entries(first: Entry, datasets: int, recipients: int) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    """Entries of datasets and recipients, then of grants and releases without end."""
    for d in range(1, datasets):
        yield "added", "dataset", f"d{d}", "", first.body
    for r in range(recipients):
        yield "registered", "recipient", "", f"r{r}", {"note": "somebody"}
    grant = {"level": "partner", "fidelity": 0.5, "columns": None, "where": None, "until": None, FINGERPRINT: None}
    copy = {
        "version": 1,
        "generation": 1,
        "rows": 100,
        "digest": "0" * 64,
        "exposure": {"draws": {"1": 100}, "error": 0.5},
    }
    for cycle in itertools.count():
        for r in range(recipients):
            dataset = f"d{1 + (r + cycle) % (datasets - 1)}"
            yield "granted", "grant", dataset, f"r{r}", grant
            yield "released", "release", dataset, f"r{r}", {**grant, **copy}


def answers() -> Iterator[Line]:
    """Status, a grant and the last 20 entries, in the large vault against the small one."""
    with tempfile.TemporaryDirectory() as folder, running() as server:
        vaults: dict[str, list[tuple[str, str | None]]] = {
            "SQLite": [(f"{folder}/small", None), (f"{folder}/large", None)],
            "PostgreSQL": [(server.database(), f"{folder}/store1"), (server.database(), f"{folder}/store2")],
        }
        for name, (small_location, large_location) in vaults.items():
            small, large = filled(*small_location, SMALL), filled(*large_location, LARGE)
            baseline_name = "a vault of 100 entries"
            yield at_most(
                f"status, 250,000 entries, {name}", compare(_status(large), _status(small), 15), baseline_name, 1.5
            )
            yield at_most(f"grant, {name}", compare(_grant(large), _grant(small), 15), baseline_name, 1.5)
            yield at_most(f"log --last 20, {name}", compare(_log(large), _log(small), 15), baseline_name, 1.5)
            peaks = [_peak(vault.location) for vault in (large, small)]
            yield Line(
                f"peak memory of verify, {name}",
                peaks[0],
                peaks[1],
                baseline_name,
                "at most 1.5 times",
                met=peaks[0] <= 1.5 * peaks[1],
                unit="MiB",
            )


def pages() -> Iterator[Line]:
    """Pages of the console of the largest vault while it audits a table, as an operator's browser gets them."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _pages_of(filled(f"{folder}/large", None, LARGEST), Path(folder), "SQLite")
    with tempfile.TemporaryDirectory() as folder, running() as server:
        yield from _pages_of(filled(server.database(), f"{folder}/store", LARGEST), Path(folder), "PostgreSQL")


def _pages_of(vault: sf.Vault, folder: Path, database: str) -> Iterator[Line]:
    vault.add(wards.policy("audited"), wards.table(200_000), accept_overlap="a benchmark")
    for recipient, level in (("r1", "partner"), ("r2", "public")):
        vault.grant(recipient, "audited", level)
    operators.enrol(vault, "anna", PASSWORD)
    SECRET.save(folder / "service.key")
    token = vault.token(scopes=["read", "write"])["token"]
    with serving(vault, folder) as service, service.client() as client:
        client.post("/signin", data={"name": "anna", "password": PASSWORD})
        audit = _Audit(f"{service.url}/api/v1", token)
        for name, path in PAGES.items():
            audit.keep_running()
            took = statistics.quantiles((seconds(partial(_page, client, path)) for _ in range(40)), n=20)[-1]
            what = f"1,000 datasets, 10,000 recipients, 1,000,000 entries, {database}, audit running (95 %)"
            yield Line(f"page of {name}, {what}", took, 0.2, "the limit", "at most 0.2 s", took <= 0.2)
        audit.keep_running()
        audit.cancel()


def _page(client: httpx2.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200, path


class _Audit:
    """An audit that is started again when it has ended."""

    def __init__(self, api: str, token: str) -> None:
        self._client = httpx2.Client(base_url=api, headers={"Authorization": f"Bearer {token}"})
        self._job = ""

    def keep_running(self) -> None:
        if not self._job or self._client.get(f"/jobs/{self._job}").json()["state"] not in ("waiting", "running"):
            started = self._client.post("/datasets/audited/audits", json={"rows": 200_000})
            self._job = started.raise_for_status().json()["job"]

    def cancel(self) -> None:
        self._client.delete(f"/jobs/{self._job}")
        self._client.close()


def encrypted_reads() -> Iterator[Line]:
    """Reading all rows of an encrypted table of a vault, 4,000,000 x 5, against the same Parquet file in plain."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(4_000_000, 4)).round(3)
    table = pa.table({"id": np.arange(len(values))} | {f"c{i}": values[:, i] for i in range(4)})
    columns = "".join(f'c{i} = "gaussian"\n' for i in range(4))
    policy = sf.Policy.loads(f'dataset = "b"\n[levels]\na = 0.5\n[columns]\nid = "id"\n{columns}')
    with tempfile.TemporaryDirectory() as folder:
        vault = sf.Vault.create(f"{folder}/vault", secret=SECRET)
        vault.add(policy, table)
        dataset = vault.dataset("b")
        plain = Path(folder, "plain.parquet")
        with vault.store.open(dataset.body["source"]) as opener, opener() as content:
            plain.write_bytes(content.read())

        def encrypted() -> None:
            with dataset.source() as source:
                assert sum(batch.num_rows for batch in source.batches()) == len(values)

        pair = compare(encrypted, lambda: sum(batch.num_rows for batch in Source.of(plain).batches()), 9)
        yield at_most("reading an encrypted table, 4,000,000 x 5", pair, "the plain Parquet file", 1.3)


def _status(vault: sf.Vault) -> Any:
    return lambda: vault_overview(sf.Vault.open(vault.location, secret=SECRET))


def _log(vault: sf.Vault) -> Any:
    return lambda: sf.Vault.open(vault.location, secret=SECRET).log(Query(last=20))


def _grant(vault: sf.Vault) -> Any:
    levels = itertools.cycle(["internal", "partner", "public"])
    return lambda: sf.Vault.open(vault.location, secret=SECRET).grant("r7", "d3", next(levels))


def _peak(location: str) -> float:
    command = [sys.executable, "-c", _CHILD, location]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    for line in (*encrypted_reads(), *answers()):
        print(line.name, round(line.ours, 4), round(line.baseline, 4), round(line.ratio, 2), line.met, flush=True)

"""Frozen bytes: a copy given today must be made again, to the last bit, by every later version.

A difference here means that copies made before and after it carry independent noise, which recipients could average.
`python tests/golden/test_golden.py` writes the file anew; do so only when breaking with all earlier copies is meant.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.kernels.replacement import replace
from sfumato.kernels.ziggurat import bridge
from sfumato.keys.lock import unwrap
from sfumato.keys.path import PathTree, ancestry
from sfumato.keys.signature import public_key, sign
from sfumato.keys.stream import Stream
from sfumato.ledger.chain import START, Authenticator, Entry
from sfumato.ledger.reader import Generation, Head
from sfumato.tables import content_digest
from sfumato.tables.content_digest import SHA256
from sfumato.tables.record_ids import record_ids
from sfumato.vault.fingerprints import fingerprinted

FILE = Path(__file__).with_name("golden.json")
KEY = sf.Key.from_bytes(bytes(range(32)))


def computed() -> dict[str, Any]:
    addresses = np.arange(2000, dtype=np.uint64)
    stream = Stream(KEY.derive("golden"))
    bits = stream.bits("lane", addresses)
    none, more = np.zeros(1000), partial(stream.bits, "more")
    drawn = [bridge(none, none, 0.0, 1.0, bits, word, addresses, more) for word in range(3)]
    return {
        "derived key": KEY.derive("dataset", "clinic").expose().hex(),
        "fingerprint": KEY.fingerprint(),
        "stream": bits[:4].tobytes().hex(),
        "normals": [[value.hex() for value in column[:6].tolist()] for column in drawn],
        "all normals": [_hash(np.round(column, 9)) for column in drawn],
        "replacement": replace(np.arange(1000) % 7, 0.2, 7, addresses, stream.bits)[:40].tolist(),
        "all replacements": _hash(replace(np.arange(1000) % 7, 0.05, 7, addresses, stream.bits)),
        "large domain": replace(np.zeros(1000, np.int64), 0.3, 3 << 29, addresses, stream.bits)[:12].tolist(),
        "text ids": record_ids(_people(), ("name",), np.zeros(2, np.uint64), KEY).tolist(),
        "pair ids": record_ids(_people(), ("name", "born"), np.zeros(2, np.uint64), KEY).tolist(),
        "path": {str(f): _point(f) for f in (0.8, 0.2, 0.37, 0.9, 0.05, 0.999)},
        "marks": [
            fingerprinted(sf.Ladder.of({"a": 0.8, "b": 0.5}), sf.Level(f), n).fidelity.hex()
            for f in (0.8, 0.5)
            for n in range(5)
        ],
        "chain": _chain(),
        "signature": [public_key(KEY), sign(KEY, b"golden")],
        "lock": unwrap(LOCK, "correct horse", "owner/1").fingerprint(),
        "copies": {str(level): _copy(level) for level in ("high", "middle", "low", 0.4, 0.9, 0.1)},
        "margin-preserving copies": {str(level): _copy(level, COPULA) for level in ("high", "low", 0.4)},
    }


LOCK = {
    "opens": "passphrase",
    "salt": "000102030405060708090a0b0c0d0e0f",
    "nonce": "000102030405060708090a0b",
    "argon2id": {"iterations": 3, "lanes": 4, "memory_cost": 65536},
    "sealed": "d021d795adba76eb99d9441d2bbbb79e8b4fe44713e19cfa589cfe1f6a7b2ce92a011a009dc22e81e348f7bdaf940baa",
}
"""A master key that was wrapped once, and must be found again by every later version."""


def _chain() -> list[list[str]]:
    """Two entries and a head."""
    authenticator = Authenticator(KEY)
    first = Entry(1, "2026-01-01T00:00:00.000000+00:00", "é", "created", "vault", "", "", {"key": "x", "a": 0.1}, 1)
    first = first.chained(START, authenticator)
    second = Entry(2, first.at, "b", "registered", "recipient", "", "lab", {"note": ""}, 1).chained(
        first.hash, authenticator
    )
    head = Head("name", ".", 1, 2, second.hash, {"recipient": 1}, "", "")
    return [
        [first.hash, first.mac],
        [second.hash, second.mac],
        [head.expected_seal(authenticator, [Generation(1, "f", "p", {}, 0)])],
    ]


def _hash(array: Any) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def _people() -> pa.RecordBatch:
    names = ["Ada", "Émile", "", "a name that is longer than one block of sixteen bytes"]
    return pa.record_batch({"name": names, "born": [1815, 1840, 1900, 1950]})


def _point(fidelity: float) -> dict[str, Any]:
    tree = PathTree(sf.Ladder.of({"a": 0.8, "b": 0.5, "c": 0.2}))
    point = tree.locate(sf.Level(fidelity))
    nodes = ancestry([point.node])
    return {
        "time": point.node.time.hex(),
        "nodes": [[f"{n.slot[0]}#{n.slot[1]}", n.weight.hex(), n.size.hex()] for n in nodes],
    }


POLICY = """
dataset = "golden"
[levels]
high = 0.8
middle = 0.5
low = 0.2
[columns]
id = "id"
height = "gaussian"
weight = { role = "gaussian", clip = [40, 120] }
count = { role = "gaussian", integer = true }
colour = { role = "uniform", nulls = "perturb" }
town = { role = "uniform", domain = ["A", "B", "C"], joint = "home" }
floor = { role = "uniform", domain = { min = 0, max = 9 }, joint = "home" }
"""


COPULA = f"""
{POLICY.partition("[columns]")[0]}
[columns]
id = "id"
height = "copula"
weight = {{ role = "copula", bottom = 62, top = 100 }}
count = "copula"
colour = "copula"
town = {{ role = "copula", order = ["A", "B", "C"], group = "home" }}
floor = {{ role = "copula", group = "home" }}
"""


def _copy(level: str | float, policy: str = POLICY) -> str:
    i = np.arange(500)
    table = pa.table(
        {
            "id": i * 3,
            "height": 170 + (i * 37 % 101) / 3,
            "weight": 60 + (i * 53 % 97) / 2,
            "count": (i * 71 % 211) * 10,
            "colour": [None if k % 11 == 0 else "rgb"[k % 3] for k in i],
            "town": ["ABC"[k * 7 % 3] for k in i],
            "floor": i * 13 % 10,
        }
    )
    copy = sf.Policy.loads(policy).fit(table).release(table, level, KEY)
    [batch] = copy.to_batches()
    return content_digest.of_batches([content_digest.of_batch(batch, SHA256)], SHA256)


def test_bytes_are_as_they_were() -> None:
    assert computed() == json.loads(FILE.read_text())


def test_the_comparison_can_fail() -> None:
    frozen = json.loads(FILE.read_text())
    other = sf.Key.from_bytes(bytes(range(1, 33)))
    assert other.fingerprint() != frozen["fingerprint"]
    assert len({frozen["copies"][level] for level in frozen["copies"]}) == len(frozen["copies"])


if __name__ == "__main__":
    FILE.write_text(json.dumps(computed(), indent=1) + "\n")

"""Key files, key derivation, addressed random bits, and record ids."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import CustodyError, SourceError
from sfumato.keys.stream import Lane, Stream
from sfumato.tables.record_ids import record_ids


def test_a_key_file_is_private_and_can_be_read_back(tmp_path: Path) -> None:
    key = sf.Key.generate()
    key.save(tmp_path / "k")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert sf.Key.load(tmp_path / "k") == key != sf.Key.generate()
    with pytest.raises(CustodyError, match="never overwritten"):
        key.save(tmp_path / "k")
    assert sf.Key.load(tmp_path / "k") == key


@pytest.mark.parametrize(
    "content", [b"", b"abc", b"sfumato-key-1 00", b"sfumato-key-1 " + b"zz" * 32, bytes(range(200, 240)), b"00" * 32]
)
def test_a_malformed_key_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(CustodyError, match="64 hexadecimal digits") as caught:
        sf.Key.load(path)
    assert "zz" not in str(caught.value)


def test_a_readable_key_file_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    sf.Key.generate().save(tmp_path / "k")
    (tmp_path / "k").chmod(0o640)
    with pytest.raises(CustodyError, match="chmod 600"):
        sf.Key.load(tmp_path / "k")
    with pytest.raises(CustodyError, match="could not be read"):
        sf.Key.load(tmp_path / "none")


@pytest.mark.parametrize("secret", [b"", b"x" * 31, b"x" * 33, "x" * 32, None])
def test_a_key_is_32_bytes(secret: bytes) -> None:
    with pytest.raises(CustodyError, match="exactly 32 bytes"):
        sf.Key.from_bytes(secret)


def test_a_key_is_never_printed() -> None:
    secret = b"do not show this to anyone, ever"
    key = sf.Key.from_bytes(secret)
    output = f"{key} {key!r} {[key]} {key.fingerprint()}"
    try:
        raise ValueError(key)
    except ValueError:
        output += traceback.format_exc()
    assert "show" not in output
    assert secret.hex() not in output


def test_derived_keys_depend_on_every_label_and_on_where_labels_end() -> None:
    key = sf.Key.from_bytes(bytes(32))
    derived = [key.derive(*labels) for labels in [("a",), ("b",), ("a", "b"), ("ab",), ("a", ""), ()]]
    assert len({k.expose() for k in [key, *derived]}) == 7


def test_derived_keys_and_fingerprints_are_those_of_earlier_versions() -> None:
    key = sf.Key.from_bytes(bytes(range(32)))
    assert key.fingerprint() == "93d02592ce44837f"
    assert key.derive("ledger").expose().hex() == "644960968b33f2980c1318fad6117bcb1214bbb853d22621e3784bd6248cf6e4"
    assert key.derive("lock", b"salt") == sf.Key.from_bytes(
        bytes.fromhex("3bdb89bf21e9e426651dcddfef7b97cc7a0d9dfe3bba4c979509e6c4f325d9db")
    )


def test_a_key_is_never_pickled_and_equal_keys_are_one_in_a_set() -> None:
    key = sf.Key.from_bytes(bytes(range(32)))
    with pytest.raises(CustodyError, match="cannot be pickled"):
        pickle.dumps(key)
    assert len({key, sf.Key.from_bytes(bytes(range(32))), sf.Key.from_bytes(bytes(32))}) == 2


def test_bits_depend_only_on_id_and_value() -> None:
    lane = Lane(sf.Key.from_bytes(bytes(32)))
    cells = np.arange(200, dtype=np.uint64)
    bits = lane.bits(cells)
    assert np.array_equal(lane.bits(cells[50:80]), bits[50:80])
    assert len(set(bits.tolist())) == 200


@pytest.mark.parametrize("count", range(1, 7))
def test_an_address_depends_on_the_record_and_on_every_value(count: int) -> None:
    stream, rows = Stream(sf.Key.from_bytes(bytes(32))), np.array([7, 8], np.uint64)
    values = [np.array([i, i], np.uint64) for i in range(1, count + 1)]
    found = {tuple(one) for one in stream.addresses(rows, values).reshape(-1, 2).tolist()}
    for changed in range(count):
        others = [value + np.uint64(10 * (i == changed)) for i, value in enumerate(values)]
        found |= {tuple(one) for one in stream.addresses(rows, others).reshape(-1, 2).tolist()}
    assert len(found) == 2 * (count + 1)


def test_addresses_are_those_of_earlier_versions() -> None:
    values = [np.array([i], np.uint64) for i in range(1, 5)]
    stream = Stream(sf.Key.from_bytes(bytes(32)))
    assert stream.addresses(np.array([7], np.uint64), values).tolist() == [16529265127162198447, 4463528502309225420]


def _ids(*names: str, **columns: object) -> list[int]:
    batch = pa.record_batch(columns)
    return [
        int(i)
        for i in record_ids(
            batch, names, np.arange(5, 5 + batch.num_rows, dtype=np.uint64), sf.Key.from_bytes(bytes(32))
        )
    ]


def test_record_ids() -> None:
    assert _ids(x=[1, 2]) == [5, 6]
    assert _ids("x", x=pa.array([1, -1], pa.int32())) == [1, 2**64 - 1]
    assert _ids("x", x=pa.array([2**64 - 1], pa.uint64())) == [2**64 - 1]
    texts = _ids("x", x=["a", "b", "", "a" * 16, "a" * 17, "a" * 40])
    assert len(set(texts)) == 6
    assert _ids("x", x=["b"]) == texts[1:2]
    assert _ids("x", x=pa.array(["b", "a"]).dictionary_encode()) == [texts[1], texts[0]]
    assert _ids("x", "y", x=["ab"], y=["c"]) != _ids("x", "y", x=["a"], y=["bc"])
    assert _ids("x", "y", x=[1], y=[2]) != _ids("x", "y", x=[2], y=[1])
    sliced = pa.record_batch({"x": ["zz", "a", "b"]}).slice(1)
    assert record_ids(sliced, ("x",), np.zeros(2, np.uint64), sf.Key.from_bytes(bytes(32))).tolist() == texts[:2]


def test_ids_must_be_present_and_of_a_supported_type() -> None:
    with pytest.raises(SourceError, match="has nulls"):
        _ids("x", x=[1, None])
    with pytest.raises(SourceError, match="must be a number, a text or a time"):
        _ids("x", x=[[1], [2]])

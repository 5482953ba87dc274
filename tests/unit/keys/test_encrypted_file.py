"""Encrypted files: what is read is what was written, at any position, or nothing."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import CustodyError, TamperedError
from sfumato.keys.encrypted_file import HEADER, SEGMENT, EncryptedReader, EncryptedWriter, FileCipher, Spill
from sfumato.keys.key import Key

KEY = Key.from_bytes(bytes(range(32)))
NAME = "datasets/ward/1-{}.parquet"
SIZES = (0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT, 3 * SEGMENT + 5)
STRIDE = SEGMENT + 16


def _content(size: int) -> bytes:
    return hashlib.shake_256(b"content").digest(size)


def _encrypted(content: bytes, key: Key = KEY, name: str = NAME, chunk: int = 100_000) -> bytes:
    out = io.BytesIO()
    with EncryptedWriter(out, FileCipher.of(key, hashlib.sha256(content).digest(), name)) as file:
        for start in range(0, len(content), chunk):
            file.write(content[start : start + chunk])
        assert file.tell() == len(content)
    return out.getvalue()


def _read(data: bytes, key: Key = KEY, name: str = NAME) -> bytes:
    return EncryptedReader.open(io.BytesIO(data), key, name).read()


@pytest.mark.parametrize("size", SIZES)
def test_a_round_trip(size: int) -> None:
    content = _content(size)
    data = _encrypted(content)
    assert _read(data) == content
    assert EncryptedReader.open(io.BytesIO(data), KEY, NAME).size == size
    assert len(data) == HEADER + size + 16 * max(1, -(-size // SEGMENT))


def test_the_same_content_gives_the_same_bytes_and_another_one_shares_nothing() -> None:
    content = _content(3 * SEGMENT)
    first = _encrypted(content)
    assert _encrypted(content, chunk=77_777) == first
    others = [
        _encrypted(content[:-1] + b"x"),
        _encrypted(content, name=NAME.replace("1-", "2-")),
        _encrypted(content, key=Key.from_bytes(bytes(32))),
    ]
    for other in others:
        assert other[HEADER : HEADER + 64] != first[HEADER : HEADER + 64]
        assert other[24:HEADER] != first[24:HEADER]
    assert content[:32] not in first


def test_files_are_encrypted_as_earlier_versions_did() -> None:
    data = _encrypted(_content((1 << 18) + 5))
    assert data[:16] == b"sfumato-stream-1"
    assert data[16:24].hex() == KEY.fingerprint()
    assert hashlib.sha256(data).hexdigest() == "387bc045adebc6738d6e45b6f0ffbf5c0eeb6e20dc22448521ebf73c47555409"


_BIG = _encrypted(_content(2 * SEGMENT + 1000))
_EDGES = [HEADER + number * STRIDE + beyond for number in range(3) for beyond in (0, 1, 16)]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(_BIG) - 1), st.integers(1, 255))
def test_no_bit_can_be_altered(position: int, flip: int) -> None:
    data = bytearray(_BIG)
    data[position] ^= flip
    with pytest.raises((TamperedError, CustodyError)):
        _read(bytes(data))


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.integers(0, len(_BIG) - 1), st.sampled_from([HEADER + i * STRIDE + d for i in (0, 1, 2) for d in (0, 1, 16)])
    )
)
def test_nothing_can_be_cut_off_or_added(size: int) -> None:
    with pytest.raises(TamperedError, match="altered or cut off"):
        EncryptedReader.open(io.BytesIO(_BIG[:size]), KEY, NAME)  # before anything is read
    with pytest.raises(TamperedError, match="altered or cut off"):
        EncryptedReader.open(io.BytesIO(_BIG + _BIG[HEADER : HEADER + 1 + size]), KEY, NAME)


def test_segments_cannot_be_moved_removed_or_taken_from_another_file() -> None:
    other = _encrypted(_content(2 * SEGMENT + 999))
    head, first, second, last = _BIG[:HEADER], *(_BIG[HEADER + i * STRIDE :][:STRIDE] for i in range(3))
    foreign = other[HEADER : HEADER + STRIDE]
    for made in (
        head + second + first + last,
        head + second + last,
        head + first + last,
        head + first + first + last,
        head + first + second,
        head + foreign + second + last,
        other[:HEADER] + first + second + last,
        head + first + second + last + last,
    ):
        with pytest.raises(TamperedError):
            _read(made)


def test_a_file_is_bound_to_its_key_and_its_name() -> None:
    with pytest.raises(CustodyError, match="encrypted under another one, which was lost or erased"):
        _read(_BIG, key=Key.from_bytes(bytes(32)))
    with pytest.raises(TamperedError):
        _read(_BIG, name="datasets/ward/2-{}.parquet")
    with pytest.raises(TamperedError):
        _read(_content(1000))
    with pytest.raises(TamperedError):
        _read(b"")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2 * SEGMENT + 1100), st.integers(-1, SEGMENT + 10)), max_size=8))
def test_reads_at_any_position_equal_those_of_a_plain_file(reads: list[tuple[int, int]]) -> None:
    plain: Any = io.BytesIO(_content(2 * SEGMENT + 1000))
    ours = EncryptedReader.open(io.BytesIO(_BIG), KEY, NAME)
    for position, size in reads:
        assert ours.seek(position) == plain.seek(position)
        assert ours.read(size) == plain.read(size)
        assert ours.tell() == plain.tell()
    into, expected = bytearray(1000), bytearray(1000)
    ours.seek(-1500, io.SEEK_END)
    plain.seek(-1500, io.SEEK_END)
    assert ours.readinto(into) == plain.readinto(expected)
    assert into == expected
    with pytest.raises(ValueError, match="negative"):
        ours.seek(-1)


def test_a_reader_says_what_it_can_do_and_leaves_no_file_open() -> None:
    file = io.BytesIO(_BIG)
    ours = EncryptedReader.open(file, KEY, NAME)
    assert (ours.readable(), ours.seekable(), ours.writable(), ours.tell()) == (True, True, False, 0)
    assert ours.seek(10) == 10
    assert ours.seek(5, io.SEEK_CUR) == 15 == ours.tell()
    assert ours.seek(0) == 0
    assert ours.readall() == _content(2 * SEGMENT + 1000)
    assert (ours.read(), ours.read(3), ours.readinto(bytearray(3))) == (b"", b"", 0)
    ours.close()
    assert ours.closed
    assert file.closed
    for altered in (_BIG[:-1], b"no header"):
        refused = io.BytesIO(altered)
        with pytest.raises(TamperedError):
            EncryptedReader.open(refused, KEY, NAME)
        assert refused.closed


def test_a_file_that_was_not_finished_cannot_be_read() -> None:
    out = io.BytesIO()
    cipher = FileCipher.of(KEY, b"", NAME)
    with pytest.raises(ZeroDivisionError), EncryptedWriter(out, cipher) as file:  # noqa: PT012 - the block is what is tested
        file.write(bytes(2 * SEGMENT))
        raise ZeroDivisionError
    with pytest.raises(TamperedError):
        _read(out.getvalue())


def test_what_is_spilled_to_disk_is_encrypted(tmp_path: Path) -> None:
    secret = b"a row of the original table " * 40_000
    with Spill(tmp_path) as spill:
        spill.writer.write(secret)
        ours = [path for path in Path("/proc/self/fd").iterdir() if os.path.realpath(path).startswith(str(tmp_path))]
        assert ours, "nothing was spilled, so nothing was tested"
        for path in ours:
            on_disk = path.read_bytes()
            assert len(on_disk) > 500_000
            assert secret[:28] not in on_disk
        assert spill.reader().read() == secret
    assert not list(tmp_path.iterdir())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3 * SEGMENT + 5), st.integers(0, 4 * SEGMENT), st.booleans())
def test_whole_segments_are_decrypted_directly(start: int, size: int, for_arrow: bool) -> None:
    content = _content(3 * SEGMENT + 5)
    reader = EncryptedReader.open(io.BytesIO(_encrypted(content)), KEY, NAME)
    reader.seek(start)
    if for_arrow:
        found = bytes(memoryview(reader.read_buffer(size)))
    else:
        buffer = bytearray(size)
        found = bytes(buffer[: reader.readinto(buffer)])
    assert found == content[start : start + size]
    assert reader.tell() == start + len(found)


def test_an_altered_segment_is_refused_there_too() -> None:
    data = bytearray(_encrypted(_content(3 * SEGMENT)))
    data[HEADER + STRIDE + 9] ^= 1
    reader = EncryptedReader.open(io.BytesIO(bytes(data)), KEY, NAME)
    with pytest.raises(TamperedError, match="altered or cut off"):
        reader.readinto(bytearray(3 * SEGMENT))

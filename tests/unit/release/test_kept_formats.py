"""Pseudonyms that look like the identifiers: of the same format, each once, other ones for each recipient."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SourceError
from sfumato.models import of_type
from sfumato.models.pseudonym import Pseudonym
from sfumato.release.kept_formats import same_format

KEY = sf.Key.from_bytes(bytes(range(32)))


def _replaced(values: Sequence[object], kind: pa.DataType | None = None) -> list[object]:
    return list(same_format(pa.array(values, kind), "id", KEY).to_pylist())


def test_letters_digits_and_all_else_stay_what_they_are() -> None:
    given = ["AB-1234", "zz 99/x", "", None, "--", "4e2b1d08-77aa-4c00-9f00-0123456789ab", "DE89370400440532013000"]
    made = _replaced(given)
    for before, after in zip(given, made, strict=True):
        if before is None:
            assert after is None
            continue
        pattern = "".join(
            "[0-9]" if c.isdigit() else "[A-Z]" if c.isupper() else "[a-z]" if c.islower() else re.escape(c)
            for c in str(before)
        )
        assert re.fullmatch(pattern, str(after))
        assert after != before or not re.search("[A-Za-z0-9]", str(before))
    assert _replaced(given) == made


@pytest.mark.parametrize(
    "values",
    [
        [f"{i:03d}" for i in range(1000)],  # every text of its format
        [f"N{i:06d}" for i in range(0, 300_000, 7)],
        [f"{i}" for i in range(12_000)],
    ],
)
def test_no_two_get_the_same(values: list[str]) -> None:
    made = _replaced(list(values))
    assert len(set(made)) == len(values)
    assert [len(str(one)) for one in made] == [len(one) for one in values]
    assert sum(a == b for a, b in zip(made, values, strict=True)) < 40  # about one of each length stays as it is


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint8(), pa.uint64()])
def test_whole_numbers_keep_their_type_sign_and_digits(kind: pa.DataType) -> None:
    top = 2 ** (kind.bit_width - (0 if "u" in str(kind) else 1)) - 1
    given = [0, 5, 17, 99, 100, 120, top, None] + ([] if "u" in str(kind) else [-3, -44, -top])
    made = _replaced(list(given), kind)
    for before, after in zip(given, made, strict=True):
        assert (before is None) == (after is None)
        if before is not None:
            assert len(str(before)) == len(str(after))
    assert len(set(made)) == len(made)
    if "u" not in str(kind):
        with pytest.raises(SourceError, match="least of its type"):
            _replaced([-top - 1], kind)


def test_what_cannot_keep_its_format_is_refused() -> None:
    with pytest.raises(SourceError, match="other letters"):
        _replaced(["Müller"])
    with pytest.raises(SourceError, match="38 digits"):
        _replaced(["1" * 39])
    with pytest.raises(SourceError, match="whole numbers and of texts"):
        _replaced([1.5])


def test_a_character_that_is_neither_is_no_digit() -> None:
    """Characters whose codes are small must not be taken for kinds of characters."""
    given = ["1\x01", "11", "\x011", "a\x03"]
    made = _replaced(list(given))
    assert [[c in "\x01\x03" for c in str(one)] for one in made] == [[c in "\x01\x03" for c in one] for one in given]


def test_a_copy_has_them_and_says_what_they_show() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"id": [f"P-{i:05d}" for i in range(400)], "x": rng.normal(size=400)})
    policy = sf.Policy.loads(
        'dataset = "t"\n[levels]\na = 0.5\nb = 0.4\n[columns]\nx = "gaussian"\n'
        'id = { role = "id", publish = "pseudonym", keep_format = true }'
    )
    scheme = policy.fit(table)
    mine, other = (scheme.with_recipient(name).release(table, "a", KEY) for name in ("mine", "other"))
    shown = [set(copy["id"].to_pylist()) for copy in (mine, other)]
    assert all(re.fullmatch("[A-Z]-[0-9]{5}", name) for name in shown[0] | shown[1])
    assert len(shown[0] & shown[1]) < 15  # of 2.6 million: 0.06 are expected
    manifest = sf.Manifest.of(mine)
    assert of_type(manifest.models, Pseudonym) == [Pseudonym(("id",), "id", keeps_format=True)]
    assert any("letters and digits" in limit for limit in manifest.limits)
    manifest.verify(mine)

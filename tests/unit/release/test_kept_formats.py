"""Pseudonyms of a stated format: each once, other ones for each recipient, and nothing of the identifier in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import PolicyError, SourceError
from sfumato.models import of_type
from sfumato.models.pseudonym import Pseudonym
from sfumato.policy.formats import Format
from sfumato.release.kept_formats import same_format

KEY = sf.Key.from_bytes(bytes(range(32)))


def _replaced(values: Sequence[object], form: str, kind: pa.DataType | None = None) -> list[object]:
    return list(same_format(pa.array(values, kind), "id", Format.of(form), KEY).to_pylist())


@pytest.mark.parametrize(
    ("form", "pattern", "values"),
    [
        ("P-99999", r"P-[0-9]{5}", [f"P-{i:05d}" for i in range(500)]),
        ("AA99 aa", r"[A-Z]{2}[0-9]{2} [a-z]{2}", ["AB12 xy", "ZZ99 zz", "AA00 aa"]),
        (r"\A-99", r"A-[0-9]{2}", ["A-17", "A-42"]),
        (
            "x" * 8 + "-" + "-".join(["xxxx"] * 3) + "-" + "x" * 12,
            r"[0-9a-f-]{36}",
            ["4e2b1d08-77aa-4c00-9f00-0123456789ab"],
        ),
        ("DE" + "9" * 20, r"DE[0-9]{20}", ["DE89370400440532013000", "DE" + "9" * 20]),
    ],
)
def test_they_have_the_format_and_are_different(form: str, pattern: str, values: list[str]) -> None:
    made = _replaced(values, form)
    assert all(re.fullmatch(pattern, str(one)) for one in made)
    assert len(set(made)) == len(values)
    assert sum(a == b for a, b in zip(made, values, strict=True)) < 15
    assert _replaced(values, form) == made
    assert _replaced([values[0], None], form) == [made[0], None]


@pytest.mark.parametrize("form", ["999", "A9", "99999"])
def test_all_identifiers_of_a_format_are_permuted(form: str) -> None:
    """Every one is hit once, so that a copy of all of them shows nothing."""
    digits = form.count("9")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if "A" in form else [""]
    values = [f"{letter}{i:0{digits}d}" for letter in letters for i in range(10**digits)]
    made = _replaced(values, form)
    assert sorted(map(str, made)) == sorted(values)


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64(), pa.uint64()])
def test_whole_numbers_are_replaced_alike_whatever_their_type(kind: pa.DataType) -> None:
    given = [0, 5, 170, 9999]
    made = _replaced(given, "9999", kind)
    assert made == _replaced(given, "9999", pa.int64())
    assert len(set(made)) == 4
    assert same_format(pa.array(given, kind), "id", Format.of("9999"), KEY).type == kind


@pytest.mark.parametrize(
    ("values", "form", "kind", "message"),
    [
        (["P-1", "P-22"], "P-9", None, "some have another"),
        (["Q-1"], "P-9", None, "some have another"),
        (["Mü"], "Aa", None, "some have another"),
        ([10_000], "9999", pa.int64(), "some have another"),
        ([-1], "9999", pa.int64(), "some have another"),
        ([1], "A99", pa.int64(), "for texts"),
        ([1], "999", pa.int8(), "for texts or longer"),
        ([1.5], "99", None, "whole numbers and of texts"),
    ],
)
def test_what_has_another_format_is_refused(
    values: list[object], form: str, kind: pa.DataType | None, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        _replaced(values, form, kind)


@pytest.mark.parametrize("form", ["", "abc\\", "--", "9" * 39, "Mü9", 7])
def test_formats_that_make_no_sense_are_refused(form: object) -> None:
    with pytest.raises(PolicyError, match="a format"):
        Format.of(form)


def _policy(form: str) -> sf.Policy:
    return sf.Policy.loads(
        'dataset = "t"\n[levels]\na = 0.5\nb = 0.4\n[columns]\nx = "gaussian"\n'
        f'id = {{ role = "id", publish = "pseudonym", format = "{form}" }}'
    )


def test_a_copy_has_them_and_recipients_cannot_join() -> None:
    """Identifiers of hexadecimal digits, whose letters would tell each of them if they stayed where they are."""
    rng = np.random.default_rng(0)
    ids = [rng.bytes(12).hex() for _ in range(400)]
    table = pa.table({"id": ids, "x": rng.normal(size=400)})
    scheme = _policy("x" * 24).fit(table)
    mine, other = (scheme.with_recipient(name).release(table, "a", KEY) for name in ("mine", "other"))
    shown = [set(copy["id"].to_pylist()) for copy in (mine, other)]
    masks = [{re.sub("[0-9]", "9", name) for name in re.sub("[a-f]", "a", " ".join(names)).split()} for names in shown]
    assert not shown[0] & shown[1]
    assert len(masks[0] & masks[1]) < 5  # of 2^24: 0.01 are expected
    manifest = sf.Manifest.of(mine)
    assert of_type(manifest.models, Pseudonym) == [Pseudonym(("id",), "id", "x" * 24)]
    assert any("All have the format" in limit for limit in manifest.limits)
    manifest.verify(mine)


def test_a_vault_refuses_a_wrong_format_before_anything_is_stored(tmp_path_factory: pytest.TempPathFactory) -> None:
    table = pa.table({"id": ["P-1", "P-22"] * 300, "x": np.arange(600.0)})
    vault = sf.Vault.create(tmp_path_factory.mktemp("v") / "vault")
    with pytest.raises(SourceError, match="some have another"):
        vault.add(_policy("P-9"), table)
    assert [entry.action for entry in vault.log()] == ["created"]

"""What a draft recognises: personal data, codes, relations between columns, labels, and cells that are no numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.models import of_type
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.policy.personal_data import direct_identifier, is_quasi_identifier
from sfumato.policy.relations import dependent_groups, notes
from sfumato.policy.suggest import draft
from sfumato.tables.labels import with_labels

ROWS = 2000


def line_of(text: str, column: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"# {column}:"))


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["a.b@example.org", "c@d.co.uk"], "e-mail addresses"),
        (["+49 170 1234567", "030/1234567", "(0351) 46 33"], "telephone numbers"),
        (["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"], "bank accounts (IBAN)"),
        (["123-45-6789", "987-65-4321"], "social security numbers"),
        (["AB 12 34 56 C"], "national insurance numbers"),
        (["850101-1234", "19850101-1234"], "personal numbers"),
        (["10.0.0.1", "192.168.1.20"], "network addresses"),
        (["north", "south"], ""),
        (["A1", "B2"], ""),
        (["2025-01-01", "12-2"], ""),
    ],
)
def test_personal_data_are_recognised_by_content(texts: list[str], found: str) -> None:
    assert direct_identifier("x", pa.array(texts)) == found


def test_personal_data_are_recognised_by_name() -> None:
    assert all(direct_identifier(name, pa.array(["x"])) for name in ("last_name", "Vorname", "E-Mail", "telefono"))
    assert not any(direct_identifier(name, pa.array(["x"])) for name in ("renamed", "diagnosis", "hotel"))
    assert all(map(is_quasi_identifier, ("age", "Geschlecht", "birth_year", "PLZ", "date of birth")))
    assert not any(map(is_quasi_identifier, ("wage", "message", "cost")))


def test_codes_that_are_stored_as_decimals_are_codes(key: sf.Key) -> None:
    draw = np.random.default_rng(1)
    table = pa.table({"sex": draw.integers(0, 2, ROWS).astype(float), "cost": draw.normal(size=ROWS)})
    policy = sf.Policy.suggest(table, plain_noise=True)
    assert policy.columns["sex"].options["domain"] == [0, 1]
    copy = policy.fit(table).release(table, "public", key)
    assert copy.schema.field("sex").type == pa.float64()
    assert set(copy["sex"].to_pylist()) == {0.0, 1.0}
    [found] = of_type(sf.Manifest.of(copy).models, UniformReplacement)
    assert found.retention == pytest.approx(0.2, abs=1e-2)


def test_a_zero_inflated_column_is_clipped() -> None:
    """Most values are 0, so that the quartiles are; the outlier is one among the others."""
    draw = np.random.default_rng(2)
    gain = np.where(np.arange(ROWS) < 0.9 * ROWS, 0.0, draw.normal(1000, 100, ROWS))
    gain[-1] = 1e7
    low, high = sf.Policy.suggest(pa.table({"gain": gain}), plain_noise=True).columns["gain"].options["clip"]
    assert low <= 0
    assert 1000 < high < 1e6


def test_relations_between_columns_are_named() -> None:
    draw = np.random.default_rng(3)
    wage, rent, city = draw.normal(size=ROWS), draw.normal(size=ROWS), draw.integers(0, 20, ROWS)
    table = pa.table(
        {
            "wage": wage,
            "rent": rent,
            "left": wage - rent,
            "city": city,
            "country": city // 5,
            "free": draw.integers(0, 9, ROWS),
        }
    )
    found = notes(table)
    assert found["left"] == "wage and rent determine it: drop one of them."
    assert found["country"].startswith("city determines it")
    assert not {"wage", "rent", "free"} & set(found)
    assert notes(table.select(["country", "city"])) == {
        "city": "It determines country: drop one of them, or keep the coarser one."
    }
    assert "wage and rent determine it" in line_of(draft(table), "left")


def test_dependent_categories_are_replaced_together(key: sf.Key) -> None:
    draw = np.random.default_rng(4)
    sex = draw.integers(0, 2, ROWS)
    condition = np.where(draw.random(ROWS) < 0.9, sex, draw.integers(0, 3, ROWS))
    table = pa.table({"sex": sex, "condition": condition, "ward": draw.integers(0, 3, ROWS)})
    assert dependent_groups(table, {"sex": 2, "condition": 3, "ward": 3}) == dict.fromkeys(
        ("sex", "condition"), "sex_condition"
    )
    policy = sf.Policy.suggest(table, plain_noise=True)
    assert "joint" not in policy.columns["ward"].options
    assert len(sf.Manifest.of(policy.fit(table).release(table, "public", key)).models) == 2


def test_a_few_cells_that_are_no_numbers_are_located() -> None:
    """By their row: a draft may be shown in a browser, where no cell belongs."""
    cells = [str(i / 7) for i in range(ROWS)]
    cells[1234] = "about 7"
    assert "1 are not, the first in row 1,235" in line_of(draft(pa.table({"cost": cells})), "cost")


def test_labels_are_in_the_draft_and_cannot_leave_their_comment() -> None:
    field = with_labels(pa.field("s", pa.int64()), "Sex\n[levels]", {1: "male\nx = 1", 2: "female"})
    table = pa.table([pa.array([1, 2] * ROWS)], schema=pa.schema([field]))
    text = draft(table)
    assert "codes with labels (1 = male" in line_of(text, "s")
    assert sf.Policy.loads(text).columns["s"].role == "copula"


def test_ids_are_hidden_and_rare_categories_counted() -> None:
    codes = ["a"] * (ROWS - 3) + ["b"] * 3
    text = draft(pa.table({"patient_nr": [3 * i for i in range(ROWS)], "code": codes}), plain_noise=True)
    policy = sf.Policy.loads(text)
    assert policy.columns["patient_nr"].options == {"publish": False}
    assert "1 with fewer than 5 records" in line_of(text, "code")
    chosen = sf.Policy.loads(draft(pa.table({"code": codes}), roles={"code": "keep"}))
    assert chosen.columns["code"].role == "keep"

"""The copula mechanism: what is published of margins, groups of columns, versions, and options of the policy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import PolicyError, SourceError
from sfumato.mechanisms import _margin_fit
from sfumato.mechanisms._copula_scheme import CopulaScheme
from sfumato.mechanisms._margin_fit import roundest
from sfumato.models import of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.margin import Margin

KEY = sf.Key.from_bytes(bytes(range(32)))
HEAD = 'dataset = "d"\norder = "keep"\n[levels]\nhigh = 0.8\nlow = 0.2\n[columns]\n'


def _policy(**columns: str) -> sf.Policy:
    return sf.Policy.loads(HEAD + "".join(f"{name} = {role}\n" for name, role in columns.items()))


def _model(scheme: object, table: pa.Table) -> GaussianCopula:
    [model] = of_type(scheme.models(table.schema, sf.Level(0.8)), GaussianCopula)  # type: ignore[attr-defined]
    return model


def _heavy(rows: int = 3000, seed: int = 1) -> np.ndarray:
    return np.round(np.exp(np.random.default_rng(seed).normal(8, 1.5, rows)), 2)


def _values(margin: Margin) -> set[float]:
    return {end * margin.step for end in (*margin.low, *margin.high)}


def test_no_extreme_is_in_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest values of the table lie beyond the last bin; a fault that shows them is found."""

    def largest_shown(seed: int) -> int:
        table = pa.table({"x": _heavy(seed=seed)})
        margin = Margin.decode(_model(_policy(x='"copula"').fit(table), table).margins[0])
        return sum(bool(value >= np.sort(table["x"].to_numpy())[-8]) for value in _values(margin))

    assert [largest_shown(seed) for seed in range(10)] == [0] * 10
    monkeypatch.setattr(_margin_fit, "roundest", lambda low, high: high)
    monkeypatch.setattr(
        _margin_fit, "_quantile", lambda values, counts, rank: float(values[-1] if rank > 2900 else values[0])
    )
    assert largest_shown(0) > 0


def _share_below(margin: Margin, values: np.ndarray) -> np.ndarray:
    """The published distribution function."""
    ends = np.array([margin.low[0], *(high + 1 for high in margin.high)]) * margin.step
    below: np.ndarray = np.interp(values, ends, [0.0, *margin.share])
    return below


def test_one_record_changes_a_margin_by_no_more_than_its_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but one record are known, and the last one has two candidates; finer shares would tell them apart."""
    rows, policy = 4000, _policy(x='"copula"')

    def difference(seed: int) -> tuple[float, bool]:
        known, found = np.random.default_rng(seed).normal(50, 10, rows), []
        for last in (60.0, 30.0):
            table = pa.table({"x": np.append(known, last)})
            found.append(Margin.decode(_model(policy.fit(table), table).margins[0]))
        grid = np.linspace(0, 100, 2001)
        below = [_share_below(margin, grid) for margin in found]
        return float(np.abs(below[0] - below[1]).max()), found[0] == found[1]

    found = [difference(seed) for seed in range(12)]
    assert max(largest for largest, _ in found) <= 32 / rows + 1 / 100  # a step of the shares, and a part of one bin
    monkeypatch.setattr(_margin_fit, "_rounded", lambda share, _: share)
    assert not any(same for _, same in map(difference, range(12)))


def test_every_bin_holds_the_minimum_and_shares_are_coarse() -> None:
    table = pa.table(
        {
            "x": _heavy(),
            "town": np.array(list("abcdefgh"))[np.minimum(np.random.default_rng(3).geometric(0.5, 3000), 8) - 1],
        }
    )
    scheme = _policy(x='{ role = "copula", min_count = 50 }', town='"copula"').fit(table)
    [fitted] = scheme.schemes
    assert isinstance(fitted, CopulaScheme)
    for name, margin in zip(fitted.columns, fitted.sampler.margins, strict=True):
        integers = margin.cells(table[name].combine_chunks(), name).integers
        held = [int(((integers >= a) & (integers <= b)).sum()) for a, b in zip(margin.low, margin.high, strict=True)]
        assert min(held) >= (50 if name == "x" else 32)
        assert all(share * 2**7 == round(share * 2**7) for share in margin.share)  # 3,000 rows: steps of 1/128


@pytest.mark.parametrize("rows", [150, 300, 1000, 3000])
def test_scores_of_a_small_table_vary_no_more_than_the_noise_was_made_for(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bins are wide, and a good part of the outermost ones lies at their ends."""
    x = np.random.default_rng(rows).normal(size=(rows, 3))
    table = pa.table({"x": x[:, 0], "heavy": np.exp(2 * x[:, 1]), "whole": np.round(40 + 12 * x[:, 2])})

    def largest() -> float:
        [scheme] = _policy(x='"copula"', heavy='"copula"', whole='"copula"').fit(table).schemes
        assert isinstance(scheme, CopulaScheme)
        return float(np.hstack([scheme.scores(batch) for batch in table.to_batches()]).var(axis=1).max())

    assert 0.8 < largest() < 1.1
    monkeypatch.setattr(_margin_fit, "_VARIANCE", np.inf)
    assert largest() > (1.4 if rows <= 300 else 1.05)


def test_top_and_bottom_coding() -> None:
    table = pa.table({"x": _heavy()})
    scheme = _policy(x='{ role = "copula", bottom = 1000, top = 20000 }').fit(table)
    copy = scheme.release(table, "low", KEY)["x"].to_numpy()
    assert 1000 <= copy.min() < copy.max() <= 20000


def test_columns_of_a_group_keep_their_correlation_and_groups_are_apart() -> None:
    z = np.random.default_rng(4).normal(size=(5000, 1)) + np.random.default_rng(5).normal(0, 0.3, (5000, 3))
    table = pa.table({f"c{i}": z[:, i] for i in range(3)})
    apart = '{ role = "copula", group = "other" }'
    copy = _policy(c0='"copula"', c1='"copula"', c2=apart).fit(table).release(table, "low", KEY).to_pandas()
    found = copy.corr("spearman").to_numpy()
    assert found[0, 1] > 0.85
    assert found[0, 2] < 0.5


def test_the_order_of_categories() -> None:
    z = np.random.default_rng(6).normal(size=5000)
    size = np.array(["large", "medium", "small", "tiny"])[3 - np.digitize(z, [-1, 0, 1])]
    table = pa.table({"size": size, "x": z})
    found = Margin.decode(_model(_policy(size='"copula"', x='"copula"').fit(table), table).margins[0])
    order = list(found.values)
    assert order in (["tiny", "small", "medium", "large"], ["large", "medium", "small", "tiny"])
    stated = '{ role = "copula", order = ["tiny", "small", "medium", "large", "huge"] }'
    scheme = _policy(size=stated, x='"copula"').fit(table)
    margin = Margin.decode(_model(scheme, table).margins[0])
    assert margin.values == ("tiny", "small", "medium", "large")  # nobody is huge
    assert margin.low == (0, 1, 2, 3)
    copied = scheme.release(table, "low", KEY)["size"].to_pylist()
    assert abs(copied.count("large") - size.tolist().count("large")) < 150
    with pytest.raises(SourceError, match="must list all its categories"):
        _policy(size='{ role = "copula", order = ["tiny"] }', x='"copula"').fit(table)


def test_unchanged_records_keep_their_noise_in_a_later_version() -> None:
    table = pa.table({"id": np.arange(3000), "x": _heavy(), "y": _heavy(seed=2)})
    scheme = _policy(id='"id"', x='"copula"', y='"copula"').fit(table)
    later = table.set_column(1, "x", pa.array(np.append(table["x"].to_numpy()[:-1], 3.0)))
    one, two = (scheme.release(t, "low", KEY).to_pandas() for t in (table, later))
    changed = (one != two).any(axis=1)
    assert changed.tolist() == [False] * 2999 + [True]


def test_copies_depend_neither_on_other_levels_nor_on_threads() -> None:
    table = pa.table({"x": _heavy(200_000), "y": np.random.default_rng(1).integers(0, 9, 200_000)})
    scheme = _policy(x='"copula"', y='"copula"').fit(table)
    first, _, third = scheme.release_levels(table, [0.8, 0.5, 0.2], KEY, threads=2)
    assert scheme.release(table, 0.8, KEY, threads=1).equals(first)
    assert scheme.release(table, 0.2, KEY, threads=1).equals(third)
    again = _policy(x='"copula"', y='"copula"').fit(table, threads=1)
    assert again.dumps() == scheme.dumps()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("bins = 1", "`bins` of column 'x' must be a whole number of at least 2"),
        ("min_count = 5", "`min_count` of column 'x' must be a whole number of at least 32"),
        ("bottom = 5, top = 1", "`bottom` of column 'x' must be less than its `top`"),
        ("group = 3", "`group` of column 'x' must be the name of its group"),
        ('order = ["a", "a"]', "`order` of column 'x' must list its categories once each"),
        ('order = ["a"]', "`order` is for categories"),
        ("bims = 3", "bins"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        _policy(x=f'{{ role = "copula", {options} }}').fit(pa.table({"x": _heavy()}))


def test_values_that_cannot_be_used() -> None:
    table = pa.table({"x": _heavy()})
    with pytest.raises(SourceError, match="finite"):
        _policy(x='"copula"').fit(pa.table({"x": [1.0, float("nan")] * 50}))
    with pytest.raises(SourceError, match="at most 4,096 categories"):
        _policy(x='"copula"').fit(pa.table({"x": [str(i) for i in range(5000)]}))
    with pytest.raises(SourceError, match="needs numbers, times or categories"):
        _policy(x='"copula"').fit(pa.table({"x": [[1], [2]]}))
    scheme = _policy(x='"copula"').fit(pa.table({"x": list("ab") * 100}))
    with pytest.raises(SourceError, match="must be in its domain"):
        scheme.release(pa.table({"x": ["c"]}), "low", KEY)
    assert _policy(x='"copula"').fit(table).release(table.slice(0, 0), "low", KEY).num_rows == 0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (17.3, 21.9, 20),
        (0.0123, 0.0131, 0.013),
        (-3, 4, 0),
        (994, 1003, 1000),
        (5, 5, 5),
        (-21, -17.3, -20),
        (31, 34, 32),
    ],
)
def test_the_roundest_number(low: float, high: float, expected: float) -> None:
    assert roundest(low, high) == expected


def test_a_category_that_few_records_have_is_not_published() -> None:
    town = np.array(["Arles", "Brest"])[np.random.default_rng(1).integers(0, 2, 3000)].astype(object)
    town[:5] = "Zermatt"
    table = pa.table({"town": town, "x": _heavy()})
    scheme = _policy(town='"copula"', x='"copula"').fit(table)
    copy = scheme.release(table, "low", KEY)
    assert "Zermatt" not in sf.Manifest.of(copy).dumps()
    assert set(copy["town"].to_pylist()) == {"Arles", "Brest"}
    assert sf.score(sf.attack("llse", [copy]), table).numbers
    town[5:60] = "Zermatt"
    table = pa.table({"town": town, "x": _heavy()})
    shown = _policy(town='"copula"', x='"copula"').fit(table).release(table, "low", KEY)
    assert "The list of possible values is public: town." in sf.Manifest.of(shown).limits
    assert "Zermatt" in shown["town"].to_pylist()


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.uint8(), pa.int8(), pa.uint16(), pa.float64(), pa.decimal128(4, 2), pa.time32("s"), pa.date32()],
    ids=str,
)
def test_a_column_with_too_few_values_for_a_margin_stays_within_its_type(kind: pa.DataType) -> None:
    """Nothing is published about fifty values but their order of magnitude."""
    values = pa.array(np.random.default_rng(1).integers(0, 60, 3000), pa.int32(), mask=np.arange(3000) >= 50)
    table = pa.table(
        {"x": _heavy(), "few": values.cast(pa.float64()).cast(kind) if "dec" in str(kind) else values.cast(kind)}
    )
    copy = _policy(x='"copula"', few='"copula"').fit(table).release(table, "low", KEY)
    assert copy.schema.field("few").type == kind
    assert len(set(copy["few"].drop_null().to_pylist())) > 10
    drafted = sf.Policy.suggest(table, dataset="d").columns["few"].role
    assert drafted == ("copula" if pa.types.is_time(kind) else "gaussian")


def test_numbers_with_a_dictionary_and_numbers_that_are_too_large() -> None:
    codes = pa.array(np.random.default_rng(1).integers(0, 4, 3000))
    table = pa.table({"code": codes.dictionary_encode(), "x": _heavy()})
    copy = _policy(code='"copula"', x='"copula"').fit(table).release(table, "low", KEY)
    assert set(copy["code"].to_pylist()) == {0, 1, 2, 3}
    large = pa.table({"x": pa.array([2**63 + i for i in range(100)], pa.uint64())})
    with pytest.raises(SourceError, match="below 2\\^62"):
        _policy(x='"copula"').fit(large)

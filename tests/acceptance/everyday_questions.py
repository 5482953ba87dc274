"""A hundred everyday questions about one table, by kind, written down before it was known which can be answered.

The table has what real ones have: whole numbers, a spike at zero, one at 40, a heavy tail, two groups, dates, missing
values, categories that depend on each other and on numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

POLICY = """
dataset = "patients"
[levels]
shared = {level}
[columns]
age = {{ role = "gaussian", special = [] }}
income = {{ role = "gaussian", special = [[0, 0.13]] }}
hours = {{ role = "gaussian", special = [[40, 0.45]] }}
score = {{ role = "gaussian", special = [] }}
admitted = {{ role = "gaussian", special = [] }}
visits = {{ role = "uniform", domain = {{ min = 0, max = 8 }} }}
sex = {{ role = "uniform", domain = ["f", "m"] }}
ward = {{ role = "uniform", domain = ["a", "b", "c", "d"] }}
smokes = {{ role = "uniform", domain = [true, false] }}
region = {{ role = "uniform", domain = ["north", "south", "east", "west"] }}
site = "keep"
year = "keep"
"""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "counts": (
        "select count(*) v from t",
        "select count(*) v from t where sex = 'f'",
        "select count(*) v from t where ward in ('a', 'b') and smokes",
        "select count(*) v from t where region <> 'north' and site = 'main'",
        "select count(*) v from t where year = 2024 and sex = 'm'",
        "select count(income) v from t",
        "select count(*) v from t where income is null",
        "select count(*) v from t where visits >= 3",
        "select count(*) v from t where visits between 1 and 2 and region = 'south'",
        "select count(*) v from t where visits = 0",
    ),
    "ranges": (
        "select count(*) v from t where age >= 65",
        "select count(*) v from t where age between 30 and 49",
        "select count(*) v from t where age < 30 and sex = 'f'",
        "select count(*) v from t where score > 1.5 and smokes",
        "select count(*) v from t where income > 60000",
        "select count(*) v from t where income < 20000 and ward = 'a'",
        "select count(*) v from t where hours > 45",
        "select count(*) v from t where hours < 35 and age > 40",
        "select count(*) v from t where age > 60 and score > 0",
        "select count(*) v from t where age between 20 and 40 and score < 0 and sex = 'm'",
        "select count(*) v from t where age > 50 and visits > 2",
        "select count(*) v from t where income between 20000 and 50000 and age > 50",
        "select count(*) v from t where score between -1 and 1 and site = 'main'",
        "select count(*) v from t where age > 30 and age <= 60 and region = 'east'",
        "select count(*) v from t where abs(score) > 2",
    ),
    "or and not": (
        "select count(*) v from t where sex = 'f' or smokes",
        "select count(*) v from t where age > 70 or score > 4",
        "select count(*) v from t where age > 65 or ward = 'c'",
        "select count(*) v from t where not (age > 40 and smokes)",
        "select count(*) v from t where (age < 30 or age > 70) and sex = 'f'",
        "select count(*) v from t where not (ward = 'a') and not (region = 'north')",
        "select count(*) v from t where smokes or visits > 4 or age > 80",
        "select count(*) v from t where age not between 30 and 60",
    ),
    "averages": (
        "select avg(age) v from t",
        "select avg(income) v from t where sex = 'f'",
        "select avg(score) v from t where ward = 'b' and smokes",
        "select avg(visits) v from t",
        "select avg(visits) v from t where age > 50",
        "select avg(income) v from t where age > 60",
        "select avg(score) v from t where age between 40 and 60",
        "select avg(age) v from t where score > 2",
        "select avg(age) v from t where age >= 50",
        "select avg(income) v from t where age > 40 and sex = 'm'",
        "select avg(income / 1000) v from t",
        "select avg(score * score) v from t",
        "select avg(hours) v from t where smokes or ward = 'd'",
        "select avg(income - 12 * hours) v from t",
    ),
    "sums": (
        "select sum(visits) v from t",
        "select sum(hours) v from t where region = 'west'",
        "select sum(income) v from t where age < 40",
        "select sum(visits) v from t where sex = 'f' and age > 50",
        "select sum(hours * visits) v from t",
    ),
    "shares": (
        "select 100.0 * count(*) filter (where smokes) / count(*) v from t",
        "select avg(case when smokes then 1 else 0 end) v from t where sex = 'f'",
        "select 100.0 * sum(case when age >= 65 then 1 else 0 end) / count(*) v from t",
        "select avg(smokes::int) v from t where age < 40",
        "select count(*) filter (where age > 60 and smokes) * 1.0 / count(*) filter (where age > 60) v from t",
        "select 100.0 * count(*) filter (where ward = 'a' or ward = 'b') / count(*) v from t",
        "select sum(income) / sum(visits) v from t",
        "select avg(income) filter (where sex = 'f') / avg(income) filter (where sex = 'm') v from t",
    ),
    "spread": (
        "select stddev(age) v from t",
        "select variance(score) v from t",
        "select stddev(income) v from t where sex = 'f'",
        "select median(age) v from t",
        "select median(score) v from t where smokes",
        "select quantile_cont(score, 0.9) v from t",
        "select quantile_cont(age, 0.25) v from t where ward = 'c'",
        "select median(income) v from t where age > 50",
        "select corr(age, score) v from t",
        "select corr(age, income) v from t where sex = 'm'",
        "select covar_samp(age, score) v from t",
        "select regr_slope(income, age) v from t",
        "select percentile_cont(0.75) within group (order by score) v from t",
    ),
    "groups": (
        "select sex k, count(*) v from t group by sex",
        "select ward k, avg(age) v from t group by ward order by v desc",
        "select region k, count(*) filter (where smokes) v from t group by 1",
        "select site k, stddev(age) v from t group by site",
        "select ward k, median(score) v from t group by ward",
        "select sex k, avg(visits) v from t where age > 40 group by sex",
        "select year k, count(*) v from t where age > 60 and smokes group by year",
        "select region k, avg(income) v from t where age > 50 group by region having count(*) > 100",
        "select case when age < 30 then 'a' when age < 60 then 'b' else 'c' end k, count(*) v from t group by 1",
        "select floor(age / 20) * 20 k, count(*) v from t where age >= 20 and age < 80 group by 1 order by 1",
        "select age > 50 k, avg(score) v from t group by 1",
        "select visits k, count(*) v from t group by visits order by visits",
        "select ward k, 100.0 * count(*) filter (where score > 1) / count(*) v from t group by ward",
        "select upper(sex) k, count(*) v from t group by 1",
        "with b as (select *, age > 50 as old from t) select old k, count(*) v from b where smokes group by old",
        "select k, count(*) v from (select ward as k, age from t) s where age < 50 group by k",
    ),
    "dates": (
        "select count(*) v from t where admitted >= date '2024-07-01'",
        "select avg(age) v from t where admitted < date '2024-07-01'",
        "select year(admitted) k, count(*) v from t group by 1 order by 1",
        "select count(*) v from t where admitted between date '2024-01-01' and date '2024-12-31' and sex = 'f'",
        "select date_diff('day', date '2024-01-01', median(admitted)) v from t",
    ),
    "joins": (
        "select r.nation k, count(*) v from t join regions r on t.region = r.region group by 1",
        "select avg(age) v from t join regions r using (region) where r.nation = 'upper'",
        "select r.nation k, avg(score) v from t join regions r using (region) where age > 50 group by 1",
    ),
    "records": (
        "select max(income) v from t",
        "select count(distinct visits) v from t",
        "select rank() over (order by income) v from t",
    ),
}
REGIONS = pa.table({"region": ["north", "south", "east", "west"], "nation": ["upper", "lower", "lower", "upper"]})


def patients(rows: int = 6000, seed: int = 25) -> pa.Table:
    """The table that the questions are about."""
    draw = np.random.default_rng(seed)
    low = draw.random(rows) < 0.4
    age = np.clip(np.rint(draw.gamma(8, 6.2, rows)), 0, 105)
    income = np.where(draw.random(rows) < 0.12, 0.0, np.exp(draw.normal(10.2, 0.5, rows)) * (1 + age / 120))
    hours = np.where(draw.random(rows) < 0.45, 40.0, np.clip(draw.normal(36, 10, rows), 1, 80))
    score = np.where(low, draw.normal(-2, 1, rows), draw.normal(2.5, 1.2, rows))
    ward = np.array(list("abcd"))[(age + 14 * draw.normal(size=rows) > 50) * 2 + (draw.random(rows) < 0.35)]
    site = np.array(["main", "annex"])[(draw.random(rows) < np.where(low, 0.7, 0.3)).astype(int)]
    day = np.datetime64("2023-01-01") + np.rint(draw.uniform(0, 1095, rows) ** 1.0).astype("timedelta64[D]")
    return pa.table(
        {
            "age": age.astype(np.int64),
            "income": pa.array(income, mask=draw.random(rows) < 0.05),
            "hours": hours,
            "score": score,
            "admitted": pa.array(day),
            "visits": np.minimum(draw.poisson(0.8 + age / 60), 8),
            "sex": np.array(["f", "m"])[draw.integers(0, 2, rows)],
            "ward": ward,
            "smokes": draw.random(rows) < np.where(low, 0.6, 0.15),
            "region": np.array(["north", "south", "east", "west"])[np.minimum(draw.geometric(0.4, rows) - 1, 3)],
            "site": site,
            "year": (2022 + draw.integers(0, 4, rows)).astype(np.int32),
        }
    )

"""The synthetic people of Agrawal and Srikant (2000), their classification functions and their test densities.

The generator is that of Agrawal, Imielinski and Swami (1993), with the constants of its implementation in MOA.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

Array = Any

RANGES = {
    "salary": (20e3, 150e3),
    "commission": (0.0, 75e3),
    "age": (20.0, 80.0),
    "elevel": (0.0, 4.0),
    "car": (1.0, 20.0),
    "zipcode": (0.0, 8.0),
    "hvalue": (50e3, 1350e3),
    "hyears": (1.0, 30.0),
    "loan": (0.0, 500e3),
}
"""The nine attributes, with the range of each."""


def generate_people(rows: int, seed: int) -> dict[str, Array]:
    """Random people, as one array per attribute."""
    rng = np.random.default_rng(seed)
    salary, zipcode = rng.uniform(20e3, 150e3, rows), rng.integers(0, 9, rows)
    return {
        "salary": salary,
        "commission": np.where(salary >= 75e3, 0.0, rng.uniform(10e3, 75e3, rows)),
        "age": rng.uniform(20, 80, rows),
        "elevel": rng.integers(0, 5, rows).astype(np.float64),
        "car": rng.integers(1, 21, rows).astype(np.float64),
        "zipcode": zipcode.astype(np.float64),
        "hvalue": rng.uniform(0.5, 1.5, rows) * (9 - zipcode) * 100e3,
        "hyears": rng.integers(1, 31, rows).astype(np.float64),
        "loan": rng.uniform(0, 500e3, rows),
    }


def generator_group_a(number: int, people: dict[str, Array]) -> Array:
    """Who is in group A under functions 1 to 5 of the 1993 generator."""
    age, salary, level, loan = people["age"], people["salary"] / 1e3, people["elevel"], people["loan"] / 1e3
    ages = [age < 40, (age >= 40) & (age < 60), age >= 60]

    def between(values: Array, ends: tuple[float, float]) -> Array:
        return (values >= ends[0]) & (values <= ends[1])

    def by_age(*conditions: Array) -> Array:
        return np.any([a & condition for a, condition in zip(ages, conditions, strict=True)], axis=0)

    salaries = [between(salary, ends) for ends in ((50, 100), (75, 125), (25, 75))]
    education = [level <= 1, (level >= 1) & (level <= 3), level >= 2]
    if number == 1:
        return by_age(True, False, True)
    if number == 2:
        return by_age(*salaries)
    if number == 3:
        return by_age(*education)
    if number == 4:
        ranges = [((25, 75), (50, 100)), ((50, 100), (75, 125)), ((50, 100), (25, 75))]
        return by_age(
            *(np.where(c, between(salary, a), between(salary, b)) for c, (a, b) in zip(education, ranges, strict=True))
        )
    ranges = [((100, 300), (200, 400)), ((200, 400), (300, 500)), ((300, 500), (100, 300))]
    return by_age(
        *(np.where(c, between(loan, a), between(loan, b)) for c, (a, b) in zip(salaries, ranges, strict=True))
    )


def labelled_people(number: int, rows: int, seed: int) -> pa.Table:
    """Random people with their group under one of the generator's functions."""
    people = generate_people(rows, seed)
    return pa.table(people | {"group": np.where(generator_group_a(number, people), "A", "B")})


def policy_for_privacy(original: pa.Table, privacy: float) -> sf.Policy:
    """Noise whose 95 % confidence interval is `privacy` times an attribute's range wide, which is `3.92·σ`."""
    return policy_with_noise(original, {name: (high - low) * privacy / 3.92 for name, (low, high) in RANGES.items()})


def policy_with_noise(original: pa.Table, deviations: dict[str, float]) -> sf.Policy:
    """A policy with one level, at which each attribute has noise of the given standard deviation."""
    relative = {name: sd**2 / original.column(name).to_numpy().var() for name, sd in deviations.items()}
    base = min(relative.values())
    columns = [
        f'{name} = {{ role = "gaussian", scale = {(relative[name] / base) ** 0.5:.6f}, clip = [{low}, {high}] }}'
        for name, (low, high) in RANGES.items()
    ]
    head = f'dataset = "people"\norder = "keep"\n[levels]\nonly = {1 / (1 + base):.9f}\n[columns]'
    text = "\n".join([head, *columns, 'group = "keep"'])
    return sf.Policy.loads(text)


def two_triangles(rows: int, seed: int) -> Array:
    """Draws from a bimodal density: two triangles side by side."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(rows) < 0.5, rng.triangular(0, 0.25, 0.5, rows), rng.triangular(0.5, 0.75, 1, rows))


def triangle(rows: int, seed: int) -> Array:
    """Draws from a triangular density."""
    return np.random.default_rng(seed).triangular(0, 0.5, 1, rows)


def group_a(number: int, people: dict[str, Array]) -> Array:
    """Who is in group A under the five functions of Agrawal and Srikant (2000), which zhang2005 uses.

    Written from memory of that paper: the first two are the generator's; the third is its fourth with fewer levels of
    education; the last two are about disposable income, without and with the equity of a house.
    """
    if number in (1, 2):
        return generator_group_a(number, people)
    age, salary, level, loan = people["age"], people["salary"], people["elevel"], people["loan"]
    if number == 3:
        bands = {(25, 75): [(age < 40, 0, 1), (age >= 60, 1, 1)], (75, 125): [((age >= 40) & (age < 60), 4, 4)]}
        bands[50, 100] = [(age < 40, 2, 3), ((age >= 40) & (age < 60), 1, 3), (age >= 60, 2, 4)]
        return np.any(
            [
                of_age & (level >= lowest) & (level <= highest) & (salary >= low * 1e3) & (salary <= high * 1e3)
                for (low, high), cases in bands.items()
                for of_age, lowest, highest in cases
            ],
            axis=0,
        )
    equity = 0.1 * people["hvalue"] * np.maximum(people["hyears"] - 20, 0) if number == 5 else 0.0
    return 0.67 * (salary + people["commission"]) - 0.2 * loan + 0.2 * equity - 10e3 > 0


QUARTILE_ATTRIBUTES = ("salary", "commission", "age", "car", "hvalue", "hyears", "loan")
"""The attributes that zhang2005, section 6, bins into quartiles; the other two are categorical."""


def quartile_codes(people: dict[str, Array]) -> tuple[Array, tuple[int, ...]]:
    """People coded as in zhang2005, as nine categorical attributes with 42 values in all; and their domain sizes."""
    cuts = {name: np.quantile(people[name], (0.25, 0.5, 0.75)) for name in QUARTILE_ATTRIBUTES}
    columns = [
        np.searchsorted(cuts[name], people[name], side="right" if name != "commission" else "left")
        if name in cuts
        else people[name].astype(np.int64)
        for name in RANGES
    ]
    return np.column_stack(columns), tuple({"elevel": 5, "zipcode": 9}.get(name, 4) for name in RANGES)

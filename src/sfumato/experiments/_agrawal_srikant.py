"""The data of Agrawal and Srikant (2000): their people, their functions, and their densities.

The generator is that of Agrawal, Imielinski and Swami (1993), as MOA has it; so are the functions' numbers.
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


def people(rows: int, seed: int) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    salary, zipcode = draw.uniform(20e3, 150e3, rows), draw.integers(0, 9, rows)
    return {
        "salary": salary,
        "commission": np.where(salary >= 75e3, 0.0, draw.uniform(10e3, 75e3, rows)),
        "age": draw.uniform(20, 80, rows),
        "elevel": draw.integers(0, 5, rows).astype(np.float64),
        "car": draw.integers(1, 21, rows).astype(np.float64),
        "zipcode": zipcode.astype(np.float64),
        "hvalue": draw.uniform(0.5, 1.5, rows) * (9 - zipcode) * 100e3,
        "hyears": draw.integers(1, 31, rows).astype(np.float64),
        "loan": draw.uniform(0, 500e3, rows),
    }


def group(number: int, of: dict[str, Array]) -> Array:
    """Group A of functions 1 to 5."""
    age, salary, level, loan = of["age"], of["salary"] / 1e3, of["elevel"], of["loan"] / 1e3
    ages = [age < 40, (age >= 40) & (age < 60), age >= 60]

    def between(what: Array, ends: tuple[float, float]) -> Array:
        return (what >= ends[0]) & (what <= ends[1])

    def each(*conditions: Array) -> Array:
        return np.any([a & condition for a, condition in zip(ages, conditions, strict=True)], axis=0)

    pay = [between(salary, ends) for ends in ((50, 100), (75, 125), (25, 75))]
    learned = [level <= 1, (level >= 1) & (level <= 3), level >= 2]
    if number == 1:
        return each(True, False, True)
    if number == 2:
        return each(*pay)
    if number == 3:
        return each(*learned)
    if number == 4:
        ranges = [((25, 75), (50, 100)), ((50, 100), (75, 125)), ((50, 100), (25, 75))]
        both = zip(learned, ranges, strict=True)
        return each(*(np.where(c, between(salary, ends[0]), between(salary, ends[1])) for c, ends in both))
    ranges = [((100, 300), (200, 400)), ((200, 400), (300, 500)), ((300, 500), (100, 300))]
    return each(*(np.where(c, between(loan, a), between(loan, b)) for c, (a, b) in zip(pay, ranges, strict=True)))


def table(number: int, rows: int, seed: int) -> pa.Table:
    of = people(rows, seed)
    return pa.table(of | {"group": np.where(group(number, of), "A", "B")})


def policy(original: pa.Table, privacy: float) -> sf.Policy:
    """Noise under which a value is known to within `privacy` of its range, with 95 % confidence: `3.92·σ`."""
    return noisy(original, {name: (high - low) * privacy / 3.92 for name, (low, high) in RANGES.items()})


def noisy(original: pa.Table, deviations: dict[str, float]) -> sf.Policy:
    """Noise of a standard deviation for each attribute."""
    wanted = {name: sd**2 / original.column(name).to_numpy().var() for name, sd in deviations.items()}
    base = min(wanted.values())
    columns = [
        f'{name} = {{ role = "gaussian", scale = {(wanted[name] / base) ** 0.5:.6f}, clip = [{low}, {high}] }}'
        for name, (low, high) in RANGES.items()
    ]
    head = f'dataset = "people"\n[levels]\nonly = {1 / (1 + base):.9f}\n[columns]'
    text = "\n".join([head, *columns, 'group = "keep"'])
    return sf.Policy.loads(text)


def two_humps(rows: int, seed: int) -> Array:
    """Two triangles side by side."""
    draw = np.random.default_rng(seed)
    return np.where(draw.random(rows) < 0.5, draw.triangular(0, 0.25, 0.5, rows), draw.triangular(0.5, 0.75, 1, rows))


def triangle(rows: int, seed: int) -> Array:
    return np.random.default_rng(seed).triangular(0, 0.5, 1, rows)


def chosen(number: int, of: dict[str, Array]) -> Array:
    """Group A of the five functions that Agrawal and Srikant (2000) chose, which zhang2005 takes over.

    From memory of that paper: the first two are the generator's own; the third is its fourth with fewer educations;
    the last two are about what is left to spend, without and with the equity of a house.
    """
    if number in (1, 2):
        return group(number, of)
    age, salary, level, loan = of["age"], of["salary"], of["elevel"], of["loan"]
    if number == 3:
        bands = {(25, 75): [(age < 40, 0, 1), (age >= 60, 1, 1)], (75, 125): [((age >= 40) & (age < 60), 4, 4)]}
        bands[50, 100] = [(age < 40, 2, 3), ((age >= 40) & (age < 60), 1, 3), (age >= 60, 2, 4)]
        return np.any(
            [
                who & (level >= least) & (level <= most) & (salary >= low * 1e3) & (salary <= high * 1e3)
                for (low, high), cases in bands.items()
                for who, least, most in cases
            ],
            axis=0,
        )
    equity = 0.1 * of["hvalue"] * np.maximum(of["hyears"] - 20, 0) if number == 5 else 0.0
    return 0.67 * (salary + of["commission"]) - 0.2 * loan + 0.2 * equity - 10e3 > 0


QUARTERED = ("salary", "commission", "age", "car", "hvalue", "hyears", "loan")
"""What zhang2005, section 6, cuts into quartiles; the other two attributes are categories."""


def codes(of: dict[str, Array]) -> tuple[Array, tuple[int, ...]]:
    """People as zhang2005 has them: nine categories, 42 options in all; and how many options each has."""
    cuts = {name: np.quantile(of[name], (0.25, 0.5, 0.75)) for name in QUARTERED}
    columns = [
        np.searchsorted(cuts[name], of[name], side="right" if name != "commission" else "left")
        if name in cuts
        else of[name].astype(np.int64)
        for name in RANGES
    ]
    return np.column_stack(columns), tuple({"elevel": 5, "zipcode": 9}.get(name, 4) for name in RANGES)

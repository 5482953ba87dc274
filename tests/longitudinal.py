"""A longitudinal table with known random effects: visits of patients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

BETWEEN = np.array([[4.0, 1.5], [1.5, 1.0]])
WITHIN = np.array([[1.0, -0.3], [-0.3, 0.5]])

LEVELS = {"internal": 0.9, "partner": 0.5, "public": 0.2}


def patients(rng: np.random.Generator, visits: Any) -> tuple[pa.Table, Any]:
    """So many visits of each patient, and the patient of each: two numbers that vary, an age and a sex that do not."""
    count = len(visits)
    patient = np.repeat(np.arange(count), visits)
    effects = rng.multivariate_normal([0, 0], BETWEEN, count)[patient]
    numbers = effects + rng.multivariate_normal([0, 0], WITHIN, len(patient))
    columns = {
        "visit": np.arange(len(patient)),
        "patient": [f"p{i}" for i in patient],
        "pressure": 120 + numbers[:, 0],
        "weight": 70 + numbers[:, 1],
        "age": rng.normal(50, 12, count)[patient],
        "sex": rng.choice(["f", "m"], count)[patient],
    }
    return pa.table(columns), patient


def policy(role: str = "entity", *, publish: bool = True) -> sf.Policy:
    """A policy in which patients are entities, or have another role, as in a planted fault."""
    shown = "" if publish else ", publish = false"
    return sf.Policy.loads(f"""
dataset = "visits"
order = "keep"
[levels]
{chr(10).join(f"{name} = {fidelity}" for name, fidelity in LEVELS.items())}
[columns]
visit = "id"
patient = {{ role = "{role}"{shown} }}
pressure = "gaussian"
weight = "gaussian"
age = "gaussian"
sex = "uniform"
""")


def means(values: Any, patient: Any) -> Any:
    """The mean of each patient's rows."""
    return np.bincount(patient, values) / np.bincount(patient)

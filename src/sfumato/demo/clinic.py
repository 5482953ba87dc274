"""A synthetic table of a clinic's patients, and a policy for it."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

DIAGNOSES = (
    "asthma",
    "back pain",
    "cancer",
    "depression",
    "diabetes",
    "fracture",
    "healthy",
    "heart failure",
    "HIV",
    "hypertension",
    "pneumonia",
    "stroke",
)
REGIONS = ("coast", "hills", "lakes", "north", "plains", "port", "south", "valley")

POLICY = """\
# How each column of the clinic's table is perturbed.
dataset = "clinic"

[levels]                        # trust levels by fidelity, from the most to the least trusted
hospital = 0.6
university = 0.5
insurer = 0.4

[columns]
patient = "id"                  # identifies a record; released unchanged
visit = "copula"                # copies look like the data: same values, margins and rank correlations, other people
age = "copula"
income = "copula"
systolic = "copula"
diastolic = "copula"
diagnosis = "copula"
region = "copula"
"""


def clinic(rows: int, seed: int = 1) -> pa.Table:
    """Synthetic patients: blood pressure rises with age, income peaks at age 50, and diagnoses depend on age."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.gamma(9.0, 5.4, rows), 18, 98).round()
    income = np.exp(draw.normal(10.3, 0.55, rows) - ((age - 50) / 45) ** 2).round(-1)
    diastolic = (62 + 0.25 * age + draw.normal(0, 8, rows)).round()
    systolic = (diastolic + 32 + 0.28 * age + draw.normal(0, 9, rows)).round()
    age_effect = (age - 50)[:, None] / 18 * np.array([-0.5, 0, 0.6, -0.3, 0.4, -0.1, -0.9, 0.9, -0.4, 0.7, 0.3, 0.8])
    prevalence = np.log([6, 9, 3, 7, 8, 5, 24, 3, 0.5, 14, 3, 2])
    diagnosis = (prevalence + age_effect + draw.gumbel(size=(rows, len(DIAGNOSES)))).argmax(axis=1)
    region = draw.choice(len(REGIONS), rows, p=[0.16, 0.09, 0.07, 0.12, 0.2, 0.17, 0.11, 0.08])
    first = dt.date(2025, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
    return pa.table(
        {
            "patient": pa.array(draw.permutation(rows) + 100_000),
            "visit": pa.array((first + draw.integers(0, 365, rows)).astype(np.int32)).cast(pa.date32()),
            "age": pa.array(age.astype(np.int64)),
            "income": pa.array(income),
            "systolic": pa.array(systolic),
            "diastolic": pa.array(diastolic),
            "diagnosis": pa.array(np.array(DIAGNOSES)[diagnosis]),
            "region": pa.array(np.array(REGIONS)[region]),
        }
    )

"""What version 0.1 wrote: a vault, a backup, a scheme and copies, made once by that version and never again.

Run by commit 90bd198 as `python tests/compatibility/make_v0_1.py`; later versions only read what it left in `v0.1`.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import sfumato as sf
from sfumato.survey.example import EXAMPLE
from sfumato.survey.surveys import Surveys

HERE = Path(__file__).with_name("v0.1")
KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 120

WARD = """
dataset = "ward"
[levels]
internal = 0.8
partner = 0.5
public = 0.2
[columns]
id = "id"
region = "keep"
age = { role = "gaussian", scale = 1.5 }
income = { role = "gaussian", clip = [0, 90000] }
born = "gaussian"
diagnosis = { role = "uniform", domain = ["flu", "cold", "gout"], joint = "pair" }
smokes = { role = "uniform", nulls = "keep", joint = "pair" }
"""

TURNED = """
dataset = "turned"
[levels]
partner = 0.5
public = 0.2
[columns]
id = { role = "id", publish = false }
age = "rotation"
income = "rotation"
[rotation]
noise = true
"""

PROJECTED = """
dataset = "projected"
[levels]
partner = 0.5
[columns]
id = { role = "id", publish = false }
age = "projection"
income = "projection"
[projection]
dimensions = 1
accept = "an invented table, made for tests of compatibility"
"""

INDEPENDENT = """
dataset = "naive"
[levels]
partner = 0.5
[columns]
id = "id"
age = { role = "independent", of = "gaussian" }
diagnosis = { role = "independent", of = "uniform" }
"""


def table(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(3)
    base = draw.normal(size=(rows, 2))
    return pa.table(
        {
            "id": np.arange(rows) + 1000,
            "region": np.array(["north", "south"])[np.arange(rows) % 2],
            "age": 45 + 18 * base[:, 0],
            "income": 30_000 + 9_000 * (base[:, 0] + base[:, 1]),
            "born": [dt.date(1980, 1, 1) + dt.timedelta(days=int(d)) for d in base[:, 1] * 900],
            "diagnosis": np.array(["flu", "cold", "gout"])[draw.integers(0, 3, rows)],
            "smokes": np.arange(rows) % 3 == 0,
        }
    )


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    whole = table()
    pyarrow.parquet.write_table(whole, HERE / "table.parquet")
    KEY.save(HERE / "owner.key")
    for name, text in {"ward": WARD, "turned": TURNED, "projected": PROJECTED, "naive": INDEPENDENT}.items():
        (HERE / f"{name}.toml").write_text(text)
        policy = sf.Policy.loads(text)
        source = whole.select([column for column in whole.column_names if column in policy.columns])
        scheme = policy.fit(source)
        scheme.save(HERE / f"{name}.scheme.json")
        for form in ("parquet", "csv") if name == "ward" else ("parquet",):
            sf.release_file(scheme, source, HERE / f"{name}.{form}", "partner", KEY)
    lock, master = sf.Key.from_bytes(bytes(range(1, 33))), sf.Key.from_bytes(bytes(range(2, 34)))
    lock.save(HERE / "vault.key")
    vault = sf.Vault.create(HERE / "vault", secret=lock, key=master)
    vault.add(sf.Policy.loads(WARD), whole, traced=True)
    turned = whole.select(["id", "age", "income"])
    vault.add(sf.Policy.loads(TURNED), turned)
    for name in ("clinic", "university", "insurer"):
        vault.recipient(name, note="an example")
    vault.grant("clinic", "ward", "internal")
    vault.grant("university", "ward", "partner", columns=["id", "age", "diagnosis"], where="region == 'north'")
    vault.grant("insurer", "ward", 0.3, until="2199-12-31")
    vault.grant("insurer", "turned", "public")
    for name in ("clinic", "university", "insurer"):
        vault.release(name, "ward", HERE / f"{name}.parquet")
    vault.release("insurer", "turned", HERE / "insurer-turned.parquet")
    vault.release("clinic", "ward")
    vault.revoke("insurer", "turned")
    later = whole.set_column(2, "age", pa.array(np.append(whole.column("age").to_numpy()[:-1], 99.0)))
    vault.update("ward", later)
    vault.release("clinic", "ward", HERE / "clinic-2.parquet")
    token = vault.token("clinic")["token"]
    vault.relock(lock)
    surveys = Surveys(vault)
    surveys.new("travel", EXAMPLE)
    surveys.open("travel")
    head = vault.backup(HERE / "vault.backup")
    (HERE / "facts.json").write_text(json.dumps({"token": token, "head": head, "public": vault.public_key}) + "\n")


if __name__ == "__main__":
    main()

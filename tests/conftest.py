"""What all tests share: one seed, one key, and a small table with every kind of column."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import secrets
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # there is a test on every core already
if (_DATA := Path(__file__).parents[2] / "shared" / "data").is_dir():  # where developers have it
    os.environ.setdefault("SFUMATO_DATA", str(_DATA))

import numpy as np
import pyarrow as pa
import pytest
from tests.postgres import Server, running

import sfumato as sf
from sfumato.experiments._data import MissingData


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", default="1", help="the seed of all randomness in tests; `random` takes a fresh one")
    group = parser.getgroup("journeys in browsers")
    group.addoption("--browser", default="chromium", choices=["chromium", "firefox"])
    group.addoption("--size", choices=["desktop", "phone"], help="of all windows; otherwise as each test says")
    group.addoption("--scheme", choices=["light", "dark"], help="of colours, everywhere; otherwise as each test says")
    group.addoption("--keyboard", action="store_true", help="everything is done by keyboard")
    group.addoption("--axe", action="store_true", help="axe looks at every state of every page")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--seed") == "random":
        config.option.seed = str(secrets.randbelow(1 << 32))


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: many tests wait for servers, browsers and processes that they started."""
    return -(-len(os.sched_getaffinity(0)) * 3 // 2)


SERVERS = {"postgres", "chromium", "browser", "page", "cluster", "service", "spark", "dask"}
"""Fixtures that start something; a test that uses one is left out of `make unit`."""


HEAVY = (
    "tests/service/test_workers.py::test_a_worker_killed_during_a_download",  # tests/crash kills at every step
    "tests/service/test_workers.py::test_sqlite_allows_only_one_worker",
    "tests/service/test_fuzz.py::test_responses_to_owners",  # those to recipients stay
    "tests/service/test_load.py::test_the_longest_waiting",
    "tests/service/test_copies.py::test_the_number_of_levels",
    "tests/statistical/test_tracing.py::test_matching_by_values_accuses_nobody[copula]",  # its siblings stay
    "tests/statistical/test_tracing.py::test_a_margin_preserving_copy_is_traced[columns2-12000]",
    "tests/statistical/test_coverage.py::test_moments[far]",
    "tests/acceptance/test_mining.py::test_the_functions_are_learnt_through_full_noise[2-50000-0.75]",
    "tests/acceptance/test_awkward_margins.py::test_drafts_of_small_tables_work_as_they_are[500]",
    "tests/acceptance/test_imputation.py::test_a_learner_is_better_than_on_the_copy_itself[keep]",
    "tests/unit/kernels/test_reconstruction.py::test_only_the_discriminating",
    "tests/unit/audit/test_audit.py::test_awkward_tables_are_audited_and_released[wide]",
    "tests/unit/audit/test_risk_utility.py::test_a_draft_within_a_limit",
    "tests/browser/test_console.py::test_every_page_is_accessible_and_fits[desktop-light]",
    "tests/browser/test_survey.py::test_pages_look_right_and_are_accessible[desktop]",
    "tests/unit/vault/test_concurrency.py::test_sixteen_processes_use_one_vault[postgresql]",
    "tests/crash/test_vault_kill.py::test_killed_at_any_moment[postgresql]",
    "tests/crash/test_kill.py::test_killed_at_every_step[Path.replace-2-before]",
)
"""Tests that take long and whose siblings stay: the sweep runs them (`make sweep`)."""

ONCE = (
    *("tests/unit/audit", "tests/unit/risk", "tests/unit/mechanisms", "tests/unit/release", "tests/browser"),
    *(
        f"tests/unit/vault/test_{name}.py"
        for name in (
            *(
                "preview",
                "margin_preserving",
                "erasure",
                "backup",
                "reencryption",
                "overlaps",
                "encryption",
                "appending",
            ),
            *("unlocking", "approvals", "tracing", "exposure"),
        )
    ),
    *("tests/survey/test_load.py", "tests/service/test_jobs_and_uploads.py", "tests/service/test_copies.py"),
    *("tests/service/test_owner.py", "tests/unit/vault/test_vault.py", "tests/cli/test_vault.py::test_the_complete"),
    *(
        f"tests/unit/ledger/test_ledger.py::test_{name}"
        for name in ("an_edited_entry", "a_removed_entry", "an_unreadable_entry", "a_state_that_contradicts")
    ),
    *(
        "tests/unit/ledger/test_access_log.py",
        "tests/cli/test_vault.py::test_errors",
        "tests/cli/test_vault.py::test_the_log",
    ),
)
"""What does not depend on the database is tested with SQLite always, and with PostgreSQL in the sweep."""


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)
        if ("postgresql" in item.name and item.nodeid.startswith(ONCE)) or item.nodeid.startswith(HEAVY):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    """Skip a test if a fixture needs data that are missing."""
    return (yield from _skipping_without_data())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip a test that needs data that are missing, however deep in the code it asks for them."""
    return (yield from _skipping_without_data())


def _skipping_without_data() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except MissingData as error:
        pytest.skip(str(error))


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed {config.getoption('--seed')}: run again with --seed {config.getoption('--seed')}"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> list[int]:
    """The run's seed and the test's name, so that tests do not share randomness, in whichever file they are."""
    return [int(request.config.getoption("--seed")), *request.node.name.encode()]


@pytest.fixture
def rng(seed: list[int]) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def key(rng: np.random.Generator) -> sf.Key:
    return sf.Key.from_bytes(rng.bytes(32))


ROWS = 40


@pytest.fixture(scope="session")
def tiny() -> pa.Table:
    """40 rows with every kind of column that can be perturbed."""
    draw = np.random.default_rng(7)
    base = draw.normal(size=ROWS)
    start = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    pattern = [None if i % 9 == 4 else value for i, value in enumerate(base)]
    return pa.table(
        {
            "record": pa.array(draw.permutation(ROWS) * 10 - 100),
            "float": pa.array(base),
            "float32": pa.array(base.astype(np.float32) * 3, pa.float32()),
            "int": pa.array((base * 1000).astype(np.int64)),
            "uint8": pa.array((base * 20 + 100).astype(np.uint8)),
            "decimal": pa.array([decimal.Decimal(f"{value:.2f}") for value in base * 50], pa.decimal128(10, 2)),
            "date": pa.array([(start + dt.timedelta(days=int(d))).date() for d in base * 400]),
            "stamp": pa.array([start + dt.timedelta(seconds=float(s)) for s in base * 1e6], pa.timestamp("us", "UTC")),
            "holes": pa.array(pattern),
            "flag": pa.array(base > 0),
            "text": pa.array([["red", "green", "blue"][i % 3] for i in range(ROWS)]),
            "dictionary": pa.array([None if i % 7 == 3 else "xyz"[i % 3] for i in range(ROWS)]).dictionary_encode(),
            "code": pa.array(np.arange(ROWS) % 5 - 2),
            "day": pa.array([dt.date(2025, 1, 1 + i % 4) for i in range(ROWS)]),
            "note": pa.array([f"note {i}" for i in range(ROWS)]),
        }
    )


TINY_POLICY = """
dataset = "tiny"
order = "keep"
[levels]
high = 0.8
middle = 0.5
low = 0.2
[columns]
record = "id"
float = "gaussian"
float32 = "gaussian"
int = { role = "gaussian", integer = true }
uint8 = { role = "gaussian", scale = 2 }
decimal = { role = "gaussian", clip = [-60, 60] }
date = "gaussian"
stamp = "gaussian"
holes = "gaussian"
flag = "uniform"
text = { role = "uniform", domain = ["red", "green", "blue", "black"] }
dictionary = { role = "uniform", nulls = "perturb" }
code = { role = "uniform", domain = { min = -5, max = 5 }, joint = "pair" }
day = { role = "uniform", joint = "pair" }
note = "keep"
"""


@pytest.fixture(scope="session")
def tiny_policy() -> sf.Policy:
    return sf.Policy.loads(TINY_POLICY)


@pytest.fixture(scope="session")
def tiny_scheme(tiny: pa.Table, tiny_policy: sf.Policy) -> sf.TableScheme:
    return tiny_policy.fit(tiny)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True, scope="session")
def _no_secret_from_outside() -> None:
    """No vault opens by what happens to be set where the tests run."""
    for name in [name for name in os.environ if name.startswith("SFUMATO_") and name != "SFUMATO_DATA"]:
        del os.environ[name]


@dataclass
class Site:
    """A folder or server for vaults in one of the two databases."""

    kind: str
    folder: Path
    server: Server | None
    secret: sf.Key = field(default_factory=lambda: sf.Key.from_bytes(bytes(range(32))))

    def new(self) -> tuple[str, str | None]:
        """A location that holds nothing yet, and its store."""
        number = len(list(self.folder.iterdir()))
        if self.server is None:
            return str(self.folder / f"vault{number}"), None
        (self.folder / f"store{number}").mkdir()
        return self.server.database(), str(self.folder / f"store{number}")

    def create(self, **options: Any) -> sf.Vault:
        location, store = self.new()
        return sf.Vault.create(location, store=store, **{"secret": self.secret, **options})


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    (tmp_path / "site").mkdir()
    server = None if request.param == "sqlite" else request.getfixturevalue("postgres")
    return Site(request.param, tmp_path / "site", server)

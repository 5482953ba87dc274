"""Concurrency: many processes use one vault at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.ledger.reader import Query

ROOT = Path(__file__).parents[3]
WORKERS = 16

_WORKERS = """
import json, os, sys
import sfumato as sf
from tests import wards
location, folder, secret = sys.argv[1], sys.argv[2], sf.Key.from_bytes(bytes(range(32)))
def work(number):
    vault = sf.Vault.open(location, secret=secret)
    own = f"own{number}"
    vault.recipient("shared")
    vault.recipient(own)
    vault.add(wards.policy("second"), wards.table(seed=9))
    vault.grant(own, "ward", round(0.2 + number / 40, 3))
    vault.grant("shared", "ward", "partner")
    vault.release(own, "ward", f"{folder}/{own}.parquet")
    vault.release("shared", "ward", f"{folder}/shared{number}.parquet")
    vault.release("shared", "ward", f"{folder}/same.parquet")
wards.policy().fit(wards.table()).release(wards.table(), 0.5, secret)  # compiled before the fork
read, write = os.pipe()
children = []
for number in range(%d):
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # all begin at the same time
        try:
            work(number)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
os.close(write)
print(json.dumps([os.waitpid(child, 0)[1] for child in children]))
"""


@pytest.mark.long
def test_sixteen_processes_use_one_vault(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-c", _WORKERS % WORKERS, vault.location, str(out)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [0] * WORKERS, run.stderr
    entries = Counter((e.action, e.kind, e.dataset, e.recipient) for e in vault.log(Query()))
    assert set(entries.values()) == {1}, "an entry was written twice"
    assert len(entries) == 2 + 1 + (1 + WORKERS) * 3
    assert vault.verify().sound
    shared = {path.read_bytes() for path in [*out.glob("shared*.parquet"), out / "same.parquet"]}
    assert len(shared) == 1
    for number in range(WORKERS):
        path = out / f"own{number}.parquet"
        assert (
            vault.release(f"own{number}", "ward", tmp_path / f"{number}.parquet")[0].read_bytes() == path.read_bytes()
        )
        assert sf.Manifest.of(path).requested_fidelity <= 0.2 + number / 40 + 1e-9


@pytest.mark.slow
def test_sixteen_processes_create_one_vault(site: Site) -> None:
    location, store = site.new()
    script = (
        "import sys, sfumato as sf\n"
        "secret = sf.Key.from_bytes(bytes(range(32)))\n"
        "try:\n    sf.Vault.create(sys.argv[1], store=sys.argv[2] or None, secret=secret)\n"
        "except sf.SfumatoError as error:\n    assert 'already' in str(error), error\n    sys.exit(7)\n"
    )
    command = [sys.executable, "-c", script, location, store or ""]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(WORKERS)]
    ended = [(process.communicate()[1], process.returncode) for process in running]
    assert Counter(code for _, code in ended) == {0: 1, 7: WORKERS - 1}, ended
    vault = sf.Vault.open(location, secret=site.secret)
    assert vault.verify().sound
    assert len(vault.log()) == 1

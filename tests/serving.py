"""A real service for the tests: `sfumato serve` as a process of its own, on a free port."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
from tests import wards
from tests.conftest import Site
from tests.postgres import free_port

import sfumato as sf
from sfumato.survey.example import EXAMPLE
from sfumato.survey.surveys import Surveys
from sfumato.vault import operators, tokens

PASSWORD = "correct horse battery"  # noqa: S105 - of a vault that lives as long as a test

_OPEN = ("--rate", "10000000", "--tries", "10000000")


@dataclass
class Service:
    """A running service and its vault."""

    url: str
    vault: sf.Vault
    process: subprocess.Popen[bytes]
    log: Path
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.tokens.get(token, token)}"} if token else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, **options)

    def remote(self, token: str) -> Any:
        return sf.connect(self.url, self.tokens.get(token, token))

    def lines(self) -> list[dict[str, Any]]:
        """What the service logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def memory(self) -> int:
        """Kilobytes that the service holds, with its workers."""
        total = 0
        for process in family(self.process.pid):
            for line in Path(f"/proc/{process}/status").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("VmRSS") else 0
        return total


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(name) for name in found.split()]


def family(process: int) -> list[int]:
    """A process, its children, and theirs."""
    return [process, *(one for child in children(process) for one in family(child))]


@contextlib.contextmanager
def serving(
    vault: sf.Vault, folder: Path, *options: str, insecure: bool = True, port: int | None = None
) -> Iterator[Service]:
    """Serve a vault until the block ends."""
    port, log = port or free_port(), folder / "service.log"
    key = folder / "service.key"
    if not key.exists():
        sf.Key.from_bytes(bytes(range(32))).save(key)
    command = [
        sys.executable,
        "-m",
        "sfumato.cli",
        "serve",
        vault.location,
        "--port",
        str(port),
        "--key-file",
        str(key),
    ]
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*command, *(["--insecure"] if insecure else []), *_OPEN, *options], stderr=out, stdout=out
        )
    service = Service(f"http://127.0.0.1:{port}", vault, process, log)
    try:
        _await(service)
        yield service
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()


def _await(service: Service) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(f"{service.url}/readyz").status_code == 200:
                return
        if service.process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(service.log.read_text())


def populated(site: Site, table: pa.Table | None = None, **options: Any) -> sf.Vault:
    """A vault with a dataset that two recipients were granted, a third knows nothing of, and an operator."""
    vault = site.create(**options)
    vault.add(wards.policy(), wards.table() if table is None else table)
    vault.add(wards.policy("secret"), wards.table())
    for name in ("clinic", "insurer", "stranger"):
        vault.recipient(name)
    vault.grant("clinic", "ward", "partner")
    vault.grant("insurer", "ward", "public")
    operators.enrol(vault, "anna", PASSWORD)
    surveys = Surveys(vault)
    surveys.new("commute", EXAMPLE)
    surveys.open("commute")
    return vault


def lone(folder: Path, table: pa.Table | None = None) -> sf.Vault:
    """The same on SQLite, in a folder, for what does not depend on the database."""
    (folder / "site").mkdir()
    return populated(Site("sqlite", folder / "site", None), table)


def handed_out(vault: sf.Vault) -> dict[str, str]:
    """A token for every role, a withdrawn one and one that is over among them."""
    found = {name: vault.token(name)["token"] for name in ("clinic", "insurer", "stranger")}
    found["owner"] = vault.token(scopes=["read", "write", "metrics"])["token"]
    found["reader"] = vault.token(scopes=["read"])["token"]
    gone = vault.token("clinic")
    vault.withdraw(gone["id"])
    found["revoked"] = gone["token"]
    past = sf.Vault.open(vault.location, secret=vault._secret, clock=lambda: datetime.now(UTC) - timedelta(days=30))
    found["expired"] = tokens.issue(past, "clinic", days=1)[0]
    return found


def killed(process: int) -> None:
    os.kill(process, signal.SIGKILL)

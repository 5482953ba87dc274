"""Test helper that runs a real service: `sfumato serve` in processes of its own, on a free port."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
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
from tests.forking import ForkedCommand
from tests.postgres import free_port

import sfumato as sf
from sfumato.survey.example import EXAMPLE
from sfumato.survey.surveys import Surveys
from sfumato.vault import operators, tokens

PASSWORD = "correct horse battery"  # noqa: S105 - the password of a temporary vault

_UNLIMITED = ("--rate", "10000000", "--tries", "10000000")


@dataclass
class Service:
    """A running service and its vault."""

    url: str
    vault: sf.Vault
    process: ForkedCommand | subprocess.Popen[bytes]
    log: Path
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.tokens.get(token, token)}"} if token else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=180, **options)  # machines may be busy

    def remote(self, token: str) -> Any:
        return sf.connect(self.url, self.tokens.get(token, token))

    def lines(self) -> list[dict[str, Any]]:
        """The events in the service's log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def memory(self) -> int:
        """Resident memory of the service and all its processes, in kilobytes."""
        total = 0
        for process in process_tree(self.process.pid):
            for line in Path(f"/proc/{process}/status").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("VmRSS") else 0
        return total


def children(process: int) -> list[int]:
    """The child processes of a process."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def process_tree(process: int) -> list[int]:
    """A process and all its descendants."""
    return [process, *(descendant for child in children(process) for descendant in process_tree(child))]


@contextlib.contextmanager
def serving(
    vault: sf.Vault, folder: Path, *options: str, insecure: bool = True, port: int | None = None, **process_options: Any
) -> Iterator[Service]:
    """Serve a vault while the block runs; further options are those of the process."""
    port, log = port or free_port(), folder / "service.log"
    key = folder / "service.key"
    if not key.exists():
        sf.Key.from_bytes(bytes(range(32))).save(key)
    command = ["serve", vault.location, "--port", str(port), "--key-file", str(key)]
    command += [*(["--insecure"] if insecure else []), *_UNLIMITED, *options]
    process: ForkedCommand | subprocess.Popen[bytes]
    if process_options:
        with log.open("ab") as out:
            run = [sys.executable, "-m", "sfumato", *command]
            process = subprocess.Popen(run, stderr=out, stdout=out, **process_options)
    else:
        process = ForkedCommand(command, log)
    scheme = "https" if "--tls-certificate" in options else "http"
    service = Service(f"{scheme}://127.0.0.1:{port}", vault, process, log)
    try:
        wait_until_ready(service)
        yield service
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()


def wait_until_free(port: int) -> None:
    """Wait until nothing listens at a port: a killed process lets go of it a moment later on a busy machine."""
    for _ in range(600):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return
        time.sleep(0.05)
    raise RuntimeError(f"port {port} is still in use")


def wait_until_ready(service: Service) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(f"{service.url}/readyz", verify=False).status_code == 200:
                return
        if service.process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(service.log.read_text())


def populated_vault(site: Site, table: pa.Table | None = None, **options: Any) -> sf.Vault:
    """A vault with a dataset granted to two of three recipients, one granted to nobody, an operator and a survey."""
    vault = site.create(**options)
    vault.add(wards.policy(), wards.table() if table is None else table)
    vault.add(wards.policy("secret"), wards.table(seed=9))
    for name in ("clinic", "insurer", "stranger"):
        vault.recipient(name)
    vault.grant("clinic", "ward", "partner")
    vault.grant("insurer", "ward", "public")
    operators.enrol(vault, "anna", PASSWORD)
    surveys = Surveys(vault)
    surveys.new("commute", EXAMPLE)
    surveys.open("commute")
    return vault


def sqlite_vault(folder: Path, table: pa.Table | None = None) -> sf.Vault:
    """A populated vault on SQLite, in a folder, for tests that do not depend on the database."""
    (folder / "site").mkdir()
    return populated_vault(Site("sqlite", folder / "site", None), table)


def issue_tokens(vault: sf.Vault) -> dict[str, str]:
    """A token for every role, including a withdrawn and an expired one."""
    issued = {name: vault.token(name)["token"] for name in ("clinic", "insurer", "stranger")}
    issued["owner"] = vault.token(scopes=list(tokens.OWNER))["token"]
    issued["reader"] = vault.token(scopes=["read"])["token"]
    withdrawn = vault.token("clinic")
    vault.withdraw(withdrawn["id"])
    issued["revoked"] = withdrawn["token"]
    past = sf.Vault.open(vault.location, secret=vault._secret, clock=lambda: datetime.now(UTC) - timedelta(days=30))
    issued["expired"] = tokens.issue(past, "clinic", days=1)[0]
    return issued


def kill_process(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def wait_until_gone(process: int) -> None:
    """Wait until a process has ended; one that ended and that nobody waited for (a zombie) has."""
    for _ in range(1200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise RuntimeError(f"the process {process} goes on")

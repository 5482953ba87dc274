"""The containers of deploy: their files are checked, and what they start is run and restarted, without Docker.

No engine for containers runs where the tests do. So the services of compose.yaml are processes here, each with the
environment that the file gives it, and nginx with the file of the proxy.
"""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from tests import wards
from tests.history import earlier_source
from tests.object_stores import bucket
from tests.postgres import free_port, running
from tests.service.test_deploying import _certificate, _program

import sfumato as sf
from sfumato.cli import main

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
ROOTLESS = ("store", "service", "proxy")


def test_containers_have_no_more_rights_than_they_need() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"database", "store", "service", "proxy"}
    for name, one in services.items():
        assert "no-new-privileges:true" in one["security_opt"], name
        assert "privileged" not in one
        assert one["restart"] == "unless-stopped"
        assert name == "service" or re.search(r":[\w.-]*\d", one["image"]), name  # a version is stated
        assert set(one.get("secrets", [])) <= set(COMPOSE["secrets"])
        for volume in one.get("volumes", []):
            assert volume.startswith("./") or volume.split(":")[0] in COMPOSE["volumes"]
    for name in ROOTLESS:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
    assert [name for name, one in services.items() if "ports" in one] == ["proxy"]  # nothing else is reachable
    secret = re.compile(r"password|secret|token", re.IGNORECASE)
    for one in services.values():
        for name, value in one.get("environment", {}).items():
            assert not secret.search(name) or str(value).startswith("/run/secrets/"), name
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {"deploy/secrets/", "deploy/service.env"} <= set(ignored)


def test_the_image_is_not_root_and_installs_what_exists() -> None:
    users = re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE)
    assert users
    assert not users[-1].startswith(("root", "0"))
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    named = re.findall(r"\[([a-z,]+)\]'", DOCKERFILE)
    assert named
    for names in named:
        assert set(names.split(",")) <= extras
    for source in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().split()  # all else stays out of the image
    assert "ADD " not in DOCKERFILE
    assert "HEALTHCHECK" in DOCKERFILE


def test_the_variables_of_the_service_are_known() -> None:
    shown = CliRunner().invoke(main, ["config", "--json"]).stdout
    known = {one["variable"] for one in json.loads(shown)["settings"]}
    ours = {name for name in COMPOSE["services"]["service"]["environment"] if name.startswith("SFUMATO_")}
    assert ours <= known
    assert len(ours) > 3


class Processes:
    """The services of compose.yaml as processes: the service and the proxy; each can be stopped and started again."""

    def __init__(self, folder: Path, vault: str, key: Path) -> None:
        self.folder, self.port, self._service_port = folder, free_port(), free_port()
        self.certificate, secret = _certificate(folder)
        stated = {name: str(value) for name, value in COMPOSE["services"]["service"]["environment"].items()}
        here = {"SFUMATO_VAULT": vault, "SFUMATO_KEY_FILE": str(key), "SFUMATO_SERVE_PORT": str(self._service_port)}
        here |= {"SFUMATO_SERVE_HOST": "127.0.0.1"}
        kept = {name: value for name, value in stated.items() if name.startswith("SFUMATO_SERVE_")}
        self._environment = {**os.environ, **kept, **here}
        self._configure(secret)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def _configure(self, secret: Path) -> None:
        text = (DEPLOY / "nginx.conf").read_text()
        for old, new in {
            "/run/secrets/certificate-key": str(secret),
            "/run/secrets/certificate;": f"{self.certificate};",
            "443 ssl": f"{self.port} ssl",
            "http://service:8080": f"http://127.0.0.1:{self._service_port}",
            "resolver 127.0.0.11 valid=10s;": "",
        }.items():
            assert old in text, old
            text = text.replace(old, new)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        head = f"pid {self.folder}/pid; daemon off; events {{}} http {{ access_log off; {temporary}"
        (self.folder / "nginx.conf").write_text(f"{head} {text} }}")

    def start(self, name: str, source: Path | None = None) -> None:
        """Start a service; `source` is that of an earlier version."""
        environment = self._environment if source is None else {**self._environment, "PYTHONPATH": str(source)}
        stated = [self._environment["SFUMATO_VAULT"], "--key-file", self._environment["SFUMATO_KEY_FILE"]]
        earlier = [*stated, "--port", str(self._service_port), "--proxied"]
        commands = {
            "service": [sys.executable, "-m", "sfumato", "serve", *(earlier if source else [])],
            "proxy": [
                *(_program("nginx", "nginx-light"), "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")),
                *("-e", str(self.folder / "error.log")),
            ],
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                commands[name], env=environment, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        process = self._running.pop(name)
        if how == signal.SIGKILL:  # as a container's end takes all its processes along
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)
        process.wait(40)

    @contextmanager
    def client(self, token: str) -> Iterator[httpx2.Client]:
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        headers = {"Authorization": f"Bearer {token}"}
        url = f"https://127.0.0.1:{self.port}"
        with httpx2.Client(base_url=url, verify=trusted, headers=headers, timeout=60) as client:
            yield client

    def close(self) -> None:
        for name in list(self._running):
            self.stop(name)


def _eventually(ask: Any, expected: int = 200) -> Any:
    """The answer, once it is as expected."""
    for _ in range(300):
        try:
            found = ask()
            if found.status_code == expected:
                return found
        except httpx2.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError("no answer within 30 seconds")


@pytest.mark.server
@pytest.mark.long
def test_https_survives_a_restart_of_each_part(tmp_path: Path) -> None:
    with bucket("s3", tmp_path) as store, running() as postgres:
        url = postgres.database()
        key = sf.Key.from_bytes(bytes(range(32)))
        key.save(tmp_path / "vault.key")
        vault = sf.Vault.create(url, store=f"{store}/store", secret=key)
        vault.add(wards.policy(), wards.table(300))
        vault.recipient("clinic")
        vault.grant("clinic", "ward", "partner")
        expected = vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
        token = vault.token("clinic")["token"]
        parts = Processes(tmp_path, url, tmp_path / "vault.key")
        try:
            parts.start("proxy")
            parts.start("service")
            with parts.client(token) as client:

                def copy() -> httpx2.Response:
                    return client.get("/api/v1/copies/ward")

                assert _eventually(copy).content == expected
                parts.stop("service", signal.SIGKILL)
                assert copy().status_code == 502
                parts.start("service")
                assert _eventually(copy).content == expected
                parts.stop("proxy")
                parts.start("proxy")
                assert _eventually(copy).content == expected
                postgres.stop(signal.SIGKILL)
                assert copy().status_code in (500, 503)
                postgres.start()
                assert _eventually(copy).content == expected
        finally:
            parts.close()
        log = (tmp_path / "service.log").read_text()
    assert "Traceback" not in log
    assert key.expose().hex() not in log


@pytest.mark.server
@pytest.mark.long
def test_a_later_image_takes_over_from_the_previous_one(tmp_path: Path) -> None:
    """The previous version creates and serves the vault; this one, started in its stead, serves the same copies."""
    source = earlier_source("0.3", tmp_path)
    key = sf.Key.from_bytes(bytes(range(32)))
    key.save(tmp_path / "vault.key")
    pq.write_table(wards.table(300), tmp_path / "table.parquet")
    (tmp_path / "policy.toml").write_text(wards.policy().dumps())
    with running() as postgres:
        url = postgres.database()
        made = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _MAKE.format(url=url, store=str(tmp_path / "store"))],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=True,
        )
        parts = Processes(tmp_path, url, tmp_path / "vault.key")
        try:
            parts.start("proxy")
            parts.start("service", source)
            with parts.client(made.stdout.split()[-1]) as client:

                def copy() -> httpx2.Response:
                    return client.get("/api/v1/copies/ward?format=csv")

                before = _eventually(copy).content
                described = client.get("/api/v1/openapi.json").json()
                parts.stop("service")
                parts.start("service")
                assert _eventually(copy).content == before
                assert client.get("/api/v1/openapi.json").json() != described  # it is another version
        finally:
            parts.close()


_MAKE = """
import sfumato as sf, pyarrow.parquet as pq
vault = sf.Vault.create({url!r}, store={store!r}, secret=sf.Key.load("vault.key"))
vault.add(sf.Policy.load("policy.toml"), pq.read_table("table.parquet"))
vault.recipient("clinic")
vault.grant("clinic", "ward", "partner")
print(vault.token("clinic")["token"])
"""
"""What the previous version leaves behind."""

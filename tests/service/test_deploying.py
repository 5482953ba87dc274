"""Tests of the deployment guide: its systemd unit is verified, and its nginx block runs in front of a service."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from tests.debian import installed
from tests.postgres import Server, free_port
from tests.serving import PASSWORD, Service, serving, sqlite_vault

import sfumato as sf
from sfumato.cli import main
from sfumato.vault import operators

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/deploying.md").read_text()


def _block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def _program(name: str, package: str) -> str:
    return installed(lambda: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"), package)


def test_the_systemd_unit_is_valid(tmp_path: Path) -> None:
    unit = _block("ini").replace("/opt/sfumato/bin/sfumato", "/bin/true").replace("User=sfumato", "User=root")
    (tmp_path / "sfumato.service").write_text(unit)
    command = [_program("systemd-analyze", "systemd"), "verify", "--man=no", str(tmp_path / "sfumato.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "sfumato.service" in line]
    assert ours == []
    broken = unit.replace("Restart=always", "Restart=sometimes")
    (tmp_path / "sfumato.service").write_text(broken)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "sometimes" in done.stdout + done.stderr  # the verification finds a planted fault


def test_the_options_in_the_systemd_unit_exist() -> None:
    from sfumato.cli.serve import serve

    known = {name for parameter in serve.params for name in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", _block("ini"))) <= known


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for the loopback address, and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    openssl = [_program("openssl", "openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*openssl, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


@contextmanager
def proxied(service: Service, folder: Path) -> Iterator[str]:
    """Run nginx with the server block of the guide, on a free port with a self-signed certificate."""
    port, (certificate, key) = free_port(), _certificate(folder)
    block = _block("nginx").replace("/etc/ssl/certs/copies.example.org.pem", str(certificate))
    block = block.replace("/etc/ssl/private/copies.example.org.key", str(key))
    block = block.replace("443", str(port)).replace("http://127.0.0.1:8080", service.url)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}} "
        f"http {{ access_log off; {temporary} {block} }}"
    )
    command = [_program("nginx", "nginx-light"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen([*command, "-e", str(folder / "error.log")])
    try:
        for _ in range(100):
            if process.poll() is not None:
                raise RuntimeError((folder / "error.log").read_text())
            try:
                httpx2.get(f"https://127.0.0.1:{port}/healthz", verify=False)
                break
            except httpx2.HTTPError:
                time.sleep(0.05)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def test_the_service_behind_the_proxy(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    expected = vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    options = ("--proxied", "--tries", "3")
    with serving(vault, tmp_path, *options, insecure=False) as service, proxied(service, tmp_path) as url:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        token = {"Authorization": f"Bearer {vault.token('clinic')['token']}"}
        with httpx2.Client(base_url=url, verify=trusted, headers=token, timeout=60) as client:
            assert client.get("/api/v1/copies/ward").content == expected
            assert client.get("/api/v1/copies/ward", headers={"Range": "bytes=5-"}).content == expected[5:]
        with httpx2.Client(base_url=url, verify=trusted, timeout=60) as client:
            form = {"name": "anna", "password": PASSWORD}
            assert client.post("/signin", data=form, headers={"Origin": url}).status_code == 303
            assert client.get("/console").status_code == 200  # the Secure cookie is sent over TLS
            forged = {"X-Forwarded-For": "10.9.9.9"}  # a client cannot forge its address: the proxy sets it
            wrong = {"name": "anna", "password": "x"}
            statuses = [client.post("/signin", data=wrong, headers=forged).status_code for _ in range(5)]
            assert statuses == [401] * 3 + [429] * 2


def test_a_service_with_its_own_certificate_on_a_full_disk(tmp_path: Path, postgres: Server) -> None:
    """No password of the database is logged; `/readyz` fails while the disk for temporary files is full."""
    word = "hidden-word"
    (tmp_path / "site").mkdir()
    location = postgres.database().replace("owner@", f"owner:{word}@") + f"?password={word}"
    vault = sf.Vault.create(location, store=str(tmp_path / "site"), secret=sf.Key.from_bytes(bytes(range(32))))
    operators.enrol(vault, "anna", PASSWORD)
    certificate, key = _certificate(tmp_path)
    options = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    trusted = ssl.create_default_context(cafile=str(certificate))
    with (
        small_disk(tmp_path / "small") as disk,
        serving(vault, tmp_path, *options, insecure=False, env={**os.environ, "TMPDIR": str(disk)}) as service,
        httpx2.Client(base_url=service.url, verify=trusted, timeout=60) as client,
    ):
        form = {"name": "anna", "password": PASSWORD}
        assert client.post("/signin", data=form, headers={"Origin": service.url}).status_code == 303
        assert client.get("/console").status_code == 200
        assert [cookie.name for cookie in client.cookies.jar] == ["__Host-sfumato_session"]
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(service.url.replace("https", "http") + "/healthz")
        (disk / "large").write_bytes(bytes(40 << 20))
        assert client.get("/readyz").status_code == 503
        (disk / "large").unlink()
        assert client.get("/readyz").status_code == 200
        log = service.log.read_text()
    assert "Serving postgresql" in log
    assert word not in log
    assert word not in repr(vault)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 80 MB."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--host", "192.0.2.1"), 1, "plain HTTP on 192.0.2.1 can be read by others: give --tls-certificate"),
        (("--host", "::"), 1, "plain HTTP on :: can be read by others"),
        (("--host", "192.0.2.1", "--insecure"), 1, "can be read by others"),
        (("--host", "192.0.2.1", "--proxied"), 0, "for a TLS proxy elsewhere"),
        (("--host", "127.0.0.2", "--insecure"), 0, "on this machine only"),
        (("--tls-certificate", "broken.pem", "--tls-key", "broken.pem"), 1, "must have its private key"),
        (("--tls-certificate", "broken.pem"), 2, "must be given together"),
        (("--insecure", "--tls-certificate", "broken.pem", "--tls-key", "broken.pem"), 2, "give one of them"),
    ],
)
def test_a_public_address_needs_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.pem").write_text("nothing")
    sf.Vault.create("vault")
    done = CliRunner().invoke(main, ["serve", "--check", *options])
    assert done.exit_code == code, done.output
    assert message in done.output


@pytest.mark.slow
@pytest.mark.parametrize("page", ["service.md"])
def test_the_commands_of_the_page_work(tmp_path: Path, page: str) -> None:
    """All commands except the installation, in order, in the folder of the demo."""
    text = (ROOT / "docs" / page).read_text()
    lines = [
        line.split("#")[0].strip()
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    port, tokens = free_port(), iter(["insurer", "owner"])
    program = str(Path(sys.executable).with_name("sfumato"))
    environment = {**os.environ, "SFUMATO_OPERATOR_PASSWORD": PASSWORD}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    folder = tmp_path
    run("demo", "demo", "--rows", "2000")
    folder, server = tmp_path / "demo", None
    try:
        for line in lines:
            words = line.replace("8080", str(port)).split()
            if line.startswith("export"):
                who = next(tokens)
                made = run("token", "add", *([who] if who != "owner" else ["--owner"]), "--json")
                environment["SFUMATO_TOKEN"] = re.search(r"sfu_[^\"]+", made)[0]  # type: ignore[index]
            elif line.startswith("sfumato serve --insecure"):
                server = subprocess.Popen([program, *words[1:], "--port", str(port)], cwd=folder, env=environment)
                for _ in range(200):
                    try:
                        httpx2.get(f"http://127.0.0.1:{port}/readyz")
                        break
                    except httpx2.HTTPError:
                        time.sleep(0.1)
            elif line.startswith("sfumato"):
                run(*words[1:])
        assert (folder / "clinic.parquet").exists()
        assert (folder / "rough.csv").exists()
        assert (folder / "report.html").exists()
    finally:
        if server is not None:
            server.terminate()
            server.wait(20)

"""Clients in other languages: TypeScript, generated from the OpenAPI document, compiled strictly and run in Node."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.debian import installed
from tests.serving import Service

PAGE = Path(__file__).parents[2] / "docs/howto-clients.md"
SETTINGS = ("--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "client.ts")


def _block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[:1]
    return str(found)


def _run(*command: str, folder: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.server
@pytest.mark.long
def test_a_generated_typescript_client_compiles_and_downloads_copies(sqlite_service: Service, tmp_path: Path) -> None:
    installed(lambda: shutil.which("npm"), "npm")
    variables = {"SFUMATO_URL": sqlite_service.url, "SFUMATO_TOKEN": sqlite_service.tokens["clinic"]}
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    (tmp_path / "client.ts").write_text(_block("ts"))
    for line in _block("text").splitlines():
        words = line.replace("npm install", "npm install --silent --no-audit --no-fund").split()
        _run(*(word.strip('"').replace("$SFUMATO_URL", sqlite_service.url) for word in words), folder=tmp_path)
    _run("npx", "tsc", *SETTINGS, folder=tmp_path)
    *copies, refused = _run("node", "client.js", folder=tmp_path, **variables).splitlines()
    assert refused.split()[0] == "404"
    with sqlite_service.client("clinic") as client:
        grants: list[dict[str, Any]] = client.get("/api/v1/me/grants").json()
        assert len(copies) == len(grants) > 0
        for line, grant in zip(copies, grants, strict=True):
            content = client.get(f"/api/v1/copies/{grant['dataset']}").content
            digest = hashlib.sha256(content).hexdigest()
            assert line.split()[0] == grant["dataset"]
            assert line.split()[3:] == [str(len(content)), digest]


def test_functions_of_generated_clients_have_short_names(sqlite_service: Service) -> None:
    with sqlite_service.client() as client:
        paths = client.get("/api/v1/openapi.json").json()["paths"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert all(re.fullmatch(r"[a-z_]{3,40}", operation["operationId"]) for operation in operations)
    assert all(operation["summary"] and operation["description"] for operation in operations)
    undescribed = [
        operation["operationId"]
        for operation in operations
        for response in operation["responses"].values()
        for content in response.get("content", {}).values()
        if not content.get("schema")
    ]
    assert not undescribed

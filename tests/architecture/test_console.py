"""Tests of the documentation: every `console` block is executed, and its output is compared with the page.

A block whose commands begin with `$` is a transcript: the output of each command is compared with the page, where `...`
stands for text that differs from run to run. Other blocks contain only commands. Pages about a table start in the
folder that `sfumato demo` creates.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import free_port

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page.read_text() for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "commands.md"}
TRANSCRIPTS = [name for name, text in PAGES.items() if "```console\n$ " in text]
FAST = {"tutorial-owner.md"}  # the other pages are slow tests
TESTED_ELSEWHERE = {"service.md"}  # by tests/service/test_deploying.py
COMMANDS = [
    n for n, text in PAGES.items() if "```console\n" in text and n not in TESTED_ELSEWHERE and n not in TRANSCRIPTS
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: str) -> list[str]:
    return re.findall(r"```console\n(.*?)```", PAGES[page], re.DOTALL)


def steps(page: str) -> Iterator[tuple[str, str]]:
    """The commands of a transcript and their expected outputs."""
    for block in blocks(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


class Shell:
    """One shell per page, so that `cd`, `export` and `&` have the effect that they have for a reader."""

    def __init__(self, folder: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            "PATH": path,
            "COLUMNS": "160",
            "SFUMATO_OPERATOR_PASSWORD": "correct horse battery",
        }
        self.port = str(free_port())
        self.process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, *, checked: bool = False) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        wait = f"for i in $(seq 200); do curl -so /dev/null 127.0.0.1:{self.port}/readyz && break; sleep 0.1; done"
        after = f"\n{wait}" if command.endswith("&") else "|| echo __failed__" if checked else ""
        self.process.stdin.write(f"{command.replace('8080', self.port)} {after}\necho; echo __done__\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.strip() == "__done__":
                break
            lines.append(line)
        return "".join(lines).replace(self.port, "8080")

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()  # closes its pipes


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in FAST else [pytest.mark.slow]) for page in TRANSCRIPTS]
)
def test_transcripts_show_the_actual_output(page: str, shell: Shell) -> None:
    for command, expected in steps(page):
        output = shell.run(command)
        if expected.strip() == "...":
            assert "sfumato: " not in output, f"{page}: {command}\n{output}"
            continue
        match = doctest.OutputChecker().check_output(expected.strip(), output.strip(), FLAGS)
        assert match, f"{page}: {command}\n--- expected\n{expected}\n--- actual\n{output}"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    program = Path(sys.executable).with_name("sfumato")
    subprocess.run([program, "demo", "sfumato-demo", "--rows", "2000"], cwd=folder, check=True, capture_output=True)
    return folder / "sfumato-demo"


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS)
def test_commands_succeed(page: str, demo: Path, tmp_path: Path) -> None:
    """In the folder of the demo, or in an empty one if the page creates a vault."""
    folder = tmp_path / "page"
    shutil.copytree(demo, folder)
    if "sfumato init" in "".join(blocks(page)):
        shutil.rmtree(folder / "vault")
        (folder / "vault.key").unlink()
    shell = Shell(folder)
    try:
        for line in "\n".join(blocks(page)).splitlines():
            command = re.sub(r"\s+# .*", "", line)
            if command.strip():
                output = shell.run(command, checked=True)
                assert "__failed__" not in output, f"{page}: {command}\n{output}"
    finally:
        shell.close()


def test_all_commands_are_tested() -> None:
    """Our commands appear in other blocks only if they are about machines that tests do not have."""
    assert set(TRANSCRIPTS) >= {
        "tutorial-owner.md",
        "tutorial-recipient.md",
        "tutorial-auditor.md",
        "tutorial-survey.md",
    }
    for name, text in PAGES.items():
        for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
            commands = [line for line in block.splitlines() if line.startswith("sfumato ")]
            elsewhere = any(word in block for word in ("example", "/backups/", "systemctl"))
            assert not commands or elsewhere, f"{name}: {commands}"

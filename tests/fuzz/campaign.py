"""Runs the cases of a parser, and tells the failures apart: `python -m tests.fuzz.campaign --help`."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import mmap
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")
"""Inputs that a parser once failed on: a folder for each parser."""
FAILURES = ROOT / ".artefacts" / "fuzz"
"""Where the inputs of new failures are written."""
SECONDS = 5
"""Processor time that a case may take."""
MEMORY = 1 << 29
"""Bytes that a process may use beyond what it keeps after first inputs, which is less than 512 MiB."""
_LONGEST = 1 << 22


class TooSlow(BaseException):
    """A case took longer than it may."""


@dataclass
class Outcome:
    """What became of some cases."""

    cases: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """The path of the smallest input of each kind of failure."""
    memory: int = 0
    """Peak resident memory, in bytes."""

    def record(self, parser: str, kind: str, content: bytes) -> None:
        """Write the input of a failure, unless a smaller one of its kind is known."""
        known = self.failures.get(kind)
        if known is not None and Path(known).stat().st_size <= len(content):
            return
        FAILURES.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(kind.encode()).hexdigest()[:8]
        path = FAILURES / f"{parser.replace(' ', '-')}-{digest}"
        path.write_bytes(content)
        self.failures[kind] = str(path)


class _Crumb:
    """A file with the current input, which outlives a crash of the process."""

    def __init__(self, path: Path) -> None:
        with path.open("wb+") as file:
            file.truncate(_LONGEST + 4)
            self._map = mmap.mmap(file.fileno(), _LONGEST + 4)

    def write(self, content: bytes) -> None:
        kept = content[:_LONGEST]
        self._map[: 4 + len(kept)] = struct.pack("<I", len(kept)) + kept

    @staticmethod
    def read(path: Path) -> bytes:
        content = path.read_bytes()
        return content[4 : 4 + struct.unpack("<I", content[:4])[0]]


def replayed(parser: str) -> list[Path]:
    """The corpus of a parser."""
    return sorted((CORPUS / parser.replace(" ", "-")).glob("*"))


def inputs(parser: str, seed: str, first: int, count: int) -> Iterator[bytes]:
    """Cases number `first` and following; each depends on the seed and its number alone."""
    from tests.fuzz.parsers import PARSERS

    mutant = PARSERS[parser].mutant()
    for number in range(first, first + count):
        yield mutant(Random(f"{seed}/{parser}/{number}"))  # noqa: S311 - reproducible


def _check(parser: str, contents: Iterator[bytes], crumb: _Crumb) -> Outcome:
    """Parse the inputs one after the other."""
    from tests.fuzz.parsers import PARSERS

    from sfumato.errors import SfumatoError

    outcome = Outcome()
    parse = PARSERS[parser].parse
    signal.signal(signal.SIGPROF, _stop)
    for content in contents:
        crumb.write(content)
        outcome.cases += 1
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            parse(content)
        except SfumatoError:
            pass
        except (Exception, TooSlow) as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcome.record(parser, _kind(error), content)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    outcome.memory = _memory("VmHWM")
    return outcome


def _memory(name: str) -> int:
    """Resident memory of this process in bytes: `VmRSS` now, `VmHWM` at its peak."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(name))
    return 1024 * int(line.split()[1])


def _warm_up(plan: list[tuple[str, int, int]], seed: str) -> int:
    """Let every parser load and compile what it needs, and return the memory that it keeps; the peak starts anew."""
    from tests.fuzz.parsers import PARSERS

    for name, *_ in plan:
        for content in inputs(name, f"{seed}/first", 0, 3):
            with contextlib.suppress(Exception):
                PARSERS[name].parse(content)
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooSlow(f"a case must take at most {SECONDS} s")


def _kind(error: BaseException) -> str:
    """The type of an error and the last line of ours that it passed through."""
    ours = [one for one in traceback.extract_tb(error.__traceback__) if "/sfumato/" in one.filename]
    last = (ours or traceback.extract_tb(error.__traceback__))[-1]
    where = last.filename.rpartition("/sfumato/")[2] or last.filename
    return f"{type(error).__name__} at {where}:{last.lineno} in {last.name}"


def in_own_process(plan: list[tuple[str, int, int]], seed: str) -> dict[str, Outcome]:
    """The outcome of some cases (parser, first, count), with its corpus where `first` is 0, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        crumb, steps = Path(folder) / "crumb", json.dumps(plan)
        command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz.campaign", "--seed", seed]
        done = subprocess.run(
            [*command, "--crumb", str(crumb), "--plan", steps], cwd=ROOT, capture_output=True, text=True, check=False
        )
        found = {name: Outcome(**data) for name, data in map(json.loads, _results(done.stdout))}
        if done.returncode:
            parser = next(name for name, *_ in plan if name not in found)
            found[parser] = Outcome()
            ending = (done.stderr.strip().splitlines() or [""])[-1]
            content = _Crumb.read(crumb) if crumb.exists() else b""
            found[parser].record(parser, f"the process ended with {done.returncode}: {ending[:200]}", content)
        return found


def _results(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("[")]


def main() -> None:
    """Run some parsers, or all, and print a table."""
    from tests.fuzz.parsers import PARSERS

    options = argparse.ArgumentParser(prog="python -m tests.fuzz.campaign", description=main.__doc__)
    options.add_argument("parsers", nargs="*", metavar="PARSER", help=", ".join(PARSERS))
    options.add_argument("--seed", default="1")
    options.add_argument("--cases", type=int, help="cases per parser; without it, as many as in `make sweep`")
    options.add_argument("--crumb", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--plan", type=json.loads, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.plan is None:
        for name in given.parsers or PARSERS:
            [outcome] = in_own_process([(name, 0, given.cases or PARSERS[name].sweep)], given.seed).values()
            print(f"{name:22} {outcome.cases:9,} cases, {outcome.memory >> 20:5} MiB, {len(outcome.failures)} failures")
            for kind, path in outcome.failures.items():
                print(f"    {kind}\n        {path}", flush=True)
        return
    crumb, kept = _Crumb(given.crumb), _warm_up(given.plan, given.seed)
    for name, first, count in given.plan:
        corpus = (path.read_bytes() for path in (replayed(name) if first == 0 else []))
        outcome = _check(name, corpus, crumb)
        more = _check(name, inputs(name, given.seed, first, count), crumb)
        both = Outcome(outcome.cases + more.cases, outcome.failures | more.failures, max(more.memory - kept, 0))
        print(json.dumps([name, both.__dict__]), flush=True)


if __name__ == "__main__":
    main()

"""Tracing: whose copy a leaked file is, or was made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import VaultError
from sfumato.kernels.factor import gram
from sfumato.keys.key import Key
from sfumato.mechanisms._shaped import ShapedNoise
from sfumato.schema.levels import Level
from sfumato.schema.table import BATCH, Source
from sfumato.vault.alignment import Issue, Match, alignments
from sfumato.vault.evidence import Score, score

GUILT = 1e-6
"""Nobody is accused unless an innocent would be in fewer than one file of a million."""

_ROWS = 100_000
"""Rows of a file that are looked at: more evidence is not needed."""

_NUMBERS = 30_000_000
"""Numbers that are held at once."""


@dataclass(frozen=True)
class Suspect:
    """Recipients of one copy, and what speaks for the file having been made from it."""

    recipients: tuple[str, ...]
    version: int
    """The one that the file is most like."""
    level: str | float
    score: Score
    false_accusation: float
    """The probability that any innocent recipient would look as guilty."""

    @property
    def accused(self) -> bool:
        """Whether the evidence is enough."""
        return self.false_accusation < GUILT


@dataclass(frozen=True)
class Trace:
    """What was found, the strongest suspicion first."""

    rows: int
    matched: int
    columns: tuple[str, ...]
    original: float
    """The share of its numbers that are those of the table itself, not of any copy."""
    suspects: tuple[Suspect, ...]

    @property
    def accused(self) -> tuple[Suspect, ...]:
        """Those whose copy it is, or was made from; nobody, if it is not ours."""
        return tuple(suspect for suspect in self.suspects if suspect.accused)


def trace(issues: Sequence[Issue], leaked: Any, progress: Callable[[int], None] | None = None) -> Trace:
    """Compare a file with all copies that were given."""
    if not issues:
        raise VaultError("a file can be traced once copies were released, and none of this dataset was")
    file = Source.of(leaked)
    head = pa.Table.from_batches(islice(file.batches(), -(-_ROWS // BATCH)), schema=file.schema)
    found: dict[tuple[Key, float], tuple[Issue, Score]] = {}
    tests = sum((1 + len(issue.conditions) + 1) * len(issue.holders) for issue in issues)
    matched, original = 0, 0.0
    columns = tuple(name for name in _shaped(issues[0]).columns if name in head.column_names)
    for issue in issues if columns else ():
        for match in alignments(issue, _shaped(issue), head, columns):
            scores, same = _scores(issue, match, columns)
            original = max(original, same)
            matched = max(matched, match.cells.shape[1])
            for fidelity, one in scores.items():
                best = found.get((issue.key, fidelity))
                if best is None or one.z > best[1].z:
                    found[issue.key, fidelity] = issue, one
            if progress:
                progress(len(scores))
            if not match.probes and min(one.chance for one in scores.values()) * tests < GUILT:
                break  # no need to look for rows by their numbers
    suspects = [
        Suspect(
            tuple(issue.holders[fidelity]),
            issue.dataset.version,
            issue.names[fidelity],
            one,
            min(1.0, one.chance * tests),
        )
        for (_, fidelity), (issue, one) in found.items()
    ]
    suspects.sort(key=lambda suspect: -suspect.score.z)
    return Trace(head.num_rows, matched, columns, original, tuple(suspects))


def _shaped(issue: Issue) -> ShapedNoise:
    for scheme in issue.dataset.scheme.schemes:
        if isinstance(scheme, ShapedNoise):
            return scheme
    raise VaultError("a file is traced by its numbers, and this dataset has no column with the role gaussian")


def _needed(levels: list[Level], fidelities: frozenset[float]) -> list[Level]:
    """The copies in question and their neighbours, on which alone the scores depend."""
    places = [i for i, level in enumerate(levels) if level.fidelity in fidelities]
    return [level for i, level in enumerate(levels) if any(abs(i - place) <= 1 for place in places)]


def _scores(issue: Issue, match: Match, columns: Sequence[str]) -> tuple[dict[float, Score], float]:
    """What speaks for each copy that the match can tell of, and which share of the numbers are the table's own."""
    scheme = _shaped(issue)
    levels = _needed(sorted([*map(Level, issue.holders), *match.probes], reverse=True), match.fidelities)
    room = max(2000, _NUMBERS // ((len(levels) + 1) * len(scheme.columns)))
    cells, rows, batch = match.cells[:, :room], match.rows[:room], match.batch.slice(0, room)
    secret = issue.key.derive("dataset", issue.dataset.name)
    original, noise = scheme.paths(batch, rows, levels, secret)
    places = [scheme.columns.index(name) for name in columns]
    noise = np.concatenate([np.zeros_like(noise[:1]), noise])[:, places]
    times = [0.0, *(level.noise for level in levels)]
    shape = gram(scheme.factor)[np.ix_(places, places)]
    chosen = {level.fidelity: j for j, level in enumerate(levels, 1) if level.fidelity in match.fidelities}
    same = np.isclose(cells, original[places], rtol=1e-9, atol=0.51 * scheme.step[places][:, None])
    scores = {fidelity: score(cells, original[places], noise, times, j, shape) for fidelity, j in chosen.items()}
    return scores, float(same.mean()) if same.size else 0.0

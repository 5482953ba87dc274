"""Tracing: whose copy a leaked file is, or was made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import VaultError
from sfumato.kernels import Floats
from sfumato.kernels.cholesky import gram
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.tables.source import Source
from sfumato.tables.view import View
from sfumato.vault.leak_alignment import WAYS, Copy, Issue, Leak, Match, alignments
from sfumato.vault.likelihood_ratio import Score, score

GUILT = 1e-6
"""Nobody is accused unless an innocent would be in fewer than one file of a million."""

_ROWS = 100_000
"""Rows of a file that are looked at: more evidence is not needed."""

PHANTOMS = 6
"""Levels around an accused copy that nobody was given, and that must explain the file less."""

_NUMBERS = 30_000_000
"""Numbers that are held at once."""


@dataclass(frozen=True)
class Suspect:
    """Recipients of one copy, and what speaks for the file having been made from it."""

    recipients: tuple[str, ...]
    version: int
    """The one that the file is most like."""
    fidelity: float
    score: Score
    false_accusation: float
    """The probability that any innocent recipient would look as guilty."""
    unknown: bool = False
    """Whether a copy that the ledger does not know, near this one on the path, explains the file as well."""

    @property
    def accused(self) -> bool:
        """Whether the evidence is enough."""
        return self.false_accusation < GUILT and not self.unknown


@dataclass(frozen=True)
class Trace:
    """What was found, the strongest suspicion first."""

    rows: int
    matched: int
    how: str
    """By what the rows were told: `ids`, `places`, `numbers`, or nothing."""
    columns: tuple[str, ...]
    original: float
    """The share of its numbers that are those of the table itself, not of any copy."""
    lost: int
    """Releases that could not be looked at, since their key is lost."""
    suspects: tuple[Suspect, ...]

    @property
    def accused(self) -> tuple[Suspect, ...]:
        """Those whose copy it is, or was made from; nobody, if it is not ours."""
        return tuple(suspect for suspect in self.suspects if suspect.accused)


@dataclass(frozen=True)
class _Finding:
    """What speaks for one copy of one version."""

    issue: Issue
    copy: Copy
    score: Score
    unknown: bool


def trace(issues: Sequence[Issue], leaked: Any, lost: int = 0, progress: Callable[[int], None] | None = None) -> Trace:
    """Compare a file with all copies that were given."""
    if not issues:
        raise VaultError("a file can be traced once copies were released, and none of this dataset was")
    leak = Leak.of(Source.of(leaked), _ROWS, issues[0].dataset.schema.names)
    tests = WAYS * (1 + PHANTOMS) * sum(len(issue.holders) for issue in issues)
    found: list[_Finding] = []
    matched, how, original = 0, "", 0.0
    columns = tuple(name for name in _shaped(issues[0]).columns if name in leak.head.column_names)
    for issue in issues if columns else ():
        for match in alignments(issue, _shaped(issue), leak, columns):
            scores = _Scores(issue, match, columns)
            findings = [
                _Finding(issue, copy, one, one.chance * tests < GUILT and scores.is_unknown(copy, GUILT / tests))
                for copy, one in scores.of_all().items()
            ]
            found += findings
            if match.cells.shape[1] > matched:
                matched, how = match.cells.shape[1], match.how
            original = max(original, scores.same())
            if progress:
                progress(len(findings))
            if match.how != "numbers" and any(one.score.chance * tests < GUILT for one in findings):
                break  # no need to look for rows by their numbers
    return Trace(leak.rows, matched, how, columns, original, lost, tuple(_suspects(found, tests)))


def _suspects(found: list[_Finding], tests: int) -> list[Suspect]:
    """Who holds what the file was made from; those who hold the same level of the same records go together."""
    together: dict[tuple[Key, float], list[_Finding]] = {}
    for one in sorted(found, key=lambda one: -one.score.z):
        together.setdefault((one.issue.key, one.copy[0]), []).append(one)
    out = []
    for (_, fidelity), findings in together.items():
        best = findings[0]
        guilty = [one for one in findings if one.score.chance * tests < GUILT] or [best]
        names = dict.fromkeys(name for one in guilty for name in one.issue.holders[one.copy])
        chance = min(1.0, best.score.chance * tests)
        unknown = any(one.unknown for one in guilty)
        out.append(Suspect(tuple(names), best.issue.dataset.version, fidelity, best.score, chance, unknown))
    return out


def _shaped(issue: Issue) -> GaussianScheme:
    for scheme in issue.dataset.scheme.schemes:
        if isinstance(scheme, GaussianScheme):
            return scheme
    raise VaultError("a file is traced by its numbers, and this dataset has no column with the role gaussian")


class _Scores:
    """What speaks for each copy that a match can tell of."""

    def __init__(self, issue: Issue, match: Match, columns: Sequence[str]) -> None:
        self._issue, self._match, self._columns, self._scheme = issue, match, columns, _shaped(issue)
        self._places = [self._scheme.columns.index(name) for name in columns]
        self._shape = gram(self._scheme.factor)[np.ix_(self._places, self._places)]
        self._levels = sorted([*map(Level, issue.levels), *match.probes], reverse=True)
        near = _near(self._levels, {fidelity for fidelity, _ in match.copies})
        room = max(2000, _NUMBERS // ((len(near) + 1) * len(self._scheme.columns)))
        self._cells, self._rows, self._batch = match.cells[:, :room], match.rows[:room], match.batch.slice(0, room)
        self._near = near
        self._original, self._noise = self._paths(near)

    def _paths(self, levels: list[Level]) -> tuple[Floats, Floats]:
        """The numbers, and the noise of some levels after that of the original, which is 0."""
        secret = self._issue.key.derive("dataset", self._issue.dataset.name)
        original, noise = self._scheme.paths(self._batch, self._rows, levels, secret)
        return original[self._places], np.concatenate([np.zeros_like(noise[:1]), noise])[:, self._places]

    def of_all(self) -> dict[Copy, Score]:
        """The score of each copy, by the cells that it shows."""
        times = [0.0, *(level.noise for level in self._near)]
        place = {level.fidelity: j for j, level in enumerate(self._near, 1)}
        shown = {view: self._shown(view) for _, view in self._match.copies}
        return {
            copy: score(shown[copy[1]], self._original, self._noise, times, place[copy[0]], self._shape)
            for copy in self._match.copies
        }

    def _shown(self, view: View) -> Floats:
        """The file's cells that a copy with this view has, NaN elsewhere."""
        cells = self._cells.copy()
        if view.columns is not None:
            cells[[i for i, name in enumerate(self._columns) if name not in view.columns]] = np.nan
        cells[:, ~view.holds(self._batch)] = np.nan
        return cells

    def is_unknown(self, copy: Copy, rate: float) -> bool:
        """Whether the file was made from a copy near this one that nobody was given: none that the ledger knows."""
        times = [level.noise for level in self._levels]
        place = next(j for j, level in enumerate(self._levels) if level.fidelity == copy[0])
        low = times[place - 1] if place else 0.0
        high = times[place + 1] if place + 1 < len(times) else 2 * times[place]
        cells = self._shown(copy[1])
        for k in range(1, PHANTOMS // 2 + 1):
            for start, end in ((low, times[place]), (times[place], high)):
                asked = Level.from_noise(start + (end - start) * k / (PHANTOMS // 2 + 1))
                phantom = self._issue.dataset.scheme.given(asked)
                if any(abs(phantom.noise - time) < 1e-9 * time for time in times):
                    continue
                levels = sorted({*self._levels, phantom}, reverse=True)
                near = _near(levels, {phantom.fidelity})
                original, noise = self._paths(near)
                j = 1 + near.index(phantom)
                if score(cells, original, noise, [0.0, *(one.noise for one in near)], j, self._shape).chance < rate:
                    return True
        return False

    def same(self) -> float:
        """Which share of the numbers are the table's own."""
        step = self._scheme.step[self._places][:, None]
        same = np.isclose(self._cells, self._original, rtol=1e-9, atol=0.51 * step)[np.isfinite(self._cells)]
        return float(same.mean()) if same.size else 0.0


def _near(levels: list[Level], fidelities: set[float]) -> list[Level]:
    """The copies in question and their neighbours, on which alone the scores depend."""
    places = [i for i, level in enumerate(levels) if level.fidelity in fidelities]
    return [level for i, level in enumerate(levels) if any(abs(i - place) <= 1 for place in places)]

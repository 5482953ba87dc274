"""Traitor tracing: the recipients whose copy a leaked file is, or was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import VaultError
from sfumato.kernels import Floats
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.tables.source import Source
from sfumato.tables.view import View
from sfumato.vault.leak_alignment import (
    METHODS,
    Leak,
    Match,
    MatchMethod,
    ReleasedCopy,
    ReleaseGroup,
    alignments,
    close_alignments,
)
from sfumato.vault.likelihood_ratio import Score, score
from sfumato.vault.traced_columns import TracedColumns, traced_columns

MAX_FALSE_ACCUSATION = 1e-6
"""The false-alarm rate: the probability per file that any innocent recipient is accused."""

_MAX_ROWS = 100_000
"""The most rows of a file that are compared: more evidence is not needed."""

CONTROLS = 20
"""The number of control levels around an accused copy: levels that nobody received, which must score lower.

Half of them lie on either side, each four times closer to the copy than the one before. The distance of a copy that
is not in the ledger is then within a factor of two of one of theirs, down to about 1e-6 of the gap between levels.
"""

_MAX_NUMBERS = 30_000_000
"""The most numbers in memory at once."""

_MAX_LISTED = 20
"""The most suspects in the JSON form of a trace."""


@dataclass(frozen=True)
class Suspect:
    """The recipients of one copy, and the evidence that the file was made from it."""

    recipients: tuple[str, ...]
    version: int
    """The version of the dataset whose copy scores highest."""
    fidelity: float
    score: Score
    false_accusation: float
    """The probability that any innocent recipient would have so high a score."""
    unrecorded: bool = False
    """Whether a copy that is not in the ledger, with a similar level, explains the file as well."""

    @property
    def accused(self) -> bool:
        """Whether the evidence is sufficient."""
        return self.false_accusation < MAX_FALSE_ACCUSATION and not self.unrecorded

    def as_json(self) -> dict[str, Any]:
        """The suspect as JSON."""
        return {
            "recipients": list(self.recipients),
            "version": self.version,
            "fidelity": self.fidelity,
            "z": self.score.z,
            "log10 likelihood ratio": self.score.log_ratio,
            "false accusation probability": self.false_accusation,
            "copy not in ledger": self.unrecorded,
            "accused": self.accused,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Suspect:
        """The inverse of `as_json`."""
        return cls(
            tuple(data["recipients"]),
            data["version"],
            data["fidelity"],
            Score(data["z"]),
            data["false accusation probability"],
            data["copy not in ledger"],
        )


@dataclass(frozen=True)
class Trace:
    """The result of tracing a file, the strongest suspicion first."""

    rows: int
    """The number of rows of the file."""
    matched: int
    """The number of rows that were matched to rows of the original table."""
    matched_by: str
    """How rows were matched, one of `MatchMethod`; empty if none was."""
    columns: tuple[str, ...]
    """The columns that were compared."""
    original_share: float
    """The share of the file's numbers that equal those of the original table."""
    untraceable: int
    """The number of releases that could not be compared, since their key is lost."""
    suspects: tuple[Suspect, ...]

    @property
    def accused(self) -> tuple[Suspect, ...]:
        """The recipients whose copy the file is, or was made from; empty if there is not enough evidence."""
        return tuple(suspect for suspect in self.suspects if suspect.accused)

    def as_json(self) -> dict[str, Any]:
        """The trace as JSON, with the strongest suspects."""
        return {
            "rows": self.rows,
            "matched": self.matched,
            "matched by": self.matched_by,
            "columns": list(self.columns),
            "share of original numbers": self.original_share,
            "releases with lost keys": self.untraceable,
            "accused": list(dict.fromkeys(name for suspect in self.accused for name in suspect.recipients)),
            "suspects": [suspect.as_json() for suspect in self.suspects[:_MAX_LISTED]],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trace:
        """The trace that `as_json` wrote."""
        return cls(
            data["rows"],
            data["matched"],
            data["matched by"],
            tuple(data["columns"]),
            data["share of original numbers"],
            data["releases with lost keys"],
            tuple(map(Suspect.from_json, data["suspects"])),
        )


@dataclass(frozen=True)
class _Evidence:
    """The score of one copy of one version in one match."""

    group: ReleaseGroup
    copy: ReleasedCopy
    score: Score
    unrecorded: bool


@dataclass(frozen=True)
class _Comparison:
    """A match of the file with the table, the scores of its copies, and the share of original numbers."""

    match: Match
    evidence: list[_Evidence]
    original_share: float


def trace(
    groups: Sequence[ReleaseGroup],
    leaked: Any,
    untraceable: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Compare a file with all released copies."""
    if not groups:
        raise VaultError("a file can be traced only after a release, and no copy of this dataset was released yet")
    if groups[0].dataset.scheme.policy.entity is not None:
        raise VaultError(
            "a leak is traced by noise of its own for each record, and records of one entity share some, so that "
            "nobody could be accused with a known probability of error"
        )
    leak = Leak.of(Source.of(leaked), _MAX_ROWS, groups[0].dataset.schema.names)
    tests = METHODS * (1 + CONTROLS) * sum(len(group.holders) for group in groups)
    evidence: list[_Evidence] = []
    matched, matched_by, original_share = 0, "", 0.0
    columns = _traced(groups[0], leak).columns
    for group in groups if columns else ():
        for found in _compare(group, leak, MAX_FALSE_ACCUSATION / tests):
            evidence += found.evidence
            if found.match.cells.shape[1] > matched:
                matched, matched_by = found.match.cells.shape[1], found.match.method.value
            original_share = max(original_share, found.original_share)
            if progress:
                progress(len(found.evidence))
    suspects = tuple(_suspects(evidence, tests))
    return Trace(leak.rows, matched, matched_by, columns, original_share, untraceable, suspects)


def _compare(group: ReleaseGroup, leak: Leak, rate: float) -> Iterator[_Comparison]:
    """Score the copies of a group in each match, until one is significant at `rate`; a search by values is complete."""
    significant, traced = False, _traced(group, leak)
    for find in (alignments, close_alignments):
        for match in find(group, traced, leak):
            scores = _Scores(group, match, traced)
            evidence = [
                _Evidence(group, copy, one, one.p_value < rate and scores.is_unrecorded(copy, rate))
                for copy, one in scores.of_all().items()
            ]
            yield _Comparison(match, evidence, scores.original_share())
            significant |= any(one.score.p_value < rate for one in evidence)
            if significant and match.method in (MatchMethod.RECORD_IDS, MatchMethod.ROW_ORDER):
                return  # a match by values is less reliable, and not needed
        if significant:
            return


def _suspects(evidence: list[_Evidence], tests: int) -> list[Suspect]:
    """The holders of each copy, with those who hold the same level of the same records together."""
    by_level: dict[tuple[Key, float], list[_Evidence]] = {}
    for one in sorted(evidence, key=lambda one: -abs(one.score.z)):
        by_level.setdefault((one.group.key, one.copy.fidelity), []).append(one)
    out = []
    for (_, fidelity), found in by_level.items():
        best = found[0]
        significant = [one for one in found if one.score.p_value * tests < MAX_FALSE_ACCUSATION] or [best]
        names = dict.fromkeys(name for one in significant for name in one.group.holders[one.copy])
        probability = min(1.0, best.score.p_value * tests)
        unrecorded = any(one.unrecorded for one in significant)
        version = best.group.dataset.version
        out.append(Suspect(tuple(names), version, fidelity, best.score, probability, unrecorded))
    return out


def _traced(group: ReleaseGroup, leak: Leak) -> TracedColumns:
    found = traced_columns(group.dataset.scheme, leak.head.column_names)
    if found is None:
        raise VaultError("tracing needs a column with the role copula or gaussian, and this dataset has none")
    return found


class _Scores:
    """The scores of the copies that a match can distinguish."""

    def __init__(self, group: ReleaseGroup, match: Match, traced: TracedColumns) -> None:
        self._group, self._match, self._traced = group, match, traced
        self._levels = sorted([*map(Level, group.levels), *match.controls], reverse=True)
        self._near = _with_neighbours(self._levels, {copy.fidelity for copy in match.copies})
        rows = max(2000, _MAX_NUMBERS // ((len(self._near) + 1) * len(traced.columns)))
        self._cells, self._rows, self._batch = match.cells[:, :rows], match.rows[:rows], match.batch.slice(0, rows)
        self._original, self._noise = self._paths(self._near)

    def _paths(self, levels: list[Level]) -> tuple[Floats, Floats]:
        """The original numbers, and the noise of some levels after that of the original, which is 0."""
        original, noise = self._traced.paths(self._batch, self._rows, levels, self._group.dataset_key)
        return original, np.concatenate([np.zeros_like(noise[:1]), noise])

    def of_all(self) -> dict[ReleasedCopy, Score]:
        """The score of each copy, by the cells that it contains."""
        times = [0.0, *(level.noise for level in self._near)]
        index = {level.fidelity: j for j, level in enumerate(self._near, 1)}
        cells = {copy.view: self._visible(copy.view) for copy in self._match.copies}
        out = {}
        for copy in self._match.copies:
            shown = self._traced.at_level(cells[copy.view], Level(copy.fidelity))
            position = index[copy.fidelity]
            out[copy] = score(shown, self._original, self._noise, times, position, self._traced.shape)
        return out

    def _visible(self, view: View) -> Floats:
        """The file's cells that a copy with this view contains, NaN elsewhere."""
        cells = self._cells.copy()
        if view.columns is not None:
            cells[[i for i, name in enumerate(self._traced.columns) if name not in view.columns]] = np.nan
        cells[:, ~view.holds(self._batch)] = np.nan
        return cells

    def is_unrecorded(self, copy: ReleasedCopy, rate: float) -> bool:
        """Whether a control level near a copy, which nobody received, is significant at `rate` too."""
        cells = self._visible(copy.view)
        return any(self._control_score(control, cells).p_value < rate for control in self._control_levels(copy))

    def _control_levels(self, copy: ReleasedCopy) -> Iterator[Level]:
        """Levels between that of a copy and its neighbours, which nobody received."""
        times = [level.noise for level in self._levels]
        index = next(j for j, level in enumerate(self._levels) if level.fidelity == copy.fidelity)
        low = times[index - 1] if index else 0.0
        high = times[index + 1] if index + 1 < len(times) else 2 * times[index]
        for k in range(CONTROLS // 2):
            for end in (low, high):
                level = Level.from_noise(times[index] + (end - times[index]) * 0.5 * 4.0**-k)
                control = self._group.dataset.scheme.given(level)
                if all(abs(control.noise - time) >= 1e-9 * time for time in times):
                    yield control

    def _control_score(self, control: Level, cells: Floats) -> Score:
        """The score of a control level."""
        near = _with_neighbours(sorted({*self._levels, control}, reverse=True), {control.fidelity})
        original, noise = self._paths(near)
        times = [0.0, *(level.noise for level in near)]
        shown = self._traced.at_level(cells, control)
        return score(shown, original, noise, times, 1 + near.index(control), self._traced.shape)

    def original_share(self) -> float:
        """The share of the file's numbers that equal those of the original table."""
        same = self._traced.is_original(self._cells, self._batch)
        return float(same.mean()) if same.size else 0.0


def _with_neighbours(levels: list[Level], fidelities: set[float]) -> list[Level]:
    """The levels of some fidelities and their neighbours, on which alone the scores depend."""
    chosen = [i for i, level in enumerate(levels) if level.fidelity in fidelities]
    return [level for i, level in enumerate(levels) if any(abs(i - j) <= 1 for j in chosen)]

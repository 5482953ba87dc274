"""What a survey has found so far: counts, shares, models, and the rows themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SurveyError
from sfumato.kernels import Floats
from sfumato.kernels.intervals import wilson
from sfumato.survey import classifiers as learning
from sfumato.survey.collector import Collector
from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import CONFIDENCE, Share, frequencies, plain_frequencies, told, weights
from sfumato.survey.guidance import Tally, fingerprint
from sfumato.survey.perturbation import Integers
from sfumato.survey.tree import RandomisedTree

_FOLDS = 5
_KINDS = ("naive Bayes", "tree")


@dataclass(frozen=True)
class Status:
    """Where a survey stands."""

    survey: str
    title: str
    mode: str
    state: str
    deadline: str
    answers: int
    levels: dict[str, int]
    """Answers at each stop of the slider, or by the number of directions that were followed."""
    clear: int
    """Unblurred answers, given to begin a guided survey with."""
    epoch: int
    alarms: tuple[str, ...]
    fingerprint: str
    """What respondents see too: whoever sees another one is asked something else."""
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Quality:
    """How often a model is right, with its 95 % interval, and on what that was seen."""

    model: str
    accuracy: float
    low: float
    high: float
    seen_on: str


@dataclass(frozen=True)
class Models:
    """Models of scikit-learn's for rows of answers (as `Survey.code` makes them), and how good they are."""

    bayes: Any
    tree: Any
    qualities: tuple[Quality, ...]
    classes: tuple[str, ...]
    answers: int


def status(collector: Collector, name: str, survey: Survey, state: str) -> Status:
    """Where a survey stands."""
    counts, clear = collector.counts(name)
    epoch = collector.epoch(name, survey)
    stops = [one for one, _ in survey.levels]
    if survey.mode == "guided":
        levels = {f"{level} directions": count for level, count in sorted(counts.items())}
        shares = _clear_shares(collector, name, survey)
    else:
        levels = {stops[level]: count for level, count in sorted(counts.items())}
        at, _, rows = collector.received(name, len(survey.sizes))
        shares = frequencies(survey, at, rows)
    return Status(
        survey=name,
        title=survey.title,
        mode=survey.mode,
        state=state,
        deadline=survey.deadline,
        answers=sum(counts.values()),
        levels=levels,
        clear=clear,
        epoch=epoch.number,
        alarms=epoch.alarms,
        fingerprint=fingerprint(survey.schema, epoch.digests),
        shares=tuple(shares),
    )


def _clear_shares(collector: Collector, name: str, survey: Survey) -> list[Share]:
    """Guided rows tell no shares (their law is not linear), but the class is sent as it is, and some rows wholly."""
    _, labels, _ = collector.received(name, survey.width)
    own, rows = collector.clear(name, len(survey.sizes))
    out = plain_frequencies(survey.target, survey.classes, np.concatenate([labels, own]))
    for at, item in enumerate(survey.items):
        out += told(item, plain_frequencies(item.name, item.labels, rows[:, at]))
    return out


def models(collector: Collector, name: str, survey: Survey, test: Sequence[dict[str, Any]]) -> Models:
    """Train, and say how good it is: on unblurred answers where there are any, else on blurred ones."""
    if not survey.target:
        raise SurveyError(f"the survey {name} names no class question, so there is nothing to learn")
    found = _guided(collector, name, survey) if survey.mode == "guided" else _randomised(collector, name, survey)
    if not test:
        return found
    rows, labels = _coded(survey, test)
    return replace(found, qualities=_tried(found.bayes, found.tree, rows, labels, "the test file"))


def _tried(bayes: Any, tree: Any, rows: Integers, labels: Integers, seen_on: str) -> tuple[Quality, ...]:
    """How good models are on rows that were not blurred."""
    hits = [float((model.predict(rows) == labels).sum()) if len(rows) else 0.0 for model in (bayes, tree)]
    return tuple(
        Quality(kind, *wilson(hit, len(rows), CONFIDENCE), seen_on) for kind, hit in zip(_KINDS, hits, strict=True)
    )


def _coded(survey: Survey, test: Sequence[dict[str, Any]]) -> tuple[Integers, Integers]:
    class_at = [item.question for item in survey.items].index(survey.target) if survey.mode == "randomised" else -1
    rows = np.array([survey.code(row) for row in test])
    labels = np.array([survey.label(row) for row in test])
    return (np.delete(rows, class_at, axis=1) if class_at >= 0 else rows), labels


def _enough(count: int) -> None:
    if count < 2 * _FOLDS:
        raise SurveyError(f"a model needs at least {2 * _FOLDS} answers, and there are {count}; wait for more")


def _guided(collector: Collector, name: str, survey: Survey) -> Models:
    _, labels, rows = collector.received(name, survey.width)
    _enough(len(rows))
    tally = Tally.empty(len(survey.classes), survey.width).add(rows, labels)
    bayes = learning.bayes_from_guided(tally, survey.sizes, survey.guided.floor)
    tree = learning.tree_from_guided(rows, labels, survey.sizes)
    own, clear = collector.clear(name, len(survey.sizes))
    qualities = _tried(bayes, tree, clear, own, "unblurred answers that were not trained on")
    return Models(bayes, tree, qualities, survey.classes, len(rows))


def _randomised(collector: Collector, name: str, survey: Survey) -> Models:
    levels, _, rows = collector.received(name, len(survey.sizes))
    _enough(len(rows))
    at = [item.question for item in survey.items].index(survey.target)
    retention = np.array(survey.retention)[levels]
    classes = weights(rows[:, at], retention[:, at], survey.sizes[at])
    others = np.delete(rows, at, axis=1)
    kept = np.delete(retention, at, axis=1)
    sizes = [size for index, size in enumerate(survey.sizes) if index != at]
    if not sizes:
        raise SurveyError(f"the survey {name} asks nothing but its class question, so there is nothing to learn from")

    def trained(some: Integers | slice) -> tuple[Any, Any]:
        bayes = learning.bayes_from_randomised(others[some], kept[some], sizes, classes[some])
        return bayes, RandomisedTree(sizes).fit(others[some], classes[some], kept[some])

    bayes, tree = trained(slice(None))
    return Models(bayes, tree, _crosswise(trained, others, kept, classes), survey.classes, len(rows))


def _crosswise(trained: Any, rows: Integers, kept: Floats, classes: Floats) -> tuple[Quality, ...]:
    """Each row's class from the others' models. What is seen is blurred, so on clear answers models do better."""
    folds = np.arange(len(rows)) % _FOLDS
    expected = np.zeros((2, len(rows)), np.int64)
    for fold in range(_FOLDS):
        bayes, tree = trained(np.flatnonzero(folds != fold))
        here = folds == fold
        expected[0, here] = learning.bayes_of_blurred(bayes, rows[here], kept[here])
        expected[1, here] = tree.predict(rows[here])
    seen = "blurred answers (on clear ones usually more)"
    return tuple(
        Quality(kind, *learning.unblurred_accuracy(found, classes), seen)
        for kind, found in zip(_KINDS, expected, strict=True)
    )


def table(collector: Collector, name: str, survey: Survey) -> pa.Table:
    """All blurred rows, with the words of the answers."""
    if survey.mode == "guided":
        levels, labels, rows = collector.received(name, survey.width)
        names = [f"{item.name} = {label}" for item in survey.items for label in item.labels]
        columns = {survey.target: np.array(survey.classes, object)[labels]}
        columns |= {column: rows[:, at].astype(bool) for at, column in enumerate(names)}
        return pa.table({**columns, "directions": levels})
    levels, _, rows = collector.received(name, len(survey.sizes))
    columns = {item.name: np.array(item.labels, object)[rows[:, at]] for at, item in enumerate(survey.items)}
    epsilon = np.array([epsilon for _, epsilon in survey.levels])[levels]
    return pa.table(
        {**columns, "level": np.array([one for one, _ in survey.levels], object)[levels], "epsilon": epsilon}
    )

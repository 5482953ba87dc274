"""Results of a survey: counts, estimated shares of answers, classifiers with their accuracy, and perturbed rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SurveyError
from sfumato.kernels import Floats
from sfumato.kernels.intervals import Interval, wilson
from sfumato.survey import classifiers, plausibility
from sfumato.survey.collector import Collector
from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import (
    CONFIDENCE,
    AnswerShare,
    estimate_share,
    frequencies,
    unbiased_indicators,
    unperturbed_frequencies,
)
from sfumato.survey.guidance import CooccurrenceCounts, fingerprint
from sfumato.survey.leakage import measures
from sfumato.survey.perturbation import Integers
from sfumato.survey.tree import RandomisedResponseTree

_FOLDS = 5
_MODELS = ("naive Bayes", "tree")


@dataclass(frozen=True)
class Status:
    """The state of a survey, with the answers received and the shares estimated from them."""

    survey: str
    title: str
    mode: str
    state: str
    deadline: str
    answers: int
    levels: dict[str, int]
    """The number of answers at each privacy level, or for each number of directions that were followed."""
    clear: int
    """The number of unperturbed answers, sent to start a guided survey."""
    epoch: int
    alarms: tuple[str, ...]
    """Reasons to distrust the guidance or the shares."""
    influence: float | None
    """The largest change of a share that one forged answer causes; None in a guided survey, or without answers."""
    disclosure: float | None
    """zhang2005's degree of privacy disclosure `l_p` of the current guidance; None in a randomised survey."""
    error: float | None
    """zhang2005's degree of error `l_e` of the current guidance; None in a randomised survey."""
    fingerprint: str
    """A hash that respondents see too: someone who sees a different one was asked something else."""
    shares: tuple[AnswerShare, ...]

    def as_dict(self) -> dict[str, Any]:
        """The status as it is written to JSON."""
        return {**self.__dict__, "shares": [one.as_dict() for one in self.shares], "alarms": list(self.alarms)}

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> Status:
        """Read what `as_dict` wrote."""
        shares = tuple(AnswerShare.parse(one) for one in fields["shares"])
        return cls(**{**fields, "shares": shares, "alarms": tuple(fields["alarms"])})


@dataclass(frozen=True)
class ModelQuality:
    """The accuracy of a classifier, with its 95 % confidence interval, and the data it was evaluated on."""

    model: str
    accuracy: Interval
    evaluated_on: str

    def as_dict(self) -> dict[str, Any]:
        """The quality as it is written to JSON, with the interval in the fields `accuracy`, `low` and `high`."""
        return {
            "model": self.model,
            "accuracy": self.accuracy.estimate,
            "low": self.accuracy.low,
            "high": self.accuracy.high,
            "evaluated_on": self.evaluated_on,
        }

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> ModelQuality:
        """Read what `as_dict` wrote."""
        accuracy = Interval(fields["accuracy"], fields["low"], fields["high"])
        return cls(fields["model"], accuracy, fields["evaluated_on"])


@dataclass(frozen=True)
class Models:
    """scikit-learn classifiers for rows of answer codes (as `Survey.encode` returns them), and their accuracy."""

    bayes: Any
    tree: Any
    qualities: tuple[ModelQuality, ...]
    classes: tuple[str, ...]
    answers: int


def status(collector: Collector, name: str, survey: Survey, state: str) -> Status:
    """The status of a survey."""
    counts, unperturbed = collector.counts(name)
    epoch, answers = collector.epoch(name, survey), sum(counts.values())
    alarms, influence, disclosure, error = list(epoch.alarms), None, None, None
    if survey.mode == "guided":
        levels = {f"{level} directions": count for level, count in sorted(counts.items())}
        shares = _guided_shares(collector, name, survey)
        if epoch.guidance is not None:
            labels, rows = collector.unperturbed(name, len(survey.sizes))
            disclosure, error = measures(survey, rows, labels, epoch.guidance.matrix)
    else:
        names = [level for level, _ in survey.levels]
        levels = {names[index]: count for index, count in sorted(counts.items())}
        chosen, _, rows = collector.received(name, len(survey.sizes))
        shares = frequencies(survey, chosen, rows)
        alarms += plausibility.alarms(survey, chosen, rows)
        influence = plausibility.influence(survey, answers) if answers else None
    return Status(
        survey=name,
        title=survey.title,
        mode=survey.mode,
        state=state,
        deadline=survey.deadline,
        answers=answers,
        levels=levels,
        clear=unperturbed,
        epoch=epoch.number,
        alarms=tuple(alarms),
        influence=influence,
        disclosure=disclosure,
        error=error,
        fingerprint=fingerprint(survey.version, epoch.digests),
        shares=tuple(shares),
    )


def _guided_shares(collector: Collector, name: str, survey: Survey) -> list[AnswerShare]:
    """The shares in a guided survey, from what was sent unperturbed: every class label, and the bootstrap rows.

    The distribution of guided rows is not linear in the answers, so no shares are estimated from them.
    """
    _, labels, _ = collector.received(name, survey.width)
    bootstrap_labels, rows = collector.unperturbed(name, len(survey.sizes))
    [target] = survey.class_question.items()
    shares = unperturbed_frequencies(survey.target, target.outcomes, np.concatenate([labels, bootstrap_labels]))
    for index, item in enumerate(survey.items):
        shares += unperturbed_frequencies(item.name, item.outcomes, rows[:, index])
    return shares


def models(collector: Collector, name: str, survey: Survey, test: Sequence[dict[str, Any]]) -> Models:
    """Train classifiers and estimate their accuracy: on unperturbed answers where there are any, else on perturbed."""
    if not survey.target:
        raise SurveyError(f"the survey {name} names no class question, so there is nothing to predict")
    trained = _guided(collector, name, survey) if survey.mode == "guided" else _randomised(collector, name, survey)
    if not test:
        return trained
    rows, labels = _encoded(survey, test)
    return replace(trained, qualities=_evaluated(trained.bayes, trained.tree, rows, labels, "the test file"))


def _evaluated(bayes: Any, tree: Any, rows: Integers, labels: Integers, evaluated_on: str) -> tuple[ModelQuality, ...]:
    """The accuracy of models on unperturbed rows."""
    hits = [float((model.predict(rows) == labels).sum()) if len(rows) else 0.0 for model in (bayes, tree)]
    return tuple(
        ModelQuality(model, wilson(hit, len(rows), CONFIDENCE), evaluated_on)
        for model, hit in zip(_MODELS, hits, strict=True)
    )


def _encoded(survey: Survey, test: Sequence[dict[str, Any]]) -> tuple[Integers, Integers]:
    """Rows of answer codes without the class, and the codes of the class."""
    rows = np.array([survey.encode(row) for row in test])
    labels = np.array([survey.label(row) for row in test])
    return (np.delete(rows, _class_index(survey), axis=1) if survey.mode == "randomised" else rows), labels


def _class_index(survey: Survey) -> int:
    return [item.question for item in survey.items].index(survey.target)


def _check_enough(count: int) -> None:
    if count < 2 * _FOLDS:
        raise SurveyError(f"a model needs at least {2 * _FOLDS} answers, and there are {count}; wait for more")


def _guided(collector: Collector, name: str, survey: Survey) -> Models:
    _, labels, rows = collector.received(name, survey.width)
    _check_enough(len(rows))
    counts = CooccurrenceCounts.empty(len(survey.classes), survey.width).add(rows, labels)
    bayes = classifiers.naive_bayes_from_guided(counts, survey.sizes, survey.guided.floor)
    tree = classifiers.tree_from_guided(rows, labels, survey.sizes)
    true_labels, true_rows = collector.unperturbed(name, len(survey.sizes))
    held_out = "unperturbed answers that were not trained on"
    qualities = _evaluated(bayes, tree, true_rows, true_labels, held_out)
    return Models(bayes, tree, qualities, survey.classes, len(rows))


def _randomised(collector: Collector, name: str, survey: Survey) -> Models:
    levels, _, rows = collector.received(name, len(survey.sizes))
    _check_enough(len(rows))
    index = _class_index(survey)
    retention = np.array(survey.retention)[levels]
    classes = unbiased_indicators(rows[:, index], retention[:, index], survey.sizes[index])
    features = np.delete(rows, index, axis=1)
    kept = np.delete(retention, index, axis=1)
    sizes = [size for item, size in enumerate(survey.sizes) if item != index]
    if not sizes:
        raise SurveyError(f"the survey {name} asks only its class question, so there is nothing to predict it from")

    def train(subset: Integers | slice) -> tuple[Any, Any]:
        bayes = classifiers.naive_bayes_from_randomised(features[subset], kept[subset], sizes, classes[subset])
        return bayes, RandomisedResponseTree(sizes).fit(features[subset], classes[subset], kept[subset])

    bayes, tree = train(slice(None))
    qualities = _cross_validated(train, features, kept, rows[:, index], retention[:, index], survey.sizes[index])
    return Models(bayes, tree, qualities, survey.classes, len(rows))


def _cross_validated(
    train: Callable[[Integers], tuple[Any, Any]],
    rows: Integers,
    kept: Floats,
    labels: Integers,
    label_retention: Floats,
    classes: int,
) -> tuple[ModelQuality, ...]:
    """The accuracy by cross-validation on perturbed rows; on unperturbed rows the models are usually more accurate."""
    folds = np.arange(len(rows)) % _FOLDS
    predicted = np.zeros((2, len(rows)), np.int64)
    for fold in range(_FOLDS):
        bayes, tree = train(np.flatnonzero(folds != fold))
        test = folds == fold
        predicted[0, test] = classifiers.predict_perturbed(bayes, rows[test], kept[test])
        predicted[1, test] = tree.predict(rows[test])
    evaluated_on = "perturbed answers, by cross-validation (usually higher on unperturbed ones)"
    return tuple(
        ModelQuality(model, estimate_share(one == labels, label_retention, classes).interval, evaluated_on)
        for model, one in zip(_MODELS, predicted, strict=True)
    )


def table(collector: Collector, name: str, survey: Survey) -> pa.Table:
    """All perturbed rows, with the answers as text."""
    if survey.mode == "guided":
        levels, labels, rows = collector.received(name, survey.width)
        names = [f"{item.name} = {label}" for item in survey.items for label in item.labels]
        columns = {survey.target: np.array(survey.classes, object)[labels]}
        columns |= {column: rows[:, index].astype(bool) for index, column in enumerate(names)}
        return pa.table({**columns, "directions": levels})
    levels, _, rows = collector.received(name, len(survey.sizes))
    columns = {item.name: np.array(item.labels, object)[rows[:, index]] for index, item in enumerate(survey.items)}
    epsilon = np.array([epsilon for _, epsilon in survey.levels])[levels]
    level = np.array([one for one, _ in survey.levels], object)[levels]
    return pa.table({**columns, "level": level, "epsilon": epsilon})

"""Kinds of questions: what they refuse, what their answers are, and what is estimated of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import SurveyError
from sfumato.survey import Survey
from sfumato.survey.frequencies import cross_table, frequencies
from sfumato.survey.perturbation import randomised_response
from sfumato.survey.planner import plan
from sfumato.survey.questions import Question
from sfumato.survey.weights import weighted_shares

HEAD = 'title = "t"\nconsent = "c"\ndeadline = "2030-01-01"\n'
KINDS = (
    HEAD + '[questions.mood]\nkind = "scale"\noptions = ["bad", "fair", "good"]\n'
    '[questions.born]\nkind = "date"\ncuts = [1970-01-01, "2000-01-01"]\n'
    '[questions.first]\nkind = "ranking"\noptions = ["news", "books", "letters"]\n'
    '[questions.ways]\nkind = "multiple"\noptions = ["foot", "tram"]\n'
)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "text"}, "free text cannot be perturbed.*ask for a choice"),
        ({"kind": "essay"}, "its kind must be a known one"),
        ({"kind": "ranking", "options": list("abcde")}, "2 to 4 of them"),
        ({"kind": "ranking", "options": ["a > b", "c"]}, "must not contain '>'"),
        ({"kind": "scale", "options": ["one"]}, "2 to 64 of them"),
        ({"kind": "date", "cuts": ["2000-1-1"]}, "days such as 2026-12-31 in increasing order"),
        ({"kind": "date", "cuts": ["2001-01-01", "2000-01-01"]}, "in increasing order"),
        ({"kind": "date", "cuts": []}, "1 to 63"),
        ({"kind": "number", "cuts": [2, 1]}, "numbers in increasing order"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(SurveyError, match=reason):
        Question.parse("q", options)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("born", "1.1.2000"),
        ("born", 5),
        ("born", "2000-02-30"),
        ("first", ["news"]),
        ("first", [1, 2, 3]),
        ("first", ["news", "news", "books"]),
        ("mood", "great"),
        ("mood", ["bad", "good"]),
    ],
)
def test_answers_that_do_not_fit_are_refused(question: str, answer: Any) -> None:
    known = {one.name: one for one in Survey.loads(KINDS).questions}
    with pytest.raises(SurveyError, match=f"question {question} must be answered with"):
        known[question].encode(answer)


def test_answers_have_the_codes_of_their_labels() -> None:
    mood, born, first, _ = Survey.loads(KINDS).questions
    assert born.labels() == ("before 1970-01-01", "from 1970-01-01, before 2000-01-01", "from 2000-01-01")
    assert [born.encode(day)[0] for day in ("1969-12-31", "1970-01-01", "2000-01-01")] == [0, 1, 2]
    assert [mood.encode(one)[0] for one in ("bad", "good")] == [0, 2]
    order = ["letters", "news", "books"]
    assert first.labels()[first.encode(order)[0]] == "letters > news > books"
    assert first.parse_answer("letters;news;books") == order
    [item] = first.items()
    assert [(name, [first.labels()[code] for code in codes]) for name, codes in item.outcomes] == [
        ("news first", ["news > books > letters", "news > letters > books"]),
        ("books first", ["books > news > letters", "books > letters > news"]),
        ("letters first", ["letters > news > books", "letters > books > news"]),
    ]


def test_a_definition_is_read_from_what_was_written() -> None:
    text = KINDS.replace("[questions.mood]", 'language = "en"\n[questions.mood]', 1)
    text += '[translations.de]\ntitle = "T"\n[translations.de.questions.mood]\noptions = ["übel", "mittel", "gut"]\n'
    survey = Survey.loads(text)
    assert Survey.loads(survey.dumps()) == survey
    assert Survey.parse(survey.as_listed()) == survey
    assert Survey.parse(survey.as_listed()).version == survey.version
    assert "language" not in Survey.loads(KINDS).published  # surveys of earlier versions keep their hashes


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ('[translations.de.questions.mod]\ntext = "x"', "translates no question; .*mood"),
        ('[translations.de.questions.mood]\noptions = ["a", "b"]', "must have all 3 options"),
        ('[translations.de.questions.mood]\noptions = ["a", "b", "b"]', "distinct"),
        ('[translations.de]\ntittle = "x"', "has no 'tittle'"),
        ('[translations."German!"]\ntitle = "x"', "a language must be a tag"),
    ],
)
def test_translations_that_fit_no_question_are_refused(table: str, reason: str) -> None:
    with pytest.raises(SurveyError, match=reason):
        Survey.loads(f"{KINDS}{table}\n")


def _answered(survey: Survey, people: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """True codes of people whose second answer depends on their first, their levels, and what they send."""
    mood = rng.choice(3, people, p=[0.2, 0.3, 0.5])
    first = np.where(rng.random(people) < 0.6, 2 * mood, rng.integers(6, size=people))
    ways = rng.random((people, 2)) < 0.3
    codes = np.column_stack([mood, rng.integers(3, size=people), first, ways])
    levels = rng.integers(len(survey.levels), size=people)
    sent = np.empty_like(codes)
    for level, retention in enumerate(survey.retention):
        members = levels == level
        draws = rng.integers(0, 2**53, (int(members.sum()), 2 * codes.shape[1]))
        rows = [
            randomised_response(row[None], survey.sizes, retention, draw)[0]
            for row, draw in zip(codes[members], draws, strict=True)
        ]
        sent[members] = rows
    return codes, levels, sent


def test_shares_and_cross_tables_of_all_kinds_are_unbiased() -> None:
    """Each of 11 shares and 9 cells is within 5 standard errors of the truth; false alarms: 1.2e-5 of all seeds."""
    survey, rng = Survey.loads(KINDS), np.random.default_rng(4)
    codes, levels, sent = _answered(survey, 30_000, rng)
    shares = frequencies(survey, levels, sent)
    truths = [
        float(np.isin(codes[:, i], some).mean()) for i, item in enumerate(survey.items) for _, some in item.outcomes
    ]
    assert len(shares) == len(truths) == 3 + 3 + 3 + 2
    assert [one.answer for one in shares[6:9]] == ["news first", "books first", "letters first"]
    for one, truth in zip(shares, truths, strict=True):
        margin = (one.share.high - one.share.low) / 2 / 1.96
        assert abs(one.share.estimate - truth) < 5 * margin
        assert margin < 0.02
    table = cross_table(survey, levels, sent, "mood", "first")
    truths = [
        float((np.isin(codes[:, 0], a) & np.isin(codes[:, 2], b)).mean())
        for _, a in survey.items[0].outcomes
        for _, b in survey.items[2].outcomes
    ]
    assert [(a, b) for a, b, _ in table.cells][:2] == [("bad", "news first"), ("bad", "books first")]
    for (*_, cell), truth in zip(table.cells, truths, strict=True):
        half = max(cell.high - cell.estimate, cell.estimate - cell.low) / 1.96
        assert abs(cell.estimate - truth) < 5 * half
    independent = truths[0] - 0.2 * float(np.isin(codes[:, 2], [0, 1]).mean())
    assert independent > 0.05  # the answers depend on each other, so that a product of shares would be found out


def test_a_cross_table_covers_the_truth() -> None:
    """Of 9 cells in 300 surveys of 400 people, 95 % intervals cover 92 to 98.5 %."""
    survey = Survey.loads(KINDS.replace("[questions.mood]", "[levels]\none = 2.0\n[questions.mood]", 1))
    covered, rng = [], np.random.default_rng(8)
    retention = np.array(survey.retention)[0]
    for _ in range(300):
        mood = rng.choice(3, 400, p=[0.2, 0.3, 0.5])
        first = np.where(rng.random(400) < 0.6, 2 * mood, rng.integers(6, size=400))
        codes = np.column_stack([mood, mood, first, mood > 0, mood > 1])
        keep = rng.random(codes.shape) < retention
        sent = np.where(keep, codes, (rng.random(codes.shape) * np.array(survey.sizes)).astype(int))
        joint = np.outer([0.2, 0.3, 0.5], np.full(3, 0.4 / 3)) + 0.6 * np.diag([0.2, 0.3, 0.5])
        cells = cross_table(survey, np.zeros(400, int), sent, "mood", "first").cells
        covered += [one.low <= truth <= one.high for (*_, one), truth in zip(cells, joint.ravel(), strict=True)]
    assert 0.92 <= np.mean(covered) <= 0.985


@pytest.mark.parametrize(
    ("first", "second", "rows", "reason"),
    [
        ("mood", "mood", 100, "two different questions"),
        ("mood", "colour", 100, "two questions of the survey"),
        ("mood", "born", 20, "at least 30 answers"),
    ],
)
def test_cross_tables_that_would_mislead_are_refused(first: str, second: str, rows: int, reason: str) -> None:
    survey = Survey.loads(KINDS)
    with pytest.raises(SurveyError, match=reason):
        cross_table(survey, np.zeros(rows, int), np.zeros((rows, 5), int), first, second)


def test_a_plan_holds_in_simulated_surveys() -> None:
    """The margin of the widest item is the largest half width that surveys of so many people have, within 5 %."""
    survey, people = Survey.loads(KINDS), 2000
    found = plan(survey, people, 10)
    rng = np.random.default_rng(2)
    for index, level in enumerate(found.levels):
        retention = np.array(survey.retention)[index]
        codes = (rng.random((people, 5)) * np.array(survey.sizes)).astype(int)
        keep = rng.random(codes.shape) < retention
        sent = np.where(keep, codes, (rng.random(codes.shape) * np.array(survey.sizes)).astype(int))
        shares = frequencies(survey, np.full(people, index), sent)
        widest = max((one.share.high - one.share.low) / 2 for one in shares)
        assert widest <= 1.05 * level.margin
        assert level.margin <= 1.0
        again = plan(survey, level.people, 10)
        assert again.levels[index].margin <= 0.10001
    assert [one.margin for one in found.levels] == sorted((one.margin for one in found.levels), reverse=True)
    [ways] = {one.widest.split(":")[0] for one in found.levels[2:]}
    assert ways == "ways"
    guided = KINDS.replace("[questions.mood]", 'class = "mood"\nmode = "guided"\n[questions.mood]', 1)
    with pytest.raises(SurveyError, match="must be randomised"):
        plan(Survey.loads(guided))


def test_weighted_shares_cover_the_population() -> None:
    """Young people answer twice as often as they are; of 3 shares in 400 surveys, intervals cover 92 to 98.5 %."""
    survey = Survey.loads(KINDS.replace("[questions.mood]", "[levels]\none = 2.0\n[questions.mood]", 1))
    rng, retention = np.random.default_rng(11), np.array(survey.retention)[0]
    population = dict(zip(survey.items[1].labels, (0.4, 0.3, 0.3), strict=True))
    by_group = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    truth = np.array([0.4, 0.3, 0.3]) @ by_group
    covered, unweighted = [], []
    for _ in range(400):
        group = rng.choice(3, 600, p=[0.2, 0.2, 0.6])
        mood = (rng.random(600)[:, None] > by_group[group].cumsum(axis=1)).sum(axis=1)
        codes = np.column_stack([mood, group, mood, mood > 0, mood > 1])
        keep = rng.random(codes.shape) < retention
        sent = np.where(keep, codes, (rng.random(codes.shape) * np.array(survey.sizes)).astype(int))
        shares = weighted_shares(survey, np.zeros(600, int), sent, "born", population)[:3]
        covered += [one.share.low <= share <= one.share.high for one, share in zip(shares, truth, strict=True)]
        plain = frequencies(survey, np.zeros(600, int), sent)[:3]
        unweighted += [one.share.low <= share <= one.share.high for one, share in zip(plain, truth, strict=True)]
    assert 0.92 <= np.mean(covered) <= 0.985
    assert np.mean(unweighted) < 0.7  # without weights the test would fail


@pytest.mark.parametrize(
    ("question", "population", "reason"),
    [
        ("ways", {"yes": 1.0}, "a question with one answer"),
        ("mood", {"bad": 0.5, "fair": 0.4, "good": 0.2}, "must add up to 1"),
        ("mood", {"bad": 0.5, "fair": 0.5}, "must add up to 1"),
        ("mood", {"bad": 0.5, "great": 0.5}, "has no answer 'great'"),
        (
            "born",
            {"before 1970-01-01": 0.2, "from 1970-01-01, before 2000-01-01": 0.3, "from 2000-01-01": 0.5},
            "surely",
        ),
    ],
)
def test_weights_that_would_mislead_are_refused(question: str, population: dict[str, float], reason: str) -> None:
    survey, rng = Survey.loads(KINDS), np.random.default_rng(1)
    rows = (rng.random((200, 5)) * np.array(survey.sizes)).astype(int)
    with pytest.raises(SurveyError, match=reason):
        weighted_shares(survey, np.zeros(200, int), rows, question, population)


@pytest.mark.parametrize(("people", "share"), [(30, 0.01), (30, 0.05), (60, 0.02), (300, 0.01)])
def test_rare_pairs_are_not_known_exactly(people: int, share: float) -> None:
    """Where few or none reported a pair, 95 % intervals still cover its share in at least 92 % of 1,000 surveys."""
    text = HEAD + '[levels]\none = 3.0\n[questions.a]\noptions = ["a", "b"]\n[questions.b]\noptions = ["yes", "no"]\n'
    survey, rng = Survey.loads(text), np.random.default_rng(people)
    retention, covered = np.array(survey.retention)[0], []
    for _ in range(1000):
        both = rng.random(people) < share
        codes = np.column_stack([~both, ~both]).astype(int)
        keep = rng.random(codes.shape) < retention
        sent = np.where(keep, codes, rng.integers(2, size=codes.shape))
        (*_, one), *_ = cross_table(survey, np.zeros(people, int), sent, "a", "b").cells
        covered.append(one.low <= share <= one.high)
    assert np.mean(covered) >= 0.92


@pytest.mark.parametrize("people", [0, 1, 50])
def test_few_answers_are_not_weighted(people: int) -> None:
    survey = Survey.loads(KINDS)
    with pytest.raises(SurveyError, match="at least 100 answers"):
        weighted_shares(
            survey, np.zeros(people, int), np.zeros((people, 5), int), "mood", {"bad": 0.5, "fair": 0.25, "good": 0.25}
        )


def test_the_group_that_is_missing_is_named() -> None:
    survey = Survey.loads(HEAD + '[questions.a]\noptions = ["a", "b"]\n[questions.b]\noptions = ["x", "y"]\n')
    rows = np.column_stack([np.repeat([0, 1], [3, 400]), np.zeros(403, int)])
    with pytest.raises(SurveyError, match="the share of 'a'"):
        weighted_shares(survey, np.full(403, 2), rows, "a", {"b": 0.5, "a": 0.5})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"title": "\ud800"}, "surrogate"),
        ({"levels": [{"name": "a"}]}, "the epsilon of level a must be a number"),
        ({"questions": {"q": {"kind": "number", "cuts": [None]}}}, "question q: its cuts must be numbers, got None"),
        ({"questions": {"q": {"kind": "number", "cuts": ["1,5"]}}}, "its cuts must be numbers, got '1,5'"),
        ({"translations": {"de": {"questions": {"q": {"options": "jn"}}}}}, "must be a list of texts"),
        ({"translations": {"de": {"questions": {"q": {"options": ["", "n"]}}}}}, "must be a list of texts"),
        ({"translations": {"de": {"title": None}}}, "must be text of up to 200"),
    ],
)
def test_definitions_that_cannot_be_shown_are_refused(options: dict[str, Any], reason: str) -> None:
    whole = {"title": "t", "consent": "c", "deadline": "2030-01-01", "questions": {"q": {"options": ["y", "n"]}}}
    with pytest.raises(SurveyError, match=reason):
        Survey.parse(whole | options)


def test_labels_are_those_that_browsers_write() -> None:
    cuts = [-2.5, 1e-7, 0.00001, 1000000, 1000001, 1e21]
    labels = Question.parse("q", {"kind": "number", "cuts": cuts}).labels()
    assert labels == (
        "below -2.5",
        "-2.5 to 1e-7",
        "1e-7 to 0.00001",
        "0.00001 to 1000000",
        "1000000 to 1000001",
        "1000001 to 1e+21",
        "1e+21 or more",
    )


def test_two_items_of_one_name_are_refused() -> None:
    text = HEAD + '[questions.a]\nkind = "multiple"\noptions = ["b"]\n[questions."a: b"]\noptions = ["x", "y"]\n'
    with pytest.raises(SurveyError, match="a name of its own in results"):
        Survey.loads(text).check_protection()

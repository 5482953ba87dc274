"""The collector: each ticket counts once, only invited ones where they are needed, and each survey has its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from tests.conftest import Site
from tests.schema import ANSWERS, CLEAR, GROUPS, GUIDANCES, INVITED, MEMBERS, TICKETS, tables_of

from sfumato.errors import BootstrapComplete, SurveyError, TamperedError
from sfumato.keys.text_cipher import TextCipher
from sfumato.survey.answer_encryption import AnswerCipher
from sfumato.survey.invitations import Counted, ticket_hash
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import Surveys

SURVEY = 'title = "t"\nconsent = "c"\ndeadline = "2090-01-01"\n[questions.q]\noptions = ["a", "b"]\n'


@pytest.fixture
def surveys(site: Site) -> Surveys:
    made = Surveys(site.create())
    for name in ("commute", "diet"):
        made.new(name, SURVEY)
        made.open(name)
    return made


def _answer(ticket: str, code: int = 1, level: int = 0, label: int = 0) -> Submission:
    return Submission(ticket, level, label, (code,))


def test_a_ticket_counts_once_in_each_survey(surveys: Surveys) -> None:
    collector, survey = surveys.collector, surveys.get("commute").survey
    one, two = "1" * 32, "2" * 32
    assert collector.store("commute", survey, [_answer(one), _answer(one, 0)], invited=False) == [True, False]
    assert collector.store("commute", survey, [_answer(one, 0), _answer(two)], invited=False) == [False, True]
    assert collector.received("commute", 1)[2].tolist() == [[1], [1]]
    assert collector.store("diet", survey, [_answer(one, 0)], invited=False) == [True]
    assert collector.received("commute", 1)[2].tolist() == [[1], [1]]
    assert collector.received("diet", 1)[2].tolist() == [[0]]
    assert collector.counts("commute") == ({0: 2}, 0)
    assert collector.counts("diet") == ({0: 1}, 0)
    assert collector.store("diet", survey, [_answer(one)], invited=False) == [False]
    assert collector.counts("diet") == ({0: 1}, 0)


def test_only_invited_tickets_count_in_a_survey_with_invitations(surveys: Surveys) -> None:
    collector, survey = surveys.collector, surveys.get("commute").survey
    first, second = collector.invite("commute", 2)
    [elsewhere] = collector.invite("diet", 1)
    sent = [_answer(ticket) for ticket in (first, "f" * 32, elsewhere, first)]
    assert collector.store("commute", survey, sent, invited=True) == [True, None, None, False]
    assert collector.counts("commute") == ({0: 1}, 0)
    assert collector.store("commute", survey, [_answer("f" * 32)], invited=True) == [None]
    assert collector.store("commute", survey, [_answer(second)], invited=True) == [True]
    assert (len(first), first != second) == (32, True)
    with tables_of(collector._database) as connection:
        stored = str([connection.execute(sa.select(table)).all() for table in (INVITED, TICKETS, ANSWERS)])
    assert not any(ticket in stored for ticket in (first, second, elsewhere))
    assert ticket_hash("commute", first) != ticket_hash("diet", first)


def test_no_more_answers_of_a_group_count_than_were_wanted(surveys: Surveys) -> None:
    surveys.new("panel", SURVEY, invited=True)
    surveys.open("panel")
    collector, survey = surveys.collector, surveys.get("panel").survey
    north = surveys.invite("panel", 10, "north", quota=3)
    south, others = surveys.invite("panel", 12, "south"), surveys.invite("panel", 2)

    def sent(*tickets: str) -> list[Counted]:
        return collector.store("panel", survey, [_answer(one) for one in tickets], invited=True)

    assert sent(north[0], south[0], north[0], others[0]) == [True, True, False, True]
    several = sent(*north[1:5])
    assert sorted(map(str, several)) == ["True", "True", "full", "full"]
    assert sent(*north[5:], south[1]) == ["full"] * 5 + [True]
    assert sent(*north) == ["full"] * 10  # nobody finds out which were used, though nothing is counted
    assert [(one.name, one.invited, one.answered, one.quota) for one in surveys.groups("panel")] == [
        ("north", 10, 3, 3),
        ("south", 12, 2, None),
    ]
    assert collector.counts("panel") == ({0: 6}, 0)
    surveys.invite("panel", 10, "north", quota=4)  # the wanted number changes, and who was refused may answer
    refused = next(one for one, counts in zip(north[1:5], several, strict=True) if counts == "full")
    assert sent(refused) == [True]
    surveys.invite("panel", 10, "north", quota=5)
    assert sent(refused) == [False]
    with pytest.raises(SurveyError, match="at least 10 people"):
        surveys.invite("panel", 1, "north")
    with tables_of(collector._database) as connection:
        stored = str([connection.execute(sa.select(table)).all() for table in (GROUPS, MEMBERS, ANSWERS)])
    assert "north" not in stored
    assert not any(ticket in stored for ticket in (*north, *south))


def test_people_invited_at_the_same_time_are_one_group(surveys: Surveys) -> None:
    surveys.new("panel", SURVEY, invited=True)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda _: surveys.invite("panel", 500, "north", 50), range(4)):
            pass
    assert [(one.name, one.invited, one.quota) for one in surveys.groups("panel")] == [("north", 2000, 50)]


def test_groups_that_would_tell_who_answered_are_refused(surveys: Surveys) -> None:
    surveys.new("panel", SURVEY, invited=True)
    with pytest.raises(SurveyError, match="at least 10 people"):
        surveys.invite("panel", 9, "board")
    with pytest.raises(SurveyError, match="a quota is at least 1, and of a group"):
        surveys.invite("panel", 20, quota=5)
    with pytest.raises(SurveyError, match="one line"):
        surveys.invite("panel", 20, "a\nb")
    assert surveys.groups("panel") == []


def test_levels_and_labels_come_back_with_their_rows(surveys: Surveys) -> None:
    collector, survey = surveys.collector, surveys.get("commute").survey
    sent = [_answer(f"{n:032}", n % 2, level=n % 3, label=n % 2) for n in range(6)]
    collector.store("commute", survey, sent, invited=False)
    levels, labels, rows = collector.received("commute", 1)
    found = sorted(zip(levels.tolist(), labels.tolist(), rows.ravel().tolist(), strict=True))
    assert found == sorted((one.level, one.label, one.row[0]) for one in sent)
    assert collector.counts("commute") == ({0: 2, 1: 2, 2: 2}, 0)
    assert collector.unperturbed("commute", 1)[1].shape == (0, 1)


def test_an_answer_is_read_only_in_its_own_survey_and_row(surveys: Surveys) -> None:
    vault = surveys.collector
    ours, other = (AnswerCipher.of(vault._ledger, vault._keys, name) for name in ("commute", "diet"))
    text = ours.encrypt("row", "0 1")
    assert (ours.decrypt("row", text), text != ours.encrypt("row", "0 1")) == ("0 1", True)
    assert AnswerCipher.of(vault._ledger, vault._keys, "commute").decrypt("row", text) == "0 1"
    same_key = AnswerCipher("diet", TextCipher("answers to diet", ours.cipher.aead))
    for cipher, row, given in (
        (other, "row", text),
        (same_key, "row", text),
        (ours, "other", text),
        (ours, "row", "0 1"),
    ):
        with pytest.raises(TamperedError, match="was altered"):
            cipher.decrypt(row, given)
    record = ours.record(1, "0 1")
    assert (record["label"], len(str(record["key"]))) == (0, 32)
    assert ours.answers([(str(record["key"]), str(record["row"]))]) == ([1], ["0 1"])
    assert record["key"] != ours.record(1, "0 1")["key"]


def test_plain_answers_of_an_earlier_version_are_encrypted_in_every_table(surveys: Surveys) -> None:
    collector = surveys.collector
    common = {"survey": "commute", "label": 1, "row": "1"}
    with tables_of(collector._database) as connection:
        connection.execute(ANSWERS.insert().values(key="1" * 32, batch=0, level=0, **common))
        connection.execute(CLEAR.insert().values(key="2" * 32, **common))
        for key in ("3" * 32, "4" * 32):
            connection.execute(CLEAR.insert().values(key=key, **{**common, "survey": "diet"}))
    assert collector.counts("commute") == ({0: 1}, 1)
    assert [one.tolist() for one in collector.received("commute", 1)] == [[0], [1], [[1]]]
    assert [one.tolist() for one in collector.unperturbed("commute", 1)] == [[1], [[1]]]
    with tables_of(collector._database) as connection:
        stored = [connection.execute(sa.select(t.c.survey, t.c.label, t.c.row)).all() for t in (ANSWERS, CLEAR)]
    token = collector._cipher("commute").survey
    assert [(row.survey, row.label, len(row.row) > 30) for row in stored[0]] == [(token, 0, True)]
    assert [(row.label, len(row.row) > 30) for row in stored[1] if row.survey == token] == [(0, True)]
    assert [(row.label, row.row) for row in stored[1] if row.survey == "diet"] == [(1, "1")] * 2
    assert collector.counts("diet") == ({}, 2)


def test_plain_sums_of_an_earlier_version_are_encrypted(surveys: Surveys) -> None:
    ledger, keys = surveys.collector._ledger, surveys.collector._keys
    common = {"digest": "", "matrix": "", "rows": 0, "alarms": ""}
    given = {("commute", 1): "1 2", ("commute", 2): "", ("diet", 1): "3 4"}
    with tables_of(ledger.database) as connection:
        for (name, epoch), tally in given.items():
            connection.execute(GUIDANCES.insert().values(survey=name, epoch=epoch, tally=tally, **common))
    cipher = AnswerCipher.of(ledger, keys, "commute")
    with tables_of(ledger.database) as connection:
        found = {(one.survey, one.epoch): one.tally for one in connection.execute(sa.select(GUIDANCES))}
    assert cipher.decrypt("1", found[cipher.survey, 1]) == "1 2"
    assert (found[cipher.survey, 2], found["diet", 1]) == ("", "3 4")


def test_unperturbed_answers_count_once_where_they_are_needed(surveys: Surveys) -> None:
    more = "".join(f'[questions.{name}]\noptions = ["a", "b"]\n' for name in "rs")
    surveys.new("guided", f'mode = "guided"\nclass = "q"\n{SURVEY}{more}')
    surveys.open("guided")
    collector, survey = surveys.collector, surveys.get("guided").survey
    assert collector.needs_unperturbed("guided", survey)
    sent = Submission("1" * 32, 0, 1, (1, 0))
    assert collector.store_unperturbed("guided", survey, sent, invited=False) is True
    assert collector.store_unperturbed("guided", survey, sent, invited=False) is False
    assert collector.store_unperturbed("guided", survey, sent, invited=True) is None
    assert [one.tolist() for one in collector.unperturbed("guided", 2)] == [[1], [[1, 0]]]
    assert (collector.counts("guided"), collector.epochs("guided", survey)) == (({}, 1), 0)
    for number in range(2, 1000):
        if not collector.needs_unperturbed("guided", survey):
            break
        one = Submission(f"{number:032}", 0, number % 2, (number % 2, 0))
        collector.store_unperturbed("guided", survey, one, invited=False)
    with pytest.raises(BootstrapComplete, match="send a perturbed one"):
        collector.store_unperturbed("guided", survey, Submission("f" * 32, 0, 1, (1, 0)), invited=False)
    assert collector.counts("guided") == ({}, number - 1)

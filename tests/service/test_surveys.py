"""Surveys over HTTP: what is taken, what is refused, and what is kept."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from tests.conftest import Site
from tests.serving import Service, serving

import sfumato as sf
from sfumato.errors import SfumatoError, SurveyError
from sfumato.ledger.tables import ANSWERS, CLEAR, SURVEYS, TICKETS
from sfumato.survey import Survey
from sfumato.survey.guidance import Tally
from sfumato.survey.perturbation import bits_of
from sfumato.survey.respondent import Choice, Line, Respondent
from sfumato.survey.simulation import TEMPERAMENTS, invented, simulate
from sfumato.survey.surveys import Surveys

DEFINITION = """
title = "Votes"
consent = "Yes."
deadline = "2030-01-01"
class = "party"
mode = "{mode}"
[guided]
refresh = 20
error = 0.9
bootstrap = 24
[questions.party]
options = ["left", "right"]
[questions.a]
options = ["no", "yes"]
[questions.b]
options = ["no", "yes"]
[questions.c]
kind = "number"
cuts = [1, 2]
""" + "".join(f'[questions.d{i}]\noptions = ["no", "yes"]\n' for i in range(6))


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def surveyed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on either database; each test has surveys of its own."""
    folder = tmp_path_factory.mktemp("surveyed")
    (folder / "site").mkdir()
    server = None if request.param == "sqlite" else request.getfixturevalue("postgres")
    vault = Site(request.param, folder / "site", server).create()
    with serving(vault, folder) as service:
        service.tokens["owner"] = vault.token(scopes=["read", "write"])["token"]
        yield service


def opened(service: Service, mode: str = "randomised", *, invited: bool = False, opens: bool = True) -> str:
    """The name of a new survey."""
    name, surveys = f"{mode}-{secrets.token_hex(4)}", Surveys(service.vault)
    surveys.new(name, DEFINITION.format(mode=mode), invited=invited)
    if opens:
        surveys.open(name)
    return name


def rows_kept(vault: sf.Vault) -> dict[str, int]:
    assert Surveys(vault).collector  # makes the tables
    with vault.ledger.database.transaction(writes=False) as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in SURVEYS.sorted_tables
        }


def person(rng: np.random.Generator) -> dict[str, Any]:
    party = str(rng.choice(["left", "right"]))
    sure = 0.9 if party == "left" else 0.1
    return {
        "party": party,
        "a": "yes" if rng.random() < sure else "no",
        "b": "yes" if rng.random() < 1 - sure else "no",
        "c": float(rng.uniform(0, 3)),
        **{f"d{i}": "yes" if rng.random() < (sure if i % 2 else 1 - sure) else "no" for i in range(6)},
    }


def test_the_same_ticket_counts_once(surveyed: Service, rng: np.random.Generator) -> None:
    survey, name = Survey.loads(DEFINITION.format(mode="randomised")), opened(surveyed)
    one = Respondent(Line(surveyed.url), name)
    assert one.survey().schema == survey.schema
    one.prepare(survey, person(rng), Choice(1))
    assert one.send()
    assert not one.send()
    other = Respondent(Line(surveyed.url), name)
    other.prepare(survey, person(rng), Choice(2))

    def again(_: int) -> bool:
        mine = Respondent(Line(surveyed.url), name, ticket=other.ticket)
        mine._body = other._body
        return mine.send()

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(again, range(32))) == 1
    status = Surveys(surveyed.vault).status(name)
    assert (status.answers, status.levels) == (2, {"balanced": 1, "open": 1})


def _body(survey: Survey, **said: Any) -> dict[str, Any]:
    return {"ticket": "a" * 32, "version": survey.schema, "row": [0, 1, 1, 2, *[0] * 6], "level": 0, **said}


_BAD: list[tuple[str, dict[str, Any], int]] = [
    ("nowhere", {}, 404),
    ("draft", {}, 404),
    ("invited", {}, 403),
    ("randomised", {"version": "0" * 64}, 409),
    ("randomised", {"row": [0, 1, 1, *[0] * 6]}, 422),
    ("randomised", {"row": [0, 1, 1, 2, 0, *[0] * 6]}, 422),
    ("randomised", {"row": [0, 1, 1, 3, *[0] * 6]}, 422),
    ("randomised", {"row": [0, 1, 1, -1, *[0] * 6]}, 422),
    ("randomised", {"row": [0, 1, 1, 1.5, *[0] * 6]}, 422),
    ("randomised", {"row": [0, 1, 1, "2", *[0] * 6]}, 422),
    ("randomised", {"row": [0, 1, 1, True, *[0] * 6]}, 422),
    ("randomised", {"row": "0112"}, 422),
    ("randomised", {"row": [[0, 1, 1, 2]]}, 422),
    ("randomised", {"row": [0] * 20_000}, 422),
    ("randomised", {"level": 3}, 422),
    ("randomised", {"level": -1}, 422),
    ("randomised", {"ticket": "short"}, 422),
    ("randomised", {"ticket": "A" * 32}, 422),
    ("randomised", {"more": 1}, 422),
    ("randomised", {"ticket": None}, 422),
    ("guided", {"row": [0, 1] * 9 + [0], "epoch": 1, "used": 2}, 422),  # there is no guidance yet
    ("guided", {"row": [0, 1, 1, 0, 0, 1], "epoch": 1, "used": 1}, 422),
    ("guided", {"row": [2, *[0] * 18], "epoch": 1, "used": 1}, 422),
    ("guided", {"row": [1] * 19, "epoch": 1, "used": 1}, 422),
    ("guided", {"row": [0] * 19, "epoch": 1, "used": 1, "label": 2}, 422),
]


def test_bad_answers_are_refused_and_nothing_is_stored(surveyed: Service) -> None:
    survey = {mode: Survey.loads(DEFINITION.format(mode=mode)) for mode in ("randomised", "guided")}
    names = {mode: opened(surveyed, mode) for mode in ("randomised", "guided")}
    names |= {"invited": opened(surveyed, invited=True), "draft": opened(surveyed, opens=False)}
    before = rows_kept(surveyed.vault)
    with surveyed.client() as client:
        for name, said, status in _BAD:
            body = _body(survey.get(name, survey["randomised"]), **said)
            answer = client.post(f"/api/v1/respond/{names.get(name, name)}/answers", json=body)
            assert (name, said, answer.status_code) == (name, said, status)
            assert answer.json()["detail"]
        for content in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"ticket": ' + b"[" * 5000):
            answer = client.post(f"/api/v1/respond/{names['randomised']}/answers", content=content)
            assert answer.status_code == 422
        huge = client.post(f"/api/v1/respond/{names['randomised']}/answers", content=b"0" * (2 << 20))
        assert huge.status_code == 413
        clear = client.post(
            f"/api/v1/respond/{names['randomised']}/bootstrap", json=_body(survey["randomised"]) | {"label": 0}
        )
        assert clear.status_code == 422  # a field that is not known
    assert rows_kept(surveyed.vault) == before


def test_a_survey_that_is_closed_or_over_takes_nothing(surveyed: Service, rng: np.random.Generator) -> None:
    surveys, name = Surveys(surveyed.vault), opened(surveyed)
    survey, before = Survey.loads(DEFINITION.format(mode="randomised")), rows_kept(surveyed.vault)
    late = Respondent(Line(surveyed.url), name)
    late.prepare(survey, person(rng), Choice(1))
    surveys.close(name)
    with pytest.raises(SurveyError, match="closed"):
        late.send()
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    surveys.new("soon", DEFINITION.format(mode="randomised").replace("2030-01-01", soon))
    surveys.open("soon")
    late = Respondent(Line(surveyed.url), "soon")
    late.prepare(late.survey(), person(rng), Choice(1))
    time.sleep(2.1)
    with pytest.raises(SurveyError, match="closed"):
        late.send()
    assert rows_kept(surveyed.vault) == before
    with pytest.raises(SurveyError, match="opened already"):
        surveys.new(name, DEFINITION.format(mode="guided"))
    with pytest.raises(SurveyError, match="must be draft"):
        surveys.open(name)


def test_invited_people_answer_with_their_ticket_once(surveyed: Service, rng: np.random.Generator) -> None:
    name = opened(surveyed, invited=True)
    [ticket, unused] = surveyed.remote("owner").surveys.invite(name, 2)
    survey = Survey.loads(DEFINITION.format(mode="randomised"))
    mine = Respondent(Line(surveyed.url), name, ticket=ticket)
    mine.prepare(survey, person(rng), Choice(1))
    assert mine.send()
    assert not mine.send()
    stranger = Respondent(Line(surveyed.url), name)
    stranger.prepare(survey, person(rng), Choice(1))
    with pytest.raises(SurveyError, match="invited"):
        stranger.send()
    kept = json.dumps([str(row) for row in _all(surveyed.vault)])
    assert ticket not in kept
    assert unused not in kept


def _all(vault: sf.Vault) -> list[Any]:
    with vault.ledger.database.transaction(writes=False) as connection:
        return [row for table in SURVEYS.sorted_tables for row in connection.execute(sa.select(table))]


def test_nothing_leads_from_a_ticket_to_an_answer() -> None:
    assert {column.name for column in TICKETS.c} == {"survey", "hash"}
    assert {column.name for column in ANSWERS.c} == {"key", "survey", "batch", "level", "label", "row"}
    assert {column.name for column in CLEAR.c} == {"key", "survey", "label", "row"}


def test_a_guided_survey_from_its_first_answers_on(surveyed: Service, rng: np.random.Generator) -> None:
    """Unblurred rows begin it and are kept apart; then each 20 rows bring new guidance, made from the rows' sums."""
    line, survey = Line(surveyed.url), Survey.loads(DEFINITION.format(mode="guided"))
    name = opened(surveyed, "guided")
    early = Respondent(line, name)
    assert early.prepare(survey, person(rng), Choice(allowed=3)) == "there is no guidance yet"
    with pytest.raises(SurveyError, match="nothing is ready"):
        early.send()
    for _ in range(24):
        helper = Respondent(line, name)
        helper.prepare(survey, person(rng), Choice(clear=True))
        assert helper.send()
    assert not helper.send()  # a retry of the last one is told that it had arrived
    late = Respondent(line, name)
    late.prepare(survey, person(rng), Choice(clear=True))
    with pytest.raises(SurveyError, match="no unblurred"):
        late.send()
    assert line.ask("POST", f"/api/v1/respond/{name}/bootstrap", late._body)[0] == 410
    assert line.ask("GET", f"/api/v1/respond/{name}")[1]["wanted"] is False
    careful = Respondent(line, name)
    assert "more than 1" in careful.prepare(survey, person(rng), Choice(allowed=1))
    for _ in range(45):
        one = Respondent(line, name, draws=lambda count: rng.integers(0, 2**53, count))
        assert one.prepare(survey, person(rng), Choice(allowed=3)) == ""
        assert one.send()
    surveys = Surveys(surveyed.vault)
    epoch = surveys.epoch(surveys.known(name))
    assert epoch.number == 3  # the first one, and one for each 20 rows
    assert epoch.guidance is not None
    assert epoch.guidance.digest == epoch.digests[-1]
    status = surveys.status(name)
    assert (status.answers, status.clear, status.epoch) == (45, 24, 3)
    assert careful.prepare(survey, person(rng), Choice(allowed=1, truncate=True)) == ""
    _check_sums(surveys, name, survey)
    found = surveys.model(name)
    assert found.answers == 45  # unblurred rows are not among them
    assert found.bayes.predict([survey.code(person(rng))]).shape == (1,)


def _check_sums(surveys: Surveys, name: str, survey: Survey) -> None:
    """What the collector keeps is what its rows add up to."""
    from sfumato.ledger.tables import GUIDANCES
    from sfumato.survey import rows as written
    from sfumato.survey.epochs import Epochs

    with surveys._vault.ledger.database.transaction(writes=False) as connection:
        kept = connection.execute(
            sa.select(GUIDANCES).where(GUIDANCES.c.survey == name).order_by(GUIDANCES.c.epoch)
        ).all()
        batches = connection.execute(sa.select(ANSWERS).where(ANSWERS.c.survey == name)).all()
        clear = connection.execute(sa.select(CLEAR).where(CLEAR.c.survey == name)).all()
        sums = Epochs(connection, name, survey)._unpacked
    assert [bool(one.tally) for one in kept] == [False] * (len(kept) - 1) + [True]  # one set of sums is kept
    for one in kept[-1:]:
        some = [row for row in batches if row.batch < one.epoch]
        assert len(some) == one.rows
        expected = Tally.empty(2, survey.width)
        if some:
            labels = np.array([row.label for row in some])
            expected = expected.add(written.read([row.row for row in some], survey.width), labels)
        found = sums(one.tally)
        assert np.array_equal(found.together, expected.together)
        assert np.array_equal(found.rows, expected.rows)
    assert bits_of(written.read([row.row for row in clear], 9), survey.sizes).sum() == 9 * 24


def test_the_client_mirrors_the_vault(surveyed: Service) -> None:
    remote, local = surveyed.remote("owner").surveys, Surveys(surveyed.vault)
    opened(surveyed)
    assert remote.listed() == local.listed()
    remote.new("more", Survey.loads(DEFINITION.format(mode="randomised")))
    assert remote.open("more").action == "opened"
    simulate(surveyed.url, "more", 40, np.random.default_rng(1))
    assert remote.status("more") == local.status("more")
    assert remote.export("more").to_pylist() == local.export("more").to_pylist()
    assert remote.qualities("more") == local.model("more").qualities
    assert remote.close("more").action == "closed"
    with pytest.raises(SfumatoError, match="no survey"):
        remote.status("nowhere")
    assert "Opened the survey more." in [_sentence(entry) for entry in surveyed.vault.log()]


def _sentence(entry: Any) -> str:
    from sfumato.vault.messages import sentence

    return sentence(entry)


def test_simulated_people(surveyed: Service) -> None:
    name, before = opened(surveyed, "guided"), rows_kept(surveyed.vault)[TICKETS.name]
    found = simulate(surveyed.url, name, 120, np.random.default_rng(2))
    assert sum(found.temperaments.values()) == 120
    assert found.clear == 24
    assert found.counted + found.clear + found.waiting + found.refused == 120
    assert found.waiting >= found.temperaments["fundamentalist"]  # two classes need two directions
    assert sum(TEMPERAMENTS.values()) == pytest.approx(1)
    assert rows_kept(surveyed.vault)[TICKETS.name] - before == found.counted + found.clear


def test_answers_are_in_the_backup(surveyed: Service, tmp_path: Path) -> None:
    name = opened(surveyed)
    simulate(surveyed.url, name, 30, np.random.default_rng(3))
    surveyed.vault.backup(tmp_path / "backup.tar")
    again = sf.Vault.restore(tmp_path / "backup.tar", tmp_path / "again", secret=surveyed.vault._secret)
    assert Surveys(again).status(name) == Surveys(surveyed.vault).status(name)


def test_other_sites_may_ask_respondents_questions_and_nothing_else(surveyed: Service) -> None:
    name, draft = opened(surveyed), opened(surveyed, opens=False)
    with surveyed.client() as client:
        for path, method in ((f"/api/v1/respond/{name}", "GET"), ("/survey/sfumato-survey.js", "GET")):
            answer = client.request(method, path, headers={"Origin": "https://elsewhere.example"})
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
            assert "access-control-allow-credentials" not in answer.headers
        asked = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
        assert client.options(f"/api/v1/respond/{name}/answers", headers=asked).status_code == 204
        owner = client.get("/api/v1/surveys", headers={"Origin": "https://elsewhere.example"})
        assert "access-control-allow-origin" not in owner.headers
        page = client.get(f"/answer/{name}").text
        assert page.count('integrity="sha384-') == 3
        assert client.get(f"/answer/{draft}").status_code == 404


def test_invented_people_fit_their_survey(rng: np.random.Generator) -> None:
    from sfumato.survey.example import EXAMPLE

    survey = Survey.loads(EXAMPLE)
    for _ in range(50):
        codes = survey.code(invented(survey, rng))
        assert ((codes >= 0) & (codes < np.array(survey.sizes))).all()

"""Surveys over HTTP: which answers are accepted, which are refused, and what is stored."""

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
from tests.schema import ANSWERS, CLEAR, SURVEYS, TICKETS, tables_of
from tests.serving import Service, serving

import sfumato as sf
from sfumato.errors import SfumatoError, SurveyError
from sfumato.survey import Survey
from sfumato.survey.guidance import CooccurrenceCounts
from sfumato.survey.perturbation import one_hot
from sfumato.survey.respondent import Choice, HttpConnection, Respondent
from sfumato.survey.simulation import PRIVACY_SEGMENTS, random_answers, simulate
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
def survey_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on either database; each test has surveys of its own."""
    folder = tmp_path_factory.mktemp("survey_service")
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


def rows_stored(vault: sf.Vault) -> dict[str, int]:
    assert Surveys(vault).collector  # creates the tables
    with tables_of(vault.ledger.database) as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in SURVEYS.sorted_tables
        }


def person(rng: np.random.Generator) -> dict[str, Any]:
    party = str(rng.choice(["left", "right"]))
    agreement = 0.9 if party == "left" else 0.1
    return {
        "party": party,
        "a": "yes" if rng.random() < agreement else "no",
        "b": "yes" if rng.random() < 1 - agreement else "no",
        "c": float(rng.uniform(0, 3)),
        **{f"d{i}": "yes" if rng.random() < (agreement if i % 2 else 1 - agreement) else "no" for i in range(6)},
    }


def test_a_ticket_counts_once(survey_service: Service, rng: np.random.Generator) -> None:
    survey, name = Survey.loads(DEFINITION.format(mode="randomised")), opened(survey_service)
    one = Respondent(HttpConnection(survey_service.url), name)
    assert one.survey().version == survey.version
    one.prepare(survey, person(rng), Choice(1))
    assert one.send()
    assert not one.send()
    other = Respondent(HttpConnection(survey_service.url), name)
    other.prepare(survey, person(rng), Choice(2))

    def again(_: int) -> bool:
        mine = Respondent(HttpConnection(survey_service.url), name, ticket=other.ticket)
        mine._body = other._body
        return mine.send()

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(again, range(32))) == 1
    status = Surveys(survey_service.vault).status(name)
    assert (status.answers, status.levels) == (2, {"balanced": 1, "open": 1})


def _body(survey: Survey, **fields: Any) -> dict[str, Any]:
    return {"ticket": "a" * 32, "version": survey.version, "row": [0, 1, 1, 2, *[0] * 6], "level": 0, **fields}


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


def test_bad_answers_are_refused_and_nothing_is_stored(survey_service: Service) -> None:
    survey = {mode: Survey.loads(DEFINITION.format(mode=mode)) for mode in ("randomised", "guided")}
    names = {mode: opened(survey_service, mode) for mode in ("randomised", "guided")}
    names |= {"invited": opened(survey_service, invited=True), "draft": opened(survey_service, opens=False)}
    before = rows_stored(survey_service.vault)
    with survey_service.client() as client:
        for name, fields, status in _BAD:
            body = _body(survey.get(name, survey["randomised"]), **fields)
            answer = client.post(f"/api/v1/respond/{names.get(name, name)}/answers", json=body)
            assert (name, fields, answer.status_code) == (name, fields, status)
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
    assert rows_stored(survey_service.vault) == before


def test_a_survey_that_is_closed_or_over_accepts_nothing(survey_service: Service, rng: np.random.Generator) -> None:
    surveys, name = Surveys(survey_service.vault), opened(survey_service)
    survey, before = Survey.loads(DEFINITION.format(mode="randomised")), rows_stored(survey_service.vault)
    late = Respondent(HttpConnection(survey_service.url), name)
    late.prepare(survey, person(rng), Choice(1))
    surveys.close(name)
    with pytest.raises(SurveyError, match="closed"):
        late.send()
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    surveys.new("soon", DEFINITION.format(mode="randomised").replace("2030-01-01", soon))
    surveys.open("soon")
    late = Respondent(HttpConnection(survey_service.url), "soon")
    late.prepare(late.survey(), person(rng), Choice(1))
    time.sleep(2.1)
    with pytest.raises(SurveyError, match="closed"):
        late.send()
    assert rows_stored(survey_service.vault) == before
    with pytest.raises(SurveyError, match="opened already"):
        surveys.new(name, DEFINITION.format(mode="guided"))
    with pytest.raises(SurveyError, match="must be draft"):
        surveys.open(name)


def test_invited_people_answer_with_their_ticket_once(survey_service: Service, rng: np.random.Generator) -> None:
    name = opened(survey_service, invited=True)
    [ticket, unused] = survey_service.remote("owner").surveys.invite(name, 2)
    survey = Survey.loads(DEFINITION.format(mode="randomised"))
    mine = Respondent(HttpConnection(survey_service.url), name, ticket=ticket)
    mine.prepare(survey, person(rng), Choice(1))
    assert mine.send()
    assert not mine.send()
    stranger = Respondent(HttpConnection(survey_service.url), name)
    stranger.prepare(survey, person(rng), Choice(1))
    with pytest.raises(SurveyError, match="invited"):
        stranger.send()
    stored = json.dumps([str(row) for row in _all(survey_service.vault)])
    assert ticket not in stored
    assert unused not in stored


def _all(vault: sf.Vault) -> list[Any]:
    with tables_of(vault.ledger.database) as connection:
        return [row for table in SURVEYS.sorted_tables for row in connection.execute(sa.select(table))]


def test_no_column_links_a_ticket_to_an_answer() -> None:
    assert {column.name for column in TICKETS.c} == {"survey", "hash"}
    assert {column.name for column in ANSWERS.c} == {"key", "survey", "batch", "level", "label", "row"}
    assert {column.name for column in CLEAR.c} == {"key", "survey", "label", "row"}


def test_a_guided_survey_from_its_bootstrap_on(survey_service: Service, rng: np.random.Generator) -> None:
    """Unperturbed rows start it and are stored apart; every 20 rows give new guidance, computed from their counts."""
    line, survey = HttpConnection(survey_service.url), Survey.loads(DEFINITION.format(mode="guided"))
    name = opened(survey_service, "guided")
    early = Respondent(line, name)
    assert early.prepare(survey, person(rng), Choice(allowed=3)) == "there is no guidance yet"
    with pytest.raises(SurveyError, match="nothing is ready"):
        early.send()
    for _ in range(24):
        helper = Respondent(line, name)
        helper.prepare(survey, person(rng), Choice(clear=True))
        assert helper.send()
    assert not helper.send()  # a retry of the last one does not count again
    late = Respondent(line, name)
    late.prepare(survey, person(rng), Choice(clear=True))
    with pytest.raises(SurveyError, match="no more unperturbed"):
        late.send()
    assert line.request("POST", f"/api/v1/respond/{name}/bootstrap", late._body)[0] == 410
    assert line.request("GET", f"/api/v1/respond/{name}")[1]["wanted"] is False
    careful = Respondent(line, name)
    assert "more than 1" in careful.prepare(survey, person(rng), Choice(allowed=1))
    for _ in range(45):
        one = Respondent(line, name, draws=lambda count: rng.integers(0, 2**53, count))
        assert one.prepare(survey, person(rng), Choice(allowed=3)) == ""
        assert one.send()
    surveys = Surveys(survey_service.vault)
    epoch = surveys.epoch(surveys.get(name))
    assert epoch.number == 3  # the first one, and one for each 20 rows
    assert epoch.guidance is not None
    assert epoch.guidance.digest == epoch.digests[-1]
    status = surveys.status(name)
    assert (status.answers, status.clear, status.epoch) == (45, 24, 3)
    assert careful.prepare(survey, person(rng), Choice(allowed=1, truncate=True)) == ""
    _check_sums(surveys, name, survey)
    found = surveys.model(name)
    assert found.answers == 45  # unperturbed rows are not among them
    assert found.bayes.predict([survey.encode(person(rng))]).shape == (1,)


def _check_sums(surveys: Surveys, name: str, survey: Survey) -> None:
    """The counts that the collector stores are those of its rows."""
    from tests.schema import GUIDANCES, tables_of

    from sfumato.survey import rows as stored_rows
    from sfumato.survey.epochs import Epochs

    cipher = surveys.collector._cipher(name)
    with tables_of(surveys._vault.ledger.database) as connection:
        kept = connection.execute(
            sa.select(GUIDANCES).where(GUIDANCES.c.survey == cipher.survey).order_by(GUIDANCES.c.epoch)
        ).all()
        batches = connection.execute(sa.select(ANSWERS).where(ANSWERS.c.survey == cipher.survey)).all()
        clear = connection.execute(sa.select(CLEAR).where(CLEAR.c.survey == cipher.survey)).all()
    with surveys._vault.ledger.database.transaction(writes=False) as reading:
        unpacked = Epochs(reading, cipher, survey)._unpacked
    assert [bool(one.tally) for one in kept] == [False] * (len(kept) - 1) + [True]  # only the latest counts are kept
    for one in kept[-1:]:
        some = [row for row in batches if row.batch < one.epoch]
        assert len(some) == one.rows
        expected = CooccurrenceCounts.empty(2, survey.width)
        if some:
            labels, texts = cipher.answers([(row.key, row.row) for row in some])
            expected = expected.add(stored_rows.from_text(texts, survey.width), np.array(labels))
        found = unpacked(cipher.decrypt(str(one.epoch), one.tally))
        assert np.array_equal(found.pairs, expected.pairs)
        assert np.array_equal(found.rows, expected.rows)
    _, texts = cipher.answers([(row.key, row.row) for row in clear])
    assert one_hot(stored_rows.from_text(texts, 9), survey.sizes).sum() == 9 * 24


def test_the_client_mirrors_the_vault(survey_service: Service) -> None:
    remote, local = survey_service.remote("owner").surveys, Surveys(survey_service.vault)
    opened(survey_service)
    assert remote.summaries() == local.summaries()
    remote.new("more", Survey.loads(DEFINITION.format(mode="randomised")))
    assert remote.open("more").action == "opened"
    simulate(survey_service.url, "more", 40, np.random.default_rng(1))
    assert remote.status("more") == local.status("more")
    assert remote.export("more").to_pylist() == local.export("more").to_pylist()
    assert remote.qualities("more") == local.model("more").qualities
    assert remote.close("more").action == "closed"
    with pytest.raises(SfumatoError, match="no survey"):
        remote.status("nowhere")
    assert "Opened the survey more." in [_sentence(entry) for entry in survey_service.vault.log()]


def _sentence(entry: Any) -> str:
    from sfumato.vault.messages import sentence

    return sentence(entry)


def test_simulated_people(survey_service: Service) -> None:
    name, before = opened(survey_service, "guided"), rows_stored(survey_service.vault)[TICKETS.name]
    found = simulate(survey_service.url, name, 120, np.random.default_rng(2))
    assert sum(found.segments.values()) == 120
    assert found.clear == 24
    assert found.counted + found.clear + found.waiting + found.refused == 120
    assert found.waiting >= found.segments["fundamentalist"]  # two classes need two directions
    assert sum(PRIVACY_SEGMENTS.values()) == pytest.approx(1)
    assert rows_stored(survey_service.vault)[TICKETS.name] - before == found.counted + found.clear


def test_answers_are_in_the_backup(survey_service: Service, tmp_path: Path) -> None:
    name = opened(survey_service)
    simulate(survey_service.url, name, 30, np.random.default_rng(3))
    survey_service.vault.backup(tmp_path / "backup.tar")
    again = sf.Vault.restore(tmp_path / "backup.tar", tmp_path / "again", secret=survey_service.vault._secret)
    assert Surveys(again).status(name) == Surveys(survey_service.vault).status(name)


def test_other_sites_may_embed_the_survey_and_nothing_else(survey_service: Service) -> None:
    name, draft = opened(survey_service), opened(survey_service, opens=False)
    with survey_service.client() as client:
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
        assert page.count('integrity="sha384-') == 4
        assert client.get(f"/answer/{draft}").status_code == 404


@pytest.mark.parametrize(
    ("accepted", "query", "language"),
    [
        ("fr-FR,fr;q=0.9,de;q=0.5", "", "fr"),
        ("de;q=0.1, fr;q=0.9", "", "fr"),
        ("pt-br", "", "pt-BR"),
        ("en", "?lang=FR", "fr"),
        ("sw, de;q=0.3", "", "de"),
        ("sw;q=x", "", "en"),
    ],
)
def test_the_page_is_in_the_language_that_a_browser_prefers(
    survey_service: Service, accepted: str, query: str, language: str
) -> None:
    """The author's own language is one of them, and each has a link."""
    name, surveys = f"langs-{secrets.token_hex(4)}", Surveys(survey_service.vault)
    text = 'title = "t"\nconsent = "c"\ndeadline = "2030-01-01"\nlanguage = "fr"\n[questions.q]\noptions = ["a", "b"]\n'
    surveys.new(name, text + '[translations.pt-BR]\ntitle = "T"\n')
    surveys.open(name)
    with survey_service.client() as client:
        page = client.get(f"/answer/{name}{query}", headers={"Accept-Language": accepted}).text
    assert f'<html lang="{language}"' in page
    assert all(f'?lang={one}"' in page for one in ("en", "de", "ar", "fr", "pt-BR"))


def test_invited_people_have_no_receipts(survey_service: Service) -> None:
    """Who sent an invitation knows its ticket, and would find the receipt of it."""
    name = opened(survey_service, invited=True)
    Surveys(survey_service.vault).close(name)
    with survey_service.client() as client:
        refused = client.get(f"/api/v1/respond/{name}/receipts")
    assert refused.status_code == 409
    assert "they would tell who answered" in refused.json()["detail"]


def test_random_answers_fit_their_survey(rng: np.random.Generator) -> None:
    from sfumato.survey.example import EXAMPLE

    survey = Survey.loads(EXAMPLE)
    for _ in range(50):
        codes = survey.encode(random_answers(survey, rng))
        assert ((codes >= 0) & (codes < np.array(survey.sizes))).all()

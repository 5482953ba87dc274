"""A malicious collector against a real Chromium: what the page refuses to do, and what it shows."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Route, expect
from tests.browser.answering import (
    Connection,
    another_site,
    answer_votes,
    guided_survey,
    page_of,
)
from tests.serving import Service

from sfumato.errors import GuidanceRefused
from sfumato.service.web.surveys import MODULES
from sfumato.survey.device_checks import exposures, inspect_guidance
from sfumato.survey.guidance import Guidance
from sfumato.survey.surveys import Surveys

Array = Any


def _axis(at: int = 0) -> Array:
    found = np.zeros((16, 1))
    found[2 * at] = 1
    return found


def _masked(weight: float) -> Array:
    """One answer, hidden behind a constant on all the others."""
    found = np.full((16, 1), 1.0)
    found[:2, 0] = (weight, -weight)
    return found / np.linalg.norm(found)


def _sharpened(seed: int = 1) -> Array:
    """Guidance that was optimised to read the first answer, by ascent on its exposure."""
    rng = np.random.default_rng(seed)
    best = np.linalg.qr(rng.standard_normal((16, 2)))[0]
    score = exposures(best, (2,) * 8, "00000000", 0.0)[0]
    for step in np.linspace(0.5, 0.05, 120):
        tried = np.linalg.qr(best + step * rng.standard_normal((16, 2)))[0]
        found = exposures(tried, (2,) * 8, "00000000", 0.0)[0]
        if found > score:
            best, score = tried, found
    return best


def crafted(kind: str, honest: Array) -> Array:
    return {
        "axis-aligned": _axis(),
        "two axes": np.hstack([_axis(1), _axis(4)]),
        "masked": _masked(8.0),
        "optimised": _sharpened(),
        "not orthonormal": 3 * honest,
        "another shape": honest[:-1],
        "too many directions": np.linalg.qr(np.random.default_rng(1).standard_normal((16, 5)))[0],
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["axis-aligned", "two axes", "masked", "optimised", "not orthonormal", "another shape", "too many directions"],
)
def test_a_malicious_collector_gets_nothing(context: BrowserContext, service: Service, kind: str) -> None:
    """Crafted guidance, with a log that fits it, is refused by the page for the twin's own reason."""
    name = guided_survey(service, begun=True)
    survey = Surveys(service.vault).get(name).survey
    honest = Surveys(service.vault).epoch(Surveys(service.vault).get(name)).guidance
    assert honest is not None
    matrix = crafted(kind, honest.matrix)
    digest = Guidance(survey.version, 1, matrix).digest

    def forge(route: Route) -> None:
        route.fulfill(json={"epoch": 1, "matrix": matrix.tolist(), "digests": [digest]})

    context.route("**/guidance", forge)
    connection = Connection(context)
    page = page_of(context, name)
    answer_votes(page, allowed=3)
    if kind == "too many directions":
        expect(page.get_by_text("more than the 3 that you allow")).to_be_visible()
    else:
        with pytest.raises(GuidanceRefused) as refused:
            inspect_guidance(matrix, survey.sizes, seed=digest, allowed=3, floor=0.1, exposure=0.6, capacity=3.0)
        reason = str(refused.value).split(",")[0]
        expect(page.get_by_role("alert")).to_contain_text(reason)
        expect(page.get_by_role("heading", name="Nothing was sent: this survey asks for too much")).to_be_visible()
    assert connection.posts == []
    connection.check_quiet(service.url)


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0])
def test_the_exposure_of_accepted_guidance_is_shown(context: BrowserContext, service: Service, weight: float) -> None:
    """A weak mask discloses no more of an answer than honest guidance may; the page shows the most that it can."""
    name = guided_survey(service, begun=True)
    survey, matrix = Surveys(service.vault).get(name).survey, _masked(weight)
    digest = Guidance(survey.version, 1, matrix).digest
    context.route(
        "**/guidance", lambda route: route.fulfill(json={"epoch": 1, "matrix": matrix.tolist(), "digests": [digest]})
    )
    disclosure = inspect_guidance(matrix, survey.sizes, seed=digest, allowed=3, floor=0.1, exposure=0.6, capacity=3.0)
    page = page_of(context, name)
    answer_votes(page)
    expect(page.locator("meter").first).to_be_visible()
    found = [float(one) for one in page.locator("meter").evaluate_all("(all) => all.map((one) => one.value)")]
    assert found == pytest.approx(disclosure.exposure, abs=1e-6)
    assert found > list(exposures(matrix, survey.sizes, digest, 0.1))  # the worst case, not the average


@pytest.mark.parametrize("how", ["for one respondent", "of the past", "rewritten log"])
def test_guidance_that_is_not_everybodys_is_refused(context: BrowserContext, service: Service, how: str) -> None:
    name = guided_survey(service, begun=True)
    survey = Surveys(service.vault).get(name).survey
    rng, connection = np.random.default_rng(4), Connection(context)
    mine, other = (np.linalg.qr(rng.standard_normal((16, 2)))[0] for _ in range(2))
    logged = Guidance(survey.version, 1, other).digest
    own = Guidance(survey.version, 1, mine).digest
    said = {"epoch": 1, "matrix": mine.tolist(), "digests": [logged]}
    if how == "of the past":
        said["digests"] = [own, logged]
    if how == "rewritten log":
        said["digests"] = [own]
        page = page_of(context, name)
        answer_votes(page, allowed=1)  # it has seen the true log, and waits
        expect(page.get_by_text("Nothing was sent yet")).to_be_visible()
        page.close()
    context.route("**/guidance", lambda route: route.fulfill(json=said))
    page = page_of(context, name)
    if how == "rewritten log":
        page.get_by_role("button", name="Delete my answers").click()
    answer_votes(page)
    reason = "rewritten since" if how == "rewritten log" else "not the one that the public log shows"
    expect(page.get_by_role("alert")).to_contain_text(reason)
    assert connection.posts == []


def test_another_copy_of_the_log_reveals_it(browser: Browser, service: Service, tmp_path: Path) -> None:
    """A respondent who is asked differently, with a log forged to fit, is warned by a log that somebody else keeps."""
    name = guided_survey(service, begun=True)
    known = Surveys(service.vault).get(name)
    digests = Surveys(service.vault).epoch(known).digests
    (tmp_path / "log.json").write_text(json.dumps({"version": known.survey.version, "digests": digests}))
    matrix = np.linalg.qr(np.random.default_rng(4).standard_normal((16, 2)))[0]
    digest = Guidance(known.survey.version, 1, matrix).digest
    tags = "".join(f'<script type="module" src="{service.url}/survey/{file}"></script>' for file in MODULES)
    survey = f'<sfumato-survey server="{service.url}" survey="{name}" log="log.json"></sfumato-survey>'
    sheet = f'<link rel="stylesheet" href="{service.url}/survey/sfumato-form.css">'
    (tmp_path / "mine.html").write_text(f"<title>Mine</title>{sheet}{tags}{survey}")
    for forged in (False, True):
        with another_site(tmp_path) as url:
            context = browser.new_context(base_url=url, service_workers="block")
            connection = Connection(context)
            if forged:
                said = {"epoch": 1, "matrix": matrix.tolist(), "digests": [digest]}
                context.route("**/guidance", partial(_say, said))
            page = context.new_page()
            page.goto("/mine.html")
            answer_votes(page)
            if forged:
                expect(page.get_by_role("alert")).to_contain_text("another copy of the public log")
            else:
                expect(page.get_by_text("bits of your 8")).to_be_visible()
            assert connection.posts == []
            context.close()


def _say(said: Any, route: Route) -> None:
    route.fulfill(json=said, headers={"Access-Control-Allow-Origin": "*"})


def test_guidance_again_and_again_gets_one_answer(context: BrowserContext, service: Service) -> None:
    """Answers to different guidance would add up: after the first one there is no other."""
    name = guided_survey(service, begun=True)
    connection = Connection(context)
    page = page_of(context, name)
    answer_votes(page)
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("Thank you")).to_be_visible()
    survey = Surveys(service.vault).get(name).survey
    matrix = np.linalg.qr(np.random.default_rng(8).standard_normal((16, 2)))[0]
    digest = Guidance(survey.version, 2, matrix).digest
    first = Surveys(service.vault).epoch(Surveys(service.vault).get(name)).digests[0]
    said = {"epoch": 2, "matrix": matrix.tolist(), "digests": [first, digest]}
    context.route("**/guidance", lambda route: route.fulfill(json=said))
    page.reload()
    expect(page.get_by_text("Thank you")).to_be_visible()
    code = f"""async () => {{
      const {{ Respondent }} = await import("/survey/sfumato-survey.js");
      const one = await new Respondent({{ server: location.origin, survey: "{name}" }}).load();
      try {{ await one.prepare({{}}, {{ allowed: 3 }}); }} catch (error) {{ return error.message; }}
    }}"""
    assert "takes one answer" in page.evaluate(code)
    assert len(connection.posts) == 1


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((r'"retention": \[0\.\d+', '"retention": [0.999'), "its retention probabilities"),
        ((r'"total": \d+', '"total": 1'), "its levels"),
        ((r'"epsilon": 2\.5', '"epsilon": 20.0'), "almost every answer unchanged"),
        ((r'"floor": 0\.1', '"floor": -3'), "its floor"),
        ((r'"exposure": 0\.6', '"exposure": 0.99'), "its limit of exposure"),
        ((r'"capacity": 3\.0', '"capacity": "none"'), "its limit of capacity"),
        ((r'"ends": "[^"]+"', '"ends": "never"'), "its deadline"),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(
    context: BrowserContext, change: tuple[str, str], reason: str, hashed: bool
) -> None:
    """Whether or not its hash was made to fit."""

    def forge(route: Route) -> None:
        said = route.fetch().json()
        said["definition"] = re.sub(*change, said["definition"], count=1)
        if hashed:
            said["version"] = hashlib.sha256(said["definition"].encode()).hexdigest()
        route.fulfill(json=said)

    context.route("**/respond/commute", forge)
    page = page_of(context, "commute")
    expect(page.get_by_role("alert")).to_contain_text(reason if hashed else "does not match its hash")

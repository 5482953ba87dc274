"""Answering a survey in a real Chromium: what the browser sends, and what it stores."""

from __future__ import annotations

import json
import re
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Route, expect
from tests import browsers
from tests.browser.answering import (
    GUIDED,
    KNOWN_BITS,
    STORED,
    Connection,
    another_site,
    answer_commute,
    answer_votes,
    begin,
    guided_survey,
    known_draws,
    page_of,
)
from tests.browser.test_console import Scheme, check_page, sign_in
from tests.serving import Service

from sfumato.survey import Survey
from sfumato.survey.perturbation import guided_response, one_hot, randomised_response
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import Surveys

Array = Any


def test_what_is_sent_is_what_was_shown_and_what_the_twin_would_send(context: BrowserContext, service: Service) -> None:
    context.add_init_script(KNOWN_BITS)
    connection = Connection(context)
    page = page_of(context, "commute")
    expect(page.locator("output")).to_contain_text(
        "balanced, good protection: your true answer is sent with a probability of"
    )
    answer_commute(page)
    expect(page.get_by_role("heading", name="What can be learned from your answers")).to_be_visible()
    assert connection.posts == []  # the review sends nothing
    shown = json.loads(page.locator("pre").inner_text())
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("Thank you")).to_be_visible()
    assert connection.posts == [shown]
    connection.check_quiet(service.url)
    known = Surveys(service.vault).get("commute").survey
    codes = known.encode({"car": "yes", "distance": 12, "ways": ["bicycle"], "home": "some days"})
    draws = known_draws(2 * len(codes))
    assert shown["row"] == randomised_response(codes, known.sizes, known.retention[1], draws)[0].tolist()
    assert shown["row"] != codes.tolist()
    page.reload()
    expect(page.get_by_text("Thank you")).to_be_visible()
    assert len(connection.posts) == 1
    assert page.evaluate(STORED) == [{"state": "sent", "sealed": False}]


def test_a_respondent_finds_the_receipt_among_all(context: BrowserContext, service: Service) -> None:
    """Whose answer is dropped is told so; the list is asked for without the receipt."""
    surveys = Surveys(service.vault)
    name = f"counted-{secrets.token_hex(4)}"
    surveys.new(name, surveys.get("commute").survey)
    surveys.open(name)
    others = [Submission(f"{number:032x}", 1, 0, (0, 1, 0, 1, 0, 0, 2)) for number in range(30)]
    surveys.collector.store(name, surveys.get(name).survey, others, invited=False)
    connection = Connection(context)
    page = page_of(context, name)
    answer_commute(page)
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("Open this page again then.")).to_be_visible()
    with service.client() as client:  # a new receipt would tell when somebody answered
        assert client.get(f"/api/v1/respond/{name}/receipts").status_code == 409
        surveys.close(name)
        for _ in range(100):  # the service may know for a moment more that it was open
            if client.get(f"/api/v1/respond/{name}").json()["state"] == "closed":
                break
            page.wait_for_timeout(50)
    page.reload()
    page.get_by_role("button", name="Check that my answer was counted").click()
    expect(page.get_by_text("Your receipt is among the 31 that were counted.")).to_be_visible()
    [asked] = [one for one in connection.requests if "receipts" in one.url]
    assert asked.url.endswith(f"/respond/{name}/receipts")
    published = surveys.collector.receipts(name)
    assert published == sorted(published)
    assert len(set(published)) == 31
    [receipt] = [one for one in published if one in page.inner_text("main")]
    connection.check_quiet(service.url)
    with service.vault.ledger.database.transaction(writes=True) as writing:  # the planted fault: an answer is dropped
        writing.run("DELETE FROM sfumato_survey_tickets WHERE substr(hash, 1, 16) = :receipt", receipt=receipt)
    page.reload()
    page.get_by_role("button", name="Check that my answer was counted").click()
    expect(page.get_by_text("Your receipt is NOT among the 30 that were counted.")).to_be_visible()


def test_no_question_is_taken_for_a_choice_of_the_form(context: BrowserContext, service: Service) -> None:
    """Questions may have the names of the form's own fields: no answer sets the level."""
    surveys, name = Surveys(service.vault), f"named-{secrets.token_hex(4)}"
    kinds = "".join(f'[questions.{one}]\noptions = ["2", "3"]\n' for one in ("trust", "clear", "automatic", "agree"))
    surveys.new(name, f'title = "t"\nconsent = "c"\ndeadline = "2030-01-01"\n{kinds}')
    surveys.open(name)
    page = page_of(context, name)
    for one in ("trust", "clear", "automatic", "agree"):
        page.get_by_role("group", name=one, exact=True).get_by_label("2").check()
    page.get_by_label("I agree").check()
    page.get_by_label("More privacy to the left").fill("0")
    page.get_by_role("button", name="Show me").click()
    assert json.loads(page.locator("pre").inner_text())["level"] == 0


def test_guided_answers_follow_checked_guidance(context: BrowserContext, service: Service) -> None:
    name = guided_survey(service, begun=True)
    context.add_init_script(KNOWN_BITS)
    connection = Connection(context)
    page = page_of(context, name)
    expect(page.get_by_text("except the one to “Party”, which is sent unchanged")).to_be_visible()
    expect(page.get_by_role("group", name="Party")).to_contain_text("This answer is sent unchanged.")
    answer_votes(page)
    expect(page.get_by_text("Your answer to “Party” is sent unchanged.")).to_be_visible()
    expect(page.locator("tbody")).to_contain_text("whatever you answered")
    expect(page.get_by_text("bits of your 8")).to_be_visible()
    shown = json.loads(page.locator("pre").inner_text())
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("Thank you")).to_be_visible()
    assert connection.posts == [shown]
    connection.check_quiet(service.url)
    surveys = Surveys(service.vault)
    known = surveys.get(name)
    guidance = surveys.epoch(known).guidance
    assert guidance is not None
    votes = {f"v{i}": f"{'yes' if i % 3 else 'no'}{i}" for i in range(8)}
    bits = one_hot(known.survey.encode(votes), known.survey.sizes)
    expected = guided_response(bits, guidance.matrix[:, :3], 0.1, known_draws(16))
    assert shown["row"] == expected[0].tolist()
    assert surveys.status(name).answers == 1


def test_answers_wait_encrypted_while_the_browser_is_closed(browser: Browser, service: Service, tmp_path: Path) -> None:
    name = guided_survey(service, begun=False)
    with browsers.profile(browser, tmp_path / "profile", base_url=service.url) as context:
        connection = Connection(context)
        page = page_of(context, name)
        answer_votes(page, automatic=True)
        expect(page.get_by_text("The survey is not ready yet")).to_be_visible()
        assert connection.posts == []
        assert page.evaluate(STORED) == [{"state": "waiting", "sealed": True}]
    public = re.compile("cache|service worker", re.IGNORECASE)  # the page and its scripts, which anybody may read
    files = [path for path in (tmp_path / "profile").rglob("*") if path.is_file() and not public.search(str(path))]
    stored = b"".join(path.read_bytes() for path in files)
    assert b"sealed" in stored  # it is there,
    assert b"codes" not in stored  # and cannot be read
    assert b"yes1" not in stored.replace(b'"yes1"', b"")  # but in the definition
    begin(service, name)
    with browsers.profile(browser, tmp_path / "profile", base_url=service.url) as context:
        connection = Connection(context)
        page = page_of(context, name)
        expect(page.get_by_text("Thank you")).to_be_visible()
        assert len(connection.posts) == 1
        assert page.evaluate(STORED) == [{"state": "sent", "sealed": False}]
    assert Surveys(service.vault).status(name).answers == 1


def test_more_than_is_allowed_waits_or_is_cut(context: BrowserContext, service: Service) -> None:
    name = guided_survey(service, begun=True)
    connection = Connection(context)
    page = page_of(context, name)
    answer_votes(page, allowed=1)
    expect(page.get_by_text("more than the 1 that you allow")).to_be_visible()
    assert connection.posts == []
    page.get_by_role("button", name="Delete my answers").click()
    expect(page.get_by_role("button", name="Show me")).to_be_visible()
    assert page.evaluate(STORED) == [{"state": "none", "sealed": True}]  # the ticket, but no answers
    page.get_by_label("send only what I allow").check()
    answer_votes(page, allowed=1)
    shown = json.loads(page.locator("pre").inner_text())
    assert shown["used"] == 1


def test_offline_and_back(context: BrowserContext, service: Service) -> None:
    page = page_of(context, "commute")
    connection = Connection(context)
    before = Surveys(service.vault).status("commute").answers
    answer_commute(page)
    shown = json.loads(page.locator("pre").inner_text())
    context.set_offline(True)
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("or you are offline")).to_be_visible()
    expect(page.get_by_role("button", name="Change my answers")).to_have_count(0)  # it may have been sent
    assert page.evaluate(STORED) == [{"state": "tried", "sealed": True}]
    context.set_offline(False)
    expect(page.get_by_text("Thank you")).to_be_visible()
    assert all(post == shown for post in connection.posts)  # the same row, however often
    assert Surveys(service.vault).status("commute").answers == before + 1


def test_two_clicks_and_two_tabs_count_once(context: BrowserContext, service: Service) -> None:
    before = Surveys(service.vault).status("commute").answers
    connection = Connection(context)
    first = page_of(context, "commute")
    answer_commute(first)
    second = page_of(context, "commute")
    button = second.get_by_role("button", name="Send this")
    assert second.locator("pre").inner_text() == first.locator("pre").inner_text()
    first.get_by_role("button", name="Send this").dblclick()
    button.click()
    for page in (first, second):
        expect(page.get_by_text("Thank you")).to_be_visible()
    assert len(connection.posts) == 1
    assert Surveys(service.vault).status("commute").answers == before + 1


def test_wiped_storage(context: BrowserContext, service: Service) -> None:
    """Answers that were not sent are gone; answers that were sent count once, by their invitation."""
    surveys, name = Surveys(service.vault), f"invited-{secrets.token_hex(4)}"
    surveys.new(name, surveys.get("commute").survey, invited=True)
    surveys.open(name)
    [ticket] = surveys.invite(name, 1)
    wipe = "() => new Promise((resolve) => { indexedDB.deleteDatabase('sfumato-survey').onsuccess = resolve; })"
    for said in ("Your answers were deleted here", "It had arrived before, and counts once"):
        page = page_of(context, f"{name}#ticket={ticket}")
        answer_commute(page)
        expect(page.get_by_role("button", name="Send this")).to_be_visible()
        page.evaluate(wipe)
        page.reload()
        expect(page.get_by_role("button", name="Show me")).to_be_visible()  # the answers are gone
        answer_commute(page)
        page.get_by_role("button", name="Send this").click()
        expect(page.get_by_text(said)).to_be_visible()
        page.evaluate(wipe)
        page.close()
    assert surveys.status(name).answers == 1


def test_the_deadline_deletes_what_waits(context: BrowserContext, service: Service) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=12)).isoformat()
    name = guided_survey(service, begun=False, deadline=soon)
    page = page_of(context, name)
    answer_votes(page)
    expect(page.get_by_text("The survey is not ready yet")).to_be_visible()
    page.wait_for_timeout(12_500)
    page.reload()
    expect(page.get_by_text("Your answers were deleted, not sent")).to_be_visible()
    assert page.evaluate(STORED) == [{"state": "dropped", "sealed": False}]


def test_a_row_that_may_have_been_sent_is_never_drawn_again(context: BrowserContext, service: Service) -> None:
    """The reply is lost: the row cannot be changed, not even by another version of the survey, and goes as it is."""
    if context.browser is not None and context.browser.browser_type.name == "firefox":
        pytest.skip("the driver does not know the bodies of Firefox's requests, and cannot send them itself")
    before = Surveys(service.vault).status("commute").answers
    lost: list[str] = []
    connection = Connection(context)

    def lose(route: Route) -> None:
        if not lost:
            lost.append(route.request.url)
            route.fetch()
            route.abort()
        else:
            route.continue_()

    context.route("**/answers", lose)
    page = page_of(context, "commute")
    answer_commute(page)
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("or you are offline")).to_be_visible()
    code = """async (what) => {
      const { Respondent } = await import("/survey/sfumato-survey.js");
      const one = await new Respondent({ server: location.origin, survey: "commute" }).load();
      try { await what === "forget" ? await one.forget() : await one.prepare({}, { level: 2 }); }
      catch (error) { return error.message; }
    }"""
    for what in ("forget", "prepare"):
        assert "on its way" in page.evaluate(code, what)
    page.reload()
    expect(page.get_by_text("It had arrived before, and counts once")).to_be_visible()
    first, *others = connection.posts
    assert others
    assert all(one == first for one in others)
    assert Surveys(service.vault).status("commute").answers == before + 1


def test_nothing_is_sent_before_it_was_seen(context: BrowserContext, service: Service) -> None:
    """With the form's own defaults; and unperturbed answers are not sent automatically even later."""
    connection = Connection(context)
    page = page_of(context, guided_survey(service, begun=True))
    answer_votes(page, automatic=True)
    expect(page.get_by_role("button", name="Send this")).to_be_visible()
    assert connection.posts == []
    name = guided_survey(service, begun=False)
    page = page_of(context, name)
    page.get_by_label("Help the survey to start").check()
    answer_votes(page, automatic=True)
    expect(page.get_by_text("“no0” is sent unchanged")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Send this")).to_be_visible()
    assert connection.posts == []
    begin(service, name)  # meanwhile it has started: it needs no more unperturbed answers
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("bits of your 8 bits of information about these questions")).to_be_visible()
    expect(page.get_by_text("“no0” is sent unchanged")).to_have_count(0)
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("Your unchanged answers left this device, as you chose")).to_be_visible()


def test_waiting_answers_are_sent_while_the_page_is_open(context: BrowserContext, service: Service) -> None:
    name = guided_survey(service, begun=False)
    page = page_of(context, name)
    answer_votes(page, automatic=True)
    expect(page.get_by_text("You can close this page")).to_be_visible()
    begin(service, name)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.get_by_text("Thank you")).to_be_visible()


def test_another_site_may_embed_the_survey(browser: Browser, service: Service, tmp_path: Path) -> None:
    """With the tags that the console shows; a module that was tampered with does not run."""
    from sfumato.service.web.surveys import MODULES, integrity

    def tags(of: str) -> str:
        return "".join(
            f'<script type="module" src="{service.url}/survey/{file}" integrity="{of or integrity(file)}" crossorigin>'
            "</script>"
            for file in MODULES
        )

    for of, file in (("", "mine.html"), ("sha384-" + "A" * 64, "tampered.html")):
        sheet = f'{service.url}/survey/sfumato-form.css" integrity="{integrity("sfumato-form.css")}'
        look = f'<link rel="stylesheet" href="{sheet}" crossorigin>'
        theme = "<style>sfumato-survey { --sfumato-accent: rgb(122, 31, 92) }</style>"
        form = f'<sfumato-survey server="{service.url}" survey="commute"></sfumato-survey>'
        body = f"<title>Mine</title>{look}{theme}{tags(of)}{form}"
        (tmp_path / file).write_text(body)
    with another_site(tmp_path) as url:
        context = browser.new_context(base_url=url)
        page = context.new_page()
        page.goto("/tampered.html")
        page.wait_for_timeout(1000)
        assert page.locator("sfumato-survey form").count() == 0
        page.goto("/mine.html")
        preview = page.get_by_role("button", name="Show me")
        expect(preview).to_have_css("background-color", "rgb(122, 31, 92)")  # the page's own theme
        answer_commute(page)
        page.get_by_role("button", name="Send this").click()
        expect(page.get_by_text("Thank you")).to_be_visible()
        context.close()


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_pages_look_right_and_are_accessible(browser: Browser, service: Service, size: str) -> None:
    name, surveys = guided_survey(service, begun=True), Surveys(service.vault)
    answer = Submission(secrets.token_hex(16), 1, 0, (0, 1, 0, 1, 0, 0, 2))
    surveys.collector.store("commute", surveys.get("commute").survey, [answer], invited=False)
    schemes: tuple[Scheme, ...] = ("light", "dark")
    for scheme in schemes:
        context = browser.new_context(
            base_url=service.url, viewport=browsers.SIZES[size], color_scheme=scheme, **browsers.mobile(browser, size)
        )
        page = page_of(context, name)
        expect(page.get_by_role("button", name="Show me")).to_be_visible()
        check_page(page, "survey-ask", size, scheme)
        answer_votes(page)
        expect(page.get_by_role("heading", name="What can be learned")).to_be_visible()
        check_page(page, "survey-review", size, scheme)
        sign_in(page)
        page.goto("/console/surveys")
        check_page(page, "surveys", size, scheme)
        page.goto("/console/surveys/commute")
        expect(page.locator("svg.share").first).to_be_visible()
        check_page(page, "survey-live", size, scheme)
        context.close()


def test_the_console_shows_alarms(context: BrowserContext, service: Service) -> None:
    """Forged rows of a survey, at the most careful level."""
    surveys, name = Surveys(service.vault), f"forged-{secrets.token_hex(4)}"
    surveys.new(name, surveys.get("commute").survey)
    surveys.open(name)
    forged = [Submission(f"{number:032x}", 0, 0, (0, 0, 0, 0, 0, 0, 0)) for number in range(60)]
    surveys.collector.store(name, surveys.get(name).survey, forged, invited=False)
    page = context.new_page()
    sign_in(page)
    page.goto(f"/console/surveys/{name}")
    expect(page.get_by_text("60 of 60 answers at the level 'careful' are the same").first).to_be_visible()
    expect(page.get_by_text("One forged answer changes a share by up to 26.7 points")).to_be_visible()


def test_a_form_waits_for_its_script(context: BrowserContext, service: Service) -> None:
    """A click before it would be a plain submit, and lost."""
    page = context.new_page()
    sign_in(page)
    page.goto("/console/new-survey")
    expect(page.get_by_role("button", name="Save draft")).to_be_enabled()
    page.route("**/static/builder.js", lambda route: route.abort())
    page.reload()
    expect(page.locator("#save")).to_be_disabled()


def test_an_owner_drafts_opens_and_closes_a_survey(context: BrowserContext, service: Service) -> None:
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page)
    page.get_by_role("link", name="Surveys").click()
    page.get_by_role("link", name="New survey").click()
    name = f"new-{secrets.token_hex(3)}"
    page.get_by_label("Survey name").fill(name)
    page.get_by_role("tab", name="As text").click()
    page.get_by_label("Definition").fill("title = 3")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator("#fault")).to_contain_text("must be text")
    page.get_by_label("Definition").fill(Survey.loads(GUIDED.format(deadline="2030-01-01", i="{i}")).dumps())
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url(f"**/console/surveys/{name}")
    expect(page.get_by_text(f"{name} · guided")).to_be_visible()
    expect(page.get_by_text("Prefer the randomised mode")).to_be_visible()
    page.get_by_role("button", name="Open survey").click()
    expect(page.get_by_text("Where people answer")).to_be_visible()
    page.get_by_role("button", name="Close survey").click()
    expect(page.locator("#state")).to_have_text("closed")
    answering = page_of(context, name)
    expect(answering.get_by_text("This survey is closed")).to_be_visible()

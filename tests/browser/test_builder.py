"""Browser tests of the survey builder: a survey from the first question to its results, and respondents' languages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests import browsers
from tests.browser.answering import Connection
from tests.browser.test_console import Scheme, check_page, opened, sign_in
from tests.serving import Service, serving, sqlite_vault

from sfumato.survey.respondent import Choice, HttpConnection, Respondent
from sfumato.survey.surveys import Surveys

KINDS = """
title = "Reading"
consent = "Your answers are randomly changed."
deadline = "2030-12-31"
language = "en"
[levels]
careful = 0.5
open = 2.5
[questions.mood]
text = "How do you feel?"
kind = "scale"
options = ["bad", "so so", "good"]
[questions.born]
text = "When were you born?"
kind = "date"
cuts = ["1970-01-01", "2000-01-01"]
[questions.first]
text = "What do you read first?"
kind = "ranking"
options = ["news", "books", "letters"]
[questions.miles]
text = "How far do you go?"
kind = "number"
cuts = [2, 10]
unit = "km"
[translations.de]
title = "Lesen"
consent = "Ihre Antworten werden zufällig verändert."
[translations.de.questions.mood]
text = "Wie geht es Ihnen?"
options = ["schlecht", "mittel", "gut"]
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(sqlite_vault(tmp_path), tmp_path) as found:
        yield found


def _press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def _add_a_ranking(page: Page) -> None:
    _press(page, "Add a question")
    added = page.locator("#questions > li").last
    added.get_by_label("Question", exact=True).fill("What matters most?")
    added.get_by_label("Kind of answer").select_option("text")
    expect(page.locator("#fault")).to_contain_text(
        "free text cannot be perturbed"
    )  # the reason, and what to ask instead
    added.get_by_label("Kind of answer").select_option("ranking")
    added.get_by_label("Options (one a line)").fill("cost\nspeed\ncomfort")
    added.get_by_label("Name in results").fill("matters")
    expect(page.locator("#fault")).to_be_hidden()
    page.get_by_label("People who answer").fill("100000")
    expect(page.locator("#plan tr").first).to_contain_text("±")


def _text_to_be_corrected(page: Page, text: Locator) -> None:
    """What is not valid yet is said, and not lost while somebody looks at something else."""
    valid = text.input_value()
    page.get_by_role("tab", name="As text").click()
    text.fill(f"{valid}\nnot toml")
    expect(page.locator("#fault")).to_contain_text("must be written in TOML")
    page.get_by_role("tab", name="Questions").click()
    page.get_by_label("People who answer").fill("500")
    page.wait_for_timeout(800)
    assert text.input_value().endswith("not toml")  # to be corrected, and not lost
    page.get_by_role("tab", name="As text").click()
    text.fill(valid)
    expect(page.locator("#fault")).to_be_hidden()


def _preview(page: Page, size: str, scheme: Scheme) -> None:
    """The form in a language from right to left, then answered; nothing leaves the page."""
    connection = Connection(page.context)
    page.get_by_role("tab", name="Preview").click()
    preview = page.locator("sfumato-preview")
    page.get_by_label("Show it in").select_option("ar")
    expect(preview.get_by_text("أوافق")).to_be_visible()
    expect(preview).to_have_attribute("dir", "rtl")
    check_page(page, "builder-preview", size, scheme)
    page.get_by_label("Show it in").select_option("en")
    preview.get_by_label("I agree").check()
    preview.get_by_label("yes").check()
    preview.get_by_label("How far").fill("12")
    preview.get_by_label("always").check()
    for option, rank in (("cost", "2"), ("speed", "2"), ("comfort", "3")):
        preview.get_by_label(option).select_option(label=rank)
    preview.get_by_role("button", name="Show me").click()
    expect(preview.get_by_text("Some questions are not answered.")).to_be_visible()  # two options have one rank
    preview.get_by_label("speed").select_option(label="1")
    preview.get_by_role("button", name="Show me").click()
    expect(preview.get_by_text(">")).to_be_visible()  # a ranking is sent, perhaps another one
    preview.get_by_role("button", name="Send this").click()
    expect(preview.get_by_text("Nothing was sent, and nothing was stored.")).to_be_visible()
    assert not [one for one in connection.requests if "/respond/" in one.url]


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_survey_is_built_previewed_saved_changed_and_duplicated(
    browser: Browser, service: Service, size: str, scheme: Scheme
) -> None:
    page = opened(browser, service, size, scheme)
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page)
    page.goto("/console/surveys")
    page.get_by_role("link", name="New survey").click()
    expect(page.locator("#plan tr")).to_have_count(3)
    page.get_by_label("Title").fill("Trams")
    page.get_by_label("Survey name").fill("trams")
    _add_a_ranking(page)
    check_page(page, "builder", size, scheme)
    page.get_by_role("tab", name="As text").click()
    text = page.get_by_label("Definition (TOML)")
    expect(text).to_have_value(re.compile(r"\[questions\.matters\]"))
    text.fill(text.input_value().replace('title = "Trams"', 'title = "Trams and buses"'))
    page.get_by_role("tab", name="Questions").click()
    expect(page.get_by_label("Title")).to_have_value("Trams and buses")  # both views are of one document
    _text_to_be_corrected(page, text)
    _preview(page, size, scheme)
    _press(page, "Save draft")
    page.wait_for_url("**/console/surveys/trams")
    page.get_by_role("link", name="Edit and preview").click()
    page.get_by_label("Title").fill("Trams")
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("Trams")  # what is not saved is kept in the tab
    _press(page, "Save draft")
    page.wait_for_url("**/console/surveys/trams")
    _press(page, "Open survey")
    expect(page.locator("#state")).to_have_text("open")
    page.goto("/console/surveys/trams/edit")
    expect(page.get_by_text("duplicate it instead")).to_be_visible()
    page.goto("/console/surveys/trams")
    page.get_by_role("link", name="Duplicate as a new survey").click()
    page.get_by_label("Survey name").fill("trams-2")
    _press(page, "Save draft")
    page.wait_for_url("**/console/surveys/trams-2")
    surveys = Surveys(service.vault)
    one, two = surveys.get("trams"), surveys.get("trams-2")
    assert (one.state, two.state) == ("open", "draft")
    assert one.survey == two.survey
    assert [question.name for question in one.survey.questions][-1] == "matters"
    page.context.close()


@pytest.mark.parametrize(
    ("tag", "direction", "agree", "send"),
    [
        ("en-GB", "ltr", "I agree", "Send this"),
        ("de-AT", "ltr", "Ich stimme zu", "Das senden"),
        ("ar", "rtl", "أوافق", "أرسل هذا"),
    ],
)
def test_respondents_are_asked_in_their_language(
    browser: Browser, service: Service, tag: str, direction: str, agree: str, send: str
) -> None:
    surveys = Surveys(service.vault)
    surveys.new("reading", KINDS)
    surveys.open("reading")
    context = browser.new_context(base_url=service.url, locale=tag, viewport={"width": 390, "height": 844})
    connection, page = Connection(context), context.new_page()
    browsers.watched(page)
    page.goto("/answer/reading")
    expect(page.locator("html")).to_have_attribute("dir", direction)
    expect(page.get_by_role("heading", level=1)).to_have_text("Lesen" if tag == "de-AT" else "Reading")
    expect(page.locator(".worst")).to_contain_text("88 %")  # the slider begins at careful: 1 / (1 + exp(-4 * 0.5))
    page.get_by_label(agree).check()
    page.get_by_label("gut" if tag == "de-AT" else "good").check()
    page.locator("input[type=date]").fill("1999-12-31")
    for option, rank in (("news", "3"), ("books", "1"), ("letters", "2")):
        page.get_by_label(option).select_option(label=rank)
    page.locator("input[type=number]").fill("3")
    check_page(page, f"answer-{tag}", "phone", "light")
    page.locator("form + button").click()
    expect(page.locator("pre")).to_be_visible()
    check_page(page, f"review-{tag}", "phone", "light")
    english = [
        one
        for one in ("What can be learned", "is sent;", "Fingerprint", "Change my answers")
        if one in page.inner_text("main")
    ]
    assert bool(english) == (tag == "en-GB")
    sent = json.loads(page.locator("pre").inner_text())
    page.get_by_role("button", name=send).click()
    expect(page.locator("sfumato-survey h2")).to_be_visible()
    expect(page.locator("pre")).to_have_count(0)
    assert connection.posts == [sent]
    assert len(sent["row"]) == 4
    assert surveys.status("reading").answers == 1
    page.goto("/answer/reading?lang=de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    context.close()


def test_cross_table_and_methods_paragraph_on_the_page(browser: Browser, service: Service) -> None:
    surveys, rng = Surveys(service.vault), np.random.default_rng(1)
    surveys.new("reading", KINDS)
    surveys.open("reading")
    line = HttpConnection(service.url)
    survey = Respondent(line, "reading").survey()
    for _ in range(300):
        mood = int(rng.integers(3))
        answers = {
            "mood": ("bad", "so so", "good")[mood],
            "born": f"{1965 + 20 * mood}-05-05",
            "first": ["news", "books", "letters"],
            "miles": 5.0,
        }
        person = Respondent(line, "reading")
        person.prepare(survey, answers, Choice(level=1))
        assert person.send()
    page = opened(browser, service)
    sign_in(page)
    page.goto("/console/surveys/reading")
    expect(page.locator("#shares")).to_contain_text("news first")
    _press(page, "Show")
    expect(page.locator("#crossed td")).to_have_count(9)
    expect(page.locator("#crossed")).to_contain_text("from 300 answers")
    _press(page, "Write the methods paragraph")
    expect(page.locator("#paragraph")).to_contain_text("k-ary randomised response")
    check_page(page, "survey-results", "desktop", "light")
    page.locator("#second").select_option("mood")
    _press(page, "Show")
    expect(page.locator("#crossed")).to_contain_text("two different questions")
    page.locator("#by").select_option("mood")
    for answer, share in (("bad (%)", "50"), ("so so (%)", "30"), ("good (%)", "20")):
        page.get_by_label(answer).fill(share)
    _press(page, "Weigh")
    expect(page.locator("#weighted")).to_contain_text("news first")
    check_page(page, "survey-weighted", "desktop", "light")
    page.get_by_label("good (%)").fill("30")
    _press(page, "Weigh")
    expect(page.locator("#weighted")).to_contain_text("must add up to 1")
    page.context.close()


def test_people_are_invited_by_groups_with_quotas(browser: Browser, service: Service) -> None:
    surveys = Surveys(service.vault)
    surveys.new("reading", KINDS, invited=True)
    surveys.open("reading")
    page = opened(browser, service)
    sign_in(page)
    page.goto("/console/surveys/reading")
    page.get_by_label("Number of people to invite").fill("20")
    page.get_by_label("Their group").fill("north")
    page.get_by_label("Answers wanted of it").fill("15")
    _press(page, "Create links")
    expect(page.locator("#tickets")).to_have_text(re.compile(r"(\S+/answer/reading#ticket=\S+\s*){20}"))
    page.reload()
    expect(page.get_by_role("row", name="north")).to_contain_text("15")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the perturbed answers").click()
    assert '"level","epsilon"' in download.value.path().read_text()
    page.context.close()

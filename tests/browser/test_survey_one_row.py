"""A malicious survey server gets one perturbed row per person and survey from a real Chromium, whatever it replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser.answering import answer_commute
from tests.browser.hostile import BODIES, STATUSES, VARIANTS, HostileServer, hostile_server


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as found:
        yield found


@pytest.fixture
def person(browser: Browser, server: HostileServer) -> Iterator[BrowserContext]:
    """A person with a browser of their own, before a server that has not received anything."""
    server.received, server.paths, server.definitions, server.page_headers = [], [], repeat(VARIANTS[0]), {}
    context = browser.new_context(base_url=server.url)
    yield context
    context.close()


_ANSWER_AGAIN_AND_AGAIN = """async (surveys) => {
  const { Respondent } = await import("/survey/sfumato-survey.js");
  const answers = { car: "yes", distance: 12, ways: ["bicycle"], home: "some days" };
  await Promise.all(surveys.map(async (survey) => {
    const one = await new Respondent({ server: location.origin, survey }).load();
    const prepare = () => one.prepare(answers, { level: 1 }), send = () => one.send(), forget = () => one.forget();
    for (const step of [prepare, send, forget, prepare, send]) await step().catch(() => {});
  }));
}"""


def test_every_reply_gets_the_same_row(person: BrowserContext, server: HostileServer) -> None:
    """Every status with every body, and again and again: one row, or none."""
    if person.browser is not None and person.browser.browser_type.name == "firefox":
        pytest.skip("Firefox waits for minutes for replies that a hostile server never ends")
    most = (200, 201, 403, 409, 410, 422, 503)
    names = [f"{status}-{body}" for status in STATUSES for body in (BODIES if status in most else ("problem", "page"))]
    page = person.new_page()
    page.goto("/")
    page.evaluate(_ANSWER_AGAIN_AND_AGAIN, names)
    bodies: dict[str, list[str]] = {}
    for path, body in zip(server.paths, server.received, strict=True):
        bodies.setdefault(path, []).append(json.dumps(body))
    assert set(bodies) == {f"/api/v1/respond/{name}/answers" for name in names}  # no redirect was followed
    assert [path for path, sent in bodies.items() if len(set(sent)) > 1] == []
    assert len(server.received) > 1.5 * len(names)  # most replies make the browser try again


def test_clicks_reloads_and_other_definitions_get_the_same_row(person: BrowserContext, server: HostileServer) -> None:
    """The page itself: changed answers, retries, and a survey that asks for other things under the same name."""
    page = person.new_page()
    page.goto("/commute")
    answer_commute(page)
    shown = json.loads(page.locator("pre").inner_text())
    for status in (500, 410, 307, 401, 0, 200, 503):
        server.reply = (status, "page")
        page.get_by_role("button", name="Send this").or_(page.get_by_role("button", name="Try again")).click()
        expect(page.get_by_role("button", name="Try again")).to_be_enabled()
        expect(page.get_by_text("The same row will be sent again")).to_be_visible()
        assert page.get_by_role("button", name="Change my answers").count() == 0
    page.reload()
    expect(page.get_by_text("The same row will be sent again")).to_be_visible()
    assert len(server.received) >= 8
    server.definitions = chain(VARIANTS[1:], repeat(VARIANTS[0]))
    for _ in range(3):
        page.reload()
        expect(page.get_by_text("Sent, but not confirmed")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("Only the randomly changed version left this device")
    assert server.rows == {json.dumps(shown["row"])}


@pytest.mark.parametrize("status", [409, 410])
def test_a_row_that_was_refused_is_said_to_have_left(
    person: BrowserContext, server: HostileServer, status: int
) -> None:
    page = person.new_page()
    page.goto("/commute")
    answer_commute(page)
    server.reply = (status, "problem")
    page.get_by_role("button", name="Send this").click()
    for _ in range(2):
        expect(page.get_by_role("heading", name="Sent, but not accepted")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("Only the randomly changed version left this device")
        page.reload()
    assert len(server.received) == 1


def test_changed_answers_are_not_drawn_anew(person: BrowserContext, server: HostileServer) -> None:
    """The same answers give the same row; another answer changes its own item alone, and the level stays."""
    page = person.new_page()
    page.goto("/commute")
    rows = []
    for distance in ("12", "12", "40", "1", "12"):
        page.get_by_label("I agree").check()
        page.get_by_label("How far").fill(distance)
        for label in ("yes", "bicycle", "some days"):
            page.get_by_label(label).check()
        page.get_by_role("button", name="Show me").click()
        rows.append(_shown(page)["row"])
        page.get_by_role("button", name="Change my answers").click()
        expect(page.get_by_text("You chose this before the random changes were drawn")).to_be_visible()
        if distance == "40":
            page.reload()
            expect(page.get_by_text("You chose this before the random changes were drawn")).to_be_visible()
    assert rows[0] == rows[1] == rows[4]
    assert all(row[:1] + row[2:] == rows[0][:1] + rows[0][2:] for row in rows)
    message = page.evaluate(_PREPARE_AT_ANOTHER_LEVEL)
    assert "chosen before the random changes were drawn" in message
    assert server.received == []


_PREPARE_AT_ANOTHER_LEVEL = """async () => {
  const { Respondent } = await import("/survey/sfumato-survey.js");
  const one = await new Respondent({ server: location.origin, survey: "commute" }).load();
  const answers = { car: "yes", distance: 1, ways: [], home: "never" };
  try { await one.prepare(answers, { level: 2 }); } catch (error) { return error.message; }
}"""


def _shown(page: Page) -> Any:
    expect(page.get_by_role("button", name="Send this")).to_be_visible()
    return json.loads(page.locator("pre").inner_text())


def test_a_page_that_is_open_survives_cleared_storage(person: BrowserContext, server: HostileServer) -> None:
    """While the page is open it remembers its row; a page that is loaded anew asks again, and sends nothing itself."""
    page = person.new_page()
    page.goto("/commute")
    answer_commute(page)
    server.reply = (503, "problem")
    page.get_by_role("button", name="Send this").click()
    expect(page.get_by_text("The same row will be sent again")).to_be_visible()
    clear = "() => new Promise((resolve) => { indexedDB.deleteDatabase('sfumato-survey').onsuccess = resolve; })"
    for _ in range(2):
        page.evaluate(clear)
        assert "on its way" in page.evaluate(_PREPARE_AT_ANOTHER_LEVEL)
        page.evaluate(clear)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("button", name="Try again")).to_be_enabled()
    assert len(server.rows) == 1
    count = len(server.received)
    server.page_headers = {"Clear-Site-Data": '"storage"'}
    page.reload()
    server.page_headers = {}
    page.reload()
    expect(page.get_by_role("button", name="Show me")).to_be_visible()
    assert len(server.received) == count

"""Helpers for browser tests of surveys: filling in the form, and reading what is sent and stored."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from playwright.sync_api import BrowserContext, Page, Request
from tests import browsers
from tests.serving import Service

from sfumato.survey.perturbation import seeded_integers
from sfumato.survey.respondent import Choice, HttpConnection, Respondent
from sfumato.survey.surveys import Surveys

Array = Any


GUIDED = (
    'title = "Votes"\nconsent = "Answers are perturbed."\ndeadline = "{deadline}"\nclass = "party"\nmode = "guided"\n'
    '[guided]\nbootstrap = 32\n[questions.party]\ntext = "Party"\noptions = ["blue", "red"]\n'
    + "".join(f'[questions.v{i}]\ntext = "Vote {i}"\noptions = ["no{i}", "yes{i}"]\n' for i in range(8))
)

KNOWN_BITS = """
let at = 0;
crypto.getRandomValues = (array) => {
  for (let i = 0; i < array.length; i++) array[i] = Math.imul(++at, 2654435761);
  return array;
};
"""
"""Known random bits for a test: the i-th word is a multiple of Knuth's number."""


TELL_BODIES = """
const real = window.fetch;
window.fetch = (url, options) => { if (options?.body) tellBody(options.body); return real(url, options); };
"""


class Connection:
    """All requests of a browser. Firefox does not tell the driver the bodies of requests: there the page does."""

    def __init__(self, context: BrowserContext) -> None:
        self.requests: list[Request] = []
        self._told: list[str] | None = None
        context.on("request", self._record)
        if context.browser is not None and context.browser.browser_type.name == "firefox":
            told = self._told = []
            context.expose_binding("tellBody", lambda _, body: told.append(body))
            context.add_init_script(TELL_BODIES)

    def _record(self, request: Request) -> None:
        self.requests.append(request)

    @property
    def posts(self) -> list[Any]:
        if self._told is not None:
            return [json.loads(body) for body in self._told]
        return [json.loads(one.post_data or "null") for one in self.requests if one.method == "POST"]

    def check_quiet(self, url: str) -> None:
        """Only pages, scripts, definitions and guidance were requested, without data or cookies of the respondent."""
        public = r"api/v1/respond/[\w-]+(/guidance|/receipts)?"
        allowed = rf"/(answer/[\w-]+|answer-worker\.js|static/[\w.]+|survey/[\w.-]+|{public})"
        for one in self.requests:
            if one.method != "POST":
                assert re.fullmatch(re.escape(url) + allowed, one.url), one.url
                assert one.post_data is None
            assert "cookie" not in one.all_headers()


def page_of(context: BrowserContext, name: str) -> Page:
    page = context.new_page()
    browsers.watched(page)
    page.goto(f"/answer/{name}")
    return page


def answer_commute(page: Page) -> None:
    page.get_by_label("I agree").check()
    page.get_by_label("yes").check()
    page.get_by_label("How far").fill("12")
    page.get_by_label("bicycle").check()
    page.get_by_label("some days").check()
    page.get_by_role("button", name="Show me").click()


def answer_votes(page: Page, allowed: int = 3, *, automatic: bool = False) -> None:
    page.get_by_label("I agree").check()
    page.get_by_label("blue").check()
    for i in range(8):
        page.get_by_label(f"{'yes' if i % 3 else 'no'}{i}").check()
    page.get_by_label("More privacy to the left").fill(str(allowed))
    page.get_by_label("If it asks for more now").set_checked(automatic)
    page.get_by_role("button", name="Show me").click()


def guided_survey(service: Service, *, begun: bool, deadline: str = "2030-01-01") -> str:
    """The name of a new guided survey, with its first guidance if it has `begun`."""
    name, surveys = f"votes-{secrets.token_hex(4)}", Surveys(service.vault)
    surveys.new(name, GUIDED.format(deadline=deadline, i="{i}"))
    surveys.open(name)
    if begun:
        begin(service, name)
    return name


def begin(service: Service, name: str) -> None:
    rng, line = np.random.default_rng(3), HttpConnection(service.url)
    survey = Respondent(line, name).survey()
    for _ in range(32):
        right = rng.random() < 0.5
        agrees = rng.random(8) < 0.8
        votes = {f"v{i}": f"{'yes' if (right == agrees[i]) == bool(i % 2) else 'no'}{i}" for i in range(8)}
        helper = Respondent(line, name)
        helper.prepare(survey, {"party": "red" if right else "blue", **votes}, Choice(clear=True))
        assert helper.send()


def known_draws(count: int) -> Array:
    """The random numbers of the first answer in a browser with known bits."""
    ticket, sealing = 16, 12  # random words used for the ticket and the first encryption
    start = 1 + ticket + sealing
    return seeded_integers(bytes(at * 2654435761 & 255 for at in range(start, start + 32)), count)


STORED = """async () => {
  const database = await new Promise((resolve) => {
    const opening = indexedDB.open("sfumato-survey", 1);
    opening.onupgradeneeded = () => ["kept", "keys"].forEach((name) => opening.result.createObjectStore(name));
    opening.onsuccess = () => resolve(opening.result);
  });
  const all = (name) => new Promise((resolve) => {
    const asking = database.transaction(name).objectStore(name).getAll();
    asking.onsuccess = () => resolve(asking.result);
  });
  const [kept, keys] = [await all("kept"), await all("keys")];
  database.close();
  if (keys.some((key) => key.extractable)) throw new Error("a key can leave the browser");
  return kept.map(({ state, sealed }) => ({ state, sealed: Boolean(sealed) }));
}"""


@contextmanager
def another_site(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", "*")
            super().end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

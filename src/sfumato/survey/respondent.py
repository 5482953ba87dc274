"""A respondent's device in Python, for simulations and tests: what `Respondent` of the browser's module is."""

from __future__ import annotations

import http.client
import json
import secrets
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from sfumato.errors import GuidanceRefused, ServiceError, SurveyError
from sfumato.survey import perturbation as blurring
from sfumato.survey.definition import Survey
from sfumato.survey.device_checks import Foresight, inspect
from sfumato.survey.guidance import Guidance
from sfumato.survey.guidance_settings import GuidanceSettings
from sfumato.survey.perturbation import Draws, bits_of

_PATIENCE = 60


@dataclass(frozen=True)
class Choice:
    """How much a respondent lets the collector tell."""

    level: int = 0
    """The stop of the slider of a randomised survey."""
    allowed: int = 1
    """The largest disclosure level of a guided one."""
    truncate: bool = False
    clear: bool = False
    """Whether to help a guided survey begin, with an answer as it is."""


@dataclass
class Line:
    """A connection to a service, without a name."""

    url: str
    _held: http.client.HTTPConnection | None = field(default=None, repr=False)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and what was said; a connection that broke is tried once more."""
        said = None if body is None else json.dumps(body)
        for last in (False, True):
            try:
                if self._held is None:
                    self._held = self._connected()
                self._held.request(method, path, said, {"Content-Type": "application/json"} if said else {})
                answer = self._held.getresponse()
                return answer.status, json.loads(answer.read() or b"{}")
            except (OSError, http.client.HTTPException, ValueError):
                self._held = None
                if last:
                    raise ServiceError(f"the service at {self.url} gave no answer; see that it runs") from None
        raise AssertionError

    def _connected(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        made = kind(parts.netloc, timeout=_PATIENCE)
        weakref.finalize(self, made.close)
        return made


@lru_cache(256)
def _inspected(matrix: bytes, sizes: tuple[int, ...], digest: str, allowed: int, rules: GuidanceSettings) -> Foresight:
    """The checks; many simulated devices share them, so that their seed is the guidance's digest, not a secret one."""
    found = np.frombuffer(matrix).reshape(sum(sizes), -1)
    limits = {"floor": rules.floor, "exposure": rules.exposure, "capacity": rules.capacity}
    return inspect(found, sizes, seed=digest, allowed=allowed, **limits)


class Respondent:
    """Somebody who answers one survey once."""

    def __init__(self, line: Line, name: str, *, ticket: str = "", draws: Draws = blurring.device_draws) -> None:
        self.line, self.name, self._path, self._draws = line, name, f"/api/v1/respond/{name}", draws
        self.ticket = ticket or secrets.token_hex(16)
        self._body: dict[str, Any] | None = None
        self._clear = False

    def survey(self) -> Survey:
        """The definition."""
        status, said = self.line.ask("GET", self._path)
        if status != 200:
            raise SurveyError(said.get("detail", "the survey cannot be reached"))
        found = json.loads(said["definition"])
        found["questions"] = {one.pop("name"): one for one in found["questions"]}
        found["levels"] = {one["name"]: one["epsilon"] for one in found["levels"]}
        del found["ends"]
        survey = Survey.parse(found)
        if survey.schema != said["version"]:
            raise SurveyError("the survey is not the one that it says it is")
        return survey

    def prepare(self, survey: Survey, answers: Mapping[str, Any], choice: Choice) -> str:
        """Blur the answers, once; returns why they must wait, or nothing."""
        if self._body is not None:
            return ""
        codes = survey.code(answers)
        common = {"ticket": self.ticket, "version": survey.schema}
        if choice.clear:
            self._clear = True
            self._body = {**common, "row": codes.tolist(), "label": survey.label(answers)}
        elif survey.mode == "randomised":
            row = blurring.randomise(codes, survey.sizes, survey.retention[choice.level], self._draws(2 * len(codes)))
            self._body = {**common, "level": choice.level, "row": row[0].tolist()}
        else:
            found = self._guidance(survey, choice)
            if isinstance(found, str):
                return found
            bits = bits_of(codes, survey.sizes)
            row = blurring.guided(bits, found.matrix, survey.guided.floor, self._draws(survey.width))
            said = {"epoch": found.epoch, "used": found.level, "label": survey.label(answers), "row": row[0].tolist()}
            self._body = {**common, **said}
        return ""

    def _guidance(self, survey: Survey, choice: Choice) -> Guidance | str:
        status, said = self.line.ask("GET", f"{self._path}/guidance")
        if status != 200 or said["matrix"] is None:
            return "there is no guidance yet"
        full = Guidance(survey.schema, said["epoch"], np.array(said["matrix"]))
        if said["digests"][-1:] != [full.digest] or len(said["digests"]) != full.epoch:
            raise GuidanceRefused("it is not the one that the public log shows to everybody")
        if full.level > choice.allowed and not choice.truncate:
            return f"the survey asks for {full.level} directions, more than {choice.allowed}"
        used = Guidance(survey.schema, full.epoch, np.ascontiguousarray(full.matrix[:, : choice.allowed]))
        _inspected(used.matrix.tobytes(), survey.sizes, full.digest, choice.allowed, survey.guided)
        return used

    def send(self) -> bool:
        """Send what was blurred, the same however often; returns whether it counted now."""
        if self._body is None:
            raise SurveyError("nothing is ready to be sent; prepare it first")
        status, said = self.line.ask("POST", f"{self._path}/{'bootstrap' if self._clear else 'answers'}", self._body)
        if status not in (200, 201):
            raise SurveyError(said.get("detail", f"the service answered with {status}"))
        return bool(said["counted"])

"""A respondent's device in Python, for simulations and tests: the twin of `Respondent` in the browser module."""

from __future__ import annotations

import http.client
import json
import secrets
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from sfumato.errors import GuidanceRefused, ServiceError, SurveyError
from sfumato.survey import perturbation
from sfumato.survey.definition import Survey
from sfumato.survey.device_checks import Disclosure, inspect_guidance
from sfumato.survey.guidance import Guidance
from sfumato.survey.guidance_settings import GuidanceSettings
from sfumato.survey.perturbation import RandomSource

_TIMEOUT = 60
"""Seconds to wait for the service."""


@dataclass(frozen=True)
class Choice:
    """How much a respondent allows the collector to learn."""

    level: int = 0
    """The index of the privacy level in a randomised survey."""
    allowed: int = 1
    """The largest disclosure level in a guided survey."""
    truncate: bool = False
    """Whether to follow only the allowed directions where the survey asks for more."""
    clear: bool = False
    """Whether to send the answers unperturbed, to start a guided survey."""


@dataclass
class HttpConnection:
    """An anonymous HTTP connection to a service, without cookies or tokens."""

    url: str
    _open: http.client.HTTPConnection | None = field(default=None, repr=False)

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the JSON content of a response; a broken connection is opened once more."""
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if content else {}
        for is_last in (False, True):
            try:
                if self._open is None:
                    self._open = self._connect()
                self._open.request(method, path, content, headers)
                response = self._open.getresponse()
                return response.status, json.loads(response.read() or b"{}")
            except (OSError, http.client.HTTPException, ValueError):
                self._open = None
                if is_last:
                    raise ServiceError(f"the service at {self.url} does not respond; check that it runs") from None
        raise AssertionError

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = connection_type(parts.netloc, timeout=_TIMEOUT)
        weakref.finalize(self, connection.close)
        return connection


@lru_cache(256)
def _inspected(
    matrix: bytes, sizes: tuple[int, ...], digest: str, allowed: int, settings: GuidanceSettings
) -> Disclosure:
    """The checks of a device, cached for many simulated ones: the seed is the digest, not a secret of each device."""
    guidance = np.frombuffer(matrix).reshape(sum(sizes), -1)
    limits = {"floor": settings.floor, "exposure": settings.exposure, "capacity": settings.capacity}
    return inspect_guidance(guidance, sizes, seed=digest, allowed=allowed, **limits)


class Respondent:
    """A respondent who answers one survey once."""

    def __init__(
        self,
        connection: HttpConnection,
        name: str,
        *,
        ticket: str = "",
        draws: RandomSource | None = None,
    ) -> None:
        self.connection, self.name, self._path = connection, name, f"/api/v1/respond/{name}"
        self._draws = draws or partial(perturbation.seeded_integers, secrets.token_bytes(32))
        self.ticket = ticket or secrets.token_hex(16)
        self._body: dict[str, Any] | None = None
        self._is_unperturbed = False

    def survey(self) -> Survey:
        """The survey's definition, from the service."""
        status, content = self.connection.request("GET", self._path)
        if status != 200:
            raise SurveyError(content.get("detail", "the survey cannot be reached"))
        document = json.loads(content["definition"])
        document["questions"] = {one.pop("name"): one for one in document["questions"]}
        document["levels"] = {one["name"]: one["epsilon"] for one in document["levels"]}
        del document["ends"]
        survey = Survey.parse(document)
        if survey.version != content["version"]:
            raise SurveyError("the survey's definition does not match its hash")
        return survey.check_protection()

    def prepare(self, survey: Survey, answers: Mapping[str, Any], choice: Choice) -> str:
        """Perturb the answers, once; returns the reason why they must wait, or an empty text."""
        if self._body is not None:
            return ""
        codes = survey.encode(answers)
        common = {"ticket": self.ticket, "version": survey.version}
        if choice.clear:
            self._is_unperturbed = True
            self._body = {**common, "row": codes.tolist(), "label": survey.label(answers)}
        elif survey.mode == "randomised":
            draws = self._draws(2 * len(codes))
            row = perturbation.randomised_response(codes, survey.sizes, survey.retention[choice.level], draws)
            self._body = {**common, "level": choice.level, "row": row[0].tolist()}
        else:
            guidance = self._guidance(survey, choice)
            if isinstance(guidance, str):
                return guidance
            bits, draws = perturbation.one_hot(codes, survey.sizes), self._draws(survey.width)
            row = perturbation.guided_response(bits, guidance.matrix, survey.guided.floor, draws)
            used = {"epoch": guidance.epoch, "used": guidance.level}
            self._body = {**common, **used, "label": survey.label(answers), "row": row[0].tolist()}
        return ""

    def _guidance(self, survey: Survey, choice: Choice) -> Guidance | str:
        """The current guidance, checked and cut to what the respondent allows; or the reason why to wait."""
        status, content = self.connection.request("GET", f"{self._path}/guidance")
        if status != 200 or content["matrix"] is None:
            return "there is no guidance yet"
        full = Guidance(survey.version, content["epoch"], np.array(content["matrix"]))
        if content["digests"][-1:] != [full.digest] or len(content["digests"]) != full.epoch:
            raise GuidanceRefused("it is not the one that the public log shows to everybody")
        if full.level > choice.allowed and not choice.truncate:
            return f"the survey asks for {full.level} directions, more than {choice.allowed}"
        used = Guidance(survey.version, full.epoch, np.ascontiguousarray(full.matrix[:, : choice.allowed]))
        _inspected(used.matrix.tobytes(), survey.sizes, full.digest, choice.allowed, survey.guided)
        return used

    def send(self) -> bool:
        """Send the prepared row, the same at every attempt; returns whether it counted now."""
        if self._body is None:
            raise SurveyError("nothing is ready to be sent; call prepare first")
        path = f"{self._path}/{'bootstrap' if self._is_unperturbed else 'answers'}"
        status, content = self.connection.request("POST", path, self._body)
        if status not in (200, 201):
            raise SurveyError(content.get("detail", f"the service answered with {status}"))
        return bool(content["counted"])

"""The form's catalogues: every text of the form is in each of them, with the same gaps, and no other text is."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.survey.test_twins import node

from sfumato.service.web.surveys import BROWSER, LANGUAGES

SCRIPT = f"import {{ CATALOGUES, translator }} from {json.dumps((BROWSER / 'sfumato-messages.js').as_uri())};"

EVERYWHERE = (
    "strong protection",
    "good protection",
    "moderate protection",
    "weak protection",
    "below {end}",
    "{end} or more",
    "{end} or more {unit}",
    "before {day}",
    "from {low}, before {high}",
    "from {day}",
    "yes",
    "no",
    "Enough people of your group have answered: yours counts if it came before, and was not stored else.",
)
"""Texts of the other modules that the form shows."""


def _run(code: str) -> Any:
    ran = subprocess.run(
        [node(), "--input-type=module", "-e", SCRIPT + code], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def catalogues() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = _run("console.log(JSON.stringify(CATALOGUES))")
    return found


def _texts_of_the_form() -> set[str]:
    form = (BROWSER / "sfumato-form.js").read_text()
    direct = re.findall(r'this\.t\((?:[^()"]*\? )?"([^"]+)"', form)
    alternatives = re.findall(r'"([A-Z][^"]{3,}?[^"\s])"(?= :|[;,\])]| \])', form)
    return {text for text in direct + alternatives if " " in text}


def test_every_text_of_the_form_is_in_every_catalogue(catalogues: dict[str, dict[str, str]]) -> None:
    texts = _texts_of_the_form() | set(EVERYWHERE)
    assert len(texts) > 50
    assert set(catalogues) == set(LANGUAGES)
    nothing = {"Nothing was sent", "The randomly changed version was not sent"}  # the beginnings of two texts
    for tag in set(LANGUAGES) - {"en"}:
        assert sorted(texts - nothing - set(catalogues[tag])) == [], tag


def test_catalogues_have_the_same_keys_and_gaps(catalogues: dict[str, dict[str, str]]) -> None:
    assert set(catalogues["de"]) == set(catalogues["ar"])
    for tag in ("de", "ar"):
        for key, text in catalogues[tag].items():
            assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", key)), (tag, key)
            assert text != key


def test_reasons_of_other_modules_are_translated() -> None:
    """They come with their values filled in; what is in the gaps is translated too, and unknown texts stay."""
    reasons = [
        "The survey cannot be reached, or you are offline. The same row will be sent again, and never another one.",
        "Below 10 points to win.",
        "constructor",
        "Something else (1+1).",
    ]
    found = _run(
        f"const t = translator('de-AT'); console.log(JSON.stringify({json.dumps(reasons)}.map((one) => t(one))))"
    )
    assert found == [
        "Die Umfrage ist nicht erreichbar, oder Sie sind offline. "
        "Es wird dieselbe Zeile noch einmal gesendet, nie eine andere.",
        "Below 10 points to win.",
        "constructor",
        "Something else (1+1).",
    ]
    source = (BROWSER / "sfumato-survey.js").read_text()
    for text in re.findall(r'"(your answer[^"]+)"', source):
        sentence = f"{text[0].upper()}{text[1:]}."
        [translated] = _run(f"console.log(JSON.stringify([translator('ar')({json.dumps(sentence)})]))")
        assert translated != sentence


def test_the_module_is_small() -> None:
    """Pages load it whole, in whatever language: three catalogues take less than 40 kB."""
    assert Path(BROWSER / "sfumato-messages.js").stat().st_size < 40_000

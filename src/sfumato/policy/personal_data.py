"""Personal data, recognised by names and by content: what identifies a person alone, or with other data."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

_EXAMINED = 2000
"""The number of distinct texts that are examined."""

_MOST = 0.9
"""A content is recognised if so many of the texts have it."""

_DIRECT = re.compile(
    r"(^|[_ .-])(name|surname|forename|first_?name|last_?name|e?mail|e_mail|phone|tel|telephone|mobile|address|street"
    r"|ssn|iban|passport|vorname|nachname|familienname|telefon|handy|strasse|straße|anschrift|adresse|nom|prenom|prénom"
    r"|telephone|téléphone|rue|apellidos?|nombre|telefono|teléfono|direccion|dirección|cognome|indirizzo|telefoon"
    r"|straat|achternaam|voornaam)($|[_ .-])",
    re.IGNORECASE,
)

_QUASI = re.compile(
    r"(^|[_ .-])(age|birth|birthday|born|dob|sex|gender|race|ethnicity|nationality|citizenship|marital|religion"
    r"|education|occupation|job|profession|zip|zipcode|postcode|postal|region|county|state|country|municipality|city|town|lat"
    r"|lon|lng|latitude|longitude|alter|geburtsdatum|geburtsjahr|geschlecht|familienstand|beruf|plz|ort|gemeinde|kreis"
    r"|bundesland|staatsangehoerigkeit|sexe|naissance|commune|departement|département|pays|edad|sexo|nacimiento"
    r"|provincia|eta|sesso|nascita|comune|leeftijd|geslacht|geboortedatum|gemeente)($|[_ .-]|\d)",
    re.IGNORECASE,
)

_CONTENTS = (
    ("e-mail addresses", r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$"),
    ("web addresses", r"^(https?://|www\.)\S+$"),
    ("network addresses", r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$"),
    ("bank accounts (IBAN)", r"^[A-Z]{2}[0-9]{2} ?([A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}$"),
    ("social security numbers", r"^([0-9]{3}-[0-9]{2}-[0-9]{4}|756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2})$"),
    ("national insurance numbers", r"^[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]$"),
    ("personal numbers", r"^([0-9]{6}|[0-9]{8})[-+A][0-9]{3}[0-9A-Z]$"),
    ("telephone numbers", r"^(\+|00?)[0-9 ()/.-]{6,}[0-9]$|^\(?[0-9]{2,5}\)?[ /-][0-9 /.-]{4,}[0-9]$"),
)
"""What identifies a person whatever the name of its column."""


def direct_identifier(name: str, array: pa.Array) -> str:
    """What a column holds that identifies a person alone; empty if nothing was recognised."""
    if _DIRECT.search(name) and not types.is_floating(array.type):
        return "names, addresses or numbers of people, as its name says"
    if not (types.is_string(array.type) or types.is_large_string(array.type)):
        return ""
    texts = pc.unique(array.slice(0, 20 * _EXAMINED)).drop_null().slice(0, _EXAMINED)
    for content, pattern in _CONTENTS:
        if len(texts) and _share(texts, pattern) >= _MOST:
            return content
    return ""


def is_quasi_identifier(name: str) -> bool:
    """Whether the name of a column is one of those by which people are recognised together with other data."""
    return bool(_QUASI.search(name))


def _share(texts: Any, pattern: str) -> float:
    return float(pc.sum(pc.match_substring_regex(texts, pattern)).as_py()) / len(texts)

"""Short texts in a database: encrypted as earlier versions did, and bound to their rows."""

from __future__ import annotations

import pytest

from sfumato.errors import TamperedError
from sfumato.keys.key import Key
from sfumato.keys.text_cipher import TextCipher

STORED = "AAECAwQFBgcICQoLL8F/d6mK1vWx9TjmbaI6q0S323YSYg=="
"""A text under the key 0, 1, 2, ... and the nonce 0, 1, 2, ..."""


@pytest.fixture
def cipher() -> TextCipher:
    return TextCipher.of(Key.from_bytes(bytes(range(32))), "answers")


def test_texts_of_earlier_versions_are_read(cipher: TextCipher) -> None:
    assert cipher.decrypt("row 7", STORED) == "héllo"
    assert cipher.decrypt("row 8", cipher.encrypt("row 8", "héllo")) == "héllo"
    assert cipher.encrypt("row 8", "héllo") != cipher.encrypt("row 8", "héllo")


@pytest.mark.parametrize("text", ["", "AAEC", STORED[:-4] + "AAA=", STORED[:9] + "*" + STORED[9:], f"{STORED}\n"])
def test_a_text_that_was_altered_is_refused(cipher: TextCipher, text: str) -> None:
    with pytest.raises(TamperedError, match="the answers must be as this vault stored them"):
        cipher.decrypt("row 7", text)


def test_a_text_is_read_only_in_its_row(cipher: TextCipher) -> None:
    with pytest.raises(TamperedError):
        cipher.decrypt("row 8", STORED)

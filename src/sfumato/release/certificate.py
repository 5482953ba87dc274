"""Certificates: a manifest signed by a vault, which a recipient can check with the vault's public key alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import ManifestError
from sfumato.keys.key import Key
from sfumato.keys.signature import is_signed, public_key, sign
from sfumato.keys.signature import succession as signed_succession
from sfumato.release.manifest import Manifest


def signed(manifest: Manifest, master: Key) -> Manifest:
    """The manifest with the signature of a vault's master key."""
    named = replace(manifest, signer=public_key(master))
    return replace(named, signature=sign(master, named.signed_content()))


def check(copy: Any, signer: str | None = None, succession: str | None = None) -> Manifest:
    """The manifest of a copy that is unaltered and signed, by the given public key if there is one.

    Args:
        copy: a path or a table.
        signer: the vault's public key, 64 hexadecimal digits, or a file that holds them. Without it the certificate
            only says that the copy is as somebody signed it.
        succession: the signature with which that key named the one that replaced it, from the vault's ledger.

    """
    manifest = Manifest.of(copy)
    if not manifest.signature:
        raise ManifestError("the copy must carry a certificate, and it was not released from a vault; ask its owner")
    named = (
        succession is not None and signer is not None and _is_successor(manifest.signer, _public(signer), succession)
    )
    if signer is not None and manifest.signer != _public(signer) and not named:
        raise ManifestError(
            f"the copy must be signed by {_public(signer)[:16]}…, and {manifest.signer[:16]}… signed it; do not trust "
            "it before its owner explains"
        )
    if not is_signed(manifest.signed_content(), manifest.signature, manifest.signer):
        raise ManifestError("the copy's certificate must be as it was signed, and it is not; do not trust it")
    manifest.verify(copy)
    return manifest


def _is_successor(new: str, old: str, signature: str) -> bool:
    """Whether the holder of an old public key signed that a new one replaces it."""
    return is_signed(signed_succession(old, new), signature.strip(), old)


def _public(given: str) -> str:
    path = Path(given)
    text = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else given.strip().lower()
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ManifestError(f"a public key must be 64 hexadecimal digits, or a file that holds them, got {given!r}")
    return text

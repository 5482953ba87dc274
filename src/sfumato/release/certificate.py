"""Certificates: a manifest or a sign-off pack signed by a vault, which its public key alone suffices to check."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import ManifestError
from sfumato.keys.key import Key
from sfumato.keys.signature import is_signed, public_key, sign
from sfumato.keys.signature import succession as signed_succession
from sfumato.release.manifest import Manifest

REPORTS = (".pdf", ".html", ".htm")
"""The suffixes of sign-off packs."""

_PURPOSE = b"sfumato-report-1 "
"""What a signature of a pack begins with, so that it is no signature of anything else."""


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


def signature_path(path: Path) -> Path:
    """The file beside a sign-off pack that holds its signature."""
    return path.with_name(f"{path.name}.sig")


def report_signature(master: Key, digest: str) -> bytes:
    """The content of that file, for a pack with this SHA-256."""
    stated = {
        "digest": digest,
        "signer": public_key(master),
        "signature": sign(master, _PURPOSE + digest.encode()),
    }
    return (json.dumps(stated, indent=1) + "\n").encode()


def is_report(path: Path) -> bool:
    """Whether a file is a sign-off pack with its signature beside it."""
    return path.suffix.lower() in REPORTS and signature_path(path).is_file()


def check_report(path: Path, signer: str | None = None) -> str:
    """The public key that signed a pack that is unaltered; refused if it is not, or if another key signed it."""
    try:
        stated: dict[str, str] = json.loads(signature_path(path).read_bytes())
        digest, key, signature = (str(stated[name]) for name in ("digest", "signer", "signature"))
        content = path.read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        raise ManifestError(f"the signature beside {path.name} must be one of a vault, and cannot be read") from None
    if hashlib.sha256(content).hexdigest() != digest or not is_signed(_PURPOSE + digest.encode(), signature, key):
        raise ManifestError(f"{path.name} must be as it was signed, and it is not; do not trust it")
    if signer is not None and signer.strip().lower() != key:
        raise ManifestError(f"{path.name} must be signed by {signer[:16]}…, and {key[:16]}… signed it; do not trust it")
    return key

"""Digital signatures with a key derived from the master key (Ed25519, RFC 8032)."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato.keys.key import Key


def public_key(master: Key) -> str:
    """The public verification key of a master key, in 64 hexadecimal digits."""
    return _private(master).public_key().public_bytes_raw().hex()


def sign(master: Key, content: bytes) -> str:
    """The signature of the content, in 128 hexadecimal digits; it is deterministic."""
    return _private(master).sign(content).hex()


def is_signed(content: bytes, signature: str, public: str) -> bool:
    """Whether the signature of the content verifies under the public key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def succession(old: str, new: str) -> bytes:
    """What the holder of an old public key signs to name the one that replaces it."""
    return f"sfumato-key-succession-1 {old} {new}".encode()


def _private(master: Key) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(master.derive("signature").expose())

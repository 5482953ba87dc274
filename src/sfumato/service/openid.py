"""OpenID Connect: operators sign in at their organisation's provider, which confirms who they are.

The authorization code flow with PKCE (RFC 7636), a state and a nonce, which stay in the browser that began; Authlib
speaks the protocol. The provider says who somebody is, never what that person may do: that is in the vault.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog

from sfumato.errors import ServiceError, install_hint
from sfumato.service.private_files import read_private_toml
from sfumato.service.problems import HTTPProblem

_SIGNATURES = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a key that only the provider has, unlike those with the client's secret, or none."""

_KEYS = {"issuer", "client_id", "client_secret", "name", "claim"}

_TIMEOUT = 10
"""Seconds within which the provider must answer."""


@dataclass(frozen=True)
class Provider:
    """An OpenID Connect provider, and this service's account there."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str = "your organisation"
    """What the sign-in page calls it."""
    claim: str = "email"
    """What it says that an operator's identity is compared with; an e-mail address must be verified."""


def read_provider(path: Path) -> Provider:
    """The provider in a file in TOML with `issuer`, `client_id` and `client_secret`, and maybe `name` and `claim`."""
    for module in ("authlib", "httpx2"):
        if find_spec(module) is None:
            raise ServiceError(f"OpenID Connect needs {module}; {install_hint('openid')}")
    found = read_private_toml(path, "the OpenID Connect provider")
    wrong = sorted({*(found.keys() - _KEYS), *(_KEYS - {"name", "claim"} - found.keys())})
    if wrong or not all(isinstance(value, str) and value for value in found.values()):
        raise ServiceError(
            f"{path} must have the texts issuer, client_id and client_secret, and may have name and claim; see "
            f"{', '.join(wrong) or 'what is no text, or empty'}"
        )
    issuer = urlsplit(found["issuer"])
    if issuer.scheme != "https" and issuer.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ServiceError(f"the issuer of an OpenID Connect provider must be an https address, got {found['issuer']}")
    return Provider(**found)


@dataclass(frozen=True)
class Begun:
    """A sign-in that a browser began; it keeps these until it comes back."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def of(cls, kept: str) -> Begun | None:
        """What a browser kept; `None` if that is no such thing."""
        parts = kept.split(".")
        return cls(*parts) if len(parts) == 3 and all(parts) else None

    def __str__(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"


class SignInThere:
    """Sign-in at a provider."""

    def __init__(self, provider: Provider) -> None:
        from authlib.integrations.starlette_client import OAuth  # noqa: PLC0415 - an extra, and slow to import

        self._provider = provider
        self._client: Any = OAuth().register(
            "provider",
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid email profile", "code_challenge_method": "S256", "timeout": _TIMEOUT},
        )

    async def begin(self, callback: str) -> tuple[str, Begun]:
        """The address of the provider to go to, and what the browser has to keep; `callback` is where it comes back."""
        try:
            await self._metadata()
            begun = await self._client.create_authorization_url(callback)
        except Exception as error:  # whatever a provider may answer
            raise self._unavailable(error) from None
        return begun["url"], Begun(begun["state"], begun["nonce"], begun["code_verifier"])

    def check_begun(self, came: Mapping[str, str], begun: Begun | None) -> Begun:
        """The sign-in that this browser began; raises `HTTPProblem` if it began no such one."""
        if begun is None or not hmac.compare_digest(begun.state.encode(), came.get("state", "").encode()):
            raise HTTPProblem(403, "This sign-in was not begun in this browser, or took over ten minutes; begin again.")
        if came.get("iss", self._provider.issuer) != self._provider.issuer:  # RFC 9207: another provider's answer
            raise HTTPProblem(403, "Another provider answered than the one that was asked; begin again.")
        return begun

    async def identity(self, came: Mapping[str, str], begun: Begun, callback: str) -> str:
        """Who came back from the provider; raises `HTTPProblem` if it does not confirm that."""
        if "code" not in came:
            raise HTTPProblem(403, f"{self._provider.name} did not confirm who you are; sign in there, and try again.")
        try:
            await self._metadata()
            token = await self._client.fetch_access_token(callback, code=came["code"], code_verifier=begun.verifier)
            claims = await self._client.parse_id_token(token, begun.nonce)
        except Exception as error:  # whatever a provider may answer
            raise self._unavailable(error) from None
        identity = str((claims or {}).get(self._provider.claim) or "")
        if not identity or (self._provider.claim == "email" and claims.get("email_verified") is not True):
            raise HTTPProblem(
                403, f"{self._provider.name} confirmed no {self._provider.claim} of yours; ask who administers it."
            )
        return identity

    async def _metadata(self) -> None:
        """Load what the provider says about itself, as far as it is believed."""
        found = await self._client.load_server_metadata()
        if found.get("issuer") != self._provider.issuer:
            raise ValueError(f"the issuer calls itself {found.get('issuer')}")
        offered = found.get("id_token_signing_alg_values_supported") or ["RS256"]
        found["id_token_signing_alg_values_supported"] = [one for one in offered if one in _SIGNATURES]

    def _unavailable(self, error: Exception) -> HTTPProblem:
        structlog.get_logger().warning("openid", error=type(error).__name__)  # its text may have a code or a token
        return HTTPProblem(
            502, f"{self._provider.name} could not be asked who you are; try again, or sign in with a password."
        )

"""OpenID Connect providers: a real one, and one that answers what a test tells it to."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from tests.postgres import free_port

SECRET = "a secret of the client, which has forty letters"  # noqa: S105 - of a test


def provider_file(folder: Path, issuer: str, **more: str) -> Path:
    """The file that `sfumato serve --openid` reads."""
    path = folder / "openid.toml"
    settings = {"issuer": issuer, "client_id": "sfumato", "client_secret": SECRET, "name": "Town Hall", **more}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    path.chmod(0o600)
    return path


@contextlib.contextmanager
def real_provider(*users: dict[str, Any]) -> Iterator[str]:
    """The issuer of a running provider, with users."""
    port = free_port()
    known = [part for user in users for part in ("--user-claims", json.dumps(user))]
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), *known]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(300):
                with contextlib.suppress(httpx2.HTTPError):
                    if httpx2.get(f"http://127.0.0.1:{port}/.well-known/openid-configuration").status_code == 200:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@dataclass
class MadeUpProvider:
    """A provider whose tokens a test makes up."""

    issuer: str = ""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    token: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def says(self, nonce: str, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> None:
        """Answer the next code with a token that has these claims instead of the right ones."""
        right = {"iss": self.issuer, "aud": "sfumato", "sub": "7", "nonce": nonce, "iat": int(time.time())}
        mail = {"email": "anna@example.org", "email_verified": True, "exp": int(time.time()) + 600}
        said = {name: value for name, value in {**right, **mail, **claims}.items() if value is not None}
        algorithms = ["RS256", "HS256", "none"]
        with warnings.catch_warnings(action="ignore"):  # that "none" is a bad idea
            self.token = jwt.encode({"alg": "RS256", "kid": "one", **(header or {})}, said, key or self.key, algorithms)

    def answer(self, path: str) -> dict[str, Any]:
        """The response to a request."""
        if path == "/.well-known/openid-configuration":
            urls = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            algorithms = ["RS256", "HS256", "none"]
            found = {"issuer": self.issuer, "id_token_signing_alg_values_supported": algorithms}
            return {**found, **{name: self.issuer + path for name, path in urls.items()}, **self.metadata}
        if path == "/keys":
            return {"keys": [self.key.as_dict(private=False), OctKey.import_key(SECRET, {"kid": "secret"}).as_dict()]}
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.token}


@contextlib.contextmanager
def made_up_provider() -> Iterator[MadeUpProvider]:
    """A provider whose tokens a test makes up, while it runs."""
    provider = MadeUpProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(provider.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Every endpoint against every role: each cell of the table is asserted, and no endpoint is left out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.serving import Service

ROLES = ("none", "garbage", "stranger", "clinic", "insurer", "expired", "revoked", "reader", "owner")

_OPEN = dict.fromkeys(ROLES, 200) | {"garbage": 200}
_UNKNOWN = dict.fromkeys(("none", "garbage", "expired", "revoked"), 401)
_ANYBODY = _UNKNOWN | dict.fromkeys(("stranger", "clinic", "insurer", "reader", "owner"), 200)


def _owner(status: int, reader: int = 403) -> dict[str, int]:
    """Only owners, readers among them if they may."""
    return _UNKNOWN | dict.fromkeys(("stranger", "clinic", "insurer"), 403) | {"reader": reader, "owner": status}


def _recipient(clinic: int = 200, insurer: int = 200, stranger: int = 404) -> dict[str, int]:
    """Only recipients; an owner must say whose copy it means."""
    return _UNKNOWN | {"clinic": clinic, "insurer": insurer, "stranger": stranger, "reader": 403, "owner": 403}


_POLICY = 'dataset = "x"\n[levels]\na = 0.5\n[columns]\nage = "gaussian"\n'
_NONE: dict[str, Any] = {}
_SURVEY = 'title = "t"\nconsent = "c"\ndeadline = "2030-01-01"\n[questions.q]\noptions = ["a", "b"]\n'
_SENT = {"ticket": "0" * 32, "version": "another", "row": [0], "label": 0}

CELLS: list[tuple[str, str, str, dict[str, Any], dict[str, int]]] = [
    ("GET", "/healthz", "/healthz", _NONE, _OPEN),
    ("GET", "/readyz", "/readyz", _NONE, _OPEN),
    ("GET", "/metrics", "/metrics", _NONE, _owner(200)),
    ("GET", "/api/v1/key", "/api/v1/key", _NONE, _OPEN),
    ("GET", "/api/v1/me", "/api/v1/me", _NONE, _ANYBODY),
    ("GET", "/api/v1/me/grants", "/api/v1/me/grants", _NONE, _recipient(stranger=200)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/ward", _NONE, _recipient()),
    ("HEAD", "/api/v1/copies/{dataset}", "/api/v1/copies/ward", _NONE, _recipient()),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/secret", _NONE, _recipient(404, 404)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/nowhere", _NONE, _recipient(404, 404)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/ward?level=0.3", _NONE, _recipient(200, 403)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/ward?level=0.9", _NONE, _recipient(403, 403)),
    (
        "GET",
        "/api/v1/copies/{dataset}",
        "/api/v1/copies/ward?recipient=clinic",
        _NONE,
        _recipient(200, 403, 403) | {"owner": 200},
    ),
    ("GET", "/api/v1/copies/{dataset}/manifest", "/api/v1/copies/ward/manifest", _NONE, _recipient()),
    ("GET", "/api/v1/vault", "/api/v1/vault", _NONE, _owner(200, 200)),
    ("GET", "/api/v1/datasets", "/api/v1/datasets", _NONE, _owner(200, 200)),
    ("POST", "/api/v1/datasets", "/api/v1/datasets", {"json": {"policy": _POLICY, "upload": "x"}}, _owner(202)),
    ("GET", "/api/v1/datasets/{dataset}", "/api/v1/datasets/ward", _NONE, _owner(200, 200)),
    ("GET", "/api/v1/datasets/{dataset}", "/api/v1/datasets/nowhere", _NONE, _owner(404, 404)),
    ("GET", "/api/v1/datasets/{dataset}/status", "/api/v1/datasets/ward/status", _NONE, _owner(200, 200)),
    ("GET", "/api/v1/datasets/{dataset}/policy", "/api/v1/datasets/ward/policy", _NONE, _owner(200, 200)),
    ("GET", "/api/v1/datasets/{dataset}/versions", "/api/v1/datasets/ward/versions", _NONE, _owner(200, 200)),
    (
        "POST",
        "/api/v1/datasets/{dataset}/versions",
        "/api/v1/datasets/ward/versions",
        {"json": {"upload": "x"}},
        _owner(202),
    ),
    (
        "GET",
        "/api/v1/datasets/{dataset}/preview",
        "/api/v1/datasets/ward/preview?fidelity=0.4",
        _NONE,
        _owner(200, 200),
    ),
    (
        "GET",
        "/api/v1/datasets/{dataset}/collusion",
        "/api/v1/datasets/ward/collusion?recipient=clinic&recipient=insurer",
        _NONE,
        _owner(200, 200),
    ),
    (
        "POST",
        "/api/v1/suggestions",
        "/api/v1/suggestions",
        {"json": {"upload": "x", "dataset": "x"}},
        _owner(404),
    ),
    ("POST", "/api/v1/uploads", "/api/v1/uploads", {"json": {"name": "x.csv"}}, _owner(201)),
    (
        "PUT",
        "/api/v1/uploads/{upload}/parts/{number}",
        "/api/v1/uploads/20260101-000000000000000000000000.csv/parts/1",
        {"content": b"a\n1\n"},
        _owner(204),
    ),
    (
        "DELETE",
        "/api/v1/uploads/{upload}",
        "/api/v1/uploads/20260101-000000000000000000000000.csv",
        _NONE,
        _owner(204),
    ),
    ("GET", "/api/v1/recipients", "/api/v1/recipients", _NONE, _owner(200, 200)),
    ("POST", "/api/v1/recipients", "/api/v1/recipients", {"json": {"recipient": "new"}}, _owner(201)),
    ("PATCH", "/api/v1/recipients/{recipient}", "/api/v1/recipients/new", {"json": {"enabled": True}}, _owner(200)),
    (
        "GET",
        "/api/v1/recipients/{recipient}/tokens",
        "/api/v1/recipients/clinic/tokens",
        _NONE,
        _owner(200, 200),
    ),
    ("POST", "/api/v1/recipients/{recipient}/tokens", "/api/v1/recipients/new/tokens", {"json": {}}, _owner(201)),
    ("GET", "/api/v1/tokens", "/api/v1/tokens", _NONE, _owner(200, 200)),
    ("POST", "/api/v1/tokens", "/api/v1/tokens", {"json": {"scopes": ["read"]}}, _owner(201)),
    ("DELETE", "/api/v1/tokens/{token}", "/api/v1/tokens/000000000000", _NONE, _owner(404)),
    ("GET", "/api/v1/grants", "/api/v1/grants", _NONE, _owner(200, 200)),
    ("PUT", "/api/v1/grants/{dataset}/{recipient}", "/api/v1/grants/ward/new", {"json": {"level": 0.3}}, _owner(200)),
    ("DELETE", "/api/v1/grants/{dataset}/{recipient}", "/api/v1/grants/ward/new", _NONE, _owner(200)),
    ("GET", "/api/v1/ledger", "/api/v1/ledger", _NONE, _owner(200, 200)),
    ("POST", "/api/v1/ledger/verification", "/api/v1/ledger/verification", {"json": {"files": False}}, _owner(202)),
    (
        "POST",
        "/api/v1/datasets/{dataset}/traces",
        "/api/v1/datasets/ward/traces",
        {"json": {"upload": "x"}},
        _owner(202),
    ),
    (
        "POST",
        "/api/v1/datasets/{dataset}/audits",
        "/api/v1/datasets/ward/audits",
        {"json": {"rows": 100, "attacks": ["udr"]}},
        _owner(202),
    ),
    ("GET", "/api/v1/jobs", "/api/v1/jobs", _NONE, _owner(200, 200)),
    ("GET", "/api/v1/jobs/{job}", "/api/v1/jobs/0000000000000000", _NONE, _owner(404, 404)),
    ("GET", "/api/v1/jobs/{job}/report", "/api/v1/jobs/0000000000000000/report", _NONE, _owner(404, 404)),
    ("GET", "/api/v1/surveys", "/api/v1/surveys", _NONE, _owner(200, 200)),
    ("PUT", "/api/v1/surveys/{survey}", "/api/v1/surveys/new", {"json": {"definition": _SURVEY}}, _owner(200)),
    ("PATCH", "/api/v1/surveys/{survey}", "/api/v1/surveys/commute", {"json": {"state": "open"}}, _owner(200)),
    ("GET", "/api/v1/surveys/{survey}", "/api/v1/surveys/commute", _NONE, _owner(200, 200)),
    ("GET", "/api/v1/surveys/{survey}", "/api/v1/surveys/nowhere", _NONE, _owner(404, 404)),
    ("GET", "/api/v1/surveys/{survey}/rows", "/api/v1/surveys/commute/rows", _NONE, _owner(200, 200)),
    (
        "POST",
        "/api/v1/surveys/{survey}/tickets",
        "/api/v1/surveys/commute/tickets",
        {"json": {"count": 1}},
        _owner(422),
    ),
    ("POST", "/api/v1/surveys/{survey}/model", "/api/v1/surveys/commute/model", {"json": {}}, _owner(422, 422)),
    ("GET", "/api/v1/respond/{survey}", "/api/v1/respond/commute", _NONE, _OPEN),
    ("GET", "/api/v1/respond/{survey}", "/api/v1/respond/nowhere", _NONE, dict.fromkeys(ROLES, 404)),
    ("GET", "/api/v1/respond/{survey}", "/api/v1/respond/new", _NONE, dict.fromkeys(ROLES, 404)),
    ("GET", "/api/v1/respond/{survey}/guidance", "/api/v1/respond/commute/guidance", _NONE, _OPEN),
    (
        "POST",
        "/api/v1/respond/{survey}/answers",
        "/api/v1/respond/commute/answers",
        {"json": _SENT},
        dict.fromkeys(ROLES, 409),
    ),
    (
        "POST",
        "/api/v1/respond/{survey}/bootstrap",
        "/api/v1/respond/commute/bootstrap",
        {"json": _SENT},
        dict.fromkeys(ROLES, 409),
    ),
]


@pytest.mark.parametrize("role", ROLES)
def test_every_endpoint_lets_the_right_ones_in(service: Service, role: str) -> None:
    token = {"none": None, "garbage": "sfu_nonsense"}.get(role, role)
    with service.client(token) as client:
        for method, _, path, said, expected in CELLS:
            answer = client.request(method, path, **said)
            assert (method, path, answer.status_code) == (method, path, expected[role])
            if answer.status_code >= 400 and method != "HEAD":
                assert answer.headers["content-type"] == "application/problem+json"
                assert set(answer.json()) == {"title", "status", "detail", "request"}


def test_no_endpoint_is_left_out(small: Service) -> None:
    with small.client() as client:
        described = client.get("/api/v1/openapi.json").json()["paths"]
    there = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert there == {(method, path) for method, path, *_ in CELLS if method != "HEAD"} | {
        ("HEAD", "/api/v1/copies/{dataset}")
    }


@pytest.mark.parametrize(
    "page", ["", "/datasets/ward", "/recipients", "/ledger", "/datasets/new", "/jobs/x", "/surveys", "/surveys/commute"]
)
def test_pages_are_for_signed_in_owners(small: Service, page: str) -> None:
    for token in (None, "clinic", "owner"):  # a token opens the API, not the console
        with small.client(token) as client:
            answer = client.get(f"/console{page}")
            assert (answer.status_code, answer.headers["location"]) == (303, "/signin")

"""Access control matrix: the expected status of every endpoint for every role."""

from __future__ import annotations

from typing import Any

import pytest
from tests.serving import Service

ROLES = ("none", "garbage", "stranger", "clinic", "insurer", "expired", "revoked", "reader", "owner")

_PUBLIC = dict.fromkeys(ROLES, 200) | {"garbage": 200}
_UNAUTHENTICATED = dict.fromkeys(("none", "garbage", "expired", "revoked"), 401)
_AUTHENTICATED = _UNAUTHENTICATED | dict.fromkeys(("stranger", "clinic", "insurer", "reader", "owner"), 200)


def _owner(status: int, reader: int = 403) -> dict[str, int]:
    """Endpoints for owners, and for owners with read-only tokens if `reader` is a success."""
    return (
        _UNAUTHENTICATED | dict.fromkeys(("stranger", "clinic", "insurer"), 403) | {"reader": reader, "owner": status}
    )


def _recipient(clinic: int = 200, insurer: int = 200, stranger: int = 404) -> dict[str, int]:
    """Endpoints for recipients; an owner must name the recipient."""
    return _UNAUTHENTICATED | {"clinic": clinic, "insurer": insurer, "stranger": stranger, "reader": 403, "owner": 403}


_POLICY = 'dataset = "x"\n[levels]\na = 0.5\n[columns]\nage = "gaussian"\n'
_NO_BODY: dict[str, Any] = {}
_SURVEY = 'title = "t"\nconsent = "c"\ndeadline = "2030-01-01"\n[questions.q]\noptions = ["a", "b"]\n'
_ANSWER = {"ticket": "0" * 32, "version": "another", "row": [0], "label": 0}

CELLS: list[tuple[str, str, str, dict[str, Any], dict[str, int]]] = [
    ("GET", "/healthz", "/healthz", _NO_BODY, _PUBLIC),
    ("GET", "/readyz", "/readyz", _NO_BODY, _PUBLIC),
    ("GET", "/metrics", "/metrics", _NO_BODY, _owner(200)),
    ("GET", "/api/v1/key", "/api/v1/key", _NO_BODY, _PUBLIC),
    ("GET", "/api/v1/me", "/api/v1/me", _NO_BODY, _AUTHENTICATED),
    ("GET", "/api/v1/me/grants", "/api/v1/me/grants", _NO_BODY, _recipient(stranger=200)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/ward", _NO_BODY, _recipient()),
    ("HEAD", "/api/v1/copies/{dataset}", "/api/v1/copies/ward", _NO_BODY, _recipient()),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/secret", _NO_BODY, _recipient(404, 404)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/nowhere", _NO_BODY, _recipient(404, 404)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/ward?level=0.3", _NO_BODY, _recipient(200, 403)),
    ("GET", "/api/v1/copies/{dataset}", "/api/v1/copies/ward?level=0.9", _NO_BODY, _recipient(403, 403)),
    (
        "GET",
        "/api/v1/copies/{dataset}",
        "/api/v1/copies/ward?recipient=clinic",
        _NO_BODY,
        _recipient(200, 403, 403) | {"owner": 200},
    ),
    ("GET", "/api/v1/copies/{dataset}/manifest", "/api/v1/copies/ward/manifest", _NO_BODY, _recipient()),
    (
        "POST",
        "/api/v1/checks",
        "/api/v1/checks",
        {"content": b"no copy"},
        _UNAUTHENTICATED | dict.fromkeys(("stranger", "clinic", "insurer", "reader", "owner"), 422),
    ),
    ("GET", "/api/v1/copies/{dataset}/profile", "/api/v1/copies/ward/profile", _NO_BODY, _recipient()),
    (
        "POST",
        "/api/v1/copies/{dataset}/answers",
        "/api/v1/copies/ward/answers",
        {"json": {"question": "select count(*) as n from copy"}},
        _recipient(),
    ),
    ("GET", "/api/v1/vault", "/api/v1/vault", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/datasets", "/api/v1/datasets", _NO_BODY, _owner(200, 200)),
    ("POST", "/api/v1/datasets", "/api/v1/datasets", {"json": {"policy": _POLICY, "upload": "x"}}, _owner(202)),
    ("GET", "/api/v1/datasets/{dataset}", "/api/v1/datasets/ward", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/datasets/{dataset}", "/api/v1/datasets/nowhere", _NO_BODY, _owner(404, 404)),
    ("DELETE", "/api/v1/datasets/{dataset}", "/api/v1/datasets/nowhere", _NO_BODY, _owner(404)),
    (
        "DELETE",
        "/api/v1/datasets/{dataset}/versions/{version}",
        "/api/v1/datasets/ward/versions/1000",
        _NO_BODY,
        _owner(422),
    ),
    ("GET", "/api/v1/datasets/{dataset}/status", "/api/v1/datasets/ward/status", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/datasets/{dataset}/policy", "/api/v1/datasets/ward/policy", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/datasets/{dataset}/versions", "/api/v1/datasets/ward/versions", _NO_BODY, _owner(200, 200)),
    (
        "POST",
        "/api/v1/datasets/{dataset}/versions",
        "/api/v1/datasets/ward/versions",
        {"json": {"upload": "x"}},
        _owner(202),
    ),
    (
        "POST",
        "/api/v1/datasets/{dataset}/rows",
        "/api/v1/datasets/ward/rows",
        {"json": {"upload": "x"}},
        _owner(202),
    ),
    (
        "GET",
        "/api/v1/datasets/{dataset}/preview",
        "/api/v1/datasets/ward/preview?fidelity=0.4",
        _NO_BODY,
        _owner(200),
    ),
    (
        "GET",
        "/api/v1/datasets/{dataset}/collusion",
        "/api/v1/datasets/ward/collusion?recipient=clinic&recipient=insurer",
        _NO_BODY,
        _owner(200),
    ),
    (
        "POST",
        "/api/v1/suggestions",
        "/api/v1/suggestions",
        {"json": {"upload": "x", "dataset": "x"}},
        _owner(404),
    ),
    (
        "POST",
        "/api/v1/policies",
        "/api/v1/policies",
        {"json": {"upload": "x", "policy": "x"}},
        _owner(422),
    ),
    (
        "POST",
        "/api/v1/trials",
        "/api/v1/trials",
        {"json": {"upload": "x", "policy": "x"}},
        _owner(422),
    ),
    ("POST", "/api/v1/datasets/{dataset}/trials", "/api/v1/datasets/nowhere/trials", _NO_BODY, _owner(404)),
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
        _NO_BODY,
        _owner(204),
    ),
    ("GET", "/api/v1/recipients", "/api/v1/recipients", _NO_BODY, _owner(200, 200)),
    ("POST", "/api/v1/recipients", "/api/v1/recipients", {"json": {"recipient": "new"}}, _owner(201)),
    ("PATCH", "/api/v1/recipients/{recipient}", "/api/v1/recipients/new", {"json": {"enabled": True}}, _owner(200)),
    ("DELETE", "/api/v1/recipients/{recipient}", "/api/v1/recipients/nobody", _NO_BODY, _owner(404)),
    (
        "GET",
        "/api/v1/recipients/{recipient}/tokens",
        "/api/v1/recipients/clinic/tokens",
        _NO_BODY,
        _owner(200, 200),
    ),
    ("POST", "/api/v1/recipients/{recipient}/tokens", "/api/v1/recipients/new/tokens", {"json": {}}, _owner(201)),
    ("GET", "/api/v1/tokens", "/api/v1/tokens", _NO_BODY, _owner(200, 200)),
    ("POST", "/api/v1/tokens", "/api/v1/tokens", {"json": {"scopes": ["read"]}}, _owner(201)),
    ("DELETE", "/api/v1/tokens/{token}", "/api/v1/tokens/000000000000", _NO_BODY, _owner(404)),
    ("GET", "/api/v1/operators", "/api/v1/operators", _NO_BODY, _owner(200, 200)),
    (
        "PUT",
        "/api/v1/operators/{operator}",
        "/api/v1/operators/nobody",
        {"json": {"role": "viewer"}},
        _owner(404),
    ),
    ("DELETE", "/api/v1/operators/{operator}", "/api/v1/operators/nobody", _NO_BODY, _owner(404)),
    (
        "POST",
        "/api/v1/me/password",
        "/api/v1/me/password",
        {"json": {"current": "x", "password": "y"}},
        _AUTHENTICATED | dict.fromkeys(("stranger", "clinic", "insurer", "reader", "owner"), 403),
    ),
    ("GET", "/api/v1/grants", "/api/v1/grants", _NO_BODY, _owner(200, 200)),
    ("PUT", "/api/v1/grants/{dataset}/{recipient}", "/api/v1/grants/ward/new", {"json": {"level": 0.3}}, _owner(200)),
    ("DELETE", "/api/v1/grants/{dataset}/{recipient}", "/api/v1/grants/ward/new", _NO_BODY, _owner(200)),
    ("GET", "/api/v1/ledger", "/api/v1/ledger", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/accesses", "/api/v1/accesses", _NO_BODY, _owner(200, 200)),
    ("DELETE", "/api/v1/accesses", "/api/v1/accesses?before=2000-01-01", _NO_BODY, _owner(200)),
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
    ("GET", "/api/v1/jobs", "/api/v1/jobs", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/jobs/{job}", "/api/v1/jobs/0000000000000000", _NO_BODY, _owner(404, 404)),
    ("GET", "/api/v1/jobs/{job}/report", "/api/v1/jobs/0000000000000000/report", _NO_BODY, _owner(404, 404)),
    (
        "GET",
        "/api/v1/jobs/{job}/pack/{part}",
        "/api/v1/jobs/0000000000000000/pack/content",
        _NO_BODY,
        _owner(404, 404),
    ),
    ("DELETE", "/api/v1/jobs/{job}", "/api/v1/jobs/0000000000000000", _NO_BODY, _owner(404)),
    (
        "POST",
        "/api/v1/datasets/{dataset}/decisions",
        "/api/v1/datasets/ward/decisions",
        {"json": {"officer": "Ada"}},
        _owner(422),
    ),
    ("GET", "/api/v1/surveys", "/api/v1/surveys", _NO_BODY, _owner(200, 200)),
    ("PUT", "/api/v1/surveys/{survey}", "/api/v1/surveys/new", {"json": {"definition": _SURVEY}}, _owner(200)),
    ("PATCH", "/api/v1/surveys/{survey}", "/api/v1/surveys/commute", {"json": {"state": "open"}}, _owner(200)),
    ("GET", "/api/v1/surveys/{survey}", "/api/v1/surveys/commute", _NO_BODY, _owner(200, 200)),
    ("DELETE", "/api/v1/surveys/{survey}", "/api/v1/surveys/nowhere", _NO_BODY, _owner(404)),
    ("GET", "/api/v1/surveys/{survey}", "/api/v1/surveys/nowhere", _NO_BODY, _owner(404, 404)),
    ("POST", "/api/v1/surveys/check", "/api/v1/surveys/check", {"json": {"definition": _SURVEY}}, _owner(200, 200)),
    (
        "GET",
        "/api/v1/surveys/{survey}/definition",
        "/api/v1/surveys/commute/definition",
        _NO_BODY,
        _owner(200, 200),
    ),
    (
        "GET",
        "/api/v1/surveys/{survey}/cross",
        "/api/v1/surveys/commute/cross?first=car&second=home",
        _NO_BODY,
        _owner(422, 422),
    ),
    (
        "POST",
        "/api/v1/surveys/{survey}/weighted",
        "/api/v1/surveys/commute/weighted",
        {"json": {"question": "none", "shares": {"yes": 1}}},
        _owner(422, 422),
    ),
    ("GET", "/api/v1/surveys/{survey}/methods", "/api/v1/surveys/commute/methods", _NO_BODY, _owner(200, 200)),
    ("GET", "/api/v1/surveys/{survey}/rows", "/api/v1/surveys/commute/rows", _NO_BODY, _owner(200, 200)),
    (
        "POST",
        "/api/v1/surveys/{survey}/tickets",
        "/api/v1/surveys/commute/tickets",
        {"json": {"count": 1}},
        _owner(422),
    ),
    ("GET", "/api/v1/surveys/{survey}/groups", "/api/v1/surveys/commute/groups", _NO_BODY, _owner(200, 200)),
    ("POST", "/api/v1/surveys/{survey}/model", "/api/v1/surveys/commute/model", {"json": {}}, _owner(422, 422)),
    ("GET", "/api/v1/respond/{survey}", "/api/v1/respond/commute", _NO_BODY, _PUBLIC),
    ("GET", "/api/v1/respond/{survey}", "/api/v1/respond/nowhere", _NO_BODY, dict.fromkeys(ROLES, 404)),
    ("GET", "/api/v1/respond/{survey}", "/api/v1/respond/new", _NO_BODY, dict.fromkeys(ROLES, 404)),
    ("GET", "/api/v1/respond/{survey}/guidance", "/api/v1/respond/commute/guidance", _NO_BODY, _PUBLIC),
    (
        "GET",
        "/api/v1/respond/{survey}/receipts",
        "/api/v1/respond/commute/receipts",
        _NO_BODY,
        dict.fromkeys(ROLES, 409),  # while the survey is open
    ),
    (
        "POST",
        "/api/v1/respond/{survey}/answers",
        "/api/v1/respond/commute/answers",
        {"json": _ANSWER},
        dict.fromkeys(ROLES, 409),
    ),
    (
        "POST",
        "/api/v1/respond/{survey}/bootstrap",
        "/api/v1/respond/commute/bootstrap",
        {"json": _ANSWER},
        dict.fromkeys(ROLES, 409),
    ),
]


@pytest.mark.parametrize("role", ROLES)
def test_every_endpoint_checks_the_role(service: Service, role: str) -> None:
    token = {"none": None, "garbage": "sfu_nonsense"}.get(role, role)
    with service.client(token) as client:
        for method, _, path, options, expected in CELLS:
            answer = client.request(method, path, **options)
            assert (method, path, answer.status_code) == (method, path, expected[role])
            if answer.status_code >= 400 and method != "HEAD":
                assert answer.headers["content-type"] == "application/problem+json"
                assert set(answer.json()) == {"title", "status", "detail", "request"}


def test_the_matrix_has_all_endpoints(sqlite_service: Service) -> None:
    with sqlite_service.client() as client:
        described = client.get("/api/v1/openapi.json").json()["paths"]
    endpoints = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert endpoints == {(method, path) for method, path, *_ in CELLS if method != "HEAD"} | {
        ("HEAD", "/api/v1/copies/{dataset}")
    }


@pytest.mark.parametrize(
    "page",
    [
        "",
        "/datasets/ward",
        "/recipients",
        "/ledger",
        "/datasets/new",
        "/jobs/x",
        "/surveys",
        "/surveys/commute",
        "/team",
    ],
)
def test_console_pages_require_a_signed_in_owner(sqlite_service: Service, page: str) -> None:
    for token in (None, "clinic", "owner"):  # tokens are for the API, not for the console
        with sqlite_service.client(token) as client:
            answer = client.get(f"/console{page}")
            assert (answer.status_code, answer.headers["location"]) == (303, "/signin")

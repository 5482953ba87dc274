"""Error responses: problem details as `application/problem+json` (RFC 9457) for programs, and a page for people."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pyarrow as pa
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sfumato import errors
from sfumato.service.web.templating import render

MEDIA_TYPE = "application/problem+json"

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.NotGranted, 404),
    (errors.UnknownSubject, 404),
    (errors.GrantError, 403),
    (errors.BootstrapComplete, 410),
    (errors.Unavailable, 503),
    (errors.TamperedError, 503),
    (errors.CustodyError, 503),
    (errors.SfumatoError, 422),
)

_INTERNAL = "The service cannot handle this request now. Its log has the reason, under this request's id."

_ASK_OWNER = (
    "This copy cannot be released now. Ask the data owner, who finds the reason in the service's log under this "
    "request's id."
)


class Problem(BaseModel):
    """Problem details of an error (RFC 9457)."""

    title: str
    status: int
    detail: str
    request: str
    """The request's id, by which it is found in the service's log."""


class HTTPProblem(HTTPException):
    """An error response with a status, a reason and optional headers."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(status, detail, {name.replace("_", "-"): value for name, value in headers.items()})


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of an endpoint, for its OpenAPI description."""
    always = (400, 401, 403, 408, 413, 422, 429, 503)
    return {
        status: {"model": Problem, "description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {}}}
        for status in sorted({*always, *statuses})
    }


def problem_response(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An error response to a request: a page if it comes from the address bar or a form of a browser."""
    content = Problem(
        title=HTTPStatus(status).phrase, status=status, detail=detail, request=request.scope.get("request_id", "")
    )
    if "text/html" in request.headers.get("accept", ""):
        page = render(
            "problem.html",
            request.scope.get("caller"),
            status,
            title=content.title,
            text=detail,
            request_id=content.request,
        )
        page.headers.update(headers or {})
        return page
    return JSONResponse(content.model_dump(), status, headers, media_type=MEDIA_TYPE)


TABLE_ERRORS = (pa.ArrowException, UnicodeDecodeError)
"""Exceptions that Arrow raises for malformed tables which passed our own checks."""


def table_error_message(error: Exception) -> str:
    """The message for one of `TABLE_ERRORS`."""
    return f"the table could not be read: {(str(error).splitlines() or [''])[0][:300]}"


def _detail(request: Request, error: errors.SfumatoError) -> str:
    """What a caller may read of an error: recipients get no advice to owners, and nothing about the server."""
    caller = request.scope.get("caller")
    if caller is None or caller.role != "recipient" or isinstance(error, errors.LevelError):
        return str(error)
    return error.reason if isinstance(error, errors.GrantError) else _ASK_OWNER


def problem_from_exception(request: Request, error: HTTPException) -> Response:
    """The error response for an HTTP exception."""
    return problem_response(request, error.status_code, str(error.detail), dict(error.headers or {}))


def describe_problems(app: FastAPI) -> None:
    """Describe errors in the OpenAPI document as what they are sent as; FastAPI describes them as plain JSON."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()  # which FastAPI makes once
        for methods in document["paths"].values():
            for operation in methods.values():
                for response in operation["responses"].values():
                    if MEDIA_TYPE in response.get("content", {}):
                        response["content"] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document


def install_handlers(app: FastAPI) -> None:
    """Turn every exception of an application into an error response in this format."""
    log = structlog.get_logger()

    @app.exception_handler(HTTPException)
    async def http_exception(request: Request, error: HTTPException) -> Response:
        return problem_from_exception(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        fields = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        return problem_response(request, 422, "The request is invalid: " + "; ".join(fields)[:2000])

    @app.exception_handler(errors.SfumatoError)
    async def sfumato_error(request: Request, error: errors.SfumatoError) -> Response:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        detail = _INTERNAL if status == 503 else _detail(request, error)
        if str(error) != detail:
            report = log.error if status == 503 else log.warning
            report("refused", request=request.scope.get("request_id"), status=status, reason=str(error))
        later = {"Retry-After": "5"} if isinstance(error, errors.Unavailable) else None  # a busy database, a full disk
        return problem_response(request, status, detail, later)

    @app.exception_handler(pa.ArrowException)
    @app.exception_handler(UnicodeDecodeError)
    async def malformed_table(request: Request, error: Exception) -> Response:
        return problem_response(request, 422, table_error_message(error))

    @app.exception_handler(Exception)
    async def unhandled(request: Request, error: Exception) -> Response:
        log.error(
            "unhandled exception",
            request=request.scope.get("request_id"),
            kind=type(error).__name__,
            exc_info=error,
        )
        return problem_response(request, 500, _INTERNAL)

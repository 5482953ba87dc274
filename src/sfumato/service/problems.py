"""One shape for every error: `application/problem+json` (RFC 9457), in one sentence that says what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pyarrow as pa
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sfumato import errors

MEDIA = "application/problem+json"

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.NotGranted, 404),
    (errors.UnknownSubject, 404),
    (errors.GrantError, 403),
    (errors.NotWanted, 410),
    (errors.Unavailable, 503),
    (errors.TamperedError, 503),
    (errors.CustodyError, 503),
    (errors.SfumatoError, 422),
)

_HIDDEN = "The service cannot answer this now. Its log says why, under the request's id."


class Problem(BaseModel):
    """What went wrong."""

    title: str
    status: int
    detail: str
    request: str
    """The request's id, for the service's log."""


class Refused(HTTPException):
    """A request that is turned down, with the status and the reason."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(status, detail, {name.replace("_", "-"): value for name, value in headers.items()})


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that an endpoint may answer with, for OpenAPI."""
    always = (400, 401, 403, 413, 422, 429, 503)
    return {
        status: {"model": Problem, "description": HTTPStatus(status).phrase, "content": {MEDIA: {}}}
        for status in sorted({*always, *statuses})
    }


def problem(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer."""
    content = Problem(
        title=HTTPStatus(status).phrase, status=status, detail=detail, request=request.scope.get("request_id", "")
    )
    return JSONResponse(content.model_dump(), status, headers, media_type=MEDIA)


ODD = (pa.ArrowException, UnicodeDecodeError)
"""What Arrow raises at data that no check of ours foresaw."""


def odd(error: Exception) -> str:
    """The same in words."""
    return f"the table could not be handled: {(str(error).splitlines() or [''])[0][:300]}"


def refusal(request: Request, error: HTTPException) -> JSONResponse:
    """The answer to a request that is turned down."""
    return problem(request, error.status_code, str(error.detail), dict(error.headers or {}))


def install(app: FastAPI) -> None:
    """Let every error take this shape."""
    log = structlog.get_logger()

    @app.exception_handler(HTTPException)
    async def turned_down(request: Request, error: HTTPException) -> JSONResponse:
        return refusal(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        where = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        return problem(request, 422, "The request is not as it must be: " + "; ".join(where)[:2000])

    @app.exception_handler(errors.SfumatoError)
    async def ours(request: Request, error: errors.SfumatoError) -> JSONResponse:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        if status == 503:
            log.error("unavailable", request=request.scope.get("request_id"), reason=str(error))
        return problem(request, status, _HIDDEN if status == 503 else str(error))

    @app.exception_handler(pa.ArrowException)
    @app.exception_handler(UnicodeDecodeError)
    async def odd_table(request: Request, error: Exception) -> JSONResponse:
        return problem(request, 422, odd(error))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        log.error("unforeseen", request=request.scope.get("request_id"), kind=type(error).__name__, exc_info=error)
        return problem(request, 500, _HIDDEN)

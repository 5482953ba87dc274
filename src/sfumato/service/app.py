"""The application: the API and the console, behind one edge."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version

from fastapi import FastAPI

from sfumato.service import problems
from sfumato.service.api import copies, datasets, jobs, ledger, surveys
from sfumato.service.api import recipients as sharing
from sfumato.service.api import status as about
from sfumato.service.api import survey_answers as respond
from sfumato.service.context import ServiceContext
from sfumato.service.middleware import Edge
from sfumato.service.settings import Settings
from sfumato.service.web import console
from sfumato.service.web import recipient as mine
from sfumato.service.web import sign_in as entrance
from sfumato.service.web import surveys as survey_pages
from sfumato.service.worker_pool import Maker
from sfumato.vault import Vault

_ABOUT = (
    "Copies of one table at many trust levels. A recipient fetches its own copy with a token; an owner manages "
    "datasets, recipients and grants. Every error is an application/problem+json."
)


def application(vault: Vault, settings: Settings, makers: Sequence[Maker]) -> FastAPI:
    """The service of a vault, as an ASGI application."""
    desk = ServiceContext(vault, settings, makers)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(
        title="Sfumato",
        version=version("sfumato"),
        description=_ABOUT,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk = desk
    problems.install(app)
    for api in (about, copies, datasets, sharing, ledger, jobs, surveys, respond):
        app.include_router(api.router)
    for pages in (entrance, console, mine, survey_pages):
        app.include_router(pages.router, include_in_schema=False)
    entrance.mount(app)
    survey_pages.mount(app)
    app.add_middleware(Edge, desk=desk)
    return app

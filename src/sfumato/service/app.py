"""FastAPI application: the HTTP API and the web console behind one middleware."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from importlib.metadata import version

from fastapi import FastAPI

from sfumato.service import problems
from sfumato.service.api import (
    copies,
    datasets,
    jobs,
    ledger,
    policies,
    recipients,
    status,
    survey_answers,
    surveys,
    team,
)
from sfumato.service.context import ServiceContext
from sfumato.service.jobs import Runs
from sfumato.service.middleware import ServiceMiddleware
from sfumato.service.settings import Settings
from sfumato.service.web import console, provider, recipient, sign_in
from sfumato.service.web import ledger as ledger_pages
from sfumato.service.web import surveys as survey_pages
from sfumato.service.worker_pool import WorkerPool
from sfumato.vault import Vault

_DESCRIPTION = (
    "Perturbed copies of one table at many trust levels. Recipients download their own copies with a token; data "
    "owners manage datasets, recipients and grants. All errors are returned as application/problem+json (RFC 9457)."
)

_TAGS = {
    "service": "Health, readiness, metrics and the identity of the caller.",
    "copies": "Download the copies that a recipient has been granted, with their manifests.",
    "datasets": "Add and update datasets, upload tables, preview levels and simulate collusion.",
    "policies": "Draft policies, change them, and try them on a sample before a table is added.",
    "recipients": "Manage recipients, their tokens and their grants.",
    "operators": "Manage who may sign in to the console, and change one's own password.",
    "ledger": "Read and verify the ledger, and trace leaked copies.",
    "jobs": "Start audits, and follow the progress of long-running jobs.",
    "surveys": "Create surveys, invite respondents and read results.",
    "respondents": "Public endpoints for respondents' browsers: survey definitions, guidance and answers.",
}


def application(vault: Vault, settings: Settings, pool: WorkerPool, job_process: Runs) -> FastAPI:
    """Create the ASGI application that serves a vault."""
    context = ServiceContext(vault, settings, pool, job_process)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        context.close()

    app = FastAPI(
        title="Sfumato",
        version=version("sfumato"),
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        openapi_tags=[{"name": name, "description": description} for name, description in _TAGS.items()],
        generate_unique_id_function=lambda route: route.name,  # what generated clients call their functions
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.context = context
    problems.install_handlers(app)
    problems.describe_problems(app)
    for api in (status, copies, datasets, policies, recipients, team, ledger, jobs, surveys, survey_answers):
        app.include_router(api.router)
    for pages in (sign_in, provider, console, ledger_pages, recipient, survey_pages):
        app.include_router(pages.router, include_in_schema=False)
    sign_in.mount(app)
    survey_pages.mount(app)
    app.add_middleware(ServiceMiddleware, context=context)
    return app

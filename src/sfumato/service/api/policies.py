"""API endpoints for policies before a table is added: draft one, edit it, and try it on a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from fastapi import APIRouter, Request

from sfumato.audit.risk_utility import FIDELITIES, RiskUtilityPoint, drawn, gains, mechanisms, risk_utility_map
from sfumato.models.unchanged import ENTITY, IDENTIFIER, PUBLIC
from sfumato.policy.column_overview import ColumnOverview, column_overviews
from sfumato.policy.editing import with_columns, with_levels
from sfumato.policy.roles import DROP
from sfumato.policy.suggest import Examined, draft
from sfumato.release.policy import Policy
from sfumato.service import uploads
from sfumato.service.api import schemas
from sfumato.service.authentication import Writer
from sfumato.service.context import context_of
from sfumato.service.jobs import Job, JobProgress, Result
from sfumato.service.problems import problem_responses
from sfumato.vault.names import validated_name

router = APIRouter(prefix="/api/v1", tags=["policies"], responses=problem_responses(404))


@router.post("/suggestions")
def suggest_policy(
    request: Request,
    body: schemas.PolicyRequest,
    caller: Writer,  # noqa: ARG001
) -> schemas.PolicyDraft:
    """Draft a policy for a table, with an overview of its columns."""
    context = context_of(request)
    with uploads.open_table(context.vault.store, context.settings, body) as table:
        text = draft(table, dataset=body.dataset)
        return _described(text, Examined.of(table, Policy.loads(text).file))


@router.post("/policies")
def edit_policy(
    request: Request,
    body: schemas.PolicyEdit,
    caller: Writer,  # noqa: ARG001
) -> schemas.PolicyDraft:
    """Change roles or levels in the text of a policy, which stays as it is otherwise, and validate it."""
    context, policy = context_of(request), Policy.loads(body.policy)
    with uploads.open_table(context.vault.store, context.settings, body) as table:
        examined = Examined.of(table, policy.file)
    text = body.policy
    if body.roles:
        roles = {name: one.role for name, one in policy.columns.items()} | body.roles
        text = with_columns(text, examined.statements(roles, body.roles))
    if body.levels is not None:
        text = with_levels(text, body.levels)
    return _described(text, examined)


@router.post("/trials", status_code=202)
def try_policy(request: Request, body: schemas.PolicyTrial, caller: Writer) -> dict[str, str]:
    """Try a policy on a sample: what an attacker gains at its levels, and a risk-utility map, in a background job."""
    context, policy = context_of(request), Policy.loads(body.policy)
    validated_name("dataset", policy.dataset)

    return {"job": context.jobs.start("trial", "", caller.acting(context.vault), _tried_table, body)}


@router.post("/datasets/{dataset}/trials", status_code=202)
def try_levels(request: Request, dataset: schemas.Name, caller: Writer) -> dict[str, str]:
    """Try the levels of a dataset on a sample of it with the strongest attacks, in a background job."""
    context = context_of(request)
    context.vault.dataset(dataset)
    return {"job": context.jobs.start("trial", dataset, caller.acting(context.vault), _tried_levels, dataset)}


def _tried_table(job: Job, body: schemas.PolicyTrial) -> Result:
    policy = Policy.loads(body.policy)
    with uploads.open_table(job.vault.store, job.settings, body) as table:
        return _tried(policy, drawn(policy, table), job.progress)


def _tried_levels(job: Job, dataset: str) -> Result:
    found = job.vault.dataset(dataset)
    policy = Policy.loads(found.scheme.policy.dumps())
    job.vault.record_access("measured", {}, dataset=dataset)
    with found.source() as source:
        return _tried(policy, drawn(policy, source), job.progress)


def _tried(policy: Policy, rows: pa.Table, progress: JobProgress) -> Result:
    """What the strongest attacks recover of a sample at each level of a policy, and the map of risk and utility."""
    levels = policy.ladder.levels

    def next_of(total: int, what: str) -> Any:
        done = iter(range(2, total + 1))
        progress.stage(f"{what}: 1 of {total}")
        return lambda _: progress.stage(f"{what}: {next(done, total)} of {total}")

    recovered = gains(policy, rows, progress=next_of(len(levels), "attacking a sample at level"))
    ways = mechanisms(policy, rows)
    total = len(ways) * len(FIDELITIES)
    points = risk_utility_map(ways, rows, progress=next_of(total, "mapping risk and utility, point"))
    return {
        "levels": {name: level.fidelity for name, level in levels.items()},
        "recovered": recovered,
        "points": [_point(one) for one in points],
    }, ""


def _point(one: RiskUtilityPoint) -> dict[str, Any]:
    return {
        "mechanism": one.mechanism,
        "fidelity": one.fidelity,
        "recovered": min(one.recovered, 1.0),
        "preserved": one.preserved,
        "column": one.column,
        "attack": one.attack,
        "means": one.utility.largest_mean_error,
    }


def _described(text: str, examined: Examined) -> schemas.PolicyDraft:
    """A policy with what is known of the columns that it is about."""
    policy = Policy.loads(text)
    roles = {name: one.role for name, one in policy.columns.items()}
    reasons = _reasons(text)
    columns = [
        schemas.ColumnDraft(
            **asdict(one), role=roles.get(one.name, ""), reason=reasons.get(one.name, ""), choices=_choices(one)
        )
        for one in column_overviews(examined.rows)
    ]
    levels = {name: level.fidelity for name, level in policy.ladder.levels.items()}
    return schemas.PolicyDraft(policy=text, roles=roles, levels=levels, columns=columns)


def _reasons(text: str) -> Mapping[str, str]:
    """The comments of columns, by their names."""
    comments = (line[2:].partition(": ") for line in text.splitlines() if line.startswith("# "))
    return {name.strip('"'): reason for name, _, reason in comments}


def _choices(column: ColumnOverview) -> list[str]:
    """The roles that a column may have, those that perturb it first."""
    if not column.distinct:
        return [DROP]
    perturbing = ["copula", "uniform"] if column.kind.startswith(("text", "yes")) else ["copula", "gaussian", "uniform"]
    return [*perturbing, PUBLIC, DROP, IDENTIFIER, ENTITY]

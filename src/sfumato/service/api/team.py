"""API endpoints for operators: who may sign in to the console, with which role, and a change of one's own password."""

from __future__ import annotations

from fastapi import APIRouter, Request

from sfumato.service.api import schemas
from sfumato.service.api.ledger import ledger_entry
from sfumato.service.authentication import Administrator, Authenticated, Caller, Reader
from sfumato.service.context import context_of
from sfumato.service.problems import HTTPProblem, problem_responses
from sfumato.vault import operators
from sfumato.vault.operators import ROLES, Operator

router = APIRouter(prefix="/api/v1", tags=["operators"], responses=problem_responses(404))


@router.get("/operators")
def list_operators(request: Request, caller: Reader) -> list[Operator]:  # noqa: ARG001
    """List the operators, with their roles and when they used the console last."""
    return operators.list_operators(context_of(request).vault)


@router.put("/operators/{operator}")
def set_operator(
    request: Request, operator: schemas.Name, body: schemas.OperatorUpdate, caller: Administrator
) -> schemas.LedgerEntry:
    """Register an operator with a password or an identity, or change these or the role of another one."""
    vault = caller.acting(context_of(request).vault)
    before = operators.find(vault, operator)
    _check_rank(caller, before, body.role or (before.role if before else "administrator"))
    if body.password is None and body.role is None and body.identity is None:
        raise HTTPProblem(422, "A new operator needs a password or an identity; a known one also a role; send one.")
    return ledger_entry(operators.enrol(vault, operator, body.password, body.role, body.identity))


@router.delete("/operators/{operator}")
def dismiss_operator(request: Request, operator: schemas.Name, caller: Administrator) -> schemas.LedgerEntry:
    """Remove another operator, whose sessions end at once."""
    vault = caller.acting(context_of(request).vault)
    _check_rank(caller, operators.find(vault, operator))
    return ledger_entry(operators.dismiss(vault, operator))


@router.post("/me/password")
def change_password(request: Request, body: schemas.NewPassword, caller: Authenticated) -> schemas.LedgerEntry:
    """Change one's own password, which ends all sessions of the operator, this one included."""
    context = context_of(request)
    if caller.session is None or not caller.session.operator:
        raise HTTPProblem(403, "Only a signed-in operator has a password to change; sign in with name and password.")
    with context.limiter.sign_in(request, caller.name) as succeeded:  # a session that was left open is no password
        if not operators.verify_password(context.vault, caller.name, body.current):
            raise HTTPProblem(403, "The current password is wrong; try again.")
        succeeded()
    return ledger_entry(operators.enrol(caller.acting(context.vault), caller.name, body.password))


def _check_rank(caller: Caller, operator: Operator | None, role: str = "viewer") -> None:
    """Refuse to change one's own account, so that an administrator remains, or one that may do more than the caller."""
    if operator is not None and caller.session is not None and caller.session.operator == operator.name:
        raise HTTPProblem(403, "Your own role and account can be changed by another administrator only; ask one.")
    needed = {*ROLES.get(role, ()), *(operator.scopes if operator else ())}
    if not needed <= caller.scopes:
        raise HTTPProblem(403, "This operator may do more than the caller's token; use a token with all scopes.")

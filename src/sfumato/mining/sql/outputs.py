"""What a query selects: grouping columns, aggregates, and formulas of aggregates, such as percentages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.errors import MiningError
from sfumato.mining.sql.syntax import Predicate, column_name, conjuncts, constant, predicate, text

STATISTICS = frozenset({"stddev", "variance", "corr", "covar", "quantile"})
"""Functions of whole columns, which need more than totals."""

FUNCTIONS = {
    "count_star": "count",
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    **dict.fromkeys(("stddev", "stddev_samp", "stddev_pop"), "stddev"),
    **dict.fromkeys(("variance", "var_samp", "var_pop"), "variance"),
    "corr": "corr",
    "covar_samp": "covar",
    "covar_pop": "covar",
    **dict.fromkeys(("median", "quantile", "quantile_cont", "quantile_disc"), "quantile"),
}
"""The functions that are estimated, by their names in SQL."""

_OPERATORS = frozenset({"+", "-", "*", "/"})
_INSTEAD = {
    "min": "the extremes of single records are not shown; ask for a quantile, as in quantile_cont(x, 0.01)",
    "max": "the extremes of single records are not shown; ask for a quantile, as in quantile_cont(x, 0.99)",
    "case": "ask once for each condition, as in count(*) FILTER (WHERE age >= 65)",
    "window": "windows are about single records, which are mostly noise; use GROUP BY",
}
"""The nearest question that can be answered."""


@dataclass(frozen=True)
class Output:
    """A grouping column, or an aggregate."""

    name: str
    function: str
    """The aggregate: count, sum, avg or one of `STATISTICS`; empty for a grouping column."""
    column: str = ""
    other: str = ""
    """The second column of a correlation or covariance."""
    share: float = 0.5
    """Which quantile."""
    filter: tuple[Predicate, ...] = ()
    """The conditions of FILTER."""
    together: int = 1
    """With how many aggregates a formula combines it, itself included: all of their intervals must hold at once."""


@dataclass(frozen=True)
class Formula:
    """A sum, difference, product or quotient of aggregates and constants."""

    operator: str
    left: Operand
    right: Operand


Operand = float | Output | Formula


@dataclass(frozen=True)
class Result:
    """A column of the answer."""

    name: str
    formula: Operand


def outputs_of(formula: Operand) -> list[Output]:
    """The aggregates of a formula."""
    if isinstance(formula, Formula):
        return [*outputs_of(formula.left), *outputs_of(formula.right)]
    return [formula] if isinstance(formula, Output) else []


@dataclass(frozen=True)
class Selection:
    """Reads what a query selects."""

    session: Any
    groups: tuple[str, ...]

    def results(self, expressions: Sequence[dict[str, Any]]) -> tuple[Result, ...]:
        """The columns of the answer, of which at least one must be an aggregate."""
        results = tuple(map(self.result, expressions))
        if not any(output.function for output in self.outputs(results)):
            raise MiningError(
                "the query must select count(*), count, sum or avg, since single records are mostly noise; add one"
            )
        if len({result.name for result in results}) < len(results):
            raise MiningError("the columns of the result must have different names; name them with AS")
        return results

    def outputs(self, results: Sequence[Result]) -> tuple[Output, ...]:
        """All that has to be estimated, once each."""
        return tuple(dict.fromkeys(output for result in results for output in outputs_of(result.formula)))

    def result(self, expression: dict[str, Any]) -> Result:
        """One column of the answer."""
        found = self._operand(expression)
        name = expression["alias"] or (found.name if isinstance(found, Output) else text(self.session, expression))
        count = len(outputs_of(found))
        return Result(name, _together(found, count) if count > 1 else found)

    def _operand(self, expression: dict[str, Any]) -> Operand:
        if expression["class"] == "COLUMN_REF":
            name = column_name(expression, "SELECT")
            if name not in self.groups:
                raise MiningError(f"{name!r} must be in GROUP BY to be selected, and is not; add it there")
            return Output(name, "", name)
        if expression["class"] == "CAST":
            return self._operand(expression["child"])
        function = expression.get("function_name", expression["class"].lower())
        arguments = [argument["expression"] for argument in expression.get("arguments", ())]
        if function in _OPERATORS and len(arguments) == 2:
            return self._formula(function, arguments)
        if function == "round" and arguments:
            return self._operand(arguments[0])
        if expression["class"] != "FUNCTION" or function not in FUNCTIONS:
            raise refused(expression)
        if expression["distinct"]:
            raise MiningError("DISTINCT cannot be corrected for noise; use GROUP BY with count(*)")
        if arguments and arguments[0]["class"] == "CASE":
            return self._conditional(FUNCTIONS[function], expression, arguments[0])
        return self._aggregate(FUNCTIONS[function], expression, arguments)

    def _formula(self, operator: str, arguments: Sequence[dict[str, Any]]) -> Formula:
        """Aggregates and constants, combined."""
        sides: list[Operand] = []
        for argument in arguments:
            number = constant(argument)
            sides.append(number if isinstance(number, float) else self._operand(argument))
        if any(isinstance(side, Output) and not side.function for side in sides):
            raise MiningError(
                "a formula combines aggregates and constants, and this has a grouping column; select it by itself"
            )
        return Formula(operator, *sides)

    def _conditional(self, function: str, expression: dict[str, Any], case: dict[str, Any]) -> Operand:
        """`sum(CASE WHEN c THEN 2 ELSE 0 END)` is `2·count(*) FILTER (WHERE c)`, and an average that over all."""
        checks, otherwise = case["case_checks"], constant(case["else_expr"])
        value = constant(checks[0]["then_expr"])
        if len(checks) > 1 or not isinstance(value, float) or otherwise not in (0.0, "") or expression["filter"]:
            raise MiningError(
                "CASE must be WHEN a condition THEN a constant ELSE 0; ask once for each condition, with FILTER"
            )
        conditions = tuple(predicate(self.session, part) for part in conjuncts(checks[0]["when_expr"]))
        counted = Output(f"count where {' and '.join(one.text for one in conditions)}", "count", filter=conditions)
        if function == "count" and otherwise == "":
            return counted
        if function not in ("sum", "avg") or (function == "avg" and otherwise == ""):
            raise MiningError(f"{function} of CASE cannot be corrected for noise; use count(*) FILTER (WHERE ...)")
        total: Operand = counted if value == 1 else Formula("*", value, counted)
        return total if function == "sum" else Formula("/", total, Output("count", "count"))

    def _aggregate(self, function: str, expression: dict[str, Any], given: list[dict[str, Any]]) -> Output:
        """An aggregate with its columns, and its conditions."""
        share = 0.5
        if function == "quantile":
            ordered = [one["expression"] for one in expression["order_bys"]["orders"]]  # as of percentile_cont
            share = _share([constant(one) for one in given if one["class"] != "COLUMN_REF"])
            given = [one for one in [*given, *ordered] if one["class"] == "COLUMN_REF"]
        names = [column_name(one, f"{function}(...)") for one in given]
        conditions = tuple(predicate(self.session, part) for part in conjuncts(expression["filter"]))
        column, other = (*names, "", "")[:2]
        shown = ", ".join([*names, *([f"{share:g}"] if function == "quantile" else [])])
        name = f"{function}({shown})" if names else function
        if conditions:
            name = f"{name} where {' and '.join(one.text for one in conditions)}"
        return Output(name, function, column, other, share, conditions)


def refused(expression: dict[str, Any]) -> MiningError:
    """The refusal of an expression, with the nearest question that can be answered."""
    kind = expression["class"].lower()
    function = expression.get("function_name", kind)
    instead = _INSTEAD.get(kind, _INSTEAD.get(function, "use count(*), count, sum, avg, stddev or median"))
    return MiningError(f"{function!r} cannot be corrected for noise; {instead}")


def _share(stated: Sequence[Any]) -> float:
    share = stated[0] if stated else 0.5
    if not isinstance(share, float) or not 0 < share < 1:
        raise MiningError("a quantile must be one constant between 0 and 1, as in quantile_cont(income, 0.9)")
    return share


def _together(formula: Operand, count: int) -> Operand:
    """A formula whose aggregates know how many they are."""
    if isinstance(formula, Formula):
        return Formula(formula.operator, _together(formula.left, count), _together(formula.right, count))
    return replace(formula, together=count) if isinstance(formula, Output) else formula

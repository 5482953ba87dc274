"""Views: the columns and rows of a table that a recipient may see; rows by a condition on public columns."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import PolicyError, SourceError, nearest

Mask = npt.NDArray[np.bool_]

_ROW = "sfumato.row"
_EXAMPLE = "as in `region == 'north' and year >= 2020`"

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "__eq__",
    ast.NotEq: "__ne__",
    ast.Lt: "__lt__",
    ast.LtE: "__le__",
    ast.Gt: "__gt__",
    ast.GtE: "__ge__",
}


@dataclass(frozen=True)
class View:
    """Some columns (all if there is no list), and the rows for which `where` holds (all without one)."""

    columns: tuple[str, ...] | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if self.columns is not None and not self.columns:
            raise PolicyError("a view must show at least one column, got an empty list; leave it out to show all")
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise PolicyError(f"a view must name a column once, got {', '.join(self.columns)}")
        if self.where is not None:
            _parse(self.where)

    def check(self, shown: list[str], public: list[str]) -> None:
        """Refuse columns that a copy does not have, and a condition on columns that are not released unchanged."""
        for name in self.columns or ():
            if name not in shown:
                raise PolicyError(f"a copy does not show a column {name!r}; {nearest(name, shown)}")
        for name in self.needs():
            if name not in public:
                raise PolicyError(
                    f"a condition on rows may only use columns that are released unchanged, and {name!r} is not "
                    "(the choice of rows would disclose its values); "
                    + (f"there are: {', '.join(public)}" if public else "this table has none")
                )

    def needs(self) -> set[str]:
        """The columns that the condition uses."""
        if self.where is None:
            return set()
        return {node.id for node in ast.walk(_parse(self.where)) if isinstance(node, ast.Name)}

    def holds(self, batch: pa.RecordBatch) -> Mask:
        """A mask of the visible rows."""
        numbered = batch.append_column(_ROW, pa.array(np.arange(batch.num_rows)))
        visible = np.zeros(batch.num_rows, np.bool_)
        visible[self.filter(numbered).column(_ROW).to_numpy()] = True
        return visible

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The visible rows; a condition that is neither true nor false, because of a null, does not hold."""
        if self.where is None:
            return batch
        try:
            whole = pa.Table.from_batches([batch], schema=batch.schema)
            table = whole.filter(_expression(_parse(self.where).body)).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            kinds = ", ".join(f"{name} ({batch.schema.field(name).type})" for name in sorted(self.needs()))
            raise SourceError(f"the condition {self.where!r} must fit the types of its columns: {kinds}") from None
        return pa.RecordBatch.from_arrays(
            [column.chunk(0) if column.num_chunks else pa.nulls(0, column.type) for column in table.columns],
            schema=batch.schema,
        )


EVERYTHING = View()


def _parse(where: str) -> ast.Expression:
    try:
        tree = ast.parse(where, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PolicyError(f"a condition must be a comparison, {_EXAMPLE}, got {where!r}") from None
    try:
        _expression(tree.body)
    except (OverflowError, RecursionError):
        raise PolicyError("a condition must be short, and its numbers within 64 bits; simplify it") from None
    except (pa.ArrowException, UnicodeEncodeError):
        raise PolicyError(
            f"the constants of a condition must be numbers or valid text, in a list of one type, got {where!r}"
        ) from None
    return tree


def _expression(node: ast.expr) -> pc.Expression:
    """A condition in the syntax of Python, as an expression of Arrow; nothing is ever evaluated by Python."""
    if isinstance(node, ast.BoolOp):
        parts = [_expression(part) for part in node.values]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part if isinstance(node.op, ast.And) else whole | part
        return whole
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_expression(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
        column, kind, right = pc.field(node.left.id), type(node.ops[0]), node.comparators[0]
        if kind in (ast.In, ast.NotIn) and isinstance(right, ast.List | ast.Tuple | ast.Set):
            listed = column.isin([_constant(item) for item in right.elts])
            found = pc.if_else(column.is_valid(), listed, pa.scalar(None, pa.bool_()))  # unknown where there is a null
            return found if kind is ast.In else ~found
        if kind in _COMPARISONS:
            return getattr(column, _COMPARISONS[kind])(pa.scalar(_constant(right)))
    raise PolicyError(
        f"a condition compares a column with constants, joined by and, or, not and in, {_EXAMPLE}, got "
        f"{ast.unparse(node)!r}"
    )


def _constant(node: ast.expr) -> Any:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    held = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if not isinstance(held, ast.Constant) or not isinstance(held.value, bool | int | float | str):
        raise PolicyError(f"a column is compared with a number, a string, True or False, got {ast.unparse(node)!r}")
    return -held.value if negative and not isinstance(held.value, str) else held.value

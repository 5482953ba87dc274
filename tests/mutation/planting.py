"""Faults that are planted mechanically in source code, one at a time, to see whether the tests notice."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitXor: ast.BitOr,
}
_JAVASCRIPT = (
    (r"===", "!=="),
    (r"!==", "==="),
    (r"<=", "<"),
    (r">=", ">"),
    (r"(?<![<=>-])<(?![<=])", "<="),
    (r"(?<![=>])>(?![=>])", ">="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\bif \(", "if (!"),
    (r"\breturn (?=\w)", "return void "),
    (r"(?<![\w.])(\d+)(?![\w.])", None),
    (r"\bthrow new \w+\([^;]*\);", ";"),
)
"""Patterns and what replaces them; a number becomes the next one."""


@dataclass(frozen=True)
class Fault:
    """One changed piece of a source file."""

    line: int
    start: int
    """Offset of the piece in the source."""
    end: int
    before: str
    after: str

    def planted(self, source: str) -> str:
        """The source with the fault."""
        return source[: self.start] + self.after + source[self.end :]

    def __str__(self) -> str:
        return f"{_short(self.before)}  ->  {_short(self.after)}"


def faults(source: str, *, javascript: bool = False) -> list[Fault]:
    """All faults that can be planted in a source, in the order of its lines."""
    found = _javascript(source) if javascript else _python(source)
    return sorted({fault for fault in found if fault.before != fault.after}, key=lambda one: (one.start, one.after))


def chosen(source: str, seed: str, limit: int, *, javascript: bool = False) -> list[Fault]:
    """Some of the faults, chosen at random, so that all kinds and lines have a share."""
    found = faults(source, javascript=javascript)
    picked = Random(seed).sample(found, min(limit, len(found)))  # noqa: S311 - reproducible
    return sorted(picked, key=lambda one: (one.start, one.after))


def _python(source: str) -> Iterator[Fault]:
    tree = ast.parse(source)
    ignored = {id(node) for node in _ignored(tree)}
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    lines = source.splitlines()

    def position(line: int, column: int) -> int:
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())

    conditions = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp | ast.While)}
    for node in _walk(tree, ignored):
        if isinstance(node, ast.expr | ast.stmt):
            start = position(node.lineno, node.col_offset)
            end = position(int(node.end_lineno or 0), int(node.end_col_offset or 0))
            is_condition = isinstance(node, ast.expr) and id(node) in conditions and _is_plain(node)
            negated = [ast.UnaryOp(ast.Not(), node)] if isinstance(node, ast.expr) and is_condition else []
            for changed in [*_changes(node), *negated]:
                text = ast.unparse(changed)
                after = f"({text})" if isinstance(node, ast.BoolOp | ast.Compare | ast.BinOp | ast.UnaryOp) else text
                yield Fault(node.lineno, start, end, source[start:end], after)


def _walk(node: ast.AST, ignored: set[int]) -> Iterator[ast.AST]:
    if id(node) in ignored:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, ignored)


def _ignored(tree: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, annotations, decorators, the text of messages, and imports."""
    for node in ast.walk(tree):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from node.decorator_list
            yield from filter(None, [node.returns])
            if node.name == "__repr__":
                yield node
        elif isinstance(node, ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield node.exc


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one fault, for each fault that it can have."""
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[index] = _COMPARISONS[type(operator)]()
            yield changed
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and not _joins_text(node):
        yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node)
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Call) and len(node.args) >= 2 and not isinstance(node.args[0], ast.Starred):
        yield ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)


def _other_constants(node: ast.Constant) -> Iterator[ast.Constant]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and re.fullmatch(r"[\w.-]{1,24}", value):
        yield ast.Constant(value + "x")
    elif isinstance(value, bytes) and value:
        yield ast.Constant(value + b"x")


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression has no fault of its own that negates it."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Call)


def _joins_text(node: ast.BinOp) -> bool:
    return any(isinstance(one, ast.JoinedStr) or _is_text(one) for one in (node.left, node.right))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _javascript(source: str) -> Iterator[Fault]:
    """Faults by textual patterns, outside of comments and texts."""
    hidden = re.compile(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`", re.DOTALL)
    code = hidden.sub(lambda match: " " * len(match.group()), source)
    for pattern, replacement in _JAVASCRIPT:
        for match in re.finditer(pattern, code):
            start, end = match.span()
            after = str(int(match.group(1)) + 1) if replacement is None else replacement
            yield Fault(source.count("\n", 0, start) + 1, start, end, source[start:end], after)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 100 else f"{flat[:60]} ... {flat[-35:]}"

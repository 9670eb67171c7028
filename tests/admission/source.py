"""Our own source, read as syntax: what tests of structure look at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("db", "office_tasks", "recovery")

# A table's name that is not there to be read (a placeholder, or the end of the text) may be any table's.
_SQL = re.compile(
    r'\b(insert\s+into|merge\s+into|copy)\s+(\w+\.)?"?runs\b|\b(insert|merge)\s+into\s*(\{\}|%s|\?|$)', re.IGNORECASE
)
_HARMLESS_CALLS = {"select", "exists", "update", "delete", "aliased"}


def parse(code: str) -> ast.AST:
    return ast.parse(code)


def modules(*parts: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each module under `parts` (our packages when none is given) as its path and its tree."""
    for part in parts or PACKAGES:
        path = ROOT / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if file.exists():
                yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text())


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield every text in the module; what an f-string fills in reads `{}`."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def inserts_into_runs(tree: ast.AST) -> Iterator[str]:
    """Yield each place that inserts into runs, or into a table that is not known before it runs."""
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)}
    yield from (sql for sql in strings(tree) if sql not in docstrings and _SQL.search(sql))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) not in _HARMLESS_CALLS and _hands_over_runs(node):
            yield ast.unparse(node)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "runs":
            yield ast.unparse(node)


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _hands_over_runs(call: ast.Call) -> bool:
    """Tell whether the model of runs is what is called, called on, or handed over; or the table, by its name."""
    if _name(call.func) == "table":
        return any(isinstance(arg, ast.Constant) and arg.value == "runs" for arg in call.args)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if receiver is not None and "Run.__table__" in ast.unparse(receiver):
        return True
    parts = [call.func, *call.args, *(keyword.value for keyword in call.keywords)]
    return any(_name(part) == "Run" for part in parts)


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield `(module, name)` for each name imported, `(module, None)` for a module imported whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def numbers_named(tree: ast.AST) -> Iterator[str]:
    """Yield every name that the module gives a value with a number in it, anywhere in it."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if _holds_a_number(getattr(node, "value", None)):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _holds_a_number(value: ast.AST | None) -> bool:
    parts = ast.walk(value) if isinstance(value, ast.AST) else ()
    return any(isinstance(part, ast.Constant) and isinstance(part.value, int | float) for part in parts)


def uses(tree: ast.AST, module: str, *names: str) -> bool:
    """Tell whether one of `names` of `module` is imported, or reached through the module."""
    last = module.rpartition(".")[2]
    reached = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return any(
        (module, name) in imports(tree) or f"{last}.{name}" in reached or f"{module}.{name}" in reached
        for name in names
    )


def called_names(tree: ast.AST) -> set[str]:
    """Return the last part of the name of everything that is called."""
    return {_name(node.func) or "" for node in ast.walk(tree) if isinstance(node, ast.Call)}

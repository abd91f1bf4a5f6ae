"""What the source must not do, found by walking its syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "commands", "pty", "imp"}
_TEMPORARY = {"tempfile"}
_NAMES = {"eval", "exec", "compile", "__import__", "breakpoint"}
_CALLS = {
    "os.system", "os.popen", "os.execl", "os.execv", "os.execvp", "os.spawnl", "os.spawnv", "os.posix_spawn",
    "pandas.read_pickle", "pd.read_pickle", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "subprocess.getoutput", "subprocess.getstatusoutput", "os.tempnam", "os.tmpnam",
}  # fmt: skip
_METHODS = {"to_pickle", "read_pickle"}
_SUBPROCESS = {"Popen", "run", "call", "check_call", "check_output"}
_SQL = {"execute", "exec_driver_sql", "executemany", "executescript", "text"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something forbidden at a line."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def findings(source: str, path: str = "") -> list[Finding]:
    """Return everything forbidden in a module's source."""
    tree = ast.parse(source)
    names = _aliases(tree)
    found = []
    for node in ast.walk(tree):
        found += [Finding(path, node.lineno, what) for what in _wrong(node, names)]  # type: ignore[attr-defined]
    return sorted(found, key=lambda each: each.line)


def in_folder(folder: Path) -> list[Finding]:
    """Return everything forbidden below a folder."""
    modules = sorted(folder.rglob("*.py"))
    named = [(each, str(each.relative_to(folder.parent))) for each in modules]
    return [one for path, name in named for one in findings(path.read_text(encoding="utf-8"), name)]


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Return what the names of a module stand for: `import pandas as pd`, `from os import system as run`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                (each.asname or each.name.partition(".")[0]): (
                    each.name if each.asname else each.name.partition(".")[0]
                )
                for each in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {(each.asname or each.name): f"{node.module}.{each.name}" for each in node.names}
    return names


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return the full name of what is called, as far as the source says it."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, names)
        return f"{before}.{node.attr}" if before else f".{node.attr}"
    return ""


def _wrong(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        whole = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for module in whole:
            first = module.partition(".")[0]
            if first in _MODULES:
                yield f"imports {first}"
            if first in _TEMPORARY:
                yield f"imports {first}: temporary files belong into the confidential folder"
    if isinstance(node, ast.Call):
        yield from _wrong_call(node, names)


def _wrong_call(node: ast.Call, names: dict[str, str]) -> Iterator[str]:
    called = _dotted(node.func, names)
    last = called.rpartition(".")[2]
    if called in _NAMES:
        yield f"calls {called}"
    if called in _CALLS or last in _METHODS or called.startswith(("os.exec", "os.spawn")):
        yield f"calls {called}"
    for keyword in node.keywords:
        if keyword.arg in ("shell", "allow_pickle") and not _is(keyword.value, False):
            yield f"{keyword.arg} is not False"
    if called == "numpy.load" or (called.endswith(".load") and called.startswith("numpy")):
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if not _is(given.get("allow_pickle"), False):
            yield "numpy.load without allow_pickle=False"
    if (
        called.startswith("subprocess.")
        and last in _SUBPROCESS
        and not (node.args and isinstance(node.args[0], ast.List))
    ):
        yield "a subprocess that is not given a list of words"
    if called == "importlib.import_module" and not (node.args and isinstance(node.args[0], ast.Constant)):
        yield "imports a module by a name that is computed"
    if last in _SQL and node.args and _built(node.args[0]):
        yield "SQL text put together from values; bind parameters"


def _is(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _built(node: ast.AST) -> bool:
    """Return whether a text is put together where it is used: f-string, format, %, +."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("format", "format_map", "join", "replace", "__mod__")
    return False


def built_texts(source: str) -> list[str]:
    """Return the names of functions that put an SQL text together, wherever it is used."""
    words = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "DROP ", "ALTER ", "PRAGMA ")
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if _built(node) and any(word in text for text in _texts(node) for word in words):
                    found.append(function.name)
                    break
    return found


def _texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value

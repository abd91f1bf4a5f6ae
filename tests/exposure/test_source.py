"""The project reads and writes no pickle, runs no text as code, starts no shell, binds what it gives to SQL."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.source_path import ROOT

PACKAGES = ("agedp_data", "pipelines", "flows")
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "commands", "pty", "imp", "tempfile"}
CALLS = {
    "eval", "exec", "compile", "__import__", "breakpoint", "os.system", "os.popen", "os.posix_spawn",
    "yaml.load", "yaml.unsafe_load", "yaml.full_load", "subprocess.getoutput", "subprocess.getstatusoutput",
}  # fmt: skip
SUBPROCESS = {f"subprocess.{name}" for name in ("Popen", "run", "call", "check_call", "check_output")}
SQL = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "DROP ", "ALTER ", "PRAGMA ")
TEMPORARY = {
    # for notebooks, where there is no confidential folder: a folder of its own (0700), removed at the end
    "pipelines/agedp/stages/ingest.py", "pipelines/agedp/one_pass.py",
    # what is published already
    "pipelines/agedp/stages/publish.py", "pipelines/agedp/privacy_audit.py",
}  # fmt: skip
TRIGGERS = {"agedp_data/ledger/backends/sqlite.py", "agedp_data/ledger/backends/postgresql_ddl.py"}
"""Triggers take no parameters; they are made of names that are in this source."""


def faults(source: str) -> list[str]:
    """Return everything forbidden in a module's source."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return [fault for node in ast.walk(tree) for fault in _faults(node, names)]


def _faults(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        yield from (f"imports {module}" for module in modules if module.partition(".")[0] in MODULES)
    if _is_built(node) and any(word in text for text in _texts(node) for word in SQL):
        yield "SQL text put together from values; bind parameters"
    if not isinstance(node, ast.Call):
        return
    called = _dotted(node.func, names)
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if called in CALLS or called.endswith(("to_pickle", "read_pickle")) or called.startswith(("os.exec", "os.spawn")):
        yield f"calls {called}"
    if "shell" in keywords:
        yield "a shell"
    if ("allow_pickle" in keywords or called == "numpy.load") and not _is_false(keywords.get("allow_pickle")):
        yield "numpy's pickles"
    if called in SUBPROCESS and not (node.args and isinstance(node.args[0], ast.List)):
        yield "a subprocess that is not given a list of words"
    if called == "importlib.import_module" and not isinstance(node.args[0], ast.Constant):
        yield "imports a module by a name that is computed"
    if called.endswith(("execute", "exec_driver_sql", "executemany")) and any(map(_is_built, node.args)):
        yield "SQL text put together from values; bind parameters"


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return the full name of what is called, as far as the source has it."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    return f"{_dotted(node.value, names)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _is_false(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_built(node: ast.AST) -> bool:
    """Return whether a text is put together where it is used: f-string, format, %, +."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("format", "format_map", "join", "replace")
    return (isinstance(node, ast.JoinedStr) and any(isinstance(part, ast.FormattedValue) for part in node.values)) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod)
    )


def _texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_does_what_is_forbidden(package: str) -> None:
    found = set()
    for path in (ROOT / package).rglob("*.py"):
        name = str(path.relative_to(ROOT))
        for fault in faults(path.read_text(encoding="utf-8")):
            if not (name in TEMPORARY and "tempfile" in fault) and not (name in TRIGGERS and "SQL" in fault):
                found.add(f"{name}: {fault}")
    assert found == set()
    assert len(list((ROOT / package).rglob("*.py"))) > 5


FORBIDDEN = """import pickle
from cloudpickle import loads
import marshal as m
from joblib.memory import Memory
import tempfile
x = eval('1')
exec(text)
import os; os.system('ls')
from os import system as see; see('ls')
import subprocess; subprocess.run(['ls'], shell=maybe)
from subprocess import Popen; Popen('ls -l')
import numpy as np; np.load(path)
import numpy; numpy.load(path, allow_pickle=True)
import pandas as pd; pd.read_pickle(path)
frame.to_pickle(path)
import yaml; yaml.load(text)
connection.execute(f'SELECT {name}')
connection.exec_driver_sql('SELECT {}'.format(name))
connection.execute('SELECT %s' % name)
query = 'SELECT * FROM ' + name
import importlib; importlib.import_module(name)""".splitlines()
FINE = """import numpy as np; np.load(path, allow_pickle=False)
import subprocess; subprocess.Popen(['ls', name])
connection.execute(select(table).where(table.c.seq >= since))
connection.exec_driver_sql('BEGIN IMMEDIATE' if write else 'BEGIN')
re.compile('x')
json.load(stream)""".splitlines()


def test_the_check_finds_what_is_forbidden_and_nothing_else() -> None:
    assert [line for line in FORBIDDEN if not faults(line)] == []
    assert [line for line in FINE if faults(line)] == []

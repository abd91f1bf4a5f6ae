"""The project reads and writes no pickle, runs no text as code, starts no shell, binds what it gives to SQL."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.source_path import ROOT

PACKAGES = tuple(ROOT / name for name in ("agedp_data", "pipelines", "flows"))
RULES = "S102,S301,S302,S307,S506,S602,S604,S605,S608,S609"
"""exec, pickle, marshal, eval, yaml.load, shells, SQL text put together from values."""
UNRULED = re.compile(
    r"^\s*(?:import|from) (?:pickle|cloudpickle|dill|marshal|shelve|joblib|tempfile|pty)\b|\.(?:to|read)_pickle\("
    r"|\bn(?:p|umpy)\.load\((?!.*allow_pickle=False)|\b(?:allow_pickle=True|shell=)|\bimport_module\((?![\"'])",
    re.MULTILINE,
)
TEMPORARY = {
    # for notebooks, where there is no confidential folder: a folder of its own (0700), removed at the end
    "pipelines/agedp/stages/ingest.py",
    # what is published already
    "pipelines/agedp/stages/publish.py", "pipelines/agedp/privacy_audit.py",
}  # fmt: skip
TRIGGERS = {"agedp_data/ledger/backends/sqlite.py"}
"""Triggers take no parameters; they are made of names that are in this source."""


def faults(*paths: Path) -> set[tuple[str, str]]:
    """Return (file, what) of everything forbidden, whatever a comment excuses."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--ignore-noqa", "--select", RULES]
    done = subprocess.run(
        [*command, "--output-format", "json", *map(str, paths)], capture_output=True, text=True, check=False
    )
    found = {(Path(fault["filename"]).resolve(), fault["code"]) for fault in json.loads(done.stdout)}
    for path in (file for folder in paths for file in (folder.rglob("*.py") if folder.is_dir() else [folder])):
        found |= {(path.resolve(), match.strip()) for match in UNRULED.findall(path.read_text(encoding="utf-8"))}
    return {(str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name, what) for path, what in found}


def test_no_module_does_what_is_forbidden() -> None:
    expected = {(name, "from tempfile") for name in TEMPORARY} | {(name, "S608") for name in TRIGGERS}
    expected |= {
        ("pipelines/agedp/workspace.py", "import tempfile"),  # tables in memory: a folder of its own (0700), removed
        ("pipelines/agedp/__init__.py", "import_module("),  # of a constant table, by public name
    }
    assert faults(*PACKAGES) == expected


FORBIDDEN = """from cloudpickle import loads
import tempfile
x = eval('1')
exec(text)
from os import system as see; see('ls')
import subprocess; subprocess.run(name, shell=maybe)
import numpy as np; np.load(path)
frame.to_pickle(path)
import yaml; yaml.load(text)
connection.execute(f'SELECT {name} FROM t')
connection.execute('SELECT %s FROM t' % name)
query = 'SELECT * FROM ' + name
import importlib; importlib.import_module(name)""".splitlines()
FINE = """import numpy as np; np.load(path, allow_pickle=False)
import subprocess; subprocess.Popen(['ls', name])
connection.execute(select(table).where(table.c.seq >= since))
import re; re.compile('x')"""


def test_the_check_finds_what_is_forbidden_and_nothing_else(tmp_path: Path) -> None:
    for number, line in enumerate(FORBIDDEN):
        (tmp_path / f"{number}.py").write_text(line + "\n")
    (tmp_path / "fine.py").write_text(FINE + "\n")
    assert {name for name, _ in faults(tmp_path)} == {f"{number}.py" for number in range(len(FORBIDDEN))}

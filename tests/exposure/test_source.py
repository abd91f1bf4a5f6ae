"""The project reads and writes no pickle, runs no text as code, starts no shell, binds what it gives to SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exposure.source import Finding, built_texts, findings, in_folder

ROOT = Path(__file__).parents[2]
PACKAGES = ("agedp_data", "pipelines", "flows")

# For notebooks inside the house, where there is no confidential folder: a folder of its own (0700), removed at the end.
FOR_NOTEBOOKS = ("pipelines/agedp/stages/ingest.py",)
# What is published already, and households that are made up.
NOT_CONFIDENTIAL = ("pipelines/agedp/stages/publish.py", "pipelines/agedp/privacy_audit.py", "docs/papers/homes.py")
# Triggers and nothing else: they take no parameters. They are made of names that stand in this source.
THEIR_TRIGGERS = {
    "agedp_data/ledger/backends/sqlite.py": ["_triggers"],
    "agedp_data/ledger/backends/postgresql_ddl.py": ["_triggers"],
}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_does_what_is_forbidden(package):
    found = in_folder(ROOT / package)
    permitted = FOR_NOTEBOOKS + NOT_CONFIDENTIAL
    excused = [one for one in found if one.path in permitted and "tempfile" in one.what]
    assert len(excused) <= len(permitted)
    assert [str(one) for one in found if one not in excused] == []
    assert len(list((ROOT / package).rglob("*.py"))) > 5


def test_sql_text_is_put_together_for_the_triggers_only():
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            assert built_texts(path.read_text(encoding="utf-8")) == THEIR_TRIGGERS.get(name, []), name


FORBIDDEN = {
    "pickle": "import pickle",
    "cloudpickle": "from cloudpickle import loads",
    "marshal": "import marshal as m",
    "shelve": "def f():\n    import shelve",
    "joblib": "from joblib.memory import Memory",
    "eval": "x = eval('1')",
    "exec": "exec(text)",
    "compile": "compile(text, '', 'exec')",
    "os.system": "import os\nos.system('ls')",
    "os.system by another name": "from os import system as see\nsee('ls')",
    "os.popen": "import os as o\no.popen('ls')",
    "a shell": "import subprocess\nsubprocess.run(['ls'], shell=True)",
    "perhaps a shell": "import subprocess\nsubprocess.run(['ls'], shell=maybe)",
    "a subprocess of a text": "from subprocess import Popen\nPopen('ls -l')",
    "a subprocess of a variable": "import subprocess\nsubprocess.check_output(command)",
    "numpy's pickles": "import numpy as np\nnp.load(path)",
    "numpy's pickles, asked for": "import numpy\nnumpy.load(path, allow_pickle=True)",
    "pandas's pickles": "import pandas as pd\npd.read_pickle(path)",
    "a frame's pickle": "frame.to_pickle(path)",
    "yaml.load": "import yaml\nyaml.load(text)",
    "tempfile": "import tempfile",
    "tempfile, in part": "from tempfile import NamedTemporaryFile",
    "SQL by f-string": "connection.execute(f'SELECT {name}')",
    "SQL by format": "connection.exec_driver_sql('SELECT {}'.format(name))",
    "SQL by %": "connection.execute('SELECT %s' % name)",
    "SQL by +": "connection.execute(text('SELECT ' + name))",
    "a computed import": "import importlib\nimportlib.import_module(name)",
}  # fmt: skip


@pytest.mark.parametrize("case", FORBIDDEN)
def test_the_check_finds_it(case):
    found = findings(FORBIDDEN[case], "x.py")
    assert len({one.line for one in found}) == 1, found
    assert all(isinstance(one, Finding) for one in found)


@pytest.mark.parametrize(
    "fine",
    [
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "import subprocess\nsubprocess.Popen(['ls', name])",
        "connection.execute(select(table).where(table.c.seq >= since))",
        "connection.exec_driver_sql('BEGIN IMMEDIATE' if write else 'BEGIN')",
        "re.compile('x')",
        "json.load(stream)",
    ],
)
def test_the_check_leaves_alone_what_is_fine(fine):
    assert findings(fine) == []


def test_a_text_built_elsewhere_is_found_too():
    source = "def rows(name):\n    query = 'SELECT * FROM ' + name\n    return connection.execute(query)"
    assert built_texts(source) == ["rows"]
    assert built_texts("def rows():\n    return 'SELECT 1'") == []

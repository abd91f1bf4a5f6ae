"""Planted faults are caught: with each of `faults.FAULTS` in place, a test that it names fails.

The tests run in processes of their own, once as they are and once for each fault. A fault that no test notices means
that a restructuring may have the same fault unnoticed: the net has a hole there.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from tests.planted.faults import FAULTS
from tests.planted.plugin import owner_of
from tests.source_path import ROOT

FAILED = 1
"""Exit status of pytest where tests ran and some failed."""


def run_tests(*words: str) -> subprocess.CompletedProcess[str]:
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "tests.planted.plugin", "--no-header", "--tb=line")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_each_fault_has_a_function_and_tests() -> None:
    assert len(FAULTS) >= 40
    for fault in FAULTS.values():
        home, _, path = fault.target.partition(":")
        owner, name = owner_of(import_module(home), path)
        assert callable(getattr(owner, name)) or isinstance(vars(owner)[name], property), fault.target
        for test in fault.tests:
            file, _, function = test.partition("::")
            name = function.rpartition("::")[2].partition("[")[0]
            assert f"def {name or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), test


@pytest.mark.long
def test_the_tests_pass_without_a_fault() -> None:
    done = run_tests(*sorted({test for fault in FAULTS.values() for test in fault.tests}))
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    done = run_tests("--planted", name, *FAULTS[name].tests)
    assert (done.returncode, "error" in done.stdout.splitlines()[-1]) == (FAILED, False), done.stdout[-2000:]

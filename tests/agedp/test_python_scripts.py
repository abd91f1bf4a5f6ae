"""The ten scripts of docs/python.md run as they are printed, on synthetic households."""

from __future__ import annotations

import gc
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agedp.setup.sample import sample

SCRIPTS = Path(__file__).parents[2] / "docs" / "scripts"
PRINTED = {
    "read": "'kept': ",
    "quantize": "edge_11_wh",
    "mixing_curve": "age_days",
    "plan": "age-dependent",
    "compare": "w-event",
    "release_in_memory": "window of 7 days",
    "release_with_ledger": "True ",
    "save_and_verify": "'name': 'total'",
    "from_parquet": "published_on",
}
ON_DASK = "estimate_on_dask"


@pytest.fixture(scope="module")
def input_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "london"
    sample("london", folder, households=12, days=12, seed=1)
    return folder / "input"


@pytest.fixture
def workplace(input_folder, tmp_path, monkeypatch) -> Path:
    """An empty folder with input files; temporary folders are made in it."""
    shutil.copytree(input_folder, tmp_path / "input")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


def test_every_script_is_listed_and_short():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {*PRINTED, ON_DASK}
    for path in SCRIPTS.glob("*.py"):
        assert sum(bool(line.strip()) for line in path.read_text().splitlines()) <= 10, path


@pytest.mark.parametrize("name", PRINTED)
def test_a_script_prints_its_result_and_leaves_no_temporary_folder(name, workplace, capsys):
    runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    assert PRINTED[name] in capsys.readouterr().out
    gc.collect()
    assert [path.name for path in workplace.glob("agedp-*")] == []


@pytest.mark.long
@pytest.mark.xdist_group("cluster")
def test_the_script_on_dask_uses_the_active_client(workplace):
    ended = subprocess.run(
        [sys.executable, SCRIPTS / f"{ON_DASK}.py"], env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "count    12.0" in ended.stdout
    assert [path.name for path in workplace.glob("agedp-*")] == []

"""The README: its first screen names what agedp is about, and its screen is what `make run` prints.

`tests/agedp_flows/test_demonstration.py` compares the screen with a demonstration of few households.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agedp.stages.publish import open_release
from agedp_data.notions import NOTIONS
from tests.documents.pages import ROOT, screen, unprinted
from tests.source_path import source_path

README = (ROOT / "README.md").read_text("utf-8")
FIRST_SCREEN_LINES = 25
_DEMO = """
from agedp_data import mechanisms
from agedp_flows.cli import app
from tests.documents.pages import repeatable_noise
mechanisms.discrete_laplace = repeatable_noise
app.main()
"""


def test_the_first_screen_names_chain_gap_dask_prefect_and_notions():
    first = " ".join(README.splitlines()[:FIRST_SCREEN_LINES])
    named = ["Markov chain", "transition matrix", "spectral gap", "Dask", "Prefect", "Parquet"]
    assert [name for name in [*named, *(notion.name for notion in NOTIONS)] if name not in first] == []
    text = screen(README)
    assert [name for name in ("spectral gap", "agedp-read") if name not in text.lower()] == []
    assert len([line for line in text.splitlines() if line.startswith("--- London, ")]) == 3


@pytest.mark.long
@pytest.mark.prefect
def test_make_run_prints_the_screen_and_six_releases_verify(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-c", _DEMO, "demo", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**env, "PYTHONPATH": source_path()}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert unprinted(screen(README), done.stdout) == ""
    assert (tmp_path / "out" / "index.html").stat().st_size > 100_000
    releases = sorted((tmp_path / "out").glob("*/*/release"))
    assert [release.parts[-3:-1] for release in releases] == [
        (dataset, notion) for dataset in ("ausgrid", "london") for notion in ("age-dependent", "discounted", "temporal")
    ]
    for release in releases:
        folder = open_release(release)
        folder.verify()
        assert len(folder.table()) == 56

"""Without the extras: what works, what says which extra it needs, and what is imported for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agedp.setup.sample import sample
from tests.source_path import ROOT, source_path

PREFECT_LINE = "agedp: flows need Prefect, which is not installed; install agedp with its extra prefect\n"
EXTRAS = ("prefect", "fastapi", "matplotlib", "distributed", "dask")
API = """
import agedp
readings = agedp.read("input/*.csv", dataset="london")
knowingly = ["useless", "total"]
promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=182.5, accept=knowingly)
agedp.plan(readings, promise=promise, clamp_kwh=50, min_households=5)
chains = agedp.estimate(agedp.quantize(readings, states=2))
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light") / "sample"
    sample("london", folder, households=8, days=5, seed=3)
    return folder


def python(code: str, folder: Path, *, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, in which these modules cannot be imported."""
    blocked = f"import sys; sys.modules |= dict.fromkeys({without!r})\n"
    environment = {**os.environ, "PYTHONPATH": source_path()}
    return subprocess.run(
        [sys.executable, "-c", blocked + code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def command(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = f"sys.argv = ['agedp', *{words.split()!r}]\nfrom agedp_flows.__main__ import main; main()"
    return python(code, folder, without=EXTRAS)


@pytest.mark.parametrize(
    "words",
    [
        "run london.toml --flow",
        "demo d",
        pytest.param("serve london.toml", marks=pytest.mark.long),
        pytest.param("calibrate london.toml --flow", marks=pytest.mark.long),
    ],
)
def test_without_prefect_a_flow_is_one_line_and_nothing_is_written(words, drawn):
    before = sorted(drawn.rglob("*"))
    done = command(words, drawn)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", PREFECT_LINE)
    assert sorted(drawn.rglob("*")) == before


def test_without_any_extra_a_release_is_drawn_and_verified(tmp_path):
    sample("london", tmp_path / "s", households=8, days=5, seed=3)
    for words in ("--help", "plan london.toml", "run london.toml", "ledger verify london.toml", "verify release"):
        done = command(words, tmp_path / "s")
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(
    ("call", "extra"),
    [("chains.plot()", "plot"), ("agedp.read('input/*.csv', dataset='london', as_dask=True)", "dataframe")],
)
def test_without_an_extra_an_api_call_is_one_line_that_names_it(call, extra, drawn):
    code = f"from agedp_data.errors import InputError\ntry:\n    {call}\nexcept InputError as error:\n    print(error)"
    done = python(API + code, drawn, without=EXTRAS)
    assert done.stdout.endswith(f"not installed; install agedp with its extra {extra}\n"), done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "code",
    [
        API,
        "sys.argv = ['agedp', 'plan', 'london.toml']\nfrom agedp_flows.cli.app import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code",
    ],
)
def test_nothing_but_a_draw_imports_opendp(code, drawn):
    told = "\nprint('imported', sorted({'opendp', 'prefect', 'distributed', 'matplotlib'} & set(sys.modules)))"
    done = python(code + told, drawn)
    assert done.stdout.splitlines()[-1:] == ["imported []"], done.stderr


def test_the_base_needs_none_of_the_extras():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {line.partition(">=")[0] for line in told["dependencies"]}
    assert names & {"prefect", "fastapi", "matplotlib", "distributed", "dask", "dask[dataframe]"} == set()
    assert {"prefect", "plot", "dataframe", "cluster"} <= set(told["optional-dependencies"])

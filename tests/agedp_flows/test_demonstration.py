"""`agedp demo` as a newcomer meets it: everything printed once, nothing drawn twice, one line for a wrong folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agedp_data.markov.mixing import MIXING_NAMES
from tests.agedp_flows.demonstration_driver import SEPARATOR
from tests.command import CommandFolder
from tests.documents.pages import ROOT, screen, unlike
from tests.source_path import source_path

DRIVER = Path(__file__).with_name("demonstration_driver.py")


@pytest.mark.prefect
def test_a_demonstration_shows_everything_and_draws_once(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    env["PYTHONPATH"] = source_path()
    done = subprocess.run(
        [sys.executable, str(DRIVER)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    shown, digests, again, digests_again, _ = done.stdout.split(SEPARATOR)
    assert len(json.loads(digests)) >= 6 * 7
    assert json.loads(digests_again) == json.loads(digests)

    for words in ("rows read", "12 states per household", "Estimated transition matrix", "Spectral gap", "Credit for"):
        assert shown.count(words) == 2, words  # on both formats
    for name in MIXING_NAMES.values():
        assert name.lower() in shown.lower()
    matrices = re.findall(r"^ +\d+((?: +(?:\.\d\d|\.|1\.00)){12})$", shown, re.M)
    assert len(matrices) == 24
    assert all(abs(sum(float(cell) for cell in row.split() if cell != ".") - 1) < 0.07 for row in matrices)
    rows = re.findall(r"^(London|Ausgrid), (age-dependent|temporal|discounted) +2 ", shown, re.M)
    assert len(set(rows)) == 6
    assert max(map(len, shown.splitlines())) <= 106
    assert shown.endswith("The same in pictures: out/index.html\n")
    assert unlike(screen((ROOT / "README.md").read_text("utf-8")), shown) == ""
    assert (tmp_path / "out" / "index.html").stat().st_mode & 0o444 == 0o444
    assert not (tmp_path / "out" / "prefect").exists()  # PREFECT_API_URL was set

    facts = json.loads(again)
    assert [(each["dataset"].capitalize(), each["notion"]) for each in facts["releases"]] == rows[:3]
    assert [(each["dataset"], each["states"]) for each in facts["chains"]] == [("london", 12)]
    for each in facts["releases"]:
        statement = json.loads((tmp_path / each["folder"] / "statement.json").read_text())
        epsilons = {figure["name"]: figure["epsilon"] for figure in statement["figures"]}
        assert (each["day_epsilon"], each["total_epsilon"]) == (epsilons["day"], epsilons["total"])


def test_a_foreign_dataset_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "london").mkdir()
    (tmp_path / "london" / "notes.txt").write_text("mine")
    line = CommandFolder(tmp_path).refuse("demo", tmp_path, status=2)
    assert line.endswith("london: is not from this demonstration. Move it, or name another folder (make run OUT=DIR).")
    assert [path.name for path in tmp_path.rglob("*")] == ["london", "notes.txt"]


def test_make_run_is_the_demonstration() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    recipe = re.search(r"^run: .*\n((?:\t.*\n)+)", makefile, re.M)
    assert recipe is not None
    assert recipe[1] == "\t@$(BIN)/agedp demo $(OUT)\n"

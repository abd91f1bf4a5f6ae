"""`agedp demo` as a newcomer meets it: everything printed once, nothing drawn twice, one line for a wrong folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agedp_data.markov.mixing import MIXING_NAMES
from tests.agedp_flows import flow_scripts
from tests.agedp_flows.serving import environment
from tests.command import CommandFolder
from tests.documents.pages import ROOT, screen, unlike
from tests.references import unresolved


@pytest.mark.prefect
def test_a_demonstration_shows_everything_and_draws_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, flow_scripts.__file__, "demonstration"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert unresolved(done.stdout) == []
    shown, digests, again, digests_again, _ = done.stdout.split(flow_scripts.SEPARATOR)
    assert len(json.loads(digests)) >= 6 * 7
    assert json.loads(digests_again) == json.loads(digests)
    for name in MIXING_NAMES.values():
        assert name.lower() in shown.lower()
    matrices = re.findall(r"^ +\d+((?: +(?:\.\d\d|\.|1\.00)){12})$", shown, re.M)
    assert len(matrices) == 24  # 12 states, in both formats
    assert all(abs(sum(float(cell) for cell in row.split() if cell != ".") - 1) < 0.07 for row in matrices)
    rows = re.findall(r"^(London|Ausgrid), (age-dependent|temporal|discounted) +2 ", shown, re.M)
    assert len(set(rows)) == 6
    assert unlike(screen((ROOT / "README.md").read_text("utf-8")), shown) == ""
    assert (tmp_path / "out" / "index.html").stat().st_mode & 0o444 == 0o444
    assert not (tmp_path / "out" / "prefect").exists()  # PREFECT_API_URL was set
    releases = json.loads(again)["releases"]
    assert [(release["dataset"].capitalize(), release["notion"]) for release in releases] == rows[:3]
    for release in releases:
        statement = json.loads((tmp_path / release["folder"] / "statement.json").read_text())
        epsilons = {bound["name"]: bound["epsilon"] for bound in statement["figures"]}
        assert (release["day_epsilon"], release["total_epsilon"]) == (epsilons["day"], epsilons["total"])


def test_a_foreign_dataset_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "london").mkdir()
    (tmp_path / "london" / "notes.txt").write_text("mine")
    line = CommandFolder(tmp_path).refuse("demo", tmp_path, status=2)
    assert line.endswith("london: is not from this demonstration. Move it, or name another folder (make run OUT=DIR).")
    assert [path.name for path in tmp_path.rglob("*")] == ["london", "notes.txt"]

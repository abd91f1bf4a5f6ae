"""`agedp demo` as a newcomer meets it: everything printed once, nothing drawn twice, one line for a wrong folder."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import agedp
from agedp.setup.sample import sample
from agedp_flows import demonstration
from tests.agedp.reports.html import Page, faults_of
from tests.agedp_flows import flow_scripts
from tests.agedp_flows.serving import environment
from tests.command import CommandFolder
from tests.documents.pages import ROOT, screen, unlike
from tests.references import unresolved


@pytest.mark.prefect
@pytest.mark.parametrize("datasets", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_demonstration_shows_everything_and_draws_once(tmp_path: Path, datasets: int) -> None:
    """The fast tests show London alone, `make long` both datasets, as the README's screen does."""
    done = subprocess.run(
        [sys.executable, flow_scripts.__file__, "demonstration", str(datasets)],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert unresolved(done.stdout) == []
    shown, digests, again, digests_again, _ = done.stdout.split(flow_scripts.SEPARATOR)
    assert len(json.loads(digests)) >= 3 * 7 * datasets
    assert json.loads(digests_again) == json.loads(digests)
    matrices = re.findall(r"^((?: +(?:[01]\.\d\d|\.)){12})$", shown, re.M)
    assert len(matrices) == 12 * datasets  # 12 states, in both formats
    assert all(abs(sum(float(cell) for cell in row.split() if cell != ".") - 1) < 0.07 for row in matrices)
    rows = re.findall(r"^--- (London|Ausgrid), (age-dependent|temporal|discounted) privacy ---$", shown, re.M)
    assert len(set(rows)) == 3 * datasets
    tasks = re.findall(r"^Tasks: (?:\d+ agedp-[a-z-]+, )*\d+ agedp-[a-z-]+\. Scheduler: ", shown, re.M)
    assert len(tasks) == (1 + 3) * datasets  # a calibration, three releases
    assert datasets == 1 or unlike(screen((ROOT / "README.md").read_text("utf-8")), shown) == ""
    assert (tmp_path / "out" / "index.html").stat().st_mode & 0o444 == 0o444
    assert not (tmp_path / "out" / "prefect").exists()  # PREFECT_API_URL was set
    releases = json.loads(again)["releases"]
    assert [("London", release["notion"]) for release in releases] == rows[:3]
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert [fault for fault in faults_of(page) if not fault.startswith("a href=")] == []
    assert unresolved(Page(page).text) == []
    assert "<script" not in page
    assert "://" not in page
    for words, number in (("transition matrix", 1), ("decay of dependence", 1), ("a day", 3)):
        assert sum(words in title for title in Page(page).titles) == number
    links = [link for link in re.findall(r'href="([^"]*)"', page) if not link.startswith(("data:,", "#"))]
    assert len(links) == 6
    assert all((tmp_path / "out" / link).is_file() for link in links)


def test_states_of_the_demo_are_the_levels_that_were_drawn(tmp_path: Path) -> None:
    """Equal-width states of a household seen in its highest level, from the files that the demo draws."""
    size = demonstration.Size(households=3, model_days=6, released_days=2, seed=3)
    demonstration._draw(tmp_path / "london", size)
    frame = agedp.read(str(tmp_path / "london" / "input" / "*.csv"), dataset="london")
    for number, mean_kwh in enumerate((6.5, 8.0, 9.5)):
        energy = np.sort(frame[frame["household_id"] == f"MAC{900_001 + number}"]["energy_wh"].unique())
        levels = np.rint(mean_kwh * 1000 / 48 * (2 * np.arange(12) + 1) / 12)
        assert energy.tolist() == levels.tolist()
        assert (energy * 12 // energy.max()).clip(max=11).tolist() == [*range(12)]
        assert 48 * energy.max() / 1000 <= 20  # the clamp of the run files


def make_page(place: Path) -> None:
    place.write_text("<title>another page</title>")


def make_folder(place: Path) -> None:
    place.mkdir()
    (place / "notes.txt").write_text("mine")


@pytest.mark.parametrize(("name", "make"), [
    ("london", make_folder), ("index.html", make_page), ("index.html", make_folder), ("prefect", make_folder),
    ("prefect", make_page),
])  # fmt: skip
def test_a_file_of_the_user_is_refused_in_one_line(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    make(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    line = CommandFolder(tmp_path).refuse("demo", tmp_path, status=2)
    assert line.endswith(f"{name}: is not from this demonstration. Move it, or name another folder (make run OUT=DIR).")
    assert [path for path in before if not path.exists()] == []
    assert [path.name for path in tmp_path.iterdir() if path not in before] in ([], [".lock"])  # no server was started


SAMPLES = {
    "london": "c6aab7bfe5d49dbb9adf512258dc413a8e0b7b241ec79c1ca5faca99961b98b7",
    "ausgrid": "78a0b96cec4e359a061ced65025e46de86fd911abbf17a75477cfc9c3233fb74",
}
"""Input files and roster, whose bytes no version changed; the run file has comments."""


@pytest.mark.parametrize("dataset", SAMPLES)
def test_agedp_sample_writes_the_same_bytes_as_before(tmp_path: Path, dataset: str) -> None:
    sample(dataset, tmp_path / "s", households=6, days=4, seed=3)
    digest = hashlib.sha256()
    for path in sorted(path for path in (tmp_path / "s").rglob("*") if path.is_file() and path.suffix != ".toml"):
        digest.update(path.read_bytes())
    assert digest.hexdigest() == SAMPLES[dataset]

"""Upgrades: versions and names of the change log, and what may follow on a folder of 0.1."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from agedp_data.ledger import Ledger
from tests.command import agedp
from tests.compatibility.fixtures import unpack
from tests.compatibility.test_fixtures import require_sound
from tests.source_path import ROOT

_ROW = re.compile(r"^\| `(?:pipelines|agedp_data)\..*\| (?P<new>.*) \|$", re.MULTILINE)


def test_the_newest_entry_of_the_changelog_is_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    heading = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heading
    assert re.fullmatch(rf"{re.escape(version)} \((\d{{4}}-\d\d-\d\d|unreleased)\)", heading[1])


def test_every_successor_of_a_name_of_0_1_exists() -> None:
    rows = _ROW.findall((ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert len(rows) > 20
    for name in re.findall(r"`([\w.]+)`", " ".join(rows)):
        module, _, attribute = name.rpartition(".")
        found = importlib.import_module(module)
        assert hasattr(found, attribute) or importlib.import_module(name), name


@pytest.mark.parametrize("name", ["classical-live"])
def test_a_folder_of_0_1_is_smoothed_and_its_series_continues_by_months(name: str, tmp_path: Path) -> None:
    population = unpack(name, tmp_path / name)
    out = tmp_path / "smoothed"
    checksums = (population.release / "SHA256SUMS").read_bytes()
    ended = agedp("smooth", population.release, "--out", out)
    assert (ended.status, ended.err) == (0, ""), ended
    assert (population.release / "SHA256SUMS").read_bytes() == checksums
    before = population.rows()
    population.edit("[output]\n", '[output]\nlayout = "monthly"\n')
    assert population.ending(now=population.following[0]) == ""
    assert list(population.release.glob("daily_*/published_month=*"))
    require_sound(population, population.ledger)
    assert population.rows()[: len(before)] == before
    with Ledger.open(population.ledger) as ledger:
        assert ledger.verify() == ()

"""A sequence of nights: the records of ledger, publication and report together leave out work, and no more."""

from __future__ import annotations

import shutil
from datetime import date
from typing import Any

import pytest

from agedp.reports import confidential_report
from agedp.stages import publish
from tests.agedp.conftest import House

NIGHT = date(2013, 1, 4)
RELEASED, NOT_RELEASED = date(2013, 1, 2), date(2013, 1, 20)


@pytest.fixture
def homes(published_twice, tmp_path) -> House:
    """Three released days."""
    house = House(shutil.copytree(published_twice.folder, tmp_path / "house"))
    house.run(today=NIGHT)
    house.run(today=NIGHT)
    return house


@pytest.fixture
def work(monkeypatch) -> list[str]:
    """What is made from here on: "folder" for a release folder, "report" for a confidential report."""
    done: list[str] = []

    def record(module: Any, function: str, name: str) -> None:
        real = getattr(module, function)
        monkeypatch.setattr(module, function, lambda *rest, **named: done.append(name) or real(*rest, **named))

    record(publish, "write_release_files", "folder")
    record(confidential_report, "write_confidential_report", "report")
    return done


def deliver(house: House, day: date, name: str) -> None:
    house.london({(home, day, slot): 300 for home in "ABC" for slot in range(48)}, name=name)


def test_each_night_makes_what_its_change_asks_for(homes, work):
    def night(today: date = NIGHT) -> list[str]:
        work.clear()
        homes.run(today=today)
        return list(work)

    report, page = homes.folder / "confidential" / "report.html", homes.folder / "release" / "report.html"
    published = page.read_bytes()
    assert night() == []
    report.unlink()
    assert (night(), report.exists()) == (["report"], True)
    page.write_bytes(published[:-1] + b"x")
    assert night()[0] == "folder"
    assert page.read_bytes() == published
    assert night() == []
    deliver(homes, NOT_RELEASED, "early.csv")
    assert night() == []
    deliver(homes, RELEASED, "late.csv")
    assert night() == ["report"]
    homes.edit(('title = "Made up"', 'title = "Measured"'))
    assert night() == ["folder", "report"]
    assert night() == []
    assert night(date(2013, 1, 5)) == ["folder", "report"]
    assert night(date(2013, 1, 5)) == []
    assert [row.day for row in homes.rows()] == [f"2013-01-0{number}" for number in range(1, 5)]
    homes.release.verify()

"""Nights with nothing due: the ledger is read from its checkpoint on, and an unchanged release folder is left alone."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date, timedelta
from typing import Any

import fsspec
import pytest

from agedp.ledger_session import last_publication
from agedp.local_files.books import Books
from agedp.reports import confidential_report
from agedp.stages import publish
from agedp_data import clock
from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from tests.agedp.conftest import House
from tests.books import contents, forget

NIGHT = date(2013, 1, 4)
FOLDER_FILES = ("report.html", "daily_averages.parquet", "ledger_rows.jsonl", "statement.json", "SHA256SUMS")


@pytest.fixture
def homes(published_twice, tmp_path) -> House:
    """Three released days, and a night with nothing due, which made the checkpoint and the record of publication."""
    house = House(shutil.copytree(published_twice.folder, tmp_path / "house"))
    house.run(today=NIGHT)
    house.run(today=NIGHT)
    return house


@pytest.fixture
def writes(monkeypatch) -> list[str]:
    """The folders that are written from here on."""
    written: list[str] = []
    real = publish.write_release_files
    monkeypatch.setattr(
        publish,
        "write_release_files",
        lambda folder, *rest, **keys: written.append(folder.name) or real(folder, *rest, **keys),
    )
    return written


def states(house: House) -> dict[str, tuple[int, int]]:
    paths = (house.folder / "release").iterdir()
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in paths}


def checkpoint_date(house: House) -> str:
    [content] = contents(house.folder / "confidential", "ledger_checkpoints").values()
    return str(json.loads(content.partition(b"\n")[0])["verified_on"])


def test_a_night_with_nothing_due_leaves_ledger_and_folder(homes, writes):
    before, rows = states(homes), homes.ledger().all_rows()
    assert homes.run(today=NIGHT).drawn == ()
    assert (states(homes), homes.ledger().all_rows(), writes) == (before, rows, [])
    assert not homes.session(today=NIGHT).open_ledger.is_read_completely


def test_a_drawn_night_publishes_what_a_folder_made_anew_has(homes, writes):
    assert [row.day for row in homes.run(today=date(2013, 1, 5)).drawn] == ["2013-01-04"]
    published = homes.files()
    shutil.rmtree(homes.folder / "release")
    forget(homes.folder / "confidential", "ledger_checkpoints", "publications")
    homes.run(today=date(2013, 1, 5))
    assert (homes.files(), writes) == (published, ["release", "release"])
    homes.release.verify()


def test_a_damaged_row_below_the_checkpoint_is_refused_before_the_draw(homes):
    path = homes.folder / "ledger.sqlite"
    sound = path.read_bytes()
    [value, *_] = homes.ledger().rows()[0].values
    damaged = sound.replace(
        f'"values":[{value}]'.encode(), f'"values":[{value + 1 if value % 10 < 9 else value - 1}]'.encode()
    )
    assert len(damaged) == len(sound) != sum(a == b for a, b in zip(damaged, sound, strict=True))
    path.write_bytes(damaged)
    with pytest.raises(LedgerError, match="was changed or damaged"):
        homes.run(today=date(2013, 1, 5))
    path.write_bytes(sound)
    assert [row.day for row in homes.run(today=date(2013, 1, 5)).drawn] == ["2013-01-04"]


@pytest.mark.parametrize("name", FOLDER_FILES)
def test_a_changed_file_is_published_again(homes, writes, name):
    path, sound = homes.folder / "release" / name, homes.files()
    times = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as an editor that restores the time
    homes.run(today=NIGHT)
    assert (homes.files(), writes) == (sound, ["release"])


def test_lost_and_foreign_files_are_noticed(homes, writes):
    sound = homes.files()
    (homes.folder / "release" / "STATEMENT.md").unlink()
    homes.run(today=NIGHT)
    shutil.copy(
        homes.folder / "release" / "daily_averages.parquet", homes.folder / "release" / "daily_averages_x.parquet"
    )
    homes.run(today=NIGHT)
    assert writes == ["release", "release"]
    assert sound.items() <= homes.files().items()


def test_another_title_or_software_is_published(homes, writes, monkeypatch):
    homes.edit(('title = "Made up"', 'title = "Measured"'))
    homes.run(today=NIGHT)
    assert (homes.release.statement["title"], writes) == ("Measured", ["release"])
    monkeypatch.setattr(publish, "version", lambda name: f"{name} of tomorrow")
    homes.run(today=NIGHT)
    assert writes == ["release", "release"]


def test_another_roster_at_a_url_is_published(homes, writes):
    path = homes.folder / "roster.csv"
    url = f"memory:/{homes.folder}/roster.csv"
    homes.edit(('"roster.csv"', f'"{url}"'))
    for content, expected in ((path.read_text(), ["release"]), (path.read_text() + "D,2014-01-01,\n", ["release"] * 2)):
        fsspec.filesystem("memory").pipe_file(url, content.encode())
        for _ in range(2):
            homes.run(today=NIGHT)
        assert writes == expected


def test_every_thirty_days_everything_is_read_and_compared(homes, writes, monkeypatch):
    today, verified_on = clock.today(), checkpoint_date(homes)
    for days, complete in ((29, False), (30, True), (31, False)):
        later = today + timedelta(days=days)
        monkeypatch.setattr(clock, "today", lambda later=later: later)
        assert homes.session(today=NIGHT).open_ledger.is_read_completely == complete
        assert checkpoint_date(homes) == (verified_on if days < 30 else str(today + timedelta(days=30)))
    monkeypatch.setattr(clock, "today", lambda: today + timedelta(days=61))
    homes.run(today=NIGHT)
    assert writes == ["release"]


def test_a_clock_set_back_reads_everything(homes, monkeypatch):
    before = clock.today() - timedelta(days=1)
    monkeypatch.setattr(clock, "today", lambda: before)
    assert homes.session(today=NIGHT).open_ledger.is_read_completely


def test_an_older_ledger_alone_is_refused_by_the_checkpoint(homes):
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "release")
    for path in (homes.folder / "confidential").iterdir():  # all other records are lost
        if path.is_file() and path.name != "books.sqlite" and "household_register" not in path.name:
            path.unlink()
    forget(homes.folder / "confidential", "publications", "report", "released_rosters", "coverage", "true_means")
    draws = len(homes.ledger().rows())
    with pytest.raises(LedgerError) as caught:
        homes.run(today=NIGHT)
    assert isinstance(caught.value, LedgerBehind)
    assert len(homes.ledger().rows()) == draws


def test_an_older_copy_is_noticed_after_an_upgrade(homes, monkeypatch):
    books = Books(homes.folder / "confidential" / "books.sqlite")
    [(address, content)] = books.rows("ledger_checkpoints").items()
    heading, _, body = content.partition(b"\n")
    earlier = {address: json.dumps({**json.loads(heading), "software": "0.0"}).encode() + b"\n" + body}
    books.put("ledger_checkpoints", earlier)
    assert homes.session(today=NIGHT).open_ledger.is_read_completely
    books.put("ledger_checkpoints", earlier)
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "release")
    forget(homes.folder / "confidential", "released_rosters", "true_means")
    with pytest.raises(LedgerBehind, match="lacks rows that an earlier run has read"):
        homes.session(today=NIGHT).checked()


def test_two_populations_share_a_confidential_folder(homes, writes):
    text = homes.run_file.read_text()
    texts = (text, text.replace('"homes"', '"others"').replace("ledger.sqlite", "second.sqlite"))
    texts = (texts[0], texts[1].replace('release = "release"', 'release = "second"'))
    for _ in range(3):
        writes.clear()
        for of_population in texts:
            homes.run_file.write_text(of_population)
            homes.run(today=date(2013, 1, 5))
    assert writes == []
    for of_population in texts:
        homes.run_file.write_text(of_population)
        session = homes.session(today=date(2013, 1, 5))
        assert not session.open_ledger.is_read_completely
        assert last_publication(session.run, session.remote_folder).population == session.run.population
    shutil.move(homes.folder, homes.folder.with_name("moved"))
    moved = House(homes.folder.with_name("moved"))
    assert not moved.session(today=date(2013, 1, 5)).open_ledger.is_read_completely


def test_the_checkpoint_knows_a_ledger_that_was_shortened(homes):
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "release")
    forget(homes.folder / "confidential", "released_rosters", "true_means")
    with pytest.raises(LedgerBehind, match="lacks rows that an earlier run has read"):
        homes.session(today=NIGHT).checked()


def test_a_further_population_in_the_ledger_is_published_beside(homes, writes):
    with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}") as ledger:
        other = json.loads(ledger.contracts()[0].promise)
        other["population"]["name"] = "others"
        ledger.register(other, population="others", at="2013-01-05")
    homes.run(today=date(2013, 1, 4))
    homes.run(today=date(2013, 1, 4))
    assert writes == ["release"]


RELEASED, NOT_RELEASED = date(2013, 1, 2), date(2013, 1, 20)


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

"""One run at a time in a folder, none before there is room for what it draws, and no folder inside another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import pytest

from agedp import ledger_session
from agedp.local_files import atomic_files, locks
from agedp.stages.plan import check_disk_space
from agedp_data import mechanisms
from agedp_data.errors import Busy, InputError, LedgerError, RunFileError
from agedp_flows.text.plan_text import plan_lines

FIRST = date(2013, 1, 1)
HOLDER = """
import os, signal, sys
from pathlib import Path
from agedp.local_files import locks
with locks.exclusive_lock(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def stopped_inside(folder):
    """Give a process that works in the folder and was stopped there."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)])
    try:
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
        yield holder
    finally:
        holder.kill()
        holder.wait()


def test_who_waits_for_a_run_that_is_stopped_says_so_once_and_gives_up_in_the_end(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(locks, "WARN_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(locks, "MAX_WAIT_SECONDS", 0.6)
    with stopped_inside(tmp_path) as holder:
        with pytest.raises(Busy, match="another run has held the folder for too long") as caught:
            locks.exclusive_lock(tmp_path).__enter__()
        assert caught.value.exit_status == 3
        assert str(tmp_path) not in str(caught.value)
        assert [record.message for record in caplog.records] == [
            "agedp: another run works in the same folder; waiting until it ends"
        ]
        holder.send_signal(signal.SIGCONT)
        with locks.exclusive_lock(tmp_path):
            pass
        assert holder.wait() == 0


def test_who_finds_nobody_in_a_folder_says_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(locks, "WARN_AFTER_SECONDS", 0.0)
    for _ in range(2):
        with locks.exclusive_lock(tmp_path):
            pass
    assert caplog.records == []


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_where_there_is_no_room_nothing_is_left_and_where_there_is_neither(tmp_path, depth):
    place = tmp_path.joinpath("house", *"abc"[:depth])
    (tmp_path / "house").mkdir()
    check_disk_space(place, f"sqlite:///{place}/ledger.sqlite")
    assert list((tmp_path / "house").iterdir()) == []
    (tmp_path / "file").touch()
    blocked = (tmp_path / "file").joinpath(*"abc"[:depth])
    with pytest.raises(
        InputError, match=r"\[output\] release: the folder cannot be written .*; nothing was drawn"
    ) as no:
        check_disk_space(blocked, f"sqlite:///{place}/ledger.sqlite")
    assert str(tmp_path) not in str(no.value)
    with pytest.raises(LedgerError, match=r"\[output\] ledger: its folder cannot be written"):
        check_disk_space(place, f"sqlite:///{blocked}/ledger.sqlite")


def test_there_is_room_for_a_file_as_large_as_the_largest_of_the_folder(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(atomic_files, "check_writable", lambda folder, size: asked.append((folder.name, size)))
    (tmp_path / "release").mkdir()
    for size in (10, 3_000_000, 20):
        (tmp_path / "release" / str(size)).write_bytes(bytes(size))
    check_disk_space(tmp_path / "release", f"sqlite:///{tmp_path}/book/ledger.sqlite")
    assert asked == [("release", 3_000_000 + 65_536), ("book", 65_536)]


@pytest.fixture
def homes(house):
    """Three homes of an archive of four days."""
    days = [FIRST + timedelta(days=i) for i in range(4)]
    house.fill(days)
    house.write(FIRST, days[-1])
    return house


def run(house, days):
    return house.run(today=FIRST + timedelta(days=days))


def drawing_counted(monkeypatch):
    drawn, real = [], mechanisms.discrete_laplace
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda *some, **more: drawn.append(1) or real(*some, **more))
    return drawn


def test_what_cannot_be_published_is_not_drawn_and_a_plan_needs_no_room(homes, monkeypatch):
    drawn = drawing_counted(monkeypatch)
    (homes.folder / "blocked").touch()
    homes.edit(('"release"', '"blocked/release"'))
    with pytest.raises(InputError, match="nothing was drawn"):
        run(homes, 4)
    assert drawn == []
    assert not (homes.folder / "ledger.sqlite").exists()
    assert not (homes.folder / "confidential" / "store").exists()
    assert plan_lines(homes.session())[0] == "4 releases are due:"
    homes.edit(('"blocked/release"', '"release"'))
    run(homes, 4)
    assert len(drawn) == 4


def test_a_run_that_publishes_nothing_new_needs_no_room(homes, monkeypatch):
    run(homes, 4)
    monkeypatch.setattr(atomic_files, "check_writable", lambda *_: pytest.fail("asked for room"))
    assert run(homes, 4).released == ()


def test_a_clock_behind_the_ledger_is_told_by_the_plan_before_anything_is_read(homes):
    run(homes, 3)
    homes.edit(('name = "homes"', 'name = "others"'), ('"release"', '"theirs"'), ('"confidential"', '"of theirs"'))
    said = "the clock shows 2013-01-03, but the ledger's newest release was published on 2013-01-04"
    with pytest.raises(LedgerError, match=said) as caught:
        plan_lines(homes.session(today=FIRST + timedelta(days=2), hour=12))
    assert caught.value.exit_status == 3
    with pytest.raises(LedgerError, match=said):
        run(homes, 2)
    assert not (homes.folder / "of theirs" / "store").exists()
    assert len(run(homes, 3).released) == 3
    dates = [row.published_on for row in homes.rows()]
    assert all(earlier <= later for earlier, later in pairwise(dates))


def noon(day):
    return datetime.combine(day, time(12), UTC)


@pytest.mark.parametrize(
    ("links", "written", "said"),
    [
        ({}, ("ledger", "sqlite:///release/ledger.sqlite"), r"\[output\] ledger: lies in the release folder"),
        ({"book": "release"}, ("ledger", "sqlite:///book/ledger.sqlite"), r"\[output\] ledger: lies in the release"),
        ({"release": "aside/out"}, ("ledger", "sqlite:///aside/out/x.sqlite"), r"\[output\] ledger: lies in the rel"),
        ({"door": "confidential"}, ("release", "door/release"), r"\[output\] release: lies in the confidential"),
        ({"door": "release"}, ("confidential", "door/house"), r"\[output\] confidential: lies in the release"),
        ({"release/away": "aside"}, ("confidential", "release/away"), r"\[output\] confidential: lies in the release"),
    ],
)
def test_what_stays_in_the_house_lies_in_no_folder_that_leaves_it_by_whatever_name(homes, links, written, said):
    for folder in ("aside/out", "confidential", *(["release"] if "release" not in links else [])):
        (homes.folder / folder).mkdir(parents=True)
    for link, target in links.items():
        (homes.folder / link).symlink_to(homes.folder / target)
    key, place = written
    old = {"ledger": "sqlite:///ledger.sqlite"}.get(key, key)
    homes.edit((f'{key} = "{old}"', f'{key} = "{place}"'))
    with pytest.raises(RunFileError, match=said):
        homes.context()


def test_the_release_folder_is_asked_for_its_origin_once_by_each_stage_that_plans_draws_or_publishes(
    homes, monkeypatch
):
    run(homes, 2)
    asked, real = [], ledger_session.release_origins
    monkeypatch.setattr(ledger_session, "release_origins", lambda folder: asked.append(folder) or real(folder))
    run(homes, 4)
    assert len(asked) == 3

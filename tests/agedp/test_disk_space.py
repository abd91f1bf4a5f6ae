"""One run at a time in a folder, none before there is room for what it draws, and no folder inside another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import date

import pytest

from agedp.local_files import atomic_files
from agedp.stages.plan import check_disk_space
from agedp_data.errors import Busy, InputError, LedgerError, RunFileError

HOLDER = """
import os, signal, sys
from pathlib import Path
from agedp.local_files import atomic_files as locks
with locks.exclusive_lock(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_run_that_waits_says_so_once_and_gives_up_in_the_end(tmp_path, monkeypatch, caplog):
    with atomic_files.exclusive_lock(tmp_path):
        pass
    monkeypatch.setattr(atomic_files, "WARN_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(atomic_files, "MAX_WAIT_SECONDS", 0.4)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)])
    try:
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(Busy, match="another run has held the folder for too long") as caught:
            atomic_files.exclusive_lock(tmp_path).__enter__()
        assert caught.value.exit_status == 3
        assert str(tmp_path) not in str(caught.value)
        assert [record.message for record in caplog.records] == [
            "agedp: another run works in the same folder; waiting until it ends"
        ]
        holder.send_signal(signal.SIGCONT)
        with atomic_files.exclusive_lock(tmp_path):
            pass
        assert holder.wait() == 0
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.parametrize("depth", [0, 3])
def test_a_check_of_space_leaves_nothing_behind(tmp_path, depth):
    place = tmp_path.joinpath("house", *"abc"[:depth])
    (tmp_path / "house").mkdir()
    check_disk_space(place, f"sqlite:///{place}/ledger.sqlite")
    assert list((tmp_path / "house").iterdir()) == []
    (tmp_path / "file").touch()
    blocked = (tmp_path / "file").joinpath(*"abc"[:depth])
    line = r"\[output\] release: the folder cannot be written .*; nothing was drawn"
    with pytest.raises(InputError, match=line) as caught:
        check_disk_space(blocked, f"sqlite:///{place}/ledger.sqlite")
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(LedgerError, match=r"\[output\] ledger: its folder cannot be written"):
        check_disk_space(place, f"sqlite:///{blocked}/ledger.sqlite")


@pytest.mark.parametrize(
    ("links", "edit", "line"),
    [
        ({}, ('"sqlite:///', '"sqlite:///release/'), r"\[output\] ledger: lies in the release folder"),
        ({"release": "aside/out"}, ('"sqlite:///', '"sqlite:///aside/out/'), r"\[output\] ledger: lies in the release"),
        ({"door": "confidential"}, ('"release"', '"door/release"'), r"\[output\] release: lies in the confidential"),
        ({"release/away": "aside"}, ('"confidential"', '"release/away"'), r"\[output\] confidential: lies in the rel"),
    ],
)
def test_no_folder_lies_in_another_by_whatever_name(house, links, edit, line):
    house.roster([("A", date(2013, 1, 1), None)])
    house.write(date(2013, 1, 1), date(2013, 1, 4))
    for folder in ("aside/out", "confidential", *(["release"] if "release" not in links else [])):
        (house.folder / folder).mkdir(parents=True)
    for link, target in links.items():
        (house.folder / link).symlink_to(house.folder / target)
    house.edit(edit)
    with pytest.raises(RunFileError, match=line):
        house.context()

"""Nothing is written outside the named places, and what is confidential is its owner's alone."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from agedp.local_files import atomic_files
from agedp.run_context import load_run_file
from agedp_data.errors import InputError
from agedp_flows.cli import app
from tests.exposure.worlds import MarkedWorld, Ran, Seen


def outside(world: MarkedWorld, seen: Seen) -> set[str]:
    """What was written neither below `out` or `model` nor to the watcher's own notes."""
    named = (world.folder / "out", world.folder / "model", world.folder / "watched.jsonl", Path("/dev/null"))
    return {str(path) for path in seen.written if not any(path.is_relative_to(place) for place in named)}


def open_to_others(folder: Path) -> list[str]:
    """Everything below a folder, itself included, that is not 0700 or 0600."""
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}
    return [f"{mode:o} {path}" for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)]


def test_nothing_is_written_outside_the_named_places(ran: Ran) -> None:
    for seen in (ran.calibrated, ran.released):
        assert len(seen.written) > 15
        assert outside(ran.world, seen) == set()
    assert list((ran.world.folder / "tmp").iterdir()) == []
    assert {path.name for path in ran.world.folder.iterdir()} == {
        "incoming", "roster.csv", "forgetting.csv", "run.toml", "out", "model", "tmp", "watched.jsonl",
    }  # fmt: skip
    elsewhere = Seen(0, "", "", [("open", "/elsewhere/readings.csv"), ("tempfile.mkdtemp", "/elsewhere/x")])
    assert outside(ran.world, elsewhere) == {"/elsewhere/readings.csv", "/elsewhere/x"}


def test_the_confidential_folder_the_model_and_the_ledger_are_the_owners_alone_whatever_the_umask(ran: Ran) -> None:
    assert open_to_others(ran.world.confidential) == []
    assert open_to_others(ran.world.folder / "model") == []
    assert stat.S_IMODE(ran.world.ledger.stat().st_mode) == 0o600


def test_a_umask_that_takes_everything_away_leaves_the_owner_what_is_his(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        atomic_files.make_private(tmp_path / "a" / "b")
        atomic_files.write(tmp_path / "a" / "b" / "c", b"x")
    finally:
        os.umask(before)
    assert open_to_others(tmp_path / "a") == []


def test_what_was_open_before_is_closed_by_the_next_run(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    world = ran.world
    planted = world.confidential / "store" / "from-a-backup"
    planted.mkdir(mode=0o777)
    (planted / "copy.parquet").write_bytes(b"")
    (planted / "link").symlink_to(world.folder / "run.toml")
    for path in (planted / "copy.parquet", planted, world.confidential / "store", world.confidential):
        path.chmod(0o777)
    (world.confidential / "sums.parquet").chmod(0o644)
    shared = stat.S_IMODE((world.folder / "run.toml").stat().st_mode)
    monkeypatch.chdir(world.folder)
    load_run_file("run.toml")
    (planted / "link").unlink()
    assert stat.S_IMODE((planted / "copy.parquet").stat().st_mode) == 0o700  # only others' rights are taken
    (planted / "copy.parquet").unlink()
    planted.rmdir()
    assert open_to_others(world.confidential) == []
    assert stat.S_IMODE((world.folder / "run.toml").stat().st_mode) == shared  # what a link leads to is not ours


def test_a_folder_that_cannot_be_closed_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)

    def not_ours(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", not_ours)
    with pytest.raises(InputError, match="Operation not permitted") as caught:
        atomic_files.restrict_access(tmp_path / "open")
    assert str(tmp_path) not in str(caught.value)
    assert "\n" not in caught.value.private


def test_the_command_leaves_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(app.resource, "setrlimit", lambda what, limit: limits.append((what, limit)))
    app._disable_core_dumps()
    assert [(what, limit[0]) for what, limit in limits] == [(resource.RLIMIT_CORE, 0)]

"""A PostgreSQL server without room, and dumps that are restored: nothing is lost, and no day is drawn a second time."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.runs import LedgerServer, Runs
from tests.faults.scenes import Scene, make_scene
from tests.nights.keyed import draws
from tests.postgresql import ROLE, PostgreSQL, binaries

pytestmark = pytest.mark.long
Scenes = Callable[..., Scene]
NIGHT = "a night, with a witness"


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    """A server on a small disk of its own, at a path that another user may enter."""
    programs = binaries()
    if programs is None:
        pytest.skip("there are no programs of a PostgreSQL server")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        mount = ["mount", "-t", "tmpfs", "-o", "size=192m,mode=755", "tmpfs", name]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only a superuser may mount a small disk")
        server = PostgreSQL(programs, Path(name))
        yield server
        server.close()
        subprocess.run(["umount", name], check=True)


def fill(server: PostgreSQL) -> Path:
    """Leave no room on the disk of a server; return the file that takes it."""
    filler = server.folder / "filler"
    with filler.open("wb", buffering=0) as stream, suppress(OSError):  # there is no room left
        while True:
            stream.write(bytes(4096))
    return filler


def fill_the_log(server: PostgreSQL) -> None:
    """Leave some hundred bytes of the write-ahead log's segments of 1 MiB: at the next one the server crashes."""
    spare = "SELECT count(*) FROM pg_ls_waldir() WHERE name > pg_walfile_name(pg_current_wal_insert_lsn())"
    left = f"({spare}) * 1048576 + 1048576 - mod(pg_current_wal_insert_lsn() - '0/0', 1048576) - 20000"
    server.admin(f"SELECT pg_logical_emit_message(false, '', repeat('x', ({left})::int))")


FULL = {
    "the tables": "the server's disk is full; nothing was stored",
    "the log": "",  # the server crashes and cannot come back
    "the session": "the server's disk is full, or cannot be written",
}
"""What has no room any more, and what the run says."""


@pytest.mark.parametrize("what", FULL)
def test_a_server_whose_disk_is_full_stops_the_run_and_with_room_it_goes_on(
    runs: Runs, server: PostgreSQL, tmp_path: Path, what: str
) -> None:
    trials = make_scene(NIGHT, runs, tmp_path, server)
    trials.restore()
    if what != "the session":  # the first one of a database writes files of its own
        trials.stored()
    filler = fill(server)
    if what == "the log":
        fill_the_log(server)
    end = trials.run(boundaries=False)
    assert (end.status, end.out, FULL[what] in end.line) == (3, "", True), end
    filler.unlink()
    assert ("PANIC" in (server.folder / "log").read_text()) == (what == "the log")
    server.stop()
    server.start()
    rows = trials.after_death()
    trials.mend()
    trials.require_drawn_once(rows)


def call(shelf: LedgerServer, program: str, *words: str | Path) -> None:
    """Let one of the server's programs work on the database of the ledger."""
    where = ("-h", shelf.server.folder, "-p", str(shelf.server.port), "-U", "admin", "-d", shelf.live)
    order = [shelf.server.programs / program, *where, *words]
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def put_back(shelf: LedgerServer, dump: Path) -> None:
    """Replace the database by a dump of it."""
    shelf.server.drop(shelf.live)
    shelf.server.admin(f"CREATE DATABASE {shelf.live} OWNER {ROLE}")
    call(shelf, "pg_restore", "--exit-on-error", dump)


@pytest.mark.parametrize(("name", "lost"), [(NIGHT, "release"), (NIGHT, ""), ("a night", "")])
def test_an_older_dump_is_refused_and_the_newest_goes_on(scene: Scenes, tmp_path: Path, name: str, lost: str) -> None:
    """Of witness and release folder either is enough."""
    trials, (older, newest, partial) = scene(name, on_server=True), (tmp_path / each for each in ("old", "new", "part"))
    assert isinstance(trials.shelf, LedgerServer)
    call(trials.shelf, "pg_dump", "-Fc", "-f", older)
    assert trials.run().status == 0
    drawn = draws(trials.journal)
    call(trials.shelf, "pg_dump", "-Fc", "-f", newest)
    call(trials.shelf, "pg_dump", "-Fc", "-f", partial, "--exclude-table-data=ledger.release")
    if lost:
        (trials.house / lost).rename(tmp_path / lost)
    for dump, message in ((older, "ut back the newest"), (partial, "(row 3 to 4 missing before it)")):
        put_back(trials.shelf, dump)
        before = trials.contents()
        for words in ("run", "publish"):
            end = trials.run(words, "run.toml", boundaries=False)
            assert (end.status, end.out, message in end.line) == (3, "", True), end
        assert trials.contents() == before
        assert draws(trials.journal) == drawn
    put_back(trials.shelf, newest)
    assert trials.run("ledger", "verify", "run.toml", boundaries=False).status == 0
    trials.mend()
    assert draws(trials.journal) == drawn

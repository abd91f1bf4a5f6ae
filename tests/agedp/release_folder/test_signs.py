"""What a release folder says of its origin: whole, damaged, unreadable, or beside files of its user's own."""

from __future__ import annotations

import os
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.release_folder.origin import ReleaseOrigin, check_ledger_not_behind, list_published_files, release_origins
from agedp.release_folder.release_folder import AVERAGES, PACKAGE, REPORT, ROWS, STATEMENT, SUMS, open_release
from agedp.stages.amend import preview_amendment, record_amendment
from agedp.stages.publish import publish_release
from agedp_data.errors import InputError, LedgerBehind, RunFileError
from agedp_data.ledger import Ledger

FIRST = date(2013, 1, 1)
TELL = (STATEMENT, ROWS, AVERAGES, REPORT)


@pytest.fixture
def homes(published_twice, houses, tmp_path):
    """A copy of it to spoil."""
    return houses(shutil.copytree(published_twice.folder, tmp_path / "house"))


def head_of(release: Path) -> str:
    return str(open_release(release).statement["ledger"]["head"])


def test_where_nothing_was_published_nothing_is_said(homes):
    assert release_origins(homes.folder / "nowhere") == frozenset()
    (homes.folder / "empty").mkdir()
    (homes.folder / "empty" / "notes.txt").write_text("mine")
    assert release_origins(homes.folder / "empty") == frozenset()


@pytest.mark.parametrize("spared", TELL)
def test_each_file_tells_the_origin_when_the_others_are_damaged_or_gone(homes, spared):
    release = homes.folder / "release"
    said = {ReleaseOrigin("" if spared == REPORT else "homes", head_of(release))}
    for name in {*TELL} - {spared}:
        (release / name).write_bytes((release / name).read_bytes()[:20])
    assert release_origins(release) == said
    for path in release.iterdir():
        if path.name != spared:
            path.unlink()
    assert release_origins(release) == said


def test_a_spoilt_footer_is_a_damaged_file_whichever_byte_of_it_it_is(homes):
    release = homes.folder / "release"
    said, sound = {ReleaseOrigin("homes", head_of(release))}, (release / AVERAGES).read_bytes()
    for back in range(9, 2000, 7):
        spoilt = bytearray(sound)
        spoilt[-back] ^= 0xFF
        (release / AVERAGES).write_bytes(spoilt)
        assert release_origins(release) >= said  # the statement and the rows still tell


def test_a_cut_off_list_of_rows_still_tells_its_head_and_an_older_ledger_is_behind_it(homes):
    release = homes.folder / "release"
    lines = (release / ROWS).read_text().splitlines()
    said = {ReleaseOrigin("", head_of(release))}
    for path in release.iterdir():
        path.unlink()
    for kept in (lines[0], f"{lines[0]}\n{lines[1][:30]}"):
        (release / ROWS).write_text(kept)
        assert release_origins(release) == said
        with Ledger.open(f"sqlite:///{homes.folder / 'older.sqlite'}") as older, pytest.raises(LedgerBehind):
            check_ledger_not_behind(older, release_origins(release))


def test_an_older_file_beside_newer_ones_is_asked_too(homes):
    release = homes.folder / "release"
    shutil.copy(homes.folder / "older" / AVERAGES, release / AVERAGES)
    assert release_origins(release) == {
        ReleaseOrigin("homes", head_of(folder)) for folder in (release, homes.folder / "older")
    }
    with Ledger.open(f"sqlite:///{homes.folder / 'older.sqlite'}") as older, pytest.raises(LedgerBehind):
        check_ledger_not_behind(older, release_origins(release))
    with homes.ledger() as whole:
        check_ledger_not_behind(whole, release_origins(release))


def test_a_data_package_alone_is_a_release_that_nobody_can_ask(homes):
    for path in (homes.folder / "release").iterdir():
        if path.name != PACKAGE:
            path.unlink()
    refused_without_a_draw(homes, r"none of its files names the ledger .*datapackage.json")


def test_a_pipe_in_the_folder_is_not_waited_for(homes):
    (homes.folder / "release" / AVERAGES).unlink()
    os.mkfifo(homes.folder / "release" / AVERAGES)
    with pytest.raises(InputError, match=r"holds daily_averages.parquet, which is not a file"):
        homes.run(today=date(2013, 1, 5))


@pytest.mark.parametrize(
    "command", [publish_release, lambda session: record_amendment(session, preview_amendment(session))]
)
def test_an_older_ledger_is_not_written_to_when_the_notes_know_of_later_days(homes, command):
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "release")
    before = (homes.folder / "ledger.sqlite").read_bytes()
    homes.run_file.write_text(homes.run_file.read_text().replace("clamp_kwh = 50", "clamp_kwh = 40"))
    with pytest.raises(LedgerBehind, match="2013-01-03 of 'homes' was released from another ledger, or a newer copy"):
        command(homes.session())
    assert (homes.folder / "ledger.sqlite").read_bytes() == before
    assert not (homes.folder / "release").exists()


def refused_without_a_draw(homes, match):
    """Run on an older ledger without the notes of the house: nothing but the folder knows of the third day."""
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "confidential")
    before = (homes.folder / "ledger.sqlite").read_bytes()
    with pytest.raises(InputError, match=match) as stopped:
        homes.run(today=date(2013, 1, 5))
    assert (homes.folder / "ledger.sqlite").read_bytes() == before
    return stopped.value


def test_a_release_of_which_no_file_can_be_asked_stops_the_run_before_it_draws(homes):
    for name in TELL:
        (homes.folder / "release" / name).write_bytes(b"\x00")
    refused_without_a_draw(homes, r"none of its files names the ledger .*SHA256SUMS, STATEMENT.md")


@pytest.mark.parametrize("method", ["read_bytes", "iterdir"])
def test_a_release_that_may_not_be_read_stops_the_run_before_it_draws(homes, monkeypatch, method):
    release, known = homes.folder / "release", getattr(Path, method)

    def forbidden(path):
        if release in (path, path.parent):
            raise PermissionError(13, "Permission denied")
        return known(path)

    monkeypatch.setattr(Path, method, forbidden)
    found = refused_without_a_draw(homes, r"\[output\] release cannot be read \(Permission denied\)")
    assert str(homes.folder) not in str(found)
    assert str(release) in found.private


def test_the_folder_of_another_population_is_refused_whichever_file_is_left_of_it(homes):
    homes.run_file.write_text(homes.run_file.read_text().replace('name = "homes"', 'name = "others"'))
    for spared in (STATEMENT, ROWS, AVERAGES):
        for path in (homes.folder / "older").iterdir():
            (homes.folder / "release" / path.name).unlink(missing_ok=True)
        shutil.copy(homes.folder / "older" / spared, homes.folder / "release" / spared)
        with pytest.raises(RunFileError, match="holds the release of population 'homes'"):
            homes.run(today=date(2013, 1, 5))


def test_what_its_user_keeps_in_the_folder_stays_and_tells_nothing(homes):
    release = homes.folder / "release"
    head = head_of(release)
    mine = {
        "report-2012.html": b"<p>mine",
        "daily_distribution.parquet": b"mine",
        "daily_averages_2012.parquet": b"too",
    }
    for name, content in mine.items():
        (release / name).write_bytes(content)
    shutil.copy(release / AVERAGES, release / "daily_averages_kept.parquet")
    pq.write_table(pa.table({"x": [1]}), release / "daily_averages_x.parquet")
    assert release_origins(release) == {ReleaseOrigin("homes", head)}
    homes.run(today=date(2013, 1, 5))
    assert {name: (release / name).read_bytes() for name in mine} == mine
    assert (release / "daily_averages_kept.parquet").exists()
    assert pq.read_table(release / "daily_averages_x.parquet").to_pydict() == {"x": [1]}


def test_what_a_release_put_there_is_listed_or_carries_its_own_name(homes):
    release = homes.folder / "release"
    ours = sorted(release.iterdir())
    assert list_published_files(release) == ours
    shutil.copy(release / AVERAGES, release / "daily_averages_daily_mean.parquet")  # a release that was cut off
    (release / "daily_distribution.parquet").write_text("mine")
    assert {path.name for path in list_published_files(release)} - {path.name for path in ours} == {
        "daily_averages_daily_mean.parquet"
    }
    with (release / SUMS).open("a") as sums:
        sums.write(f"{'0' * 64}  report.html\n")
    assert release / "report.html" in list_published_files(release)

"""A ledger beside a release folder: what each file says of its origin, and what is refused before a draw."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.ledger_transfer import verify_against
from agedp.release_folder.folder_files import PACKAGE, REPORT, ROWS, STATEMENT, SUMS
from agedp.release_folder.origin import ReleaseOrigin, check_ledger_not_behind, list_published_files, release_origins
from agedp.release_verification import open_release
from agedp.stages.amend import preview_amendment, record_amendment
from agedp.stages.publish import publish_release
from agedp_data.errors import InputError, LedgerBehind, LedgerError, RunFileError
from agedp_data.ledger import Ledger
from tests.agedp_data.ledger.conftest import ENVELOPE, promise

FIRST = date(2013, 1, 1)
AVERAGES = "daily_averages.parquet"
NAMING = (STATEMENT, ROWS, AVERAGES, "averages_by_month.parquet", REPORT)


@pytest.fixture
def homes(published_twice, houses, tmp_path):
    return houses(shutil.copytree(published_twice.folder, tmp_path / "house"))


@pytest.fixture
def release(homes) -> Path:
    return homes.folder / "release"


def head_of(release: Path) -> str:
    return str(open_release(release).statement["ledger"]["head"])


def keep_only(release: Path, *names: str) -> None:
    for path in release.iterdir():
        if path.name not in names:
            path.unlink()


@pytest.mark.parametrize("name", NAMING)
def test_each_file_alone_names_the_origin(release, name):
    expected = {ReleaseOrigin("" if name == REPORT else "homes", head_of(release))}
    for damaged in {*NAMING} - {name}:
        (release / damaged).write_bytes((release / damaged).read_bytes()[:20])
    assert release_origins(release) == expected
    keep_only(release, name)
    assert release_origins(release) == expected


def test_truncated_rows_show_that_a_ledger_is_behind(homes, release):
    lines, head = (release / ROWS).read_text().splitlines(), head_of(release)
    shutil.copy(homes.folder / "older" / AVERAGES, release / AVERAGES)
    older = ReleaseOrigin("homes", head_of(homes.folder / "older"))
    with homes.ledger() as whole, homes.ledger("older.sqlite") as ledger:
        assert release_origins(release) == {ReleaseOrigin("homes", head), older}
        check_ledger_not_behind(whole, release_origins(release))
        keep_only(release)
        for text in (lines[0], f"{lines[0]}\n{lines[1][:30]}"):
            (release / ROWS).write_text(text)
            assert release_origins(release) == {ReleaseOrigin("", head)}
            with pytest.raises(LedgerBehind, match="agedp ledger recover"):
                check_ledger_not_behind(ledger, release_origins(release))


def fork(ledger: Ledger) -> None:
    statement = json.loads(ledger.statements()[-1].claim)
    for number in range(5):
        text = json.dumps(statement | {"title": f"title {number}"})
        ledger.record(text, population="homes", files={}, software="", at=str(FIRST))


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("older.sqlite", lambda _: None, LedgerBehind, "shorter than the folder"),
        ("empty.sqlite", lambda _: None, LedgerBehind, "shorter than the folder"),
        ("older.sqlite", fork, LedgerBehind, "shorter than the folder"),
        ("new.sqlite", lambda new: new.register_model(ENVELOPE, at=str(FIRST)), LedgerError, "not on the hash chain"),
    ],
)
def test_a_ledger_without_the_head_of_the_folder_is_refused(homes, release, name, change, error, message):
    with Ledger.open(f"sqlite:///{homes.folder / name}", create=True) as ledger:
        change(ledger)
        with pytest.raises(error, match=message):
            verify_against(open_release(release), ledger)
    with homes.ledger() as ledger:
        verify_against(open_release(homes.folder / "older"), ledger)


def refuse_before_the_draw(homes, match: str) -> InputError:
    """Run on an older ledger without confidential folder: only the release folder contains the third day."""
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "confidential")
    before = (homes.folder / "ledger.sqlite").read_bytes()
    with pytest.raises(InputError, match=match) as refused:
        homes.run(today=date(2013, 1, 5))
    assert (homes.folder / "ledger.sqlite").read_bytes() == before
    return refused.value


def test_a_data_package_alone_stops_the_run_before_it_draws(homes, release):
    keep_only(release, PACKAGE)
    refuse_before_the_draw(homes, r"none of its files names the ledger .*datapackage.json")


def test_a_release_that_no_longer_names_its_origin_stops_the_run(homes, release):
    for name in NAMING:
        (release / name).write_bytes(b"\x00")
    refuse_before_the_draw(homes, r"none of its files names the ledger .*SHA256SUMS, STATEMENT.md")


@pytest.mark.parametrize("method", ["read_bytes", "iterdir"])
def test_a_release_that_may_not_be_read_stops_the_run(homes, release, monkeypatch, method):
    read = getattr(Path, method)

    def forbidden(path):
        if release in (path, path.parent):
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, method, forbidden)
    refused = refuse_before_the_draw(homes, r"\[output\] release cannot be read \(Permission denied\)")
    assert str(homes.folder) not in str(refused)
    assert str(release) in refused.private


@pytest.mark.parametrize(
    "command", [publish_release, lambda session: record_amendment(session, preview_amendment(session))]
)
def test_an_older_ledger_is_not_written_to(homes, release, command):
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(release)
    before = (homes.folder / "ledger.sqlite").read_bytes()
    homes.edit(("clamp_kwh = 50", "clamp_kwh = 40"))
    with pytest.raises(LedgerBehind, match="2013-01-03 of 'homes' was released from another ledger, or a newer copy"):
        command(homes.session())
    assert (homes.folder / "ledger.sqlite").read_bytes() == before
    assert not release.exists()


@pytest.mark.parametrize("has_ledger", [False, True])
def test_a_moved_confidential_folder_begins_no_second_release(homes, has_ledger):
    """The ledger lies in the confidential folder, so a new one has none, or that of another population."""
    homes.edit(('"confidential"', '"elsewhere"'), ("sqlite:///ledger.sqlite", "sqlite:///elsewhere/ledger.sqlite"))
    (homes.folder / "elsewhere").mkdir()
    if has_ledger:
        with Ledger.open(f"sqlite:///{homes.folder}/elsewhere/ledger.sqlite", create=True) as ledger:
            ledger.register(promise("others"), at=FIRST)
    with pytest.raises(LedgerBehind, match="or comes from another one" if has_ledger else "a ledger that is not there"):
        homes.run(today=date(2013, 1, 5))
    assert not has_ledger or not homes.rows(name="elsewhere/ledger.sqlite")


def test_the_folder_of_another_population_is_refused_by_any_file(homes, release):
    homes.edit(('name = "homes"', 'name = "others"'))
    for name in (STATEMENT, ROWS, AVERAGES):
        keep_only(release)
        shutil.copy(homes.folder / "older" / name, release / name)
        with pytest.raises(RunFileError, match="holds the release of population 'homes'"):
            homes.run(today=date(2013, 1, 5))


def test_files_of_the_user_stay_and_are_not_of_the_release(homes, release):
    published, head = sorted(release.iterdir()), head_of(release)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    own = {
        "report-2012.html": b"<p>mine",
        "daily_distribution.parquet": b"mine",
        "daily_averages_2012.parquet": b"too",
        "daily_averages_x.parquet": sink.getvalue().to_pybytes(),
        "daily_averages_copy.parquet": (release / AVERAGES).read_bytes(),
    }
    for name, content in own.items():
        (release / name).write_bytes(content)
    assert release_origins(release) == {ReleaseOrigin("homes", head)}
    assert list_published_files(release) == published
    interrupted = release / "daily_averages_daily_mean.parquet"
    shutil.copy(release / AVERAGES, interrupted)
    assert list_published_files(release) == sorted([*published, interrupted])
    homes.run(today=date(2013, 1, 5))
    assert {name: (release / name).read_bytes() for name in own} == own
    assert not interrupted.exists()
    with (release / SUMS).open("a") as sums:
        sums.write(f"{'0' * 64}  daily_averages_2012.parquet\n")
    assert release / "daily_averages_2012.parquet" in list_published_files(release)

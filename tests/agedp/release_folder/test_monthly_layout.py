"""The layout "monthly": the reader gets the tables of "single", and no file of a closed month is ever written again.

A live series over two months, with late and given-up days, an amendment, levels, profiles and releases of
weeks. The expected tables are those that "single" publishes of the same ledger.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from datetime import date, timedelta
from itertools import count
from pathlib import Path

import fsspec
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from agedp.ledger_transfer import verify
from agedp.local_files import atomic_files
from agedp.release_folder.folder_files import PACKAGE, SUMS
from agedp.release_folder.folder_writer import RemoteFolder, unchanged_partitions, write_release_files
from agedp.release_folder.partitions import list_files, partition_of
from agedp.reports.report_data import ReleasedRows, charted_rows
from agedp.stages.amend import amend
from agedp.stages.publish import folder_content, publish_release, write_folder_as_of
from agedp_data import clock
from agedp_data.errors import InputError
from agedp_data.ledger.transfer import rows_by_month
from agedp_data.statement.document import read_statement
from tests.agedp.release_folder.derived import row_of
from tests.agedp.release_folder.resealed import as_json, digest
from tests.books import forget

FIRST, DAYS = date(2013, 2, 11), 22
TODAYS = (date(2013, 2, 15), date(2013, 2, 24), date(2013, 3, 3), date(2013, 3, 20))
AMENDED_ON = date(2013, 2, 24)
LATE, GIVEN_UP = date(2013, 2, 13), date(2013, 3, 4)
AREAS = {home: ("north,n1", "north,n2", "south,s1")[i // 2] for i, home in enumerate("ABCDEF")}
LEVELS = ('by = "area"\nshare = 0.3', 'by = ["street", "area"]\nshare = [0.2, 0.1]')
REST = """[series.total]
statistic = "mean"
clamp_kwh = 50
share = 0.2
[series.load]
statistic = "profile"
clamp_kwh = 50
half_hour_clamp_kwh = 2
share = 0.3
[series.billed]
statistic = "mean"
clamp_kwh = 50
every = "week"
share = 0.2
"""
MARKED = 'wait_for = "markers/{day}"\ngive_up_days = 12\n'


def prepare(house):
    """Write readings, roster and the run file of the layout "monthly"."""
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.london({(home, day, slot): 200 + slot for home in AREAS for day in days for slot in range(48)})
    rows = [f"{home},2012-12-01,,{area}" for home, area in AREAS.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,area,street", *rows]) + "\n")
    house.write(FIRST, days[-1], mode="live", rest=REST)
    house.edit(
        ("clamp_kwh = 50\n[promise]", f"clamp_kwh = 50\n{LEVELS[0]}\n[promise]"),
        ("epsilon_per_day = 0.5", "age_days = 1\nepsilon_per_day = 0.4"),
        ("[population]", 'layout = "monthly"\naverages_by = ["week", "month", "year"]\n[population]'),
        (f"last_day = {days[-1]}\n", f"last_day = {days[-1]}\n{MARKED}"),
    )
    (house.folder / "markers").mkdir()
    return days


def deliver(house, days, today):
    """Write the markers of the days before today; one comes late, one never."""
    for day in days:
        if day < today and day != GIVEN_UP and not (day == LATE and today == TODAYS[0]):
            (house.folder / "markers" / str(day)).touch()


def stored(house):
    """Return content and modification time of the files of a release."""
    folder = house.folder / "release"
    paths = {name: folder / name for name in list_files(folder)}
    return {name: (path.read_bytes(), path.stat().st_mtime_ns) for name, path in paths.items()}


def amend_on(house, today):
    """Amend the contract on a simulated date: from then on the averages have two levels."""
    house.edit(LEVELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "today", lambda: today)
        amend(house.context(today=today))


@pytest.fixture(scope="module")
def series(houses, tmp_path_factory):
    """The house after the last night, and the files of the folder after each."""
    house = houses(tmp_path_factory.mktemp("monthly"))
    days = prepare(house)
    nights = []
    for today in TODAYS:
        deliver(house, days, today)
        if today == AMENDED_ON:
            amend_on(house, today)
        house.run(today=today)
        nights.append(stored(house))
    return house, nights


@pytest.fixture
def copy(series, houses, tmp_path):
    """A copy of the house after the last night, which keeps the times of its files."""
    return houses(shutil.copytree(series[0].folder, tmp_path / "house"))


def publish(house, layout="monthly"):
    text = re.sub(r"layout = .*\n", "", house.run_file.read_text())
    house.run_file.write_text(text.replace("[population]", f'layout = "{layout}"\n[population]'))
    publish_release(house.session(today=TODAYS[-1]))
    return house.release


def folder_content_of(session):
    """Return what the next publication of a session writes."""
    ledger, run = session.open_ledger, session.run
    statement = run.release_folder / "statement.json"
    sums = digest(run.release_folder / SUMS)
    unchanged = unchanged_partitions(
        run.release_folder, ledger=ledger.id, recorded={sums}, coverage=run.run_file.output.interval
    )
    return folder_content(
        run.run_file,
        ledger,
        read_statement(statement.read_bytes()),
        session.history.contracts,
        unchanged=unchanged,
    )


def contents(files):
    return {name: content for name, (content, _) in files.items()}


def month_of(name):
    return (partition_of(name) or ("", "9999-12"))[1]


def seal(folder):
    """List the files of a folder anew, as whoever forges a release would."""
    names = sorted(name for name in list_files(folder) if name not in (SUMS, PACKAGE))
    package = json.loads((folder / PACKAGE).read_text())
    for resource in package["resources"]:
        if isinstance(resource["path"], list):
            resource["path"] = [name for name in names if (partition_of(name) or [""])[0] == resource["name"]]
            resource["partitions"] = [
                {"path": name, "bytes": (folder / name).stat().st_size, "hash": f"sha256:{digest(folder / name)}"}
                for name in resource["path"]
            ]
        else:
            resource["hash"] = f"sha256:{digest(folder / resource['path'])}"
            if "bytes" in resource:
                resource["bytes"] = (folder / resource["path"]).stat().st_size
    package["resources"] = [resource for resource in package["resources"] if resource["path"]]
    (folder / PACKAGE).write_text(as_json(package))
    names = sorted([*names, PACKAGE])
    (folder / SUMS).write_text("".join(f"{digest(folder / name)}  {name}\n" for name in names))


def rows_file(month):
    return f"ledger_rows/published_month={month}/ledger_rows.jsonl"


def table_file(month, table="daily_profile_load"):
    return f"{table}/published_month={month}/{table}.parquet"


def test_no_closed_month_is_written_again(series):
    _, nights = series
    for night in range(len(nights) - 1):
        newest = max(month_of(name) for name in nights[night] if partition_of(name))
        closed = {name: of for name, of in nights[night].items() if month_of(name) < newest}
        for later in nights[night + 1 :]:
            assert {name: later.get(name) for name in closed} == closed  # contents and times
    months = {of[1] for name in nights[-1] if (of := partition_of(name))}
    assert months == {"2013-02", "2013-03"}


def test_late_days_are_in_the_month_of_their_publication(series):
    release = series[0].release
    late = release.table("daily_profile", months=["2013-02"])
    assert pd.Timestamp(LATE) in set(late["day"])
    assert pd.Timestamp("2013-02-28") in set(release.table("daily_profile", months=["2013-03"])["day"])
    with pytest.raises(InputError, match="2012-01: daily_profile_load has no such month; it has 2013-0"):
        release.table("daily_profile", months=["2012-01"])


def test_a_folder_written_anew_has_the_same_bytes(series, copy):
    shutil.rmtree(copy.folder / "release")
    publish(copy)
    assert contents(stored(copy)) == contents(series[1][-1])


def test_a_folder_as_of_a_date_before_another_layout_verifies_against_the_ledger(series, copy):
    publish(copy)
    copy.edit(('layout = "monthly"', 'layout = "single"'))
    assert write_folder_as_of(copy.session(today=TODAYS[-1]), TODAYS[1])
    assert contents(stored(copy)) == contents(series[1][1])
    verify(copy.folder / "release", ledger=f"sqlite:///{copy.folder / 'ledger.sqlite'}")


def remove(folder, name):
    (folder / name).unlink()


def exchange(folder, first, second):
    content = (folder / first).read_bytes()
    (folder / first).write_bytes((folder / second).read_bytes())
    (folder / second).write_bytes(content)


def double(folder, source, target):
    (folder / target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / source, folder / target)


FORGERIES = {
    "rows of a month removed": (lambda f: remove(f, rows_file("2013-02")), "month 2013-03: .* not follow the month be"),
    "rows of the newest month removed": (lambda f: remove(f, rows_file("2013-03")), "different contracts|lacks this"),
    "rows exchanged": (lambda f: exchange(f, rows_file("2013-02"), rows_file("2013-03")), "month 2013-02: .* another"),
    "rows doubled": (lambda f: double(f, rows_file("2013-03"), rows_file("2013-04")), "month 2013-04: .* another mon"),
    "table removed": (lambda f: remove(f, table_file("2013-02")), "load/published_month=2013-02/.*folder lacks this"),
    "tables exchanged": (
        lambda f: exchange(f, table_file("2013-02"), table_file("2013-03")),
        "daily_profile_load/published_month=2013-0.*: .* in its guarantee contradicts|this row",
    ),
    "table doubled": (
        lambda f: double(f, table_file("2013-03"), table_file("2013-04")),
        "load/published_month=2013-04/.*the ledger lacks this table",
    ),
    "a table of no series": (
        lambda f: double(f, table_file("2013-03"), table_file("2013-03", "daily_profile_mine")),
        "daily_profile_mine/.*the ledger lacks this table",
    ),
    "a single table beside": (
        lambda f: double(f, table_file("2013-03"), "daily_profile.parquet"),
        "daily_profile.parquet is beside the files of months",
    ),
    "weeks exchanged": (
        lambda f: exchange(f, *(table_file(month, "averages_by_week") for month in ("2013-02", "2013-03"))),
        "averages_by_week/published_month=2013-0.*: ",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_month_is_named(copy, forgery):
    edit, message = FORGERIES[forgery]
    edit(copy.folder / "release")
    with pytest.raises(InputError, match=r"differs? from the published files?|is missing|not listed in"):
        copy.release.verify()
    seal(copy.folder / "release")
    with pytest.raises(InputError, match=message):
        copy.release.verify()


@pytest.mark.parametrize("change", ["edited", "edited within its size", "removed", "added"])
def test_publishing_again_repairs_a_closed_month(series, copy, change):
    path = copy.folder / "release" / table_file("2013-02")
    content = path.read_bytes()
    if change == "removed":
        path.unlink()
    elif change == "added":
        double(copy.folder / "release", table_file("2013-03"), table_file("2013-04"))
    else:
        path.write_bytes(content + b"x" if change == "edited" else content[:-1] + b"x")
    publish(copy)
    assert contents(stored(copy)) == contents(series[1][-1])
    copy.release.verify()


@pytest.mark.parametrize("how", ["edited", "bit rot", "bit rot, and only the ledger is read"])
def test_a_run_heals_a_month_whose_times_are_restored(series, copy, monkeypatch, how):
    copy.run(today=TODAYS[-1])
    release, sound = copy.folder / "release", contents(stored(copy))
    path, sums = release / table_file("2013-02"), release / SUMS
    times, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:-1] + b"x")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if how != "edited":  # nothing tells: the list of checksums is younger
        after = path.stat().st_ctime_ns + 10**9
        os.utime(sums, ns=(after, after))
    if how == "bit rot":
        forget(copy.folder / "confidential", "ledger_checkpoints")  # as after 30 days
    copy.run(today=TODAYS[-1])
    if how == "bit rot, and only the ledger is read":
        assert contents(stored(copy)) != sound
        publish_release(copy.session(today=TODAYS[-1]))  # as `agedp publish`
    assert contents(stored(copy)) == sound


def test_an_interrupted_publication_is_completed(series, houses, tmp_path):
    house = houses(shutil.copytree(series[0].folder, tmp_path / "house"))
    write_folder_as_of(house.session(today=TODAYS[-1]), TODAYS[1])
    real, after = atomic_files.write, count()
    for stop in (1, 4, 8):
        with pytest.MonkeyPatch.context() as patch:
            after = count()

            def write(path, content, *, mode=0o600, stop=stop, after=after):
                if "release" in path.parts and next(after) == stop:
                    raise KeyboardInterrupt
                real(path, content, mode=mode)

            patch.setattr(atomic_files, "write", write)
            with pytest.raises(KeyboardInterrupt):
                publish_release(house.session(today=TODAYS[-1]))
        with pytest.raises(InputError):
            house.release.verify()
    publish_release(house.session(today=TODAYS[-1]))
    assert contents(stored(house)) == contents(series[1][-1])


def test_rows_of_a_clock_that_was_set_back_are_in_the_month_that_had_begun(contract):
    """Otherwise they would change the file of a closed month."""
    mean = {"statistic": "mean", "clamp_kwh": "50", "share": "1"}
    first, amended = (
        replace(contract(use=mean, number=number, seq=seq), at=at)
        for number, seq, at in ((1, 1, "2026-02-03"), (2, 4, "2026-02-27"))
    )
    days = [row_of(date(2013, 1, i), "use", seq=seq, published_on=f"2026-0{i}-01") for i, seq in ((2, 2), (3, 3))]
    later = row_of(date(2013, 1, 4), "use", seq=5, published_on="2026-03-02", contract="contract 2")
    rows = {of.month: [row.seq for row in of.rows] for of in rows_by_month([later, amended, *days, first])}
    assert rows == {"2026-02": [1, 2], "2026-03": [3, 4, 5]}


def test_a_night_reads_and_computes_no_closed_month(copy):
    publish(copy)
    (copy.folder / "release" / SUMS).touch()  # the copies are as new as it is
    before, real, read = stored(copy), Path.read_bytes, list[str]()

    def read_bytes(path):
        read.append(str(path))
        return real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_bytes)
        session = copy.session(today=TODAYS[-1])
        assert not [path for path in read if "=2013-02" in path]
        content = folder_content_of(session)
    assert not [path for path in read if "=2013-02" in path]
    assert {month_of(name) for name in content.files} == {"2013-03", "9999-12"}
    assert {month_of(name) for name in content.unchanged} >= {"2013-02"}
    assert set(content.files) | set(content.unchanged) | {SUMS} == set(before)


def test_a_url_gets_changed_objects_only(series, tmp_path, monkeypatch):
    files, earlier = contents(series[1][-1]), contents(series[1][-2])
    system, root = fsspec.filesystem("memory"), f"/{tmp_path.name}/open"
    for name, content in earlier.items():
        system.pipe_file(f"{root}/{name}", content)
    remote = RemoteFolder(f"memory:/{root}", tmp_path / "copy")
    remote.fetch()
    assert {name: (tmp_path / "copy" / name).read_bytes() for name in list_files(tmp_path / "copy")} == earlier
    closed = {name: content for name, content in files.items() if month_of(name) < "2013-03"}
    put, uploaded = MemoryFileSystem.pipe_file, []

    def pipe_file(of, path, value, **more):
        uploaded.append(path.removeprefix(f"{root}/"))
        put(of, path, value, **more)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)
    written = {name: content for name, content in files.items() if name not in closed and name != SUMS}
    unchanged = {name: digest(tmp_path / "copy" / name) for name in closed}
    assert write_release_files(tmp_path / "copy", written, remote, unchanged=unchanged)
    assert {name: system.cat_file(f"{root}/{name}") for name in files} == files
    assert uploaded
    assert not {*uploaded} & closed.keys()
    assert not [name for name in uploaded if earlier.get(name) == files[name]]


def test_another_format_of_columns_is_written_anew(copy, monkeypatch):
    publish(copy)
    monkeypatch.setattr("agedp.release_folder.folder_writer.PARTITION_FORMAT", 2)
    assert not folder_content_of(copy.session(today=TODAYS[-1])).unchanged


def test_charts_begin_with_a_month_a_year_ago(copy):
    [row, *_] = copy.session(today=TODAYS[-1]).open_ledger.rows()
    days = [FIRST - timedelta(days=i) for i in range(800)]
    charted = charted_rows([replace(row, day=str(day)) for day in days])
    assert (min(one.day for one in charted), len(charted)) == ("2012-02-01", (FIRST - date(2012, 2, 1)).days + 1)
    rows = [replace(row, day=str(day)) for day in days]
    assert ReleasedRows(charted, rows).since == "2012-02-01"
    assert not ReleasedRows(rows, rows).since

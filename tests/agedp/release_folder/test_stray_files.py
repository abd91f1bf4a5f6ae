"""What lies between the files of months: verification names it; the next run removes it or refuses before a draw."""

from __future__ import annotations

import os
import shutil
from datetime import date, timedelta

import pytest

from agedp_data.errors import InputError

FIRST = date(2013, 1, 1)
TABLE = "daily_averages_daily_mean"
MONTH = f"{TABLE}/published_month=2013-01"


@pytest.fixture(scope="module")
def monthly(houses, tmp_path_factory):
    """A population of six days whose release has the layout "monthly", two days released; tests leave it as it was."""
    house = houses(tmp_path_factory.mktemp("monthly"))
    house.fill([FIRST + timedelta(days=i) for i in range(6)])
    house.write(FIRST, FIRST + timedelta(days=5))
    house.edit(("[population]", 'layout = "monthly"\n[population]'))
    house.run(today=date(2013, 1, 3))
    house.release.verify()
    return house


def put_file(path):
    path.write_bytes(b"mine")


def put_folder(path):
    (path / "below").mkdir(parents=True)
    (path / "below" / "mine.parquet").write_bytes(b"mine")


def put_linked_folder(path):
    path.symlink_to(path.parents[3] / "input")


STRAYS = {
    f"{MONTH}/mine.txt": put_file,
    f"{MONTH}/mine.parquet": put_file,
    f"{MONTH}/folder": put_folder,
    f"{MONTH}/empty": os.mkdir,
    f"{MONTH}/linked": put_linked_folder,
    f"{MONTH}/pipe": os.mkfifo,
    f"{TABLE}/mine.parquet": put_file,
    f"{TABLE}/published_month=2012-12": lambda path: path.symlink_to(path.parent / "published_month=2013-01"),
}


def test_a_run_removes_what_verification_names(monthly):
    release, own = monthly.folder / "release", monthly.folder / "release" / "my_table" / "published_month=2013-01"
    own.mkdir(parents=True)
    put_file(own / "mine.parquet")
    for name, put in STRAYS.items():
        put(release / name)
    with pytest.raises(InputError) as refused:
        monthly.release.verify()
    assert str(refused.value).startswith(f"{', '.join(sorted(STRAYS))}: not listed in SHA256SUMS")
    monthly.run(today=date(2013, 1, 3))  # nothing is due
    monthly.release.verify()
    assert [name for name in STRAYS if os.path.lexists(release / name)] == []
    assert (own / "mine.parquet").read_bytes() == b"mine"
    shutil.rmtree(own.parent)
    assert (monthly.folder / "input" / "a.csv").exists()


def test_a_folder_with_the_name_of_a_table_is_looked_into_in_both_layouts(monthly, tmp_path, houses):
    house = houses(tmp_path)
    house.fill([FIRST + timedelta(days=i) for i in range(2)])
    house.write(FIRST, FIRST + timedelta(days=1))
    house.run(today=date(2013, 1, 5))
    for of, name in (
        (house, "daily_averages/mine.parquet"),
        (house, "daily_averages_of_mine/below/mine.parquet"),
        (house, "ledger_rows/mine.jsonl"),
        (monthly, "daily_profile/mine.parquet"),
        (monthly, "averages_by_month/mine.parquet"),
    ):
        stray = of.folder / "release" / name
        stray.parent.mkdir(parents=True)
        put_file(stray)
        with pytest.raises(InputError, match=f"^{name}: not listed in SHA256SUMS"):
            of.release.verify()
        of.run(today=date(2013, 1, 5 if of is house else 3))  # nothing is due
        assert stray.read_bytes() == b"mine"  # not of the release, as far as a run can tell
        shutil.rmtree(of.folder / "release" / name.partition("/")[0])
        of.release.verify()


def test_a_link_in_the_place_of_a_release_is_refused_before_a_draw(monthly):
    release, elsewhere = monthly.folder / "release", monthly.folder / "elsewhere"
    for name in (TABLE, MONTH, f"{MONTH}/{TABLE}.parquet", "statement.json", "SHA256SUMS"):
        shutil.move(release / name, elsewhere)
        (release / name).symlink_to(elsewhere)
        with pytest.raises(InputError, match=f"^{name} is a link, not a file"):
            monthly.release.verify()
        with pytest.raises(InputError, match=f"^.output. release: {name} is a link, not a file; remove it"):
            monthly.run(today=date(2013, 1, 5))
        (release / name).unlink()
        shutil.move(elsewhere, release / name)
        monthly.release.verify()  # nothing was written through the link
    assert len(monthly.rows()) == 2

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


@pytest.fixture
def monthly(house):
    """A population of six days whose release has the layout "monthly", two days released."""
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
    today = date(2013, 1, 3)
    for name, put in STRAYS.items():
        put(release / name)
        with pytest.raises(InputError, match=f"^{name}: not listed in SHA256SUMS"):
            monthly.release.verify()
        monthly.run(today=today)  # nothing is due
        monthly.release.verify()
        assert not os.path.lexists(release / name)
    assert (own / "mine.parquet").read_bytes() == b"mine"
    assert (monthly.folder / "input" / "a.csv").exists()


@pytest.mark.parametrize("name", [TABLE, MONTH, f"{MONTH}/{TABLE}.parquet", "statement.json", "SHA256SUMS"])
def test_a_link_in_the_place_of_a_release_is_refused_before_a_draw(monthly, name):
    release, elsewhere = monthly.folder / "release", monthly.folder / "elsewhere"
    shutil.move(release / name, elsewhere)
    (release / name).symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=f"^{name} is a link, not a file"):
        monthly.release.verify()
    with pytest.raises(InputError, match=f"^.output. release: {name} is a link, not a file; remove it"):
        monthly.run(today=date(2013, 1, 5))
    assert len(monthly.rows()) == 2
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before
    (release / name).unlink()
    monthly.run(today=date(2013, 1, 5))
    monthly.release.verify()

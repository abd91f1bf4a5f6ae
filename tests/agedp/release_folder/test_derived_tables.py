"""Months and quantiles on their whole way: derived from what is published, recomputed by others, verified."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta

import pandas as pd
import pyarrow.parquet as pq
import pytest

from agedp import release_verification
from agedp.release_verification import open_release
from agedp_data.errors import InputError
from tests.agedp.release_folder.resealed import reseal
from tests.compatibility.fixtures import unpack

FIRST, DAYS = date(2013, 1, 29), 34
LAST = FIRST + timedelta(days=DAYS - 1)
HOMES = {"A": "Std", "B": "Std", "C": "Std", "D": "ToU", "E": "ToU"}
MEAN = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
LAYERED = '[series.use]\nstatistic = "mean"\nclamp_kwh = [5, 40]\nshare = [0.1, 0.2]\n'
GROUPS = '[series.tariff]\nstatistic = "mean"\nclamp_kwh = 40\nby = "tariff"\nshare = 0.2\n'
COUNTS = '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nbins_kwh = [0, 5, 10, 40]\nshare = 0.3\n'
FILES = [*(f"averages_by_{period}.parquet" for period in ("month", "week", "year")), "daily_quantiles.parquet"]
START = {"month": "MS", "week": "W-SUN", "year": "YS"}


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """Five households from 29 January to 3 March; E leaves on 20 February, after which D alone is too few."""
    house = houses(tmp_path_factory.mktemp("derived"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.london({(home, day, slot): 150 + slot for home in HOMES for day in days for slot in range(48)})
    lines = [f"{home},{FIRST},{'2013-02-20' if home == 'E' else ''},{tariff}" for home, tariff in HOMES.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *lines]) + "\n")
    house.write(FIRST, LAST, rest=LAYERED + GROUPS + COUNTS)
    house.edit((MEAN, f"{MEAN}share = 0.2\n"), ("[population]", f"averages_by = {[*START]}\n[population]"))
    house.run(today=date(2026, 1, 1))
    house.release.verify()
    return house


@pytest.fixture
def folder(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house")).release


def forge(folder, name, table):
    pq.write_table(table, folder.path / name)
    reseal(folder.path)


@pytest.mark.parametrize("coverage", ["0.5", "NaN"])
def test_verification_finds_intervals_of_another_coverage(folder, coverage):
    for name in FILES:  # of several the first by name is reported
        table = pq.read_table(folder.path / name)
        guarantee = json.loads(table.schema.metadata[b"agedp"])
        guarantee["interval"]["coverage"] = coverage
        forge(folder, name, table.replace_schema_metadata({b"agedp": json.dumps(guarantee)}))
    with pytest.raises(InputError, match=rf"^{FILES[0]}: the interval in its guarantee has another coverage"):
        folder.verify()


def test_a_folder_without_a_table_gives_it_from_its_rows(folder, monkeypatch):
    monkeypatch.setattr(release_verification, "_installed", lambda _: "9.9")  # that of an earlier version
    stored = {period: folder.period_averages(period) for period in START}
    quantiles = folder.quantiles()
    for name in FILES:
        (folder.path / name).unlink()
    reseal(folder.path)
    folder.verify()
    for period in START:
        pd.testing.assert_frame_equal(folder.period_averages(period), stored[period])
    pd.testing.assert_frame_equal(folder.quantiles(), quantiles)


def test_a_folder_of_an_early_version_gives_months_too(tmp_path):
    release = unpack("classical-archive", tmp_path).release
    assert not {path.name for path in release.iterdir()} & set(FILES)
    opened = open_release(release)
    opened.verify()
    means = [pd.read_parquet(path) for path in release.glob("daily_averages*.parquet")]
    months = opened.period_averages("month")
    assert months["days_released"].sum() == sum(len(table) for table in means)
    total_wh = (months["mean_kwh"] * months["household_days"] * 1000).sum()
    assert total_wh == pytest.approx(sum(table["noisy_sum_wh"].sum() for table in means), rel=1e-9)


def test_what_was_not_released_has_no_derived_table(published_twice):
    release = published_twice.release
    with pytest.raises(InputError, match=r"^daily_quantiles.parquet: the release has no daily distribution"):
        release.quantiles()
    with pytest.raises(InputError, match=r"^period = 'quarter': must be one of 'week', 'month', 'year'$"):
        release.period_averages("quarter")

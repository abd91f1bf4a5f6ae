"""[output] averages_by: which derived averages are files; the others, also of early folders, are computed on demand."""

from __future__ import annotations

import re
import shutil
from datetime import date, timedelta

import pandas as pd
import pytest

from agedp.release_verification import open_release
from agedp.stages.publish import publish_release, write_folder_of_statement
from agedp_data.errors import InputError
from tests.compatibility.fixtures import unpack

FIRST, DAYS = date(2012, 12, 28), 40


@pytest.fixture(scope="module")
def released(houses, tmp_path_factory):
    """Three homes from 28 December 2012 to 5 February 2013, published on days of three months."""
    house = houses(tmp_path_factory.mktemp("averages"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.london({(home, day, slot): 100 + slot for home in "ABC" for day in days for slot in range(48)})
    (house.folder / "roster.csv").write_text("household_id,from,to\n" + "".join(f"{home},{FIRST},\n" for home in "ABC"))
    house.write(FIRST, days[-1], mode="live")
    house.edit(("epsilon_per_day", "age_days = 1\nepsilon_per_day"))
    for today in (date(2013, 1, 9), date(2013, 2, 4), date(2013, 3, 1)):
        house.run(today=today)
    return house


@pytest.fixture
def house(released, houses, tmp_path):
    return houses(shutil.copytree(released.folder, tmp_path / "house"))


def publish_with(house, periods=None, *, layout="single"):
    """Publish with other keys of [output]; return the derived averages of the folder."""
    text = re.sub(r"(layout|averages_by) = .*\n", "", house.run_file.read_text())
    asked = "" if periods is None else f"averages_by = {periods}\n"
    house.run_file.write_text(text.replace("[population]", f'layout = "{layout}"\n{asked}[population]'))
    publish_release(house.session(today=date(2013, 3, 1)))
    house.release.verify()
    return sorted({path.name.partition(".")[0] for path in house.release.path.glob("averages_by_*")})


@pytest.mark.parametrize("layout", ["single", "monthly"])
def test_months_are_written_and_others_where_they_are_asked_for(house, layout):
    assert publish_with(house, layout=layout) == ["averages_by_month"]
    assert publish_with(house, ["year", "week"], layout=layout) == ["averages_by_week", "averages_by_year"]
    assert publish_with(house, [], layout=layout) == []
    assert publish_with(house, layout=layout) == ["averages_by_month"]


def test_a_population_that_an_earlier_version_began_keeps_all_three(house, monkeypatch):
    first = house.ledger().first_statement("homes")
    for version, expected in (("0.1", 3), ("0.2.0", 3), ("0.3.0", 1), ("0.10.0", 1)):
        record = type(first)(**{**vars_of(first), "software": f'{{"agedp": "{version}"}}'})
        monkeypatch.setattr("agedp_data.ledger.ledger_reader.LedgerReader.first_statement", lambda *_, of=record: of)
        assert len(publish_with(house)) == expected
        assert publish_with(house, ["week"]) == ["averages_by_week"]


def vars_of(record):
    return {name: getattr(record, name) for name in type(record).__dataclass_fields__}


def test_an_earlier_statement_is_written_with_the_averages_of_its_time(house):
    publish_with(house, ["week"])
    with house.ledger() as ledger:
        number = ledger.newest_statement("homes").seq
    publish_with(house)
    assert write_folder_of_statement(house.session(today=date(2013, 3, 1)), number)
    assert (house.release.path / "averages_by_week.parquet").exists()


def test_a_folder_of_an_early_version_gives_months_too(tmp_path):
    release = unpack("classical-archive", tmp_path).release
    assert not [*release.glob("averages_by_*"), *release.glob("daily_quantiles*")]
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
    with pytest.raises(InputError, match=r'^period = "quarter": must be one of "week", "month", "year"$'):
        release.period_averages("quarter")

"""Load profiles and coverage on their whole way: counted exactly, drawn once, published, verified, recovered."""

from __future__ import annotations

import csv
import math
import shutil
from collections import defaultdict
from datetime import date, datetime, timedelta
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agedp
from agedp.ledger_transfer import recover
from agedp.release_folder.result_tables import parquet_bytes, read_guarantee
from agedp.stages.amend import amend
from agedp.stages.publish import write_folder_as_of
from agedp_data import mechanisms
from agedp_data.errors import ContractChanged, InputError, RunFileError
from agedp_data.ledger import Ledger
from tests.agedp.conftest import ended_in_draw
from tests.agedp.release_folder.resealed import reseal
from tests.agedp.reports.html import faults_of
from tests.books import forget

FIRST, DAYS = date(2013, 1, 1), 3
TODAY = date(2013, 6, 1)
TARIFFS = {"A": "Std", "B": "Std", "C": "two words", "D": "two words", "E": "few"}
GROUPS = {"Std": "AB", "two words": "CD"}  # the group of one household is too small
PROFILE = (
    '[series.shape]\nstatistic = "profile"\nclamp_kwh = 30\nhalf_hour_clamp_kwh = 2\nmissing_kwh = 5\nby = "tariff"\n'
)
COVERAGE = '[series.usable]\nstatistic = "coverage"\nmax_missing = 0\n'
ALL_THREE = f"{PROFILE}share = 0.3\n{COVERAGE}share = 0.2\n"
LIVE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
MEAN = 'statistic = "mean"\nclamp_kwh = 50\n'


def wh(home, number, slot):
    """B exceeds the half-hour's clamp in the evening, and with C the day's; D lacks four half-hours of each day."""
    if home == "D" and slot in (1, 5, 9, 13):
        return None
    evening = slot in (36, 37)
    return {"A": 100 + 7 * slot, "B": 2600 if evening else 800, "C": 900 + slot, "D": 11 * slot, "E": 50}[home] + number


def day(number):
    return FIRST + timedelta(days=number)


def build(house):
    cells = {(home, day(i), slot): wh(home, i, slot) for home in TARIFFS for i in range(DAYS) for slot in range(48)}
    house.london({cell: value for cell, value in cells.items() if value is not None})
    rows = [f"{home},{FIRST},,{tariff}" for home, tariff in TARIFFS.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    return house


def write(house, *, rest=ALL_THREE, mean=True, **keys):
    house.write(FIRST, day(DAYS - 1), rest=rest, **keys)
    table = f"[series.daily_mean]\n{MEAN}"
    house.edit((table, f"{table}share = 0.5\n") if mean else (table, ""))


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    house = build(houses(tmp_path_factory.mktemp("kept")))
    write(house)
    house.run(today=TODAY)
    return house


@pytest.fixture
def made(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house"))


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: list(exact))


def readings_by_day(path):
    """Whole Wh of each household, day and half-hour, read from the CSV file."""
    read = defaultdict(dict)
    with path.open() as lines:
        for home, stamp, kwh in list(csv.reader(lines))[1:]:
            begin = datetime.fromisoformat(stamp) - timedelta(minutes=30)
            read[home, begin.date()][2 * begin.hour + begin.minute // 30] = round(float(kwh) * 1000)
    return read


def counted(half_hours, *, half_hour_clamp=2000, day_clamp=30_000, missing=5000, max_missing=2):
    """What a household's day counts, half-hour by half-hour, in fractions."""
    if 48 - len(half_hours) > max_missing:
        return [missing * (slot + 1) // 48 - missing * slot // 48 for slot in range(48)]
    clamped = [min(half_hours.get(slot, 0), half_hour_clamp) for slot in range(48)]
    factor = min(Fraction(1), Fraction(day_clamp, max(1, sum(clamped))))
    return [math.floor(value * factor) for value in clamped]


def test_without_noise_the_tables_are_counts_of_the_csv(house, without_noise):
    build(house)
    write(house)
    house.run(today=TODAY)
    read = readings_by_day(house.folder / "input" / "a.csv")
    table = house.release.table("daily_profile")
    assert len(table) == DAYS * len(GROUPS) * 48
    for (of, group), lines in table.groupby(["day", "group"]):
        sums = map(sum, zip(*(counted(read[home, of.date()]) for home in GROUPS[group]), strict=True))
        assert lines["noisy_sum_wh"].tolist() == list(sums)
        assert lines["start_minute"].tolist() == [30 * slot for slot in range(48)]
    coverage = house.release.table("daily_coverage")
    usable = [sum(len(read[home, of.date()]) == 48 for home in TARIFFS) for of in coverage["day"]]
    assert coverage["usable_noisy"].tolist() == usable == [4] * DAYS
    assert coverage["coverage"].tolist() == [0.8] * DAYS


def test_profile_coverage_and_mean_share_the_loss_of_a_day(kept):
    for series, sensitivity, share in (("shape", 60_000, Fraction(3, 10)), ("usable", 1, Fraction(1, 5))):
        rows = kept.rows(series)
        assert len(rows) == DAYS
        for row in rows:
            assert row.sensitivity == sensitivity
            assert row.loss == math.ceil(Fraction(sensitivity) / Fraction(row.scale) * 10**9) == share * 5 * 10**8
    assert kept.rows("shape")[0].households == (2,) * 96


def test_the_published_tables_have_their_form(kept):
    release = kept.release
    release.verify()
    columns = {
        "daily_coverage": "day:date32[day] group:string revision:int32 households:int64 usable_noisy:int64 "
        "noise_sd:double coverage:double low:double high:double published_on:date32[day] epsilon:double version:int32",
        "daily_profile": "day:date32[day] group:string start_minute:int32 minutes:int32 revision:int32 "
        "households:int64 noisy_sum_wh:int64 mean_kwh:double noise_sd_kwh:double low_kwh:double high_kwh:double "
        "published_on:date32[day] epsilon:double version:int32",
    }
    for name, expected in columns.items():
        schema = pq.read_schema(release.path / f"{name}.parquet")
        assert " ".join(f"{field.name}:{field.type}" for field in schema) == expected
    assert (list(release.profiles()), list(release.coverages())) == (
        ["daily_profile.parquet"],
        ["daily_coverage.parquet"],
    )
    row, line = kept.rows("usable")[0], release.table("daily_coverage").iloc[0]
    q = math.exp(-1 / row.scale)
    assert line["usable_noisy"] == row.values[0]
    assert line["coverage"] == row.values[0] / 5
    assert line["noise_sd"] == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-12)
    outside = 2 * q ** ((line["high"] - line["low"]) * 5 / 2 + 1) / (1 + q)
    assert outside <= 0.05 < outside / q
    assert list(release.table()) == list(release.table("daily_averages"))


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("daily_profile", "noisy_sum_wh", "2013-01-02, Std, 03:30, column noisy_sum_wh"),
        ("daily_profile", "minutes", "2013-01-02, Std, 03:30, column minutes"),
        ("daily_coverage", "usable_noisy", "2013-01-02, column usable_noisy"),
        ("daily_coverage", "coverage", "2013-01-02, column coverage"),
    ],
)
def test_one_changed_cell_is_found(made, name, column, message):
    path = made.folder / "release" / f"{name}.parquet"
    table = pq.read_table(path)
    changed = table[column].to_pylist()
    changed[103 if name == "daily_profile" else 1] += 1
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    path.write_bytes(parquet_bytes(table.set_column(index, field, pa.array(changed, field.type))))
    reseal(made.folder / "release")
    with pytest.raises(InputError, match=f"{name}.parquet: {message}"):
        made.release.verify()


def test_a_missing_half_hour_is_named_by_its_time(made):
    path = made.folder / "release" / "daily_profile.parquet"
    table = pq.read_table(path)
    path.write_bytes(parquet_bytes(pa.concat_tables([table.slice(0, 100), table.slice(101)])))
    reseal(made.folder / "release")
    with pytest.raises(InputError, match="2013-01-02, Std, 02:00: the table lacks this row"):
        made.release.verify()


def test_days_without_true_values_are_summed_once(made):
    assert made.run(today=TODAY).checked.sums.by_day == {}
    forget(made.folder / "confidential", "coverage")
    again = made.run(today=TODAY).checked.sums.by_day
    assert {of for of, _ in again} == {day(i) for i in range(DAYS)}
    assert made.run(today=TODAY).checked.sums.by_day == {}
    lines = [line for line in made.records("coverage") if line["series"] in ("shape", "usable")]
    assert {(line["series"], line["cell"], line["usable"]) for line in lines} == {
        ("shape", "Std", 2),
        ("shape", "two words", 1),
        ("usable", "all", 4),
    }


@pytest.mark.parametrize(
    ("rest", "title"), [(PROFILE, "Daily load profiles of homes"), (COVERAGE, "Daily coverage of homes")]
)
def test_each_can_be_published_alone(house, rest, title):
    build(house)
    write(house, rest=rest, mean=False)
    house.edit(('title = "Made up"\n', ""))
    house.run(today=TODAY)
    house.release.verify()
    assert house.release.read_statement().full_title == title
    assert len(house.release.table())
    assert faults_of(house.files()["report.html"].decode()) == []


def test_a_killed_run_is_continued_and_each_night_adds_a_day(house):
    build(house)
    write(house, mode="live", promise=LIVE)
    with ended_in_draw(3):
        house.run(today=day(2))
    house.run(today=day(2))
    house.run(today=day(3))
    release = house.release
    release.verify()
    assert [len({row.day for row in house.rows(name)}) for name in ("daily_mean", "shape", "usable")] == [2, 2, 2]
    newest = house.files()
    write_folder_as_of(house.session(today=day(3)), day(2))
    release.verify()
    assert release.table("daily_profile")["day"].nunique() == 1
    recover(release.path, f"sqlite:///{house.folder / 'again.sqlite'}", at=TODAY)
    with Ledger.open(f"sqlite:///{house.folder / 'again.sqlite'}") as again:
        assert again.verify() == ()
    house.run(today=day(3))
    assert house.files() == newest


@pytest.mark.parametrize("rest", [PROFILE, COVERAGE])
def test_earlier_versions_refuse_the_contract(house, rest):
    build(house)
    write(house, rest=f"{rest}share = 0.5\n")
    terms = house.session(today=TODAY).promise
    assert "needs" in terms
    assert terms["form"] > 1


def test_a_half_hours_clamp_changes_by_amendment(made):
    made.edit(("half_hour_clamp_kwh = 2", "half_hour_clamp_kwh = 1"))
    with pytest.raises(ContractChanged, match="half_hour_clamp_kwh"):
        made.run(today=TODAY)
    amend(made.context())
    made.run(today=TODAY)
    made.release.verify()
    guarantee = read_guarantee(pq.read_schema(made.folder / "release" / "daily_profile.parquet"))
    assert guarantee["half_hour_clamp_kwh_by_version"] == {"1": "2", "2": "1"}


def test_keywords_release_a_profile_and_coverage():
    stamps = pd.date_range("2013-01-01", periods=48, freq="30min", tz="UTC")
    homes = pd.DataFrame({"household_id": list("ABC")})
    readings = homes.merge(pd.DataFrame({"interval_start": stamps}), how="cross").assign(energy_wh=300)
    promise = agedp.Classical(
        epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=9, accept=["useless", "no-credit", "total"]
    )
    terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4}
    profile = agedp.release(readings, promise=promise, min_households=2, accept=["useless"], **terms).table
    assert len(profile) == 48
    coverage = agedp.release(
        readings, promise=promise, min_households=2, statistic="coverage", accept=["useless"]
    ).table
    assert coverage["households"].tolist() == [3]
    with pytest.raises(RunFileError, match=r"half_hour_clamp_kwh: is missing"):
        agedp.release(readings, promise=promise, min_households=2, statistic="profile", clamp_kwh=50)


def test_the_statement_says_what_is_counted(kept):
    words = " ".join((kept.folder / "release" / "STATEMENT.md").read_text().split())
    for text in (
        "daily load profiles | 2 kWh a half-hour, 30 kWh a day | 2 | tariff |",
        "| 60 kWh | | usable |",
        "The sensitivity is that of all half-hours of a day together, twice the clamp of the day",
        "daily numbers of households with a usable day | one household |",
    ):
        assert text in words

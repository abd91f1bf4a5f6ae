"""dataset = "long" through the stages: the same homes in the publisher's form and in a table of one's own."""

from __future__ import annotations

import csv
import shutil
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest, read_readings
from agedp.store.store import Store
from agedp_data.datasets.synthetic import write_london, write_roster
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import ContractChanged, InputError, RunFileError
from agedp_data.roster import read_roster
from agedp_data.series.series import Mean

KEYS = {
    "household": "meter_id",
    "time": "read_at",
    "stamp": "end",
    "zone": "UTC",
    "day_zone": "UTC",
    "energy": "use",
    "unit": "kWh",
}
TABLE = "[input.columns]\n" + "".join(f'{key} = "{value}"\n' for key, value in KEYS.items())
COLUMNS = NamedColumns.from_keys({**KEYS, "time_format": "%Y-%m-%d %H:%M:%S", "missing": ["Null", ""]})
FIRST = date(2013, 2, 27)
CLAMP_WH = 50_000


def as_table(publisher: Path, long: Path, *, by_time: bool = False) -> None:
    """Write the publisher's rows as `read_at,use,meter_id`, into as many files or, by time, into one."""
    long.mkdir()
    rows = []
    for path in sorted(publisher.glob("*.csv")):
        with path.open(newline="") as stream:
            reader = csv.reader(stream)
            next(reader)
            own = [(stamp, use, home) for home, _, stamp, use in reader]
        rows += own
        if not by_time:
            write(long / path.name, own)
    if by_time:
        write(long / "night.csv", sorted(rows))


def write(path: Path, rows: list[tuple[str, str, str]]) -> None:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("read_at", "use", "meter_id"), *rows])


@dataclass
class Found:
    """What the stages make of a folder of files."""

    aside: dict[str, int]
    rows: tuple[int, int]
    sums: dict
    counts: np.ndarray
    gaps: np.ndarray


def stages(folder: Path, files: Path, dataset: str, rules: ReadingRules, *, days: int, engine: Engine) -> Found:
    store = Store(folder / f"of-{files.name}" / "store", dataset, rules)
    delivery = ingest(store, [str(files)], engine=engine)
    roster = read_roster(folder / "roster.csv")
    every = [FIRST + timedelta(days=i) for i in range(days)]
    series = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(CLAMP_WH) / 1000)}
    sums = aggregate(store, delivery, roster, days=every, series=series, path=store.folder.parent / "s.parquet")
    period = Period(store, delivery, roster, every[0], every[-1])
    edges = quantize(period, edges="quantile", n_states=12, engine=engine)
    found = estimate(period, edges, n_states=12, engine=engine)
    return Found(delivery.rejected, (delivery.rows_read, delivery.rows_kept), sums, found.counts, found.gaps)


def assert_same(one: Found, two: Found) -> None:
    assert (one.aside, one.rows, one.sums) == (two.aside, two.rows, two.sums)
    assert np.array_equal(one.counts, two.counts)
    assert np.array_equal(one.gaps, two.gaps)


def made_up(folder: Path, *, households: int, days: int, per_file: int | None = None):
    """Write the publisher's form, with its flaws, and the roster."""
    truth = write_london(
        folder / "london", households=households, first_day=FIRST, days=days, seed=11, per_file=per_file
    )
    write_roster(folder / "roster.csv", household_ids=truth.household_ids, first_day=FIRST)
    return truth


PROCESSES = pytest.param(Engine("processes", 2, 100_000), marks=pytest.mark.long, id="processes")


@pytest.mark.parametrize("engine", [pytest.param(Engine(), id="threads"), PROCESSES])
def test_a_folder_in_long_form_says_what_the_publishers_form_says(tmp_path: Path, engine: Engine) -> None:
    truth = made_up(tmp_path, households=12, days=6, per_file=1000)
    as_table(tmp_path / "london", tmp_path / "long")
    publisher = stages(tmp_path, tmp_path / "london", "london", ReadingRules(), days=6, engine=engine)
    long = stages(tmp_path, tmp_path / "long", "long", ReadingRules(columns=COLUMNS), days=6, engine=engine)
    assert_same(publisher, long)
    assert publisher.rows == (truth.rows_written, truth.rows_kept)
    assert [each.sum_wh["all"] for each in long.sums.values()] == whole_days(truth).tolist()
    frames = [
        read_readings(tmp_path / "london", dataset="london"),
        read_readings(tmp_path / "long", dataset="long", columns=KEYS),
    ]
    assert frames[0].equals(frames[1])
    assert len(frames[0]) == truth.rows_kept


def whole_days(truth) -> np.ndarray:
    """Return the sum of each day, clamped, over the households that lack at most two readings of it."""
    return np.where(truth.readings >= 46, np.minimum(truth.energy_wh, CLAMP_WH), 0).sum(axis=0)


def nightly(tmp_path: Path, *, households: int, days: int) -> None:
    truth = made_up(tmp_path, households=households, days=days)
    as_table(tmp_path / "london", tmp_path / "long", by_time=True)
    engine = Engine(chunk_bytes=2**20)
    publisher = stages(tmp_path, tmp_path / "london", "london", ReadingRules(), days=days, engine=engine)
    night = stages(tmp_path, tmp_path / "long", "long", ReadingRules(columns=COLUMNS), days=days, engine=engine)
    assert_same(publisher, night)
    assert [each.sum_wh["all"] for each in night.sums.values()] == whole_days(truth).tolist()
    gaps = night.gaps.sum()
    assert (
        night.counts.sum() == truth.rows_kept - households - gaps
    )  # every reading but a household's first follows one
    assert night.counts.sum() > 0.99 * households * (days * 48 - 1)


def test_a_file_ordered_by_time_gives_the_sums_and_transitions_of_the_publishers_order(tmp_path: Path) -> None:
    nightly(tmp_path, households=300, days=3)


@pytest.mark.long
def test_a_file_of_5566_homes_ordered_by_time_gives_the_sums_and_transitions_of_the_publishers_order(
    tmp_path: Path,
) -> None:
    nightly(tmp_path, households=5566, days=4)


def test_a_run_on_a_table_of_ones_own_releases_its_days_and_says_whose_midnight_ends_them(house) -> None:
    first, last = FIRST, FIRST + timedelta(days=4)
    truth = made_up(house.folder, households=6, days=5)
    as_table(house.folder / "london", house.folder / "input")
    house.roster([(home, first, None) for home in truth.household_ids])
    rest = TABLE.replace('day_zone = "UTC"', 'day_zone = "Europe/London"')  # the same days in winter
    text = house.write(first, last, dataset="long", rest=rest).read_text()
    work = house.run()
    assert [each.sum_wh["all"] for each in work.checked.sums.by_day.values()] == whole_days(truth).tolist()
    release = ReleaseFolder(house.folder / "release")
    release.verify()
    assert len(release.table()) == 5
    contract = release.statement["contract"]
    assert contract["input"]["columns"] | {"time_format": "", "missing": []} == {
        **KEYS, "day_zone": "Europe/London", "time_format": "", "missing": [],
    }  # fmt: skip
    house.run_file.write_text(text.replace('unit = "kWh"', 'unit = "Wh"'))
    with pytest.raises(ContractChanged, match=r"input\.columns\.unit"):
        house.run()


def test_the_day_of_a_zone_is_due_when_its_midnight_has_passed(house) -> None:
    """3 July 2013 ends in Sydney at 14:00 UTC of that date, in UTC ten hours later."""
    day = date(2013, 7, 3)
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text(
        "read_at,use,meter_id\n2013-07-03 02:00:00,1,A\n2013-07-03 02:00:00,1,B\n"
    )
    house.roster([("A", day, None), ("B", day, None)])
    ends = {}
    for zone in ("UTC", "Australia/Sydney"):
        house.write(day, day, dataset="long", rest=TABLE.replace('day_zone = "UTC"', f'day_zone = "{zone}"'))
        (house.folder / "ledger.sqlite").unlink(missing_ok=True)
        for name in ("release", "confidential"):
            shutil.rmtree(house.folder / name, ignore_errors=True)
        ends[zone] = house.run().released[0].input_ended_at
    assert ends == {"UTC": "2013-07-04T00:00:00Z", "Australia/Sydney": "2013-07-03T14:00:00Z"}


def test_another_description_of_the_columns_never_meets_old_parts(tmp_path: Path) -> None:
    digest = "0" * 64
    stores = [Store(tmp_path, "long", ReadingRules(columns=COLUMNS)), Store(tmp_path, "london", ReadingRules())]
    others = [("stamp", "start"), ("zone", "GMT"), ("day_zone", "Europe/London"), ("unit", "Wh"), ("missing", ("x",))]
    for key, value in others:
        stores.append(Store(tmp_path, "long", ReadingRules(columns=replace(COLUMNS, **{key: value}))))
    assert len({store.content_id(digest) for store in stores}) == len(stores)


def test_a_file_without_the_columns_is_one_line_that_names_those_wanted_and_in_private_those_found(
    tmp_path: Path,
) -> None:
    (tmp_path / "MAC1.csv").write_text("meter_id,when,use\nMAC1,2013-01-01 00:30:00,0.987\n")
    with pytest.raises(InputError) as caught:
        read_readings(tmp_path / "MAC1.csv", dataset="long", columns=KEYS)
    wanted = (
        '[input.columns] needs the columns "meter_id", "read_at", "use"; the header has "read_at" 0 times, not once'
    )
    assert str(caught.value) == f"input 1 of 1: {wanted}"
    assert caught.value.private == f'{tmp_path}/MAC1.csv: {wanted}; columns found: "meter_id", "when", "use"'


def test_columns_that_a_run_file_could_not_have_are_refused_in_a_notebook_too(tmp_path: Path) -> None:
    for keys, words in (
        ({**KEYS, "unit": "MWh"}, r'\[input.columns\] unit = "MWh": is not known; write "kWh" | "Wh"'),
        ({key: KEYS[key] for key in KEYS if key != "stamp"}, r"\[input.columns\] stamp: is missing"),
        ({**KEYS, "stmp": "end"}, r"has no key 'stmp'; did you mean 'stamp'"),
    ):
        with pytest.raises(RunFileError, match=words):
            read_readings(tmp_path, dataset="long", columns=keys)
    for dataset, columns in (("long", None), ("london", KEYS)):
        with pytest.raises(InputError, match=r'\[input.columns\] goes with dataset = "long"'):
            read_readings(tmp_path, dataset=dataset, columns=columns)

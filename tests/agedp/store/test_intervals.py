"""Files of 15 and of 60 minutes through the stages: the same daily sums as half-hourly files of the same homes."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, time, timedelta

import pytest

from agedp.pipeline import calibrate
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp_data.config import load
from agedp_data.errors import ContractChanged, RunFileError, UnreadableFile
from agedp_data.ledger import Ledger

FIRST = date(2013, 3, 30)
HOMES, DAYS = "ABCD", 3
TABLE = """[input.columns]
household = "home"
time = "at"
stamp = "start"
zone = "UTC"
day_zone = "Europe/London"
energy = "wh"
unit = "Wh"
"""
MODEL = """[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2013-03-30, 2013-04-01]
step = "{step}"
states = 3
edges = "quantile"
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
"""
AGED = """notion = "age-dependent"
age_days = 1
epsilon_per_day = 0.5
method = "tight"
secret = "{}"
max_day_epsilon = 0.5
epsilon_total = 9
"""


def use(seed: int = 5) -> dict[tuple[str, datetime], int]:
    """Return the use of every quarter of an hour, Wh; C lacks one on the last day, D most of the first."""
    draw = random.Random(seed)  # noqa: S311
    start = datetime.combine(FIRST, time())
    found = {
        (home, start + timedelta(minutes=15 * step)): draw.randrange(300) for home in HOMES for step in range(96 * DAYS)
    }
    lacking = [("C", start + timedelta(days=2, hours=7, minutes=15))]
    lacking += [("D", start + timedelta(hours=hour, minutes=30)) for hour in range(6)]
    return {key: wh for key, wh in found.items() if key not in lacking}


def lines(minutes: int) -> list[str]:
    """Return the rows of files of this interval: readings that have all of their quarters."""
    quarters = use()
    parts = [timedelta(minutes=15 * part) for part in range(minutes // 15)]
    starts = sorted({(home, at - timedelta(minutes=at.minute % minutes)) for home, at in quarters})
    whole = [(home, at) for home, at in starts if all((home, at + part) in quarters for part in parts)]
    return [f"{home},{at},{sum(quarters[home, at + part] for part in parts)}" for home, at in whole]


def prepare(house, minutes, *, declared=None, rest="", **keys):
    """Write files of an interval, a roster and a run file that declares it."""
    (house.folder / "input").mkdir(exist_ok=True)
    (house.folder / "input" / "a.csv").write_text("\n".join(["home,at,wh", *lines(minutes)]) + "\n")
    house.roster([(home, FIRST, None) for home in HOMES])
    house.write(FIRST, FIRST + timedelta(days=DAYS - 1), dataset="long", rest=rest, **keys)
    interval = f"interval_minutes = {declared or minutes}\n"
    text = house.run_file.read_text().replace("[output]\n", TABLE + "[output]\n", 1)
    house.run_file.write_text(text.replace("[input]\n", "[input]\n" + interval, 1))


def by_hand() -> dict[date, tuple[int, int]]:
    """Return sums (Wh) and usable households by London day: D lacks 6 of 48 half-hours, C one.

    The clock goes forward on the second day, which has 23 hours; a British day then begins at 23:00 UTC.
    """
    ends = [datetime(2013, 3, 31), datetime(2013, 3, 31, 23), datetime(2013, 4, 1, 23)]
    starts = [datetime(2013, 3, 30), *ends]
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    total = {
        day: {home: sum(wh for (of, at), wh in use().items() if of == home and low <= at < high) for home in HOMES}
        for day, low, high in zip(days, starts, ends, strict=False)
    }
    del total[days[0]]["D"]
    return {day: (sum(homes.values()), len(homes)) for day, homes in total.items()}


def test_quarters_come_to_the_sums_of_the_half_hours_that_they_fill(houses, tmp_path):
    """A half-hour that lacks a quarter is lacking, so C counts without it."""
    found = []
    for minutes in (15, 30):
        house = houses(tmp_path / str(minutes))
        house.folder.mkdir()
        prepare(house, minutes)
        found.append(house.run().checked.sums.by_day)
    assert {key: (one.exact, one.usable) for key, one in found[0].items()} == {
        key: (one.exact, one.usable) for key, one in found[1].items()
    }
    lone = use()["C", datetime(2013, 4, 1, 7)]
    (total, usable) = by_hand()[date(2013, 4, 1)]
    sums = {day: (one.exact["all"][0], one.usable["all"]) for (day, _), one in found[0].items()}
    assert sums == {**by_hand(), date(2013, 4, 1): (total - lone, usable)}


def test_hours_come_to_daily_sums_and_are_counted_in_hours(house):
    """Of C's hour that lacks a quarter nothing is left; D lacks 6 of 24 hours."""
    prepare(house, 60)
    work = house.run()
    sums = {day: (one.exact["all"][0], one.usable["all"]) for (day, _), one in work.checked.sums.by_day.items()}
    lost = sum(use().get(("C", datetime(2013, 4, 1, 7, minute)), 0) for minute in (0, 15, 30, 45))
    (total, usable) = by_hand()[date(2013, 4, 1)]
    assert sums == {**by_hand(), date(2013, 4, 1): (total - lost, usable)}
    verdicts = {each["check"]: each["verdict"] for each in findings(house)}
    assert verdicts["interval"] == "ok"


def findings(house):
    return json.loads((house.folder / "confidential" / "preflight.json").read_text())["findings"]


@pytest.mark.parametrize(("minutes", "declared"), [(60, 30), (15, 30), (30, 60), (30, 15), (15, 60), (60, 15)])
def test_another_interval_than_declared_is_refused_by_the_first_stamps_and_by_the_preflight(house, minutes, declared):
    prepare(house, minutes, declared=declared)
    with pytest.raises(UnreadableFile, match=f"readings are {minutes} minutes apart, not {declared}; write "):
        house.run()
    assert not (house.folder / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("rest", "promise", "what"),
    [
        (MODEL.format(step="half-hour"), None, r"\[model\] step = \"half-hour\": must be \"day\""),
        (MODEL.format(step="day"), AGED.format("half-hour"), r"\[promise\] secret"),
    ],
)
def test_half_hours_of_hourly_files_are_refused(house, rest, promise, what):
    keys = {} if promise is None else {"promise": promise}
    prepare(house, 60, rest=rest, **keys)
    with pytest.raises(RunFileError, match=what):
        house.context()


def test_a_chain_of_days_is_estimated_from_hours(house):
    prepare(house, 60, rest=MODEL.format(step="day"), promise=AGED.format("day"))
    found = calibrate(house.run_file)
    assert found.memory is not None
    assert not [name for name in found.memory.series_by_name if name.startswith("half-hour")]
    assert len(house.run().released) == DAYS


def test_the_interval_is_part_of_the_contract_and_30_is_what_silence_means(house):
    prepare(house, 30)
    work = house.run()
    kept = json.loads(Ledger.open(work.run.run_file.output.ledger).contracts("homes")[-1].promise)
    assert "interval_minutes" not in kept["input"]
    house.run_file.write_text(house.run_file.read_text().replace("interval_minutes = 30\n", ""))
    house.run()
    house.run_file.write_text(house.run_file.read_text().replace("[input]\n", "[input]\ninterval_minutes = 60\n", 1))
    with pytest.raises(ContractChanged):
        house.run()


@pytest.mark.parametrize(("dataset", "minutes"), [("london", 60), ("ausgrid", 15), ("long", 20)])
def test_an_interval_that_cannot_be_declared_is_refused(house, dataset, minutes):
    house.write(FIRST, FIRST, dataset=dataset)
    text = house.run_file.read_text().replace("[input]\n", f"[input]\ninterval_minutes = {minutes}\n", 1)
    house.run_file.write_text(text.replace("[output]\n", TABLE + "[output]\n", 1) if dataset == "long" else text)
    with pytest.raises(RunFileError, match=r"\[input\] interval_minutes = "):
        house.context()


@pytest.mark.parametrize("minutes", [15, 30, 60])
def test_init_reads_the_interval_off_the_rows(house, minutes):
    prepare(house, minutes)
    options = {"zone": "UTC", "day_zone": "Europe/London", "stamp": "start", "household_column": "home"}
    options |= {"unit": "Wh", "clamp_kwh": "50", "min_households": "2"}
    options |= {"epsilon_per_day": "0.5", "max_day_epsilon": "0.5", "epsilon_total": "9"}
    made = init([str(house.folder / "input" / "a.csv")], folder=house.folder / "made", options=toml_of(options))
    text = made.run_file.read_text()
    assert (f"interval_minutes = {minutes}" in " ".join(text.split())) == (minutes != 30)
    assert made.households == len(HOMES)
    assert (made.facts.first, made.facts.last) == (FIRST, FIRST + timedelta(days=DAYS - 1))
    assert load(made.run_file).input.interval_minutes == minutes

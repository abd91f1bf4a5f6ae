"""dataset = "long": the run file describes the table; each description has its own parts and a registered interval."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import date, datetime, time, timedelta

import pytest

from agedp.store.store import Store, content_id
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import ContractChanged, RunFileError
from tests import minimal

TABLE = """[input.columns]
household = "id"
time = "at"
stamp = "end"
zone = "UTC"
day_zone = "{}"
energy = "use"
unit = "kWh"
"""


@pytest.mark.parametrize(
    ("zone", "end"), [("UTC", "2013-07-04T00:00:00Z"), ("Australia/Sydney", "2013-07-03T14:00:00Z")]
)
def test_the_day_of_a_zone_is_due_when_its_midnight_has_passed(house, zone, end):
    day = date(2013, 7, 3)
    (house.folder / "input").mkdir()
    rows = "at,use,id\n2013-07-03 02:00:00,1,A\n2013-07-03 02:00:00,1,B\n"
    (house.folder / "input" / "a.csv").write_text(rows)
    house.roster([("A", day, None), ("B", day, None)])
    house.write(day, day, dataset="long", rest=TABLE.format(zone))
    assert house.run().released[0].input_ended_at == end
    assert house.release.statement["contract"]["input"]["columns"]["day_zone"] == zone
    house.edit(('unit = "kWh"', 'unit = "Wh"'))
    with pytest.raises(ContractChanged, match=r"input\.columns\.unit"):
        house.run()


def test_another_description_of_the_columns_never_meets_old_parts(tmp_path):
    columns = NamedColumns("id", "at", "iso", "end", "UTC", "UTC", "use", "kWh", ("",))
    others = [("stamp", "start"), ("zone", "GMT"), ("day_zone", "Europe/London"), ("unit", "Wh"), ("missing", ("x",))]
    described = [columns, *(replace(columns, **{key: value}) for key, value in others)]
    stores = [Store(tmp_path, "long", ReadingRules(columns=each)) for each in described]
    assert len({content_id("0" * 64, store.read_as) for store in stores}) == len(stores)


FIRST = date(2013, 3, 30)
HOMES, DAYS = "ABCD", 3
OF_HOMES = """[input.columns]
household = "home"
time = "at"
stamp = "start"
zone = "UTC"
day_zone = "Europe/London"
energy = "wh"
unit = "Wh"
"""


LONE = datetime(2013, 4, 1, 7)
"""C lacks the second quarter of the hour that begins here; D most of the first day."""


def draw_use() -> dict[tuple[str, datetime], int]:
    """Return the use of every quarter of an hour, Wh."""
    draw, start = random.Random(5), datetime.combine(FIRST, time())  # noqa: S311
    quarters = [(home, start + timedelta(minutes=15 * step)) for home in HOMES for step in range(96 * DAYS)]
    missing = {("C", LONE + timedelta(minutes=15)), *(("D", start + timedelta(hours=h, minutes=30)) for h in range(6))}
    use = {key: draw.randrange(300) for key in quarters}
    return {key: wh for key, wh in use.items() if key not in missing}


USE = draw_use()


def rows(minutes: int) -> list[str]:
    """Return the rows of files of this interval: readings that have all of their quarters."""
    parts = [timedelta(minutes=15 * part) for part in range(minutes // 15)]
    starts = sorted({(home, at - timedelta(minutes=at.minute % minutes)) for home, at in USE})
    whole = [(home, at) for home, at in starts if all((home, at + part) in USE for part in parts)]
    return [f"{home},{at},{sum(USE[home, at + part] for part in parts)}" for home, at in whole]


def prepare(house, minutes, *, declared=None):
    """Write files of an interval, a roster and a run file that declares it."""
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text("\n".join(["home,at,wh", *rows(minutes)]) + "\n")
    house.roster([(home, FIRST, None) for home in HOMES])
    house.write(FIRST, FIRST + timedelta(days=DAYS - 1), dataset="long")
    house.edit(
        ("[output]\n", OF_HOMES + "[output]\n"), ("[input]\n", f"[input]\ninterval_minutes = {declared or minutes}\n")
    )


def test_the_interval_is_registered_and_silence_means_30(house):
    prepare(house, 30)
    house.run()
    with house.ledger() as ledger:
        assert "interval_minutes" not in json.loads(ledger.contracts("homes")[-1].promise)["input"]
    house.edit(("interval_minutes = 30\n", ""))
    house.run()
    house.edit(("[input]\n", "[input]\ninterval_minutes = 60\n"))
    with pytest.raises(ContractChanged):
        house.run()


def test_half_hours_of_hourly_files_are_no_step_of_a_model(house):
    prepare(house, 60)
    text = house.run_file.read_text()
    house.run_file.write_text(f"{text}[model]\n{minimal.of_three_states('2013-03-30, 2013-04-01')}")
    with pytest.raises(RunFileError, match=r'\[model\] step = "half-hour": must be "day"'):
        house.context()


@pytest.mark.parametrize(("dataset", "minutes"), [("london", 60), ("ausgrid", 15), ("long", 20)])
def test_an_interval_that_cannot_be_declared_is_refused(house, dataset, minutes):
    house.write(FIRST, FIRST, dataset=dataset)
    house.edit(("[input]\n", f"[input]\ninterval_minutes = {minutes}\n"))
    if dataset == "long":
        house.edit(("[output]\n", OF_HOMES + "[output]\n"))
    with pytest.raises(RunFileError, match=r"\[input\] interval_minutes = "):
        house.context()

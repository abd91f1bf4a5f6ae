"""dataset = "long": the run file describes the table, and each description has its own parts and days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from agedp.store.store import Store, content_id
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import ContractChanged

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

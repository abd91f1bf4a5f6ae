"""A population of NEM12 files: three nights with a late file, and chains of twelve states."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING

from agedp.setup.init_run_file import read_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agedp.pipeline import RunSummary

FIRST, NIGHT = date(2024, 4, 5), timedelta(days=1)  # the clocks of Sydney go back on 7 April
HOMES = ("61001", "61002", "61003")
PROMISE = (
    'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)


def deliver(house, name: str, homes: Sequence[str], days: Sequence[date]) -> dict[date, int]:
    """Write a file of general consumption by 15 minutes, a controlled load and solar energy; return the use in Wh."""
    lines, use = ["100,NEM12,202405010000,MDP1,RETAILER"], defaultdict(int)
    for home in homes:
        for suffix, minutes in (("E1", 15), ("E2", 30), ("B1", 30)):
            lines.append(f"200,{home},B1E1E2,1,{suffix},N1,M{home},kWh,{minutes},")
            for day in days:
                of = random.Random(f"{home}{suffix}{day}")  # noqa: S311 - made-up readings
                values = [of.randrange(200) for _ in range(1440 // minutes)]
                use[day] += sum(values) if suffix != "B1" else 0
                lines.append(f"300,{day:%Y%m%d},{','.join(str(wh / 1000) for wh in values)},A,,,20240501000000,")
    (house.folder / "input").mkdir(exist_ok=True)
    (house.folder / "input" / name).write_text("\n".join([*lines, "900", ""]))
    return use


def test_nights_release_the_use_of_all_channels_and_count_a_late_file(house):
    days = [FIRST + number * NIGHT for number in range(4)]
    use = deliver(house, "first.csv", HOMES, days[:1])
    assert read_layout([str(house.folder / "input")], {}) == ("nem12", None)
    house.roster([(home, FIRST, None) for home in HOMES])
    house.write(FIRST, days[-1], mode="live", dataset="nem12", promise=PROMISE)

    def night(day: date, hour: int = 15) -> RunSummary:
        return house.run(today=day + NIGHT, hour=hour)

    assert night(days[0], hour=13).released == ()  # a day ends at 14:00 UTC, and is a day old 24 hours later
    assert [row.day for row in night(days[0]).released] == ["2024-04-05"]
    use |= deliver(house, "second.csv", HOMES[:2], days[1:2])  # the third home's use counts as 0 on this day
    night(days[1])
    deliver(house, "late.csv", HOMES[2:], days[1:2])
    use |= deliver(house, "third.csv", HOMES, days[2:3])
    assert night(days[2]).delivery.late_rows == 2 * 48  # half-hours of the two channels that are asked for
    means = {line["day"]: line["true_mean_kwh"] for line in house.records("true_means")}
    assert means == {day: use[day] / 3000 for day in days[:3]}
    house.release.verify()

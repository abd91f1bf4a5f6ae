"""Files of 15 and of 60 minutes through the stages: the same daily sums as half-hourly files of the same homes."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, time, timedelta

import pytest

from agedp_data.errors import ContractChanged

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
        ("[output]\n", TABLE + "[output]\n"), ("[input]\n", f"[input]\ninterval_minutes = {declared or minutes}\n")
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

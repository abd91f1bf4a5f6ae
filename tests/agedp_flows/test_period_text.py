"""The command on series of which every row covers several days: means of a month, profiles of its kinds of day."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from agedp_data.datasets.synthetic import write_london
from tests.agedp_flows.worlds import MODES, RUN_FILE, World

FIRST = date(2013, 2, 1)
CLASSICAL = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
MONTH = 'statistic = "mean"\nevery = "month"\nclamp_kwh = 20\n'
PROFILE = (
    'statistic = "profile"\nevery = "weekday-month"\nclamp_kwh = 20\nhalf_hour_clamp_kwh = 0.5\nmissing_kwh = 4.8\n'
)


@pytest.mark.parametrize(
    ("series", "line"),
    [
        (
            MONTH,
            r"\nfirst day +last day +mean kWh per household and day +.*\n2013-02-01  2013-02-28 +-?[0-9.]+ ",
        ),
        (PROFILE, r", weekday on 2013-02-28: -?[0-9.]+ kWh in all half-hours, largest .*\n.*, weekend on 2013-02-28: "),
    ],
)
def test_a_run_of_periods_alone_shows_its_newest_values(tmp_path: Path, series: str, line: str) -> None:
    (tmp_path / "incoming").mkdir()
    written = write_london(tmp_path / "incoming", households=3, first_day=FIRST, days=28, seed=1)
    roster = ["household_id,from,to", *(f"{household},{FIRST}," for household in written.household_ids)]
    (tmp_path / "roster.csv").write_text("\n".join(roster) + "\n")
    text = RUN_FILE.format(mode=MODES["archive"], model="", promise=CLASSICAL).removesuffix("[model]\n\n")
    text = text.replace('statistic = "mean"\nclamp_kwh = 20\n', series)
    text = text.replace(
        "first_day = 2013-02-02\nlast_day = 2013-02-07", "first_day = 2013-02-01\nlast_day = 2013-02-28"
    )
    (tmp_path / "run.toml").write_text(text)
    shown = World(tmp_path).succeed("run", "run.toml")
    assert re.search(line, shown)

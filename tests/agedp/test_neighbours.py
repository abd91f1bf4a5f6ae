"""One household's replaced day, from input files to exact vectors: no change exceeds a sensitivity, and one attains it.

Each input differs from the others in the same household's same day only, so any two of them are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from agedp.compute.engine_settings import Engine
from agedp.run_context import store_for
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import compute_state_days
from agedp_data.config import load
from agedp_data.roster import read_roster
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries
from tests.minimal import run_file

HIGH_WH, LOW_WH, TOP_WH = 2_000, 700, 5_000
"""A half-hour at its clamp, below it, and above it."""
INLINE = Engine("synchronous", 1)
Readings = Mapping[int, int]
"""Watt-hours by slot; a slot without a reading is not in it."""


def every(value, slots=range(48)) -> Readings:
    return dict.fromkeys(slots, value)


REPLACEMENTS: dict[str, Readings] = {
    "no reading": {},
    "nothing used": every(0),
    "at the clamp": every(HIGH_WH),
    "above the clamp": every(TOP_WH),
    "first half": every(HIGH_WH, range(24)) | every(0, range(24, 48)),
    "second half": every(0, range(24)) | every(HIGH_WH, range(24, 48)),
    "first hours": every(0) | every(HIGH_WH, range(6, 12)),
    "last hours": every(0) | every(HIGH_WH, range(42, 48)),
    "one peak": every(0) | {30: 3 * TOP_WH},
    "moved by one half-hour": every(0) | {31: 3 * TOP_WH},
    "shifted evening": every(LOW_WH) | every(TOP_WH, range(8, 14)),
    "as many as may lack": every(LOW_WH, range(46)),
    "one more lacks": every(LOW_WH, range(45)),
    "first readings only": every(TOP_WH, range(10)),
    "last readings only": every(TOP_WH, range(38, 48)),
}
OF_CORNERS = (
    "no reading",
    "nothing used",
    "above the clamp",
    "first half",
    "second half",
    "first hours",
    "last hours",
    "as many as may lack",
)
"""Replacements among which all sensitivities are attained."""

MOST_MISSING = 22
"""Hours that a day may lack: one less than the hours of a day on which the clock goes forward."""
_MEAN = {"statistic": "mean", "clamp_kwh": 12, "missing_kwh": 5}
_BINS = {"statistic": "distribution", "clamp_kwh": 12, "bins_kwh": [0, 4, 8, 12], "missing_kwh": 4}
_PROFILE = {"statistic": "profile", "clamp_kwh": 12, "half_hour_clamp_kwh": 2}
SERIES = {
    "daily_mean": _MEAN,
    "layered": {"statistic": "mean", "clamp_kwh": [5, 12, 30]},
    "histogram": _BINS,
    "cumulative": _BINS | {"form": "cumulative", "max_missing": MOST_MISSING},
    "profile": _PROFILE,
    "default": _PROFILE | {"missing_kwh": 12},
    "wide": _PROFILE | {"clamp_kwh": 60, "max_missing": 0},
    "coverage": {"statistic": "coverage"},
    "lenient": {"statistic": "coverage", "max_missing": MOST_MISSING},
}
OF_STATES = {
    "daily_mean": _MEAN | {"values": "states", "missing_kwh": 0},
    "histogram": _BINS | {"values": "states"},
    "profile": _PROFILE | {"half_hour_clamp_kwh": Decimal("1.25"), "values": "states", "max_missing": 45},
}
STATES = """[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2012-01-01, 2012-12-31]
step = "half-hour"
states = 3
edges = [0.5, 1.0]
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
"""
AGED = {"notion": "age-dependent", "age_days": 1, "method": "tight", "secret": "day"}


def shared(series: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    """Return the tables of some series, each grouped, with equal shares of a day."""
    share = Decimal("0.01")
    tables: dict[str, dict[str, object]] = {}
    for name, keys in series.items():
        layers = len(keys["clamp_kwh"]) if isinstance(keys.get("clamp_kwh"), list) else 0
        tables[f"series.{name}"] = dict(keys) | {"by": "area", "share": [share] * layers if layers else share}
    used = sum(len(keys["share"]) if isinstance(keys["share"], list) else 1 for keys in tables.values())
    tables["series.daily_mean"]["share"] = 1 - share * (used - 1)
    return tables


def london_rows(household: str, day: date, readings: Readings) -> Iterator[str]:
    for slot, wh in readings.items():
        yield f"{household},{datetime.combine(day, time()) + (slot + 1) * timedelta(minutes=30)},{wh / 1000}"


def hourly_rows(household: str, day: date, readings: Readings) -> Iterator[str]:
    """Yield hours; an hour that lacks a half-hour lacks."""
    for hour in range(24):
        if {2 * hour, 2 * hour + 1} <= set(readings):
            yield f"{household},{day} {hour:02d}:00:00,{readings[2 * hour] + readings[2 * hour + 1]}"


def ausgrid_rows(household: str, day: date, readings: Readings) -> Iterator[str]:
    if readings:
        cells = [str(readings[slot] / 1000) if slot in readings else "" for slot in range(48)]
        yield f"{household},1,2000,GC,{day:%d/%m/%Y},{','.join(cells)}"


_ENDS = [f"{(slot + 1) // 2 % 24}:{(slot + 1) % 2 * 3}0" for slot in range(48)]
HEADERS = {
    "london": "LCLid,tstp,energy(kWh/hh)",
    "long": "home,at,wh",
    "ausgrid": f"made up\nCustomer,Generator Capacity,Postcode,Consumption Category,date,{','.join(_ENDS)}",
}
ROWS = {"london": london_rows, "long": hourly_rows, "ausgrid": ausgrid_rows}
COLUMNS = {
    "household": "home", "time": "at", "stamp": "start", "zone": "UTC", "day_zone": "UTC", "energy": "wh", "unit": "Wh",
}  # fmt: skip
WORLDS = {
    "half-hours": ("london", date(2013, 1, 30), SERIES),
    "hours": ("long", date(2013, 1, 30), SERIES),
    "46 half-hours": ("ausgrid", date(2012, 10, 7), SERIES),
    "a repeated hour": ("ausgrid", date(2013, 4, 7), SERIES),
    "states": ("london", date(2013, 1, 30), OF_STATES),
}
"""By name: a dataset, the day that is replaced, and the series."""

Vectors = Mapping[tuple[date, str], np.ndarray]


def vectors(folder: Path, dataset: str, day: date, series: Mapping[str, Mapping[str, object]], replaced: Readings):
    """Return the series of a run file and the exact vectors of two days, of all groups together."""
    days, typical = (day, day + timedelta(days=1)), every(LOW_WH)
    use = {(home, of): typical for home in "123" for of in days} | {("2", day): replaced}
    rows = [row for (home, of), readings in use.items() for row in ROWS[dataset](home, of, readings)]
    (folder / "input").mkdir(parents=True)
    (folder / "input" / "a.csv").write_text("\n".join([HEADERS[dataset], *rows]) + "\n")
    (folder / "roster.csv").write_text(f"household_id,from,to,area\n1,{day},,x\n2,{day},,y\n3,{day},,y\n")
    tables: dict[str, dict[str, object]] = {
        "input": {"dataset": dataset},
        "schedule": {"first_day": day, "last_day": days[1]},
    }
    if dataset == "long":
        tables["input"] |= {"interval_minutes": 60}
        tables["input.columns"] = COLUMNS
    if series is OF_STATES:
        tables["promise"] = AGED
    text = run_file(**(tables | shared(series))) + (STATES if series is OF_STATES else "")
    (folder / "run.toml").write_text(text)
    run = load(folder / "run.toml")
    roster, states = read_roster(folder / "roster.csv"), run.counted_states
    store = store_for(run, households=len(roster.rows.ids))
    delivery = ingest(store, list(run.input.files), engine=INLINE)
    compute_state_days(store, delivery, days, states, engine=INLINE)
    sums = aggregate(store, delivery, roster, days=days, series=run.series, states=states, engine=INLINE)
    exact = {key: sum_.exact.ravel() for key, sum_ in sums.items()}
    return run.series, exact


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory):
    """The series of a world and the exact vectors under each replacement."""

    @cache
    def of(world: str) -> tuple[Mapping[str, AnySeries], Sequence[Vectors]]:
        dataset, day, series = WORLDS[world]
        folder, versions = tmp_path_factory.mktemp("worlds"), []
        names = OF_CORNERS if dataset == "ausgrid" else REPLACEMENTS
        for number, replaced in enumerate(REPLACEMENTS[name] for name in names):
            read, exact = vectors(folder / str(number), dataset, day, series, replaced)
            versions.append(exact)
        return read, versions

    return of


def largest_changes(versions: Sequence[Vectors]) -> dict[tuple[date, str], int]:
    """Return the largest L1 change between two neighbours, by day and series."""
    pairs = list(combinations(versions, 2))
    return {key: max(int(np.abs(one[key] - two[key]).sum()) for one, two in pairs) for key in versions[0]}


def check_sensitivities(series: Mapping[str, AnySeries], versions: Sequence[Vectors], day: date) -> None:
    """Check that no replacement of a household's day changes more than a sensitivity, or another day at all."""
    for (of, name), change in largest_changes(versions).items():
        assert change <= (series[name].sensitivity("replacement") if of == day else 0), name


@pytest.mark.parametrize("world", WORLDS)
def test_no_replaced_day_changes_more_than_a_sensitivity(neighbours, world):
    series, versions = neighbours(world)
    check_sensitivities(series, versions, WORLDS[world][1])


WIDE_WH = {"half-hours": 48 * 2_000, "hours": 48 * 2_000, "46 half-hours": 46 * 2_000, "a repeated hour": 48 * 2_000}
"""Largest changes under a clamp above 48 half-hours at theirs: a day of 46 changes less than the others."""


@pytest.mark.parametrize("world", WORLDS)
def test_a_replaced_day_attains_each_sensitivity(neighbours, world):
    series, versions = neighbours(world)
    changes = {name: change for (day, name), change in largest_changes(versions).items() if day == WORLDS[world][1]}
    # by hand: the clamp of a mean, widths of layers, two bins, two inner edges, twice a profile's clamp, one household
    expected = {"daily_mean": 12_000, "histogram": 2, "profile": 24_000}
    if world != "states":
        expected |= {"layered/1": 5_000, "layered/2": 7_000, "layered/3": 18_000, "cumulative": 2, "default": 24_000}
        expected |= {"wide": WIDE_WH[world], "coverage": 1, "lenient": 1}
    assert changes == expected
    wide = {"wide": 96_000} if world != "states" else {}
    assert {name: of.sensitivity("replacement") for name, of in series.items()} == expected | wide


def test_a_profile_with_its_clamp_as_sensitivity_is_caught(neighbours, monkeypatch):
    series, versions = neighbours("half-hours")
    monkeypatch.setattr(Profile, "sensitivity", lambda self, change: self.clamp_wh)
    with pytest.raises(AssertionError, match="profile"):
        check_sensitivities(series, versions, WORLDS["half-hours"][1])

"""Negative energies of a home: rejected, 0, or netted. A day counts within its range, whatever it feeds back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import product

import pytest

from agedp.run_context import store_for
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import compute_state_days
from agedp_data.config import load
from agedp_data.errors import ChainError, RunFileError
from agedp_data.roster import read_roster
from agedp_data.series.series import series_in
from agedp_data.series.series_terms import EnergySeries
from agedp_data.statement.note_texts import NOTES
from tests.agedp.test_neighbours import (
    AGED,
    INLINE,
    OF_STATES,
    SERIES,
    STATES,
    check_sensitivities,
    largest_changes,
    shared,
)
from tests.exact_sums import vector
from tests.minimal import run_file

DAY = date(2013, 1, 30)
SECOND = DAY + timedelta(days=1)
CLAMP_WH = 12_000
COLUMNS = {
    "household": "home", "time": "at", "stamp": "start", "zone": "UTC", "day_zone": "UTC", "energy": "wh", "unit": "Wh",
    "add": "meter",
}  # fmt: skip
Day = Mapping[tuple[str, int], int]
"""Watt-hours of a home by meter and slot; "in" is of what it takes, "out" of what it feeds into the grid."""


def of_meters(taken: Mapping[int, int], fed: Mapping[int, int]) -> Day:
    return {("in", slot): wh for slot, wh in taken.items()} | {("out", slot): wh for slot, wh in fed.items()}


def every(wh: int, slots=range(48)) -> dict[int, int]:
    return dict.fromkeys(slots, wh)


DAYS: dict[str, Day] = {
    "no reading": {},
    "nothing": of_meters(every(0), {}),
    "the clamp": of_meters(every(CLAMP_WH // 48), {}),
    "minus the clamp": of_meters(every(-CLAMP_WH // 48), {}),
    "-1 Wh": of_meters(every(0) | {0: -1}, {}),
    "-1 Wh in each half-hour": of_meters(every(-1), {}),
    "-1 Wh after adding": of_meters(every(200), every(-201)),
    "0 after adding": of_meters(every(200), every(-200)),
    "the clamp after adding": of_meters(every(CLAMP_WH // 24), every(-CLAMP_WH // 48)),
    "minus the clamp after adding": of_meters(every(100), every(-100 - CLAMP_WH // 48)),
    "far above, far below": of_meters(every(2_000, range(24)) | every(-2_000, range(24, 48)), {}),
    "far below, far above": of_meters(every(-2_000, range(24)) | every(2_000, range(24, 48)), {}),
    "a meter lacks half of the day": of_meters(every(2_000), every(-1, range(24))),
}


def vectors(folder, series, negative, replaced: Day):
    """Return the series of a run file and the exact vectors of two days, in which one home has the day replaced."""
    use = {(home, of): of_meters(every(700), {}) for home in "123" for of in (DAY, SECOND)} | {("2", DAY): replaced}
    rows = [
        f"{home},{meter},{datetime.combine(of, time()) + slot * timedelta(minutes=30)},{wh}"
        for (home, of), readings in use.items()
        for (meter, slot), wh in readings.items()
    ]
    (folder / "input").mkdir(parents=True)
    (folder / "input" / "a.csv").write_text("\n".join(["home,meter,at,wh", *rows]) + "\n")
    (folder / "roster.csv").write_text(f"household_id,from,to,area\n1,{DAY},,x\n2,{DAY},,y\n3,{DAY},,y\n")
    tables = {
        "input": {"dataset": "long"},
        "input.columns": COLUMNS | {"negative": negative},
        "schedule": {"first_day": DAY, "last_day": SECOND},
    }
    of_states = series is OF_STATES
    text = run_file(**(tables | ({"promise": AGED} if of_states else {}) | shared(series)))
    (folder / "run.toml").write_text(text + (STATES if of_states else ""))
    run, roster = load(folder / "run.toml"), read_roster(folder / "roster.csv")
    store = store_for(run, households=len(roster.rows.ids))
    delivery = ingest(store, list(run.input.files), engine=INLINE)
    days, states = (DAY, SECOND), run.counted_states
    compute_state_days(store, delivery, days, states, engine=INLINE)
    sums = aggregate(store, delivery, roster, days=days, series=run.series, states=states, engine=INLINE)
    exact = {key: sum_.exact.ravel() for key, sum_ in sums.items()}
    return run.series, exact


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The series, and the exact vectors by name of the replaced day."""

    @cache
    def of(statistics, negative):
        folder, series = tmp_path_factory.mktemp("worlds"), OF_STATES if statistics == "states" else SERIES
        found = {name: vectors(folder / str(i), series, negative, day) for i, (name, day) in enumerate(DAYS.items())}
        return next(iter(found.values()))[0], {name: exact for name, (_, exact) in found.items()}

    return of


@pytest.mark.parametrize(("statistics", "negative"), [*product(["readings", "states"], ["reject", "zero", "net"])])
def test_no_replaced_day_changes_more_than_a_sensitivity(worlds, statistics, negative):
    series, exact = worlds(statistics, negative)
    check_sensitivities(series, list(exact.values()), DAY)
    changes = largest_changes(list(exact.values()))
    assert changes[DAY, "daily_mean"] == CLAMP_WH
    assert all(change == 0 for (day, _), change in changes.items() if day == SECOND)


def use_of(worlds, negative, name) -> int:
    """Return what the home's day adds to the mean of its group [Wh]: home 3 has 12 kWh, its clamp, in it too."""
    _, exact = worlds("readings", negative)
    return int(exact[name][DAY, "daily_mean"][1]) - CLAMP_WH


MISSING_WH = 5_000
COUNTED = {
    "nothing": (0, 0, 0),
    "the clamp": (CLAMP_WH, CLAMP_WH, CLAMP_WH),
    "minus the clamp": (MISSING_WH, 0, 0),
    "-1 Wh": (0, 0, 0),
    "-1 Wh in each half-hour": (MISSING_WH, 0, 0),
    "-1 Wh after adding": (MISSING_WH, 9_600, 0),
    "0 after adding": (MISSING_WH, 9_600, 0),
    "the clamp after adding": (MISSING_WH, CLAMP_WH, CLAMP_WH),
    "minus the clamp after adding": (MISSING_WH, 4_800, 0),
    "far above, far below": (MISSING_WH, CLAMP_WH, 0),
    "far below, far above": (MISSING_WH, CLAMP_WH, 0),
    "a meter lacks half of the day": (MISSING_WH, MISSING_WH, MISSING_WH),
}
"""What a day counts by hand, if negative energies are rejected, 0 or netted: half-hours of which a meter's row is
rejected lack it, and a day that lacks more than two half-hours counts as missing.
"""


@pytest.mark.parametrize("name", COUNTED)
def test_a_day_counts_after_its_sum_within_0_and_the_clamp(worlds, name):
    assert tuple(use_of(worlds, negative, name) for negative in ("reject", "zero", "net")) == COUNTED[name]


def test_a_half_hour_below_0_counts_as_0_in_a_profile_and_is_no_missing_one(worlds):
    _, exact = worlds("readings", "net")
    own = {name: exact[name][DAY, "wide"].reshape(2, 48)[1] - 700 for name in DAYS}  # less home 3
    assert own["-1 Wh in each half-hour"].tolist() == own["nothing"].tolist() == [0] * 48
    assert own["far above, far below"].tolist() == [2_000] * 24 + [0] * 24
    coverage = {name: int(exact[name][DAY, "coverage"][1]) for name in DAYS}
    assert {name for name, usable in coverage.items() if usable == 1} == {"no reading", "a meter lacks half of the day"}


@pytest.mark.parametrize("terms", [{"statistic": "mean"}, {"statistic": "distribution", "bins_kwh": ["0", "2", "9"]}])
def test_a_vector_of_days_outside_their_range_is_refused(terms, monkeypatch):
    series = series_in({**terms, "clamp_kwh": "9"})
    monkeypatch.setattr(EnergySeries, "clamp_energy", lambda _, energy_wh: energy_wh)
    assert sum(vector(series, [0, 9_000])) > 0
    for day_wh in (-1, 9_001):
        with pytest.raises(ChainError, match="outside its range"):
            vector(series, [4_000, day_wh])


@pytest.mark.parametrize(("unit", "add", "most"), [("kWh", "meter", 1_789), ("W", "", 1_789)])
def test_a_bound_of_a_reading_beyond_what_is_stored_is_refused(tmp_path, unit, add, most):
    columns = COLUMNS | {"unit": unit, "add": add}
    for bound, is_refused in ((most, False), (most + 1, True)):
        tables = {"input": {"dataset": "long", "max_half_hour_kwh": Decimal(bound)}, "input.columns": columns}
        (tmp_path / "run.toml").write_text(run_file(**tables))
        if is_refused:
            with pytest.raises(RunFileError, match=f"max_half_hour_kwh = {bound}: must be at most {most}"):
                load(tmp_path / "run.toml")
        else:
            load(tmp_path / "run.toml")


@pytest.mark.parametrize("negative", ["zero", "net"])
def test_the_statement_of_a_net_input_alone_says_that_an_export_counts_as_0(house, negative):
    starts = [datetime.combine(DAY, time()) + i * timedelta(minutes=30) for i in range(48)]
    rows = [f"{home},m,{start},9" for home in "AB" for start in starts]
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text("\n".join(["home,meter,at,wh", *rows]) + "\n")
    house.roster([(home, DAY, None) for home in "AB"])
    columns = [f'{key} = "{value}"' for key, value in (COLUMNS | {"negative": negative}).items()]
    house.write(DAY, DAY, dataset="long", rest="\n".join(["[input.columns]", *columns, ""]))
    house.run()
    assert (NOTES.net_exports in house.release.statement["notes"]) == (negative == "net")

"""Chains of days, cyclic chains and series read every few steps: counts by a walk over each household's readings."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import numpy as np
import pytest

from agedp.calibration import estimate as estimating
from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import read_readings
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.synthetic import write_ausgrid, write_london

EPOCH = date(1970, 1, 1)
ENGINE = Engine()
CASES = [
    # two ends of a year, gaps, a household that stops and one off the roster; then the two changes of Sydney's clock
    ("london", write_london, date(2012, 12, 20), 25, (date(2012, 12, 22), date(2013, 1, 10))),
    ("ausgrid", write_ausgrid, date(2013, 3, 28), 14, (date(2013, 3, 29), date(2013, 4, 9))),
    ("ausgrid", write_ausgrid, date(2012, 9, 28), 14, (date(2012, 9, 29), date(2012, 10, 9))),
]
KINDS = {"days": ("day", 1, ()), "cyclic": ("half-hour", 48, (6,)), "plain": ("half-hour", 1, (5,))}


def series_of(house, dataset, first, last):
    """{household: {half-hours since 1970: Wh}} of the readings in the period."""
    frame = read_readings([house.folder / "input" / "*.csv"], dataset=dataset)
    found: dict[str, dict[int, int]] = {}
    for home, day, slot, wh in frame.itertuples(index=False):
        if first <= day.date() <= last:
            found.setdefault(home, {})[(day.date() - EPOCH).days * 48 + slot] = int(wh)
    return found


def days_of(series, dataset):
    """{days since 1970: Wh} of the days that lack at most two of the readings they can have."""
    layout, total, number = LAYOUTS[dataset], Counter(), Counter()
    for time, wh in series.items():
        total[time // 48] += wh
        number[time // 48] += 1
    lacking = {day: 48 - len(layout.absent_slots(EPOCH + timedelta(days=day))) - number[day] for day in total}
    return {day: total[day] for day in sorted(total) if lacking[day] <= 2}


def walked(series, edges, *, every=1, phases=1, unusable=frozenset()):
    """Transitions of the readings at multiples of `every`, one of these steps apart, by phase, from and to."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for time, wh in series.items():
        after = series.get(time + every)
        if time % every == 0 and after is not None and not {time, time + every} & unusable:
            state, following = (sum(one >= edge for edge in edges) for one in (wh, after))
            counts[time // every % phases, state, following] += 1
    return counts


def repeated(series, dataset):
    """The half-hours that hold two passes of the same clock."""
    layout = LAYOUTS[dataset]
    return frozenset(time for time in series if time % 48 in layout.repeated_slots(EPOCH + timedelta(days=time // 48)))


def unsteady(series, dataset, steps):
    """The half-hours from which so many slots are not so many half-hours: the clock changes in between."""
    layout, found = LAYOUTS[dataset], set()
    for time in series:
        for passed in range(time, time + steps):
            day = EPOCH + timedelta(days=passed // 48)
            if passed % 48 in (*layout.repeated_slots(day), *layout.absent_slots(day)):
                found.add(time)
    return frozenset(found)


def as_counter(table):
    return {at if len(at) == 3 else (0, *at): int(n) for at, n in np.ndenumerate(table) if n}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dataset", "write", "first", "days", "period"), CASES)
def test_counts_of_every_kind_are_those_of_each_households_own_readings(
    house, dataset, write, first, days, period, kind
):
    step, phases, every = KINDS[kind]
    made = write(house.folder / "input", households=5, first_day=first, days=days, seed=3)
    roster = house.roster([(home, first, None) for home in ("ABSENT", *made.household_ids[:-1])])
    store, delivery = house.read(dataset)
    whole = Period(store, delivery, roster, *period, step=step)
    edges = quantize(whole, edges="quantile", n_states=4, engine=ENGINE)
    found = estimate(whole, edges, n_states=4, engine=ENGINE, n_phases=phases, subsampling=every)
    series = series_of(house, dataset, *period)
    missing = 0
    for i, home in enumerate(roster.ids):
        own, twice = series.get(home, {}), repeated(series.get(home, {}), dataset)
        if step == "day":
            missing += len({time // 48 for time in own})
            own, twice = days_of(own, dataset), frozenset()
            missing -= len(own)
        assert as_counter(found.counts[i]) == walked(own, edges[i], phases=phases, unusable=twice)
        for steps in every:
            far = unsteady(own, dataset, steps)
            expected = walked(own, edges[i], every=steps, phases=max(phases // steps, 1), unusable=far)
            assert as_counter(found.subsampled[steps][i]) == expected
        assert found.readings[i] == len(own)
        assert found.gaps[i] == sum(time + 1 not in own for time in own) - bool(own)
    assert found.counts.sum() > 0
    assert missing > 0 or step != "day" or dataset == "ausgrid"


def test_states_of_days_are_those_of_their_totals(house):
    first = date(2013, 1, 1)
    totals = [4800, 9600, 4800, 4800, 9600]
    house.london(
        {("A", first + timedelta(days=i), slot): wh // 48 for i, wh in enumerate(totals) for slot in range(48)}
        | {("A", first + timedelta(days=9), slot): 200 for slot in range(46)}  # two readings missing: a day
        | {("A", first + timedelta(days=10), slot): 100 for slot in range(45)}  # three: none
        | {("A", first + timedelta(days=11), slot): 100 for slot in range(48)}
    )
    store, delivery = house.read()
    roster = house.roster([("A", first, None)])
    whole = Period(store, delivery, roster, first, first + timedelta(days=20), step="day")
    equal = quantize(whole, edges="equal-width", n_states=2, engine=ENGINE)
    public = quantize(whole, edges=[9600], n_states=2, engine=ENGINE)
    assert equal.tolist() == [[4800.0]]  # half of the largest total, which a total of 4800 is not below
    found = estimate(whole, public, n_states=2, engine=ENGINE)
    assert found.counts[0].tolist() == [[1, 2], [1, 0]]
    assert (found.readings.tolist(), found.gaps.tolist()) == ([7], [2])


def test_a_day_on_which_the_clock_goes_forward_may_lack_two_of_its_46_readings(house):
    days = {date(2012, 10, 6): 0, date(2012, 10, 7): 2, date(2012, 10, 8): 0}
    columns = [f"{slot // 2}:{slot % 2 * 30:02d}" for slot in [*range(1, 48), 0]]
    lines = ["title", f"Customer,Generator Capacity,Postcode,Consumption Category,date,{','.join(columns)},Row Quality"]
    for day, lacking in days.items():
        changed = (4, 5) if lacking else ()
        cells = ["0" if slot in changed else "" if slot >= 48 - lacking else "0.1" for slot in range(48)]
        lines.append(f"1,1,2000,GC,{day.day}/{day.month:02d}/{day.year},{','.join(cells)},")
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text("\n".join(lines) + "\n")
    store, delivery = house.read("ausgrid")
    roster = house.roster([("1", min(days), None)])
    period = Period(store, delivery, roster, min(days), max(days), step="day")
    found = estimate(period, np.array([[4500.0]]), n_states=2, engine=ENGINE)
    assert (found.readings.tolist(), found.counts[0].tolist()) == ([3], [[0, 1], [1, 0]])


def test_a_phase_is_the_half_hour_that_a_transition_leaves_across_months_and_midnights(house):
    last, first = date(2013, 1, 31), date(2013, 2, 1)
    low, high = 100, 900
    house.london({("A", last, 46): low, ("A", last, 47): high, ("A", first, 0): low, ("A", first, 2): high})
    roster = house.roster([("A", last, None)])
    store, delivery = house.read()
    period = Period(store, delivery, roster, last, first)
    found = estimate(period, np.array([[500.0]]), n_states=2, engine=ENGINE, n_phases=48)
    assert as_counter(found.counts[0]) == {(46, 0, 1): 1, (47, 1, 0): 1}


def test_blocks_schedulers_order_and_months_at_a_time_change_no_bit(house, monkeypatch):
    made = write_london(
        house.folder / "input", households=5, first_day=date(2012, 12, 25), days=70, seed=5, per_file=3000
    )
    roster = house.roster([(home, made.first_day, None) for home in made.household_ids])
    found: dict[str, list[dict[str, np.ndarray]]] = {kind: [] for kind in KINDS}
    for name, block_bytes, scheduler, room in (
        ("one", 2**24, "threads", 2**28),
        ("two", 5000, "synchronous", 1),
        ("three", 2**16, "processes", 2**28),
    ):
        monkeypatch.setattr(estimating, "_TABLES_BYTES", room)
        store, delivery = house.read(store=name, block_bytes=block_bytes)
        for kind, (step, phases, every) in KINDS.items():
            told: list[tuple[str, int, int]] = []
            engine = Engine(scheduler, 2, progress=lambda *one, told=told: told.append(one))
            period = Period(store, delivery, roster, made.first_day, made.days()[-1], step=step)
            edges = quantize(period, edges="quantile", n_states=3, engine=ENGINE)
            one = estimate(period, edges, n_states=3, engine=engine, n_phases=phases, subsampling=every)
            assert told == [("counts", done, 2 * len(period.months)) for done in range(1, 2 * len(period.months) + 1)]
            tables = {f"every {steps}": table for steps, table in one.subsampled.items()}
            found[kind].append(
                {"edges": edges, "counts": one.counts, "readings": one.readings, "gaps": one.gaps} | tables
            )
        files = sorted((house.folder / "input").iterdir())  # every time they come in the opposite order
        for i, path in enumerate(files):
            path.rename(path.with_name(f"{name}{len(files) - i}.csv"))
    assert len(made.files) > 3
    for one, *others in found.values():
        assert one["counts"].sum() > 5 * 60
        for other in others:
            assert {name: table.tolist() for name, table in other.items()} == {
                name: table.tolist() for name, table in one.items()
            }

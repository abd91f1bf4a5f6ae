"""Counts of every kind of chain are those of a walk over each household's own readings."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agedp.calibration import quantize as quantizing
from agedp.calibration.estimate import estimate, join_runs, runs_and_counts
from agedp.calibration.model_check import households_with_readings
from agedp.calibration.quantize import Period, quantize, states_by_household
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest, read_readings
from agedp.store.store import Store
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.datasets.validation import ReadingRules
from agedp_data.markov.states import states

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
    """Return {household: {half-hours since 1970: Wh}} of the readings in the period."""
    frame = read_readings([house.folder / "input" / "*.csv"], dataset=dataset)
    series: dict[str, dict[int, int]] = {}
    for household, day, slot, wh in frame.itertuples(index=False):
        if first <= day.date() <= last:
            series.setdefault(household, {})[(day.date() - EPOCH).days * 48 + slot] = int(wh)
    return series


def daily_totals(series, dataset):
    """Return {days since 1970: Wh} of the days that lack at most two of the readings they can have."""
    total, number = Counter(), Counter()
    for time, wh in series.items():
        total[time // 48] += wh
        number[time // 48] += 1
    possible = {day: 48 - len(LAYOUTS[dataset].absent_slots(EPOCH + timedelta(days=day))) for day in total}
    return {day: total[day] for day in sorted(total) if possible[day] - number[day] <= 2}


def walk(series, edges, *, every=1, phases=1, unusable=frozenset()):
    """Count transitions between readings at multiples of `every`, one such step apart, by phase, from and to."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for time, wh in series.items():
        after = series.get(time + every)
        if time % every == 0 and after is not None and not {time, time + every} & unusable:
            state, following = (sum(reading >= edge for edge in edges) for reading in (wh, after))
            counts[time // every % phases, state, following] += 1
    return counts


def changed_half_hours(series, dataset, steps):
    """Return the half-hours from which the clock changes within so many slots; with 0, those that are repeated."""
    layout, times = LAYOUTS[dataset], set()
    for time in series:
        for passed in range(time, time + max(steps, 1)):
            day = EPOCH + timedelta(days=passed // 48)
            absent = layout.absent_slots(day) if steps else ()
            if passed % 48 in (*layout.repeated_slots(day), *absent):
                times.add(time)
    return frozenset(times)


def as_counter(table):
    return {at if len(at) == 3 else (0, *at): int(n) for at, n in np.ndenumerate(table) if n}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dataset", "write", "first", "days", "period"), CASES)
def test_counts_are_those_of_each_households_own_readings(house, dataset, write, first, days, period, kind):
    step, phases, every = KINDS[kind]
    written = write(house.folder / "input", households=4, first_day=first, days=days, seed=3)
    roster = house.roster([(household, first, None) for household in ("ABSENT", *written.household_ids[:-1])])
    store, delivery = house.read(dataset)
    whole = Period(store, delivery, roster.rows, *period, step=step)
    edges = quantize(whole, edges="quantile", n_states=4, engine=ENGINE)
    found = estimate(whole, edges, n_states=4, engine=ENGINE, n_phases=phases, subsampling=every)
    series = series_of(house, dataset, *period)
    for i, household in enumerate(roster.rows.ids):
        readings = series.get(household, {})
        repeated = changed_half_hours(readings, dataset, 0) if step == "half-hour" else frozenset()
        own = daily_totals(readings, dataset) if step == "day" else readings
        assert as_counter(found.counts[i]) == walk(own, edges[i], phases=phases, unusable=repeated)
        for steps in every:
            unusable = changed_half_hours(own, dataset, steps)
            expected = walk(own, edges[i], every=steps, phases=max(phases // steps, 1), unusable=unusable)
            assert as_counter(found.subsampled[steps][i]) == expected
        assert found.readings[i] == len(own)
        assert found.gaps[i] == sum(time + 1 not in own for time in own) - bool(own)
    assert found.counts.sum() > 0


def test_buckets_and_sums_of_months_change_no_edge_and_no_count(house, monkeypatch):
    first, days = date(2013, 3, 20), (date(2013, 3, 22), date(2013, 4, 12))
    written = write_london(house.folder / "input", households=5, first_day=first, days=26, seed=3)
    roster = house.roster([(household, first, None) for household in ("ABSENT", *written.household_ids)])
    several = Store(house.folder / "several" / "store", "london", ReadingRules(), buckets=3)
    delivery = ingest(several, [str(house.folder / "input" / "*.csv")], engine=ENGINE)
    for step, phases, every in KINDS.values():
        one, three = (Period(*stored, roster.rows, *days, step=step) for stored in (house.read(), (several, delivery)))
        edges = quantize(one, edges="quantile", n_states=4, engine=ENGINE)
        counting = {"n_states": 4, "engine": ENGINE, "n_phases": phases, "subsampling": every}
        expected = estimate(one, edges, **counting)
        with monkeypatch.context() as small:
            small.setattr(quantizing, "_ROWS_AT_ONCE", 100)
            small.setattr(quantizing, "_HISTOGRAM_BYTES", 0)
            for period in (one, three):
                np.testing.assert_array_equal(quantize(period, edges="quantile", n_states=4, engine=ENGINE), edges)
            found = estimate(three, edges, **counting)
        assert found.counts.sum() > 0
        for name in ("counts", "readings", "gaps"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)
        for steps in every:
            np.testing.assert_array_equal(found.subsampled[steps], expected.subsampled[steps], strict=True)
        present = households_with_readings(three, engine=ENGINE)
        assert present.tolist() == households_with_readings(one, engine=ENGINE).tolist() == [False] + 5 * [True]


HOMES, STATES = 3, 4
KEYS = st.tuples(st.integers(0, HOMES - 1), st.integers(0, 40))


@given(st.dictionaries(KEYS, st.integers(-1, STATES - 1), max_size=60), st.data())
def test_pieces_cut_anywhere_in_any_order_count_as_the_whole(readings, data):
    pieces: dict[int, list[tuple[int, int, int]]] = {}
    for (home, time), state in sorted(readings.items()):
        pieces.setdefault(data.draw(st.integers(0, 3)), []).append((home, time, state))
    counts, every = np.zeros((HOMES, STATES, STATES), np.int64), [np.zeros((0, 5), np.int64)]
    for number in data.draw(st.permutations(sorted(pieces))):
        runs, own = runs_and_counts(*np.array(pieces[number], np.int64).T, households=HOMES, n_states=STATES)
        counts += own
        every.append(runs)
    gaps = join_runs(counts, np.concatenate(every))
    expected = np.zeros_like(counts)
    for (home, time), state in readings.items():
        following = readings.get((home, time + 1), -1)
        if state >= 0 and following >= 0:
            expected[home, state, following] += 1
    assert counts.tolist() == expected.tolist()
    for home in range(HOMES):
        times = sorted(time for own, time in readings if own == home)
        assert gaps[home] == sum(b - a > 1 for a, b in pairwise(times))


EDGES = st.lists(st.floats(0, 3000), min_size=3, max_size=3).map(sorted)
ON_EDGES = [(0, 9), (0, 10), (0, 20), (0, 21), (0, 10**9)]


@given(
    st.lists(EDGES, min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4000)), max_size=50),
    st.sampled_from([1, 5000, 2**22]),  # a table for all, for each, and none
)
@example([[10.0, 10.0, 20.5]] * 4, ON_EDGES, 2**22)
def test_states_are_those_of_each_households_own_edges(edges, readings, cells):
    readings = sorted(readings, key=lambda one: one[0])
    home, energy = np.array(readings, np.int64).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantizing, "_MAX_TABLE_CELLS", cells)
        found = states_by_household(home, energy, np.array(edges)).tolist()
    assert found == [int(states([wh], edges[one])[0]) for one, wh in readings]
    if readings == ON_EDGES and edges[0] == [10.0, 10.0, 20.5]:
        assert found == [0, 2, 2, 3, 3]


def test_edges_are_quantiles_or_shares_of_the_largest_reading(house):
    first, last = date(2012, 12, 20), date(2013, 1, 10)
    written = write_london(house.folder / "input", households=4, first_day=first, days=25, seed=3)
    roster = house.roster([(household, first, None) for household in ("ABSENT", *written.household_ids)])
    store, delivery = house.read()
    whole, series = Period(store, delivery, roster.rows, first, last), series_of(house, "london", first, last)
    quantiles, widths = (quantize(whole, edges=kind, n_states=6, engine=ENGINE) for kind in ("quantile", "equal-width"))
    for i, household in enumerate(roster.rows.ids):
        values = list(series.get(household, {}).values())
        if not values:
            assert np.isnan(quantiles[i]).all()
            assert np.isnan(widths[i]).all()
            continue
        assert widths[i].tolist() == pytest.approx([k * max(values) / 6 for k in range(1, 6)], rel=1e-15)
        for low, high in zip([0, *quantiles[i]], [*quantiles[i], math.inf], strict=True):
            inside = Counter(value for value in values if low <= value < high)
            assert len(inside) <= 1 or inside.total() <= len(values) / 6 + 2 * max(inside.values())

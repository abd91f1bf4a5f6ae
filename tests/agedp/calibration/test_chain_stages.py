"""quantize and estimate: counts are those of a household-by-household brute force over its readings."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest

from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import read_readings
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.datasets.synthetic.households import KERNELS

EPOCH = date(1970, 1, 1)
ENGINE = Engine()


def series_of(house, dataset, first, last):
    """{household: {steps since 1970: Wh}} of the readings in the period."""
    frame = read_readings([house.folder / "input" / "*.csv"], dataset=dataset)
    found: dict[str, dict[int, int]] = {}
    for home, day, slot, wh in frame.itertuples(index=False):
        if first <= day.date() <= last:
            found.setdefault(home, {})[(day.date() - EPOCH).days * 48 + slot] = int(wh)
    return found


def brute_counts(series, edges, dataset):
    """Transitions between readings one half-hour apart, none of which holds two passes of the same clock."""
    counts: Counter[tuple[int, int]] = Counter()
    for time, wh in series.items():
        steps = [(time, wh), (time + 1, series.get(time + 1))]
        if steps[1][1] is None:
            continue
        days = [LAYOUTS[dataset].repeated_slots(EPOCH + timedelta(days=step // 48)) for step, _ in steps]
        if any(step % 48 in twice for (step, _), twice in zip(steps, days, strict=True)):
            continue
        state = [sum(wh >= edge for edge in edges) for _, wh in steps]
        counts[state[0], state[1]] += 1
    return counts


def brute_gaps(series):
    times = sorted(series)
    return sum(later != earlier + 1 for earlier, later in pairwise(times))


CASES = [
    # two ends of a year, gaps, a household that stops and one off the roster; then the two changes of Sydney's clock
    ("london", write_london, date(2012, 12, 20), 25, (date(2012, 12, 22), date(2013, 1, 10))),
    ("ausgrid", write_ausgrid, date(2013, 3, 28), 14, (date(2013, 3, 29), date(2013, 4, 9))),
    ("ausgrid", write_ausgrid, date(2012, 9, 28), 14, (date(2012, 9, 29), date(2012, 10, 9))),
]


@pytest.mark.parametrize("kind", ["quantile", "equal-width", [50.0, 100.0, 200.0, 400.0, 800.0]])
@pytest.mark.parametrize(("dataset", "write", "first", "days", "period"), CASES)
def test_counts_are_those_of_each_households_own_readings(house, dataset, write, first, days, period, kind):
    made = write(house.folder / "input", households=5, first_day=first, days=days, seed=3)
    roster = house.roster([(home, first, None) for home in ("ABSENT", *made.household_ids[:-1])])
    store, delivery = house.read(dataset)
    whole = Period(store, delivery, roster, *period)
    edges = quantize(whole, edges=kind, n_states=6, engine=ENGINE)
    found = estimate(whole, edges, n_states=6, engine=ENGINE)
    series = series_of(house, dataset, *period)
    assert len(whole.months) == 2
    for i, home in enumerate(roster.ids):
        own = series.get(home, {})
        expected = brute_counts(own, edges[i], dataset)
        assert {(x, y): int(n) for (x, y), n in np.ndenumerate(found.counts[i]) if n} == expected
        assert (found.readings[i], found.gaps[i]) == (len(own), brute_gaps(own))
        if kind == "equal-width" and own:
            assert edges[i].tolist() == pytest.approx([k * max(own.values()) / 6 for k in range(1, 6)], rel=1e-15)
        if kind == "quantile" and own:
            assert_even(sorted(own.values()), edges[i].tolist(), n=6)
        if not own and isinstance(kind, str):
            assert np.isnan(edges[i]).all()


def assert_even(values, edges, *, n):
    """A state holds at most a share of 1/n and one value more, or a single value."""
    for low, high in zip([0, *edges], [*edges, math.inf], strict=True):
        inside = [value for value in values if low <= value < high]
        heaviest = max(Counter(inside).values(), default=0)
        assert len(set(inside)) <= 1 or len(inside) <= len(values) / n + 2 * heaviest


def test_a_gap_is_never_bridged_and_a_month_boundary_is(house):
    last, first = date(2013, 1, 31), date(2013, 2, 1)
    low, high = 100, 900
    house.london(
        {
            ("A", last, 46): low, ("A", last, 47): high, ("A", first, 0): low, ("A", first, 2): high,
            ("B", last, 47): high, ("B", first, 1): low,
        }
    )  # fmt: skip
    roster = house.roster([("A", last, None), ("B", last, None)])
    store, delivery = house.read()
    found = estimate(Period(store, delivery, roster, last, first), np.array([[500.0]] * 2), n_states=2, engine=ENGINE)
    assert found.counts.tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]
    assert found.gaps.tolist() == [1, 1]


def test_a_reading_at_a_public_edge_lies_above_it(house):
    day = date(2013, 1, 1)
    house.london({("A", day, 0): 2007, ("A", day, 1): 2006, ("A", day, 2): 2007})
    store, delivery = house.read()
    whole = Period(store, delivery, house.roster([("A", day, None)]), day, day)
    edges = quantize(whole, edges=[2007], n_states=2, engine=ENGINE)
    assert estimate(whole, edges, n_states=2, engine=ENGINE).counts.tolist() == [[[0, 1], [1, 0]]]


def test_the_order_of_files_and_the_size_of_blocks_change_nothing(house):
    made = write_london(
        house.folder / "input", households=6, first_day=date(2012, 12, 25), days=12, seed=5, per_file=900
    )
    roster = house.roster([(home, made.first_day, None) for home in made.household_ids])
    found = []
    for store_name, block_bytes in (("one", 2**24), ("two", 5000)):
        store, delivery = house.read(store=store_name, block_bytes=block_bytes)
        period = Period(store, delivery, roster, made.first_day, made.days()[-1])
        edges = quantize(period, edges="quantile", n_states=12, engine=ENGINE)
        found.append((edges, estimate(period, edges, n_states=12, engine=Engine(workers=1))))
        files = sorted((house.folder / "input").iterdir())  # the second time they come in the opposite order
        for i, path in enumerate(files):
            path.rename(path.with_name(f"x{len(files) - i}.csv"))
    (edges, one), (others, two) = found
    assert len(made.files) > 3
    assert (edges == others).all()
    assert (one.counts == two.counts).all()
    assert (one.gaps == two.gaps).all()


def test_made_up_homes_give_back_the_chain_that_they_were_drawn_from(house):
    made = write_london(
        house.folder / "input",
        households=24,
        first_day=date(2013, 1, 1),
        days=80,
        seed=2,
        plain_chain=True,
        quirks=False,
    )
    first, last = made.first_day, made.days()[-1]
    values = {home: sorted(set(own.values())) for home, own in series_of(house, "london", first, last).items()}
    whole = [home for home in made.household_ids if len(values[home]) == 12]
    roster = house.roster([(home, first, None) for home in whole])
    store, delivery = house.read()
    edges = np.array([values[home][1:] for home in whole], float)
    found = estimate(Period(store, delivery, roster, first, last), edges, n_states=12, engine=ENGINE)
    kind = made.kind[[made.household_ids.index(home) for home in whole]]
    for which in (0, 1):
        counts = found.counts[kind == which].sum(axis=0)
        visits = counts.sum(axis=1, keepdims=True)
        # Each visit draws the next state anew: Hoeffding, over all cells and numbers of visits, 1e-9 in all.
        within = np.sqrt(np.log(2 * 144 * visits.sum() / 1e-9) / (2 * visits))
        assert (np.abs(counts / visits - KERNELS[which]) <= within).all()
        assert (np.abs(counts / visits - KERNELS[1 - which]) > within).any()
        assert (np.abs(counts / visits - np.roll(KERNELS[which], 1, axis=1)) > within).any()

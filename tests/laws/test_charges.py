"""Calibration draws in every notion: figures against all windows and days one by one, budgets, integers by hand."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agedp_data.accounting.temporal_allocation import largest_feasible
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused
from agedp_data.notions import AnyPromise
from agedp_data.notions.publication import Event, Publication, largest_window
from agedp_data.notions.spans import SpanCurves
from tests.laws.promises import CHARGES, Line, kept, leakage_bound, models, promises
from tests.laws.test_every_notion import ATTEMPTS, admits, lived, values

EXAMPLES = settings(max_examples=25, deadline=None)
FIRST = date(2013, 3, 1)
AROUND = [FIRST + timedelta(days=each) for each in range(-45, 60)]  # every story, period and window lies within
LOSSES = st.dictionaries(st.integers(-3, 15), st.integers(0, 9), max_size=6)


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def windows(losses: dict[str, int], charges: tuple[Event, ...], width: int) -> dict[str, int]:
    """Return the loss of each window by its first day: every day looked at, every draw asked whether it is touched."""
    found = {}
    for start in AROUND:
        days = [(start + timedelta(days=each)).isoformat() for each in range(width)]
        touching = [draw.pure for draw in charges if any(draw.first_day <= each <= draw.last_day for each in days)]
        found[days[0]] = sum(losses.get(each, 0) for each in days) + sum(touching)
    return found


@given(LOSSES, CHARGES, st.integers(1, 9), st.integers(-8, 20), st.integers(0, 9))
@settings(deadline=None)
def test_windows_are_the_largest_of_all_looked_at_one_by_one(losses, charges, width, first, length):
    by_day = {day(number): loss for number, loss in losses.items()}
    found = windows(by_day, charges, width)
    assert largest_window(by_day, events=charges, days=width) == max(found.values())
    begin, end = FIRST + timedelta(days=first), FIRST + timedelta(days=first + length)
    containing = [
        value for start, value in found.items() if begin - timedelta(days=width - 1) <= date.fromisoformat(start) <= end
    ]
    around = (begin.isoformat(), end.isoformat())
    assert largest_window(by_day, events=charges, days=width, around=around) == max(containing)


def charged(promise, charges):
    return promise.for_publication(replace(promise._publication, charges=tuple(charges)))


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
@EXAMPLES
@given(data=st.data())
def test_draws_enter_each_figure_once_as_far_as_its_scope_touches_them(notion, data):
    promise, model = data.draw(promises(notion)), data.draw(models(notion))
    history = lived(promise, model, data.draw(ATTEMPTS))
    draws, plain = promise.charges, values(charged(promise, ()), history, model)
    figures, everything = values(promise, history, model), sum(draw.pure for draw in draws)
    losses = dict.fromkeys((row.day for row in history), 0)
    for row in history:
        losses[row.day] += row.loss
    expected = {name: value + everything for name, value in plain.items()}  # total, risk, leakage, discounted sums
    expected["day"] = max((windows(losses, draws, 1)[each] for each in losses), default=0)
    if draws:
        within = [each.isoformat() for each in AROUND if any(draw.touches(each.isoformat()) for draw in draws)]
        expected["calibration day"] = max(windows(losses, draws, 1)[each] for each in within)
    small, clamp = losses, promise._publication.series.get("any")
    if clamp is not None and notion.name == "neighbourhood":
        part = Fraction(promise.delta_kwh) / Fraction(clamp.clamp_kwh)
        small = {each: ceil(loss * part) for each, loss in losses.items()}
    for name in plain:
        if width := re.search(r"window of (\d+) days", name):
            expected[name] = max(windows(small if "change" in name else losses, draws, int(width[1])).values())
        elif name.startswith("change"):
            expected[name] = max((windows(small, draws, 1)[each] for each in losses), default=0)
    assert figures == expected


CAPS = {"max_day_epsilon": "2", "epsilon_total": "unlimited"}
OF_RELEASES = {
    "temporal": ({"horizon_days": 5, "budget": "exact"}, "alpha"),
    "discounted": (
        {"discount": "exponential", "rate": Decimal("0.8"), "schedule": "optimal", "horizon_days": 9,
         "clock": "data-day"},
        "epsilon",
    ),
    "age-dependent": ({"age_days": 1, "method": "tight", "secret": "day"}, "risk"),
}  # fmt: skip


def promised(notion: str, charges: tuple[Event, ...] = (), *, last_day=FIRST + timedelta(days=40), **keys):
    caps = {key: value if value == "unlimited" else Decimal(value) for key, value in CAPS.items()}
    promise = TypeAdapter(AnyPromise).validate_python({"notion": notion, **caps, **keys})
    return promise.for_publication(Publication(first_day=FIRST, last_day=last_day, charges=charges))


@pytest.mark.parametrize("notion", OF_RELEASES)
@pytest.mark.parametrize("milli", [[], [600], [350, 350], [100, 0, 650], [650, 10, 400], [1900]])
def test_a_bound_on_correlated_or_discounted_losses_is_planned_for_what_draws_leave(notion, milli):
    """Beside draws of .3 the bound 1 is kept as .7 is without them: the same releases, to the last unit."""
    keys, key = OF_RELEASES[notion]
    known, draw = leakage_bound("markov", 0.5), Event("2012-01-01", "2012-12-31", 300_000_000)
    pair = (promised(notion, (draw,), **keys, **{key: Decimal(1)}), promised(notion, **keys, **{key: Decimal("0.7")}))
    history: list[Line] = []
    for number, loss in enumerate(milli):
        row = Line(day(2 * number), loss * 10**6, day(2 * number + 4))
        [accepted] = {admits(promise, history, row, known) for promise in pair}
        history += [row] if accepted else []
    for number in range(7):
        row = Line(day(number), 0, max([day(number + 2), *(each.published_on for each in history)]))
        [granted] = {promise.loss(history, row.day, known) for promise in pair}
        [largest] = {
            largest_feasible(lambda loss, p=promise, r=row: admits(p, history, replace(r, loss=loss), known), 2 * NANO)
            for promise in pair
        }
        assert granted <= largest
    beside, without = (values(promise, history, known) for promise in pair)
    bounded = pair[0].limits.keys() - {"day"}
    assert {name: beside[name] - 300_000_000 for name in bounded} == {name: without[name] for name in bounded}


WINDOW = {"window_days": 4, "epsilon_per_window": Decimal(1)}
BEFORE = (Event("2013-02-01", "2013-02-28", 200_000_000),)  # ends on the day before the first one
WITHIN = (Event("2013-03-02", "2013-03-03", 200_000_000),)
BY_HAND = {
    # Each of Mar 1 to 3 is in a window with Feb 28: (1 - .2) / 4.
    "w-event, even": (BEFORE, {**WINDOW, "spend": "even"}, [200, 200, 200, 250, 250]),
    "w-event, remaining": (BEFORE, {**WINDOW, "spend": "remaining"}, [400, 200, 100, 150, 275]),
    # Mar 1 is in windows that begin on Feb 26 to Mar 1, Mar 4 to 6 in windows that begin on Mar 1 to 3.
    "neighbourhood": (
        WITHIN,
        {**WINDOW, "delta_kwh": Decimal(2), "spend": "per-request"},
        [200, 200, 200, 200, 200, 200, 250],
    ),
    "classical": (WITHIN, {"epsilon_per_day": Decimal("0.5")}, [500, 300, 300, 500]),
    "age-dependent": (
        WITHIN,
        {"epsilon_per_day": Decimal("0.5"), "age_days": 1, "method": "tight", "secret": "day"},
        [500, 300, 300, 500],
    ),
    # A household that never mixes has the sum of all losses: .5 - .2 and nothing after it.
    "age-dependent, risk": (
        BEFORE,
        {"risk": Decimal("0.5"), "age_days": 1, "method": "total_variation", "secret": "day"},
        [300, 0],
    ),
    "temporal": (BEFORE, {"alpha": Decimal(1), "horizon_days": 4, "budget": "even"}, [200, 200, 200, 200, 0]),
    "discounted": (
        BEFORE,
        {"discount": "exponential", "rate": Decimal("0.5"), "epsilon": Decimal(1), "schedule": "renewal",
         "clock": "data-day"},
        [800, 400, 400],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_budgets_beside_draws_counted_by_hand(case):
    charges, keys, expected = BY_HAND[case]
    promise = promised(case.partition(",")[0], charges, **keys)
    known = leakage_bound("curve" if case.endswith("risk") else "markov", 1.0)
    history: list[Line] = []
    for number, milli in enumerate(expected):
        row = Line(day(number), promise.loss(history, day(number), known), day(number + 2))
        assert row.loss == milli * 10**6, row.day
        promise.admit(history, row, known)
        with pytest.raises(Refused, match=row.day):  # what is granted is all that its limits leave
            promise.admit(history, replace(row, loss=row.loss + 2 * NANO), known)
        history.append(row)
    figures = values(promise, history, known)
    spent = sum(expected) * 10**6
    assert figures["total"] == spent + 200_000_000
    assert figures["calibration day"] == max(figures["day"] if charges == WITHIN else 0, 200_000_000)
    assert all(limit is None or figures[name] <= limit for name, limit in promise.limits.items())


@pytest.mark.parametrize(("first", "last"), [("2013-03-02", "2013-03-03"), ("2013-03-31", "2013-04-02")])
def test_a_row_of_a_month_has_what_a_draw_leaves_of_any_of_its_days(first, last):
    """March and a window of 31 days: three rows share 1.8 - .2, more than the .5 of a day of which .3 are left."""
    keys = {
        "window_days": 31,
        "epsilon_per_window": Decimal("1.8"),
        "spend": "per-row",
        "max_day_epsilon": Decimal("0.5"),
    }
    month = FIRST, date(2013, 3, 31)
    assert promised("w-event", **keys).planned_period([], *month, None) == 500_000_000
    assert promised("w-event", (Event(first, last, 200_000_000),), **keys).planned_period([], *month, None) == 3 * 10**8
    plain = {"epsilon_per_day": Decimal("0.5"), "max_day_epsilon": Decimal("0.5")}
    for draws, left in ((), 500_000_000), ((Event(first, last, 200_000_000),), 300_000_000):
        assert promised("classical", draws, **plain).planned_period([], *month, None) == left


@given(CHARGES, st.integers(1, 9), st.integers(-8, 20))
def test_the_draws_near_a_day_are_those_of_some_window_that_contains_it(charges, width, number):
    reached = [day(number + each) for each in range(1 - width, width)]  # any window of so many days around it
    near = [draw.pure for draw in charges if any(draw.first_day <= each <= draw.last_day for each in reached)]
    assert SpanCurves(Publication(charges=charges)).draws_near(day(number), width).pure == sum(near)


def test_a_total_counts_draws_and_ends_the_series_earlier():
    draws = (*BEFORE, Event("2012-01-01", "2012-12-31", 300_000_000))
    promise = promised("classical", draws, epsilon_per_day=Decimal("0.5"), epsilon_total=Decimal("1.9"))
    history = [Line(day(0), 500_000_000, day(2)), Line(day(1), 500_000_000, day(3))]
    assert promise.loss(history, day(2), None) == 0  # 1 and .5 of draws leave .4, less than a day
    promise.admit(history, Line(day(2), 400_000_000, day(4)), None)
    with pytest.raises(Refused, match=r"1\.900000001, 0\.000000001 more than epsilon_total = 1\.9"):
        promise.admit(history, Line(day(2), 400_000_001, day(4)), None)


LEAVES_NOTHING = {
    "epsilon_total": ("classical", BEFORE, {"epsilon_per_day": Decimal("1e-9"), "epsilon_total": Decimal("0.2")}),
    "max_day_epsilon": (
        "age-dependent",
        WITHIN,
        {"risk": Decimal(1), "max_day_epsilon": Decimal("0.2"), "age_days": 0, "method": "tight", "secret": "day"},
    ),
    "epsilon_per_day": ("classical", WITHIN, {"epsilon_per_day": Decimal("0.2")}),
    "epsilon_per_window": (
        "w-event", BEFORE, {"window_days": 4, "epsilon_per_window": Decimal("0.2"), "spend": "even"},
    ),
    "risk": ("age-dependent", BEFORE, {"risk": Decimal("0.2"), "age_days": 0, "method": "tight", "secret": "day"}),
    "alpha": ("temporal", BEFORE, {"alpha": Decimal("0.2"), "horizon_days": 4, "budget": "even"}),
    "epsilon": ("discounted", BEFORE, {**OF_RELEASES["discounted"][0], "epsilon": Decimal("0.2")}),
}  # fmt: skip


@pytest.mark.parametrize("key", LEAVES_NOTHING)
def test_draws_that_leave_nothing_are_refused_and_smaller_ones_are_not(key):
    notion, charges, keys = LEAVES_NOTHING[key]
    with pytest.raises(Refused, match=rf"^{key} = 0\.2 leaves nothing .* draws of 0\.2\b"):
        promised(notion, charges, **keys).check_charges([], None)
    fitting = promised(notion, tuple(replace(draw, pure=draw.pure - 4) for draw in charges), **keys)
    fitting.check_charges([], None)


@pytest.mark.parametrize(
    ("notion", "keys"),
    [
        ("classical", {"epsilon_per_day": Decimal("0.1"), "epsilon_total": Decimal("0.299999999")}),
        ("w-event", {"window_days": 4, "epsilon_per_window": Decimal("0.200000003"), "spend": "even"}),
    ],
)
def test_draws_that_leave_less_than_a_day_are_refused(notion, keys):
    with pytest.raises(Refused, match=r"^calibration draws of 0\.2 leave nothing for 2013-03-01, which has 0\."):
        promised(notion, BEFORE, **keys).check_charges([], None)


def test_a_cap_of_a_day_limits_draws_about_days_that_are_published_only():
    keys = {"epsilon_per_day": Decimal("0.1"), "max_day_epsilon": Decimal("0.1")}
    promise = promised("classical", BEFORE, **keys)
    promise.check_charges([], None)
    figures = values(promise, [Line(day(0), 100_000_000, day(2))], None)
    assert (figures["day"], figures["calibration day"]) == (100_000_000, 200_000_000)


def test_a_later_draw_is_refused_where_released_days_have_no_room_for_it():
    keys = {"window_days": 4, "epsilon_per_window": Decimal(1), "spend": "even"}
    history = [Line(day(number), 250_000_000, day(number + 2)) for number in range(4)]
    promised("w-event", **keys).check_charges(history, None)
    touching = Event(day(-9), day(0), 1)  # windows with Feb 28 hold three days of .25, that of Mar 1 is full
    with pytest.raises(Refused, match=r"'window of 4 days' comes to 1\.000000001, more than 1\."):
        promised("w-event", (touching,), **keys).check_charges(history, None)
    promised("w-event", (replace(touching, last_day=day(-1), pure=250_000_000),), **keys).check_charges(history, None)
    # A bound that an amendment has lowered below the released days is no reason by itself.
    lowered = {**keys, "epsilon_per_window": Decimal("0.9")}
    promised("w-event", (Event(day(-9), day(-4), 1),), **lowered).check_charges(history, None)


@pytest.mark.parametrize("notion", OF_RELEASES)
def test_a_later_draw_is_refused_where_a_model_in_force_leaves_no_room(notion):
    keys, key = OF_RELEASES[notion]
    known, keys = leakage_bound("markov", 0.5), {**keys, key: Decimal(1)}
    history: list[Line] = []
    for number in range(9):
        loss = promised(notion, **keys).loss(history, day(number), known)
        history.append(Line(day(number), loss, day(number + 2)))
    used = values(promised(notion, **keys), history, known)
    name = next(name for name in promised(notion, **keys).limits if name not in ("day", "total"))
    room = NANO - used[name]
    assert 0 <= room < 200_000_000
    for loss, fits in ((room, room > 0), (room + 1, False)):
        draw = (Event("2012-01-01", "2012-12-31", loss),) if loss else ()
        with nullcontext() if fits or not draw else pytest.raises(Refused, match=re.escape(f"{name!r} comes to 1.0")):
            promised(notion, draw, last_day=FIRST + timedelta(days=8), **keys).check_charges(history, known)


def test_a_draw_adds_to_what_releases_say_of_another_day_and_no_more():
    """Days 0 to 2 of a chain that stays with .8; days 1 and 2 are released with .5, day 0 is drawn from with .7."""
    stay, loss, e = 0.8, 0.5, 0.7

    def response(answer: int, truth: int, epsilon: float) -> float:
        return (2.718281828459045**epsilon if answer == truth else 1) / (1 + 2.718281828459045**epsilon)

    def odds(*, draw: bool) -> float:
        """Return the largest change of the odds about day 2 over all outputs."""
        largest = 0.0
        for outputs in product((0, 1), repeat=3):
            given = [0.0, 0.0]
            for days in product((0, 1), repeat=3):
                weight = 1.0
                for before, after in pairwise(days):
                    weight *= stay if before == after else 1 - stay
                weight *= response(outputs[0], days[0], e) if draw else 0.5
                given[days[2]] += weight * response(outputs[1], days[1], loss) * response(outputs[2], days[2], loss)
            largest = max(largest, abs(log(given[0] / given[1])))
        return largest

    # With day 0 drawn from, more is known of day 2, although it is not in the draw's period; e more at most.
    assert odds(draw=False) + 0.1 < odds(draw=True) <= odds(draw=False) + e


@pytest.mark.parametrize("delta", [None, Decimal("0.000001")])
def test_a_planned_series_leaves_room_for_the_draws(delta):
    draw = Event("2012-01-01", "2012-12-31", 300_000_000)
    keys = {"epsilon_per_day": Decimal("0.1"), "epsilon_total": Decimal("0.9"), "delta": delta}
    promise, days, history = promised("classical", (draw,), **keys), [day(number) for number in range(60)], []
    for each in days:
        loss = promise.loss(history, each, None)
        if loss <= 0:
            break
        history.append(Line(each, loss, each))
    assert promise.planned_series(days, None) == [row.loss for row in history]
    assert 0 < len(history) < len(promised("classical", **keys).planned_series(days, None))

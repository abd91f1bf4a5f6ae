"""The promise `discounted`: kept on every day, by either clock, for days in any order, against sums of fractions."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.config import parse
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused, RunFileError
from agedp_data.notions.discounted import Discounted
from tests.laws.promises import Line

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
AUSGRID = (EXAMPLES / "ausgrid.toml").read_text("utf-8")
FIRST = date(2013, 1, 1)
KEYS = {
    "notion": "discounted", "discount": "exponential", "rate": Decimal("0.9"), "epsilon": Decimal(1),
    "schedule": "renewal", "clock": "data-day", "max_day_epsilon": Decimal(2), "epsilon_total": "unlimited",
}  # fmt: skip
SCHEDULES = [
    {"schedule": "renewal"}, {"schedule": "paper"}, {"schedule": "classical"},
    {"schedule": "constant", "horizon_days": 9}, {"schedule": "optimal", "horizon_days": 12},
    {"schedule": "optimal", "horizon_days": 60},
]  # fmt: skip
RATES = [("exponential", "0.9"), ("exponential", "0.25"), ("hyperbolic", "0.05"), ("hyperbolic", "4")]


def promise(**keys):
    keys = {key: Decimal(value) if key in ("rate", "max_day_epsilon") else value for key, value in keys.items()}
    return Discounted.model_validate({**KEYS, **keys})


def day(offset):
    return str(FIRST + timedelta(days=offset))


def weight(made, age):
    rate = Fraction(made.rate)
    return rate**age if made.discount == "exponential" else 1 / (1 + rate * age)


def largest(made, rows):
    """The largest discounted sum on any date up to a month behind the last, term by term."""
    clock = "day" if made.clock == "data-day" else "published_on"
    spent = [((date.fromisoformat(getattr(row, clock)) - FIRST).days, row.loss) for row in rows]
    return max(sum(weight(made, on - then) * loss for then, loss in spent if then <= on) for on in range(-5, 80))


def released(made, days, *, published=None, part=1.0):
    """Release days (offsets) in this order, each on its date of publication."""
    rows = []
    for place, offset in enumerate(days):
        on = day(published[place] if published else offset + 1)
        row = Line(day(offset), int(part * made.loss(rows, day(offset), None, on)), on)
        made.admit(rows, row, None)
        rows.append(row)
    return rows


def losses(made, days, **keys):
    return [row.loss for row in released(made, days, **keys)]


@settings(max_examples=60, deadline=None)
@given(
    scheduled=st.sampled_from(SCHEDULES),
    discount=st.sampled_from(RATES),
    clock=st.sampled_from(["data-day", "publication-day"]),
    days=st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True),
    waits=st.lists(st.integers(0, 3), min_size=20, max_size=20),
    part=st.sampled_from([1.0, 0.6]),
)
def test_the_sum_is_kept_on_every_day_in_exact_arithmetic(scheduled, discount, clock, days, waits, part):
    made = promise(**scheduled, discount=discount[0], rate=discount[1], clock=clock)
    dates, on = [], 0
    for offset, wait in zip(days, waits, strict=False):
        on = max(on + wait, offset + 1)
        dates.append(on)
    rows = released(made, days, published=dates, part=part)
    exact = largest(made, rows)
    assert exact <= NANO
    bounds = {bound.name: bound.value for bound in made.bounds(rows, None, None)}
    # the bound is the sum, rounded up: weights to 2^-64, the whole to 1e-9
    by = "" if clock == "data-day" else " by publication"
    assert exact <= bounds[f"discounted sum ({discount[0]} {discount[1]}{by})"] <= exact + 2
    assert bounds["total"] == sum(row.loss for row in rows)


def test_a_day_published_on_two_dates_is_limited_by_its_cap():
    made = promise(clock="publication-day", rate="0.5")
    rows = [Line(day(0), NANO, day(1)), Line(day(0), NANO // 2, day(2))]
    # on the second date half of the first loss is discounted, the day of the data has both
    made.admit(rows[:1], rows[1], None)
    assert made.bounds(rows, None, None)[0].value == NANO * 3 // 2
    assert (made.limits["day"], promise(rate="0.5").limits["day"]) == (2 * NANO, NANO)


@pytest.mark.parametrize(
    ("keys", "days", "expected"),
    [
        ({}, range(4), [NANO, 1e8, 1e8, 1e8]),  # (1 - alpha) epsilon from the second day on
        ({"rate": "0.99999"}, range(2), [NANO, 10_000]),  # however small, no residue of roundings
        ({"discount": "hyperbolic", "rate": "1"}, range(3), [1e9, 5e8, 1e9 * 5 / 12]),  # 1, 1/2, 1 - 1/4 - 1/3
        ({"discount": "hyperbolic", "rate": "3", "schedule": "paper"}, range(4), [1e9 / k**0.5 for k in (1, 2, 3, 4)]),
        ({"schedule": "classical"}, range(2), [607927101, 607927101 / 4]),
        ({"rate": "0.5"}, [0, 2, 3], [NANO, NANO * 3 // 4, NANO // 2]),  # a skipped day gives the next what it left
        ({"rate": "0.5", "max_day_epsilon": "0.3"}, range(4), [3e8] * 4),  # caps bind first
        ({"epsilon_total": Decimal("1.25")}, range(5), [1e9, 1e8, 1e8, 0, 0]),
    ],
)  # fmt: skip
def test_days_get_the_closed_form_of_their_schedule(keys, days, expected):
    assert losses(promise(**keys), days) == pytest.approx(expected, abs=2)


def test_a_day_behind_the_newest_gets_what_every_later_day_leaves():
    made = promise(rate="0.5", schedule="constant")
    rows = released(made, [0, 1, 2, 3])
    assert made.loss(rows, day(2), None) == 0  # the day has spent its 1/2
    assert made.loss(rows[:2] + rows[3:], day(2), None) == pytest.approx(5e8, abs=2)
    renewed = promise(rate="0.5")
    # without it day 2 has 3/8 and day 3 has 11/16: 5/8 is left on either
    assert renewed.loss(rows[:2] + rows[3:], day(2), None) == pytest.approx(1e9 * 5 / 8, abs=4)
    assert renewed.loss(rows[1:], day(-7), None) == pytest.approx(1e9, abs=2)  # counts 1/512 on day 3


def test_a_week_published_at_once_is_discounted_by_data_day_only():
    dates = [*range(1, 41), *[47] * 7]
    assert losses(promise(schedule="paper"), range(47), published=dates) == pytest.approx([1e8] * 47, abs=2)
    rows = losses(promise(schedule="paper", clock="publication-day"), range(47), published=dates)
    # 1.18 if all were released: (1 - .9^40) .9^7 = .4712 is left of the first forty days, 5 fit and .0288
    assert rows[:45] == pytest.approx([1e8] * 45, abs=2)
    assert rows[45] == pytest.approx(1e9 * (0.5 - (1 - 0.9**40) * 0.9**7), abs=50)
    assert rows[46] == 0


@pytest.mark.parametrize("schedule", ["optimal", "constant", "classical"])
def test_a_series_with_a_horizon_closes_after_so_many_days(schedule):
    made = promise(schedule=schedule, horizon_days=3)
    rows = released(made, [0, 1, 5])
    assert all(row.loss > 0 for row in rows)
    assert made.loss(rows, day(31), None) == made.loss(rows, "9999-12-31", None) == 0
    with pytest.raises(Refused, match=r"2013-02-01: horizon_days = 3 days are released and the series is over"):
        made.admit(rows, Line(day(31), 1, day(32)), None)


def test_what_roundings_leave_of_a_backlog_is_no_release():
    made = promise(schedule="paper", clock="publication-day")
    rows = released(made, range(10), published=[30] * 10)  # a tenth each, on one date
    assert sum(row.loss for row in rows) >= 999_999_980
    assert made.loss(rows, day(10), None, rows[-1].published_on) == 0
    assert made.loss(rows, day(10), None, day(31)) > 90_000_000


@pytest.mark.parametrize("discount", [("hyperbolic", "2"), ("hyperbolic", "0.37"), ("exponential", "0.83")])
def test_what_roundings_leave_of_a_late_day_is_no_release_either(discount):
    made = promise(discount=discount[0], rate=discount[1])
    for late in range(1, 6):  # every other day has taken all that was left, to 1e-9
        rows = released(made, [offset for offset in range(7) if offset != late])
        spent = {int(row.day[-2:]) - 1: row.loss for row in rows}
        rest = [NANO - sum(weight(made, on - d) * loss for d, loss in spent.items() if d <= on) for on in range(9)]
        assert min(rest[on] / weight(made, on - late) for on in range(late, 9)) < 20
        assert made.loss(rows, day(late), None, day(9)) == 0


def test_too_much_is_refused_with_the_day_the_bound_and_the_excess():
    rows, half = [Line(day(0), NANO, day(1))], promise(rate="0.5")
    text = r"the discounted sum would come to 1\.000000001, 0\.000000001 more than epsilon = 1$"
    with pytest.raises(Refused, match=f"^2013-01-02: {text}$"):
        half.admit(rows, Line(day(1), 500_000_001, day(2)), None)
    half.admit(rows, Line(day(1), 500_000_000, day(2)), None)
    # an older day counts on the newer one: 1 + .2/2 is above 1
    with pytest.raises(Refused, match=r"^2012-12-31: the discounted sum would come to 1\.1, 0\.1 more"):
        half.admit(rows, Line(day(-1), 200_000_000, day(2)), None)


def test_bounds_count_by_the_clock_beside_the_undiscounted_total():
    rows = [Line(day(i), 200_000_000, day(8)) for i in range(3)]
    bounds = {bound.name: (bound.value, bound.kind) for bound in promise(rate="0.5").bounds(rows, None, None)}
    assert bounds["discounted sum (exponential 0.5)"] == (350_000_000, "assumption-free")
    assert bounds["total"] == (600_000_000, "assumption-free")
    by_publication = promise(rate="0.5", clock="publication-day").bounds(rows, None, day(9))
    assert [bound.value for bound in by_publication] == [200_000_000, 600_000_000, 600_000_000, 300_000_000]
    assert "days of publication ago counted 0.5^j" in by_publication[-1].about


@pytest.mark.parametrize("discount", RATES)
def test_a_loss_of_long_ago_still_counts(discount):
    rows = [Line("1970-01-01", 1000, "1970-01-02"), Line(day(0), 0, day(1))]
    assert 0 < promise(discount=discount[0], rate=discount[1]).bounds(rows, None, day(1))[-1].value <= 2


def test_the_same_discount_by_another_clock_has_names_of_its_own():
    text = (EXAMPLES / "london.toml").read_text("utf-8") + "\n[compare]\nexponential = 0.5\n"
    made = promise(rate="0.5", clock="publication-day")
    comparison = parse(text, base=Path("/house"), name="r.toml").promising(made).comparison
    rows = [Line(day(0), 400, day(31)), Line(day(1), 100, day(59))]
    accounts = [made, *Discounted.comparison_accountants(comparison)]
    bounds = [bound for account in accounts for bound in account.bounds(rows, None, None)]
    assert len({bound.name for bound in bounds}) == len(bounds) == 6
    assert [(bound.value, bound.name in made.limits) for bound in bounds[-2:]] == [(400, False), (300, False)]
    methods = [one.method for one in Discounted.candidates(comparison)]
    assert len(set(methods)) == len(methods) == 4  # two schedules by either clock


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([("rate = 0.99", "rate = 1")], "[promise] rate = 1: must lie between 0 and 1"),
        ([('"optimal"', '"paper"')], '[promise] horizon_days = 365: is used by schedule = "optimal", "constant"'),
        ([("epsilon = 1.0", "epsilon = 0.000000001")], "epsilon = 0.000000001: is too little for the schedule"),
        ([('"unlimited"', "0.01")], "[promise] epsilon_total = 0.01: is less than one day spends"),
        (
            [("exponential", "hyperbolic"), ('"optimal"\nhorizon_days = 365', '"constant"')],
            "horizon_days: is missing; a constant loss under hyperbolic",
        ),
        (
            [('"optimal"\nhorizon_days = 365', '"renewal"'), ("rate = 0.99", "rate = 0.9999999999")],
            'close to 1, so the second has no budget; take schedule = "constant" or "optimal"',
        ),
        ([("exponential", "hyperbolic"), ("rate = 0.99", "rate = 1")], ""),
        ([("exponential", "hyperbolic"), ("rate = 0.99", "rate = 0.000000000001")], ""),
        ([('"optimal"\nhorizon_days = 365', '"renewal"')], ""),
    ],
)
def test_keys_that_do_not_go_together_are_refused(edits, message):
    text = "\n".join(" = ".join(part.strip() for part in line.split("=", 1)) for line in AUSGRID.splitlines())
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    if not message:
        assert parse(text, base=Path("/house"), name="r.toml").promise.name == "discounted"
        return
    with pytest.raises(RunFileError) as caught:
        parse(text, base=Path("/house"), name="r.toml")
    assert message in str(caught.value)


def test_every_schedule_is_compared_that_no_cap_cuts():
    noise = promise(rate="0.99").alternatives(365)
    assert list(noise) == ["renewal", "optimal", "constant", "paper", "classical"]
    assert (noise["paper"], noise["optimal"]) == (pytest.approx(100, abs=0.01), pytest.approx(89.47, abs=0.01))
    # renewal begins with epsilon = 1; a year of .01 comes to 3.65, of the optimum to 4.26
    keys = {"rate": "0.99", "schedule": "optimal", "horizon_days": 365}
    assert "renewal" not in promise(**keys, max_day_epsilon="0.9").alternatives(365)
    assert promise(**keys, epsilon_total=Decimal(4)).alternatives(365) == {}
    # days published on one date do not come one by one
    assert promise(clock="publication-day").alternatives(365) == {}
    assert promise(clock="publication-day", age_days=1).alternatives(365) == promise().alternatives(365)

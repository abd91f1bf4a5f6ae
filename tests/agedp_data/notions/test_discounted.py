"""The promise `discounted`: kept on every day, by either clock, for days in any order, against sums of fractions."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.config import parse
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused, RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.notions.discounted import Discounted
from tests.laws.promises import Line

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
FIRST = date(2013, 1, 1)
KEYS = {
    "notion": "discounted", "discount": "exponential", "rate": Decimal("0.9"), "epsilon": Decimal(1),
    "schedule": "renewal", "clock": "data-day", "max_day_epsilon": Decimal(2), "epsilon_total": "unlimited",
}  # fmt: skip


def promise(**keys):
    return Discounted.model_validate({**KEYS, **keys})


def weight(keys, age):
    rate = Fraction(keys["rate"])
    return rate**age if keys["discount"] == "exponential" else 1 / (1 + rate * age)


def largest(keys, rows):
    """The largest discounted sum on any date up to a month behind the last, term by term."""
    clock = "day" if keys["clock"] == "data-day" else "published_on"
    spent = [(date.fromisoformat(getattr(row, clock)), row.loss) for row in rows]
    days = [FIRST + timedelta(days=i) for i in range(-5, 80)]
    return max(sum(weight(keys, (day - then).days) * loss for then, loss in spent if then <= day) for day in days)


def released(made, days, *, published=None, part=1.0):
    """Release days (offsets) in this order, each on its date of publication."""
    rows = []
    for place, offset in enumerate(days):
        day = FIRST + timedelta(days=offset)
        on = FIRST + timedelta(days=published[place] if published else offset + 1)
        row = Line(day.isoformat(), 0, on.isoformat())
        grant = int(part * made.loss(rows, row.day, None, row.published_on))
        row = Line(row.day, grant, row.published_on)
        made.admit(rows, row, None)
        rows.append(row)
    return rows


SCHEDULES = [
    {"schedule": "renewal"}, {"schedule": "paper"}, {"schedule": "classical"},
    {"schedule": "constant", "horizon_days": 9}, {"schedule": "optimal", "horizon_days": 12},
    {"schedule": "optimal", "horizon_days": 60},
]  # fmt: skip
RATES = [("exponential", "0.9"), ("exponential", "0.25"), ("hyperbolic", "0.05"), ("hyperbolic", "4")]


class TestKept:
    @settings(max_examples=120, deadline=None)
    @given(
        scheduled=st.sampled_from(SCHEDULES),
        fading=st.sampled_from(RATES),
        clock=st.sampled_from(["data-day", "publication-day"]),
        days=st.lists(st.integers(0, 30), min_size=1, max_size=25, unique=True),
        waits=st.lists(st.integers(0, 3), min_size=25, max_size=25),
        part=st.sampled_from([1.0, 0.6]),
    )
    def test_on_every_day_in_exact_arithmetic_whatever_order_and_backlog(
        self, scheduled, fading, clock, days, waits, part
    ):
        keys = {**KEYS, **scheduled, "discount": fading[0], "rate": Decimal(fading[1]), "clock": clock}
        made = Discounted.model_validate(keys)
        dates, on = [], 0
        for day, wait in zip(days, waits, strict=False):
            on = max(on + wait, day + 1)
            dates.append(on)
        rows = released(made, days, published=dates, part=part)
        found = largest(keys, rows)
        assert found <= NANO
        figures = {figure.name: figure.value for figure in made.bounds(rows, None, None)}
        # the figure is the sum, rounded up: weights to 2^-64, the whole to 1e-9
        by = "" if clock == "data-day" else " by publication"
        assert found <= figures[f"discounted sum ({fading[0]} {fading[1]}{by})"] <= found + 2
        assert figures["total"] == sum(row.loss for row in rows)

    def test_a_day_published_on_two_dates_is_limited_by_its_cap_where_the_sum_goes_by_publication(self):
        made = promise(clock="publication-day", rate=Decimal("0.5"))
        day, first, second = "2013-01-01", "2013-01-02", "2013-01-03"
        rows = [Line(day, NANO, first), Line(day, NANO // 2, second)]
        # on the second date half of the first loss is forgotten, the day of the data has both
        made.admit(rows[:1], rows[1], None)
        assert made.bounds(rows, None, None)[0].value == NANO * 3 // 2
        assert made.limits["day"] == 2 * NANO
        assert promise(rate=Decimal("0.5")).limits["day"] == NANO

    def test_days_in_order_get_the_schedule_to_the_last_decimal_but_one(self):
        # (1 - alpha) epsilon from the second day on; hyperbolic 1: 1, 1/2, 1 - 1/4 - 1/3
        assert [row.loss for row in released(promise(), range(4))] == pytest.approx([NANO, 1e8, 1e8, 1e8], abs=2)
        # however small, the second day's budget is no residue of roundings
        assert released(promise(rate=Decimal("0.99999")), range(2))[1].loss == pytest.approx(10_000, abs=2)
        hyperbolic = promise(discount="hyperbolic", rate=Decimal(1))
        assert [row.loss for row in released(hyperbolic, range(3))] == pytest.approx([1e9, 5e8, 1e9 * 5 / 12], abs=2)
        paper = promise(discount="hyperbolic", rate=Decimal(3), schedule="paper")
        assert [row.loss for row in released(paper, range(4))] == pytest.approx(
            [1e9, 1e9 / 2**0.5, 1e9 / 3**0.5, 5e8], abs=2
        )
        endless = promise(schedule="classical")
        assert [row.loss for row in released(endless, range(2))] == pytest.approx([607927101, 607927101 / 4], abs=2)

    def test_a_skipped_day_gives_the_next_what_it_left(self):
        rows = released(promise(rate=Decimal("0.5")), [0, 2, 3])
        assert [row.loss for row in rows] == [NANO, NANO * 3 // 4, NANO // 2]

    def test_a_day_behind_the_newest_gets_only_what_every_later_day_leaves(self):
        made = promise(rate=Decimal("0.5"), schedule="constant")
        rows = released(made, [0, 1, 2, 3])
        assert made.loss(rows, "2013-01-03", None) == 0  # the day has spent its 1/2
        assert made.loss(rows[:2] + rows[3:], "2013-01-03", None) == pytest.approx(5e8, abs=2)
        renewed = promise(rate=Decimal("0.5"))
        # without it day 2 has 3/8 and day 3 has 11/16: 5/8 is left on either
        assert renewed.loss(rows[:2] + rows[3:], "2013-01-03", None) == pytest.approx(1e9 * 5 / 8, abs=4)
        assert renewed.loss(rows[1:], "2012-12-25", None) == pytest.approx(1e9, abs=2)  # counts 1/512 on day 3

    def test_a_week_published_at_once_is_discounted_by_data_day_only(self):
        by_data, by_publication = promise(schedule="paper"), promise(schedule="paper", clock="publication-day")
        dates = [*range(1, 41), *[47] * 7]
        rows = [row.loss for row in released(by_data, range(47), published=dates)]
        assert rows == pytest.approx([1e8] * 47, abs=2)
        rows = [row.loss for row in released(by_publication, range(47), published=dates)]
        # 1.18 if all were released: (1 - .9^40) .9^7 = .4712 is left of the first forty days, 5 fit and .0288
        assert rows[:45] == pytest.approx([1e8] * 45, abs=2)
        assert rows[45] == pytest.approx(1e9 * (0.5 - (1 - 0.9**40) * 0.9**7), abs=50)
        assert rows[46] == 0

    def test_two_series_share_a_day_also_if_the_second_comes_later(self):
        for clock in ("data-day", "publication-day"):
            made = promise(schedule="paper", clock=clock)
            first = Line("2013-01-01", 40_000_000, "2013-01-02", "a")
            assert made.loss([first], "2013-01-01", None, "2013-01-05") == pytest.approx(6e7, abs=2)
            assert made.loss([first], "2013-01-02", None, "2013-01-05") == pytest.approx(1e8, abs=2)

    @pytest.mark.parametrize("schedule", ["optimal", "constant", "classical"])
    def test_a_series_with_a_horizon_closes_after_so_many_days(self, schedule):
        made = promise(schedule=schedule, horizon_days=3)
        rows = released(made, [0, 1, 5])
        assert all(row.loss > 0 for row in rows)
        assert made.loss(rows, "2013-02-01", None) == made.loss(rows, "9999-12-31", None) == 0
        with pytest.raises(Refused, match=r"2013-02-01: horizon_days = 3 days are released and the series is over"):
            made.admit(rows, Line("2013-02-01", 1, "2013-02-02"), None)

    def test_what_roundings_leave_of_a_backlog_is_no_release(self):
        made = promise(schedule="paper", clock="publication-day")
        rows = released(made, range(10), published=[30] * 10)  # a tenth each, on one date
        assert sum(row.loss for row in rows) >= 999_999_980
        assert made.loss(rows, str(FIRST + timedelta(days=10)), None, rows[-1].published_on) == 0
        later = str(FIRST + timedelta(days=31))
        assert made.loss(rows, str(FIRST + timedelta(days=10)), None, later) > 90_000_000

    @pytest.mark.parametrize("fading", [("hyperbolic", "2"), ("hyperbolic", "0.37"), ("exponential", "0.83")])
    def test_what_roundings_leave_of_a_late_day_is_no_release_under_renewal_either(self, fading):
        name, rate = fading[0], Decimal(fading[1])
        made = promise(discount=name, rate=rate)
        for late in range(1, 6):  # every other day has taken all that was left, to 1e-9
            rows = released(made, [day for day in range(7) if day != late])
            day = FIRST + timedelta(days=late)
            keys = {"discount": name, "rate": rate}
            spent = {int(row.day[-2:]) - 1: row.loss for row in rows}
            rest = [NANO - sum(weight(keys, on - d) * loss for d, loss in spent.items() if d <= on) for on in range(9)]
            assert min(rest[on] / weight(keys, on - late) for on in range(late, 9)) < 20
            assert made.loss(rows, str(day), None, str(FIRST + timedelta(days=9))) == 0

    def test_the_caps_bind_first_and_what_they_leave_stays_for_later_days(self):
        rows = released(promise(max_day_epsilon=Decimal("0.3"), rate=Decimal("0.5")), range(4))
        assert [row.loss for row in rows] == [300_000_000] * 4
        made = promise(epsilon_total=Decimal("1.25"))
        assert [row.loss for row in released(made, range(5))] == pytest.approx([1e9, 1e8, 1e8, 0, 0], abs=2)

    def test_too_much_is_refused_with_the_day_the_bound_and_the_excess(self):
        rows, half = [Line("2013-01-01", NANO, "2013-01-02")], promise(rate=Decimal("0.5"))
        says = r"the discounted sum would come to 1\.000000001, 0\.000000001 more than epsilon = 1; nothing was drawn"
        with pytest.raises(Refused, match=f"^2013-01-02: {says}$"):
            half.admit(rows, Line("2013-01-02", 500_000_001, "2013-01-03"), None)
        half.admit(rows, Line("2013-01-02", 500_000_000, "2013-01-03"), None)
        # an older day counts on the newer one: 1 + .2/2 is above 1
        with pytest.raises(Refused, match=r"^2012-12-31: the discounted sum would come to 1\.1, 0\.1 more"):
            half.admit(rows, Line("2012-12-31", 200_000_000, "2013-01-03"), None)


class TestFigures:
    def test_figures_count_by_the_clock_beside_the_undiscounted_total(self):
        rows = [Line(f"2013-01-0{i}", 200_000_000, "2013-01-09") for i in (1, 2, 3)]
        found = {f.name: (f.value, f.kind) for f in promise(rate=Decimal("0.5")).bounds(rows, None, None)}
        assert found["discounted sum (exponential 0.5)"] == (350_000_000, "assumption-free")
        assert found["total"] == (600_000_000, "assumption-free")
        by_publication = promise(rate=Decimal("0.5"), clock="publication-day").bounds(rows, None, "2013-01-10")
        assert [f.value for f in by_publication] == [200_000_000, 600_000_000, 600_000_000, 300_000_000]
        assert "days of publication ago counted 0.5^j" in by_publication[-1].about

    def test_a_year_at_alpha_nine_tenths_comes_to_36_5_undiscounted(self):
        figures = promise(schedule="paper").bounds(released(promise(schedule="paper"), range(365)), None, None)
        assert figures[1].value == pytest.approx(36.5e9, abs=1000)
        assert figures[2].value == pytest.approx(1e9, abs=1000)

    @pytest.mark.parametrize("fading", RATES)
    def test_the_sum_of_many_days_is_rounded_up_to_the_next_billionths(self, fading):
        chance, keys = Random(3), {**KEYS, "discount": fading[0], "rate": Decimal(fading[1])}  # noqa: S311
        days = sorted(chance.sample(range(75), 60))
        rows = [Line(str(FIRST + timedelta(days=day)), chance.randrange(10**15), "2014-01-01") for day in days]
        exact = largest(keys, rows)
        values = [
            one.value for one in Discounted.model_validate(keys).bounds(rows, None, None) if "discounted" in one.name
        ]
        assert exact <= values[0] <= exact + 2

    @pytest.mark.parametrize("fading", RATES)
    def test_a_loss_of_long_ago_still_counts(self, fading):
        rows = [Line("1970-01-01", 1000, "1970-01-02"), Line("2013-01-01", 0, "2013-01-02")]
        made = promise(discount=fading[0], rate=Decimal(fading[1]))
        assert 0 < made.bounds(rows, None, "2013-01-02")[-1].value <= 2

    def test_compare_shows_both_discounts_beside_any_other_promise(self):
        text = (EXAMPLES / "london.toml").read_text("utf-8")
        run = parse(text + "\n[compare]\nexponential = 0.5\nhyperbolic = 1\n", base=Path("/house"), name="r.toml")
        rows = [Line("2013-01-01", 400, "2013-02-01"), Line("2013-01-02", 100, "2013-02-01")]
        accounts = [account for notion in NOTIONS for account in notion.comparison_accountants(run.comparison)]
        found = {f.name: f.value for account in accounts for f in account.bounds(rows, None, None)}
        assert found == {
            "window of 7 days": 500,
            "discounted sum (exponential 0.5)": 400,
            "discounted sum (exponential 0.5) on the newest day": 300,
            "discounted sum (hyperbolic 1)": 400,
            "discounted sum (hyperbolic 1) on the newest day": 300,
        }

    @pytest.mark.parametrize(("discount", "rate"), [("exponential", "0.5"), ("hyperbolic", "1.0")])
    def test_the_same_discount_by_another_clock_has_names_and_a_limit_of_its_own(self, discount, rate):
        text = (EXAMPLES / "london.toml").read_text("utf-8")
        run = parse(text + f"\n[compare]\n{discount} = {rate}\n", base=Path("/house"), name="r.toml")
        made = promise(discount=discount, rate=Decimal(rate), clock="publication-day", schedule="renewal")
        run = run.promising(made)
        rows = [Line("2013-01-01", 400, "2013-02-01"), Line("2013-01-02", 100, "2013-03-01")]
        accounts = [made, *Discounted.comparison_accountants(run.comparison)]
        figures = [figure for account in accounts for figure in account.bounds(rows, None, None)]
        assert len({figure.name for figure in figures}) == len(figures) == 6
        by_data = [figure for figure in figures if "days of the data ago" in figure.about]
        assert [figure.name in made.limits for figure in by_data] == [False, False]
        methods = [one.method for one in Discounted.candidates(run.comparison)]
        assert len(set(methods)) == len(methods) == 4  # two schedules by either clock

    def test_what_is_promised_is_not_compared_with_itself(self):
        text = (EXAMPLES / "ausgrid.toml").read_text("utf-8")
        for rate, shown in (("0.99", 0), ("0.9", 1)):
            run = parse(text + f"\n[compare]\nexponential = {rate}\n", base=Path("/house"), name="r.toml")
            assert len(Discounted.comparison_accountants(run.comparison)) == shown


class TestRunFile:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("rate          = 0.99 ", "rate = 1 ", "[promise] rate = 1: must lie between 0 and 1"),
            ('"exponential"', '"hyperbolic"\n#', ""),
            ('"optimal"', '"paper"', '[promise] horizon_days = 365: is used by schedule = "optimal", "constant"'),
            ('"optimal"\nhorizon_days  = 365', '"constant"', ""),
            ("epsilon       = 1.0 ", "epsilon = 0.000000001 ", "epsilon = 0.000000001: is too little for the schedule"),
            ('"unlimited"', "0.01", "[promise] epsilon_total = 0.01: is less than one day spends"),
            ('"exponential"\nrate          = 0.99 ', '"hyperbolic"\nrate = 1 ', ""),
            ('"unlimited"', "0.02", ""),
            ('"optimal"\nhorizon_days  = 365', '"renewal"\n', ""),
        ],
    )
    def test_keys_that_do_not_go_together_are_refused(self, old, new, message):
        text = (EXAMPLES / "ausgrid.toml").read_text("utf-8")
        assert old in text
        if not message:
            assert parse(text.replace(old, new), base=Path("/house"), name="r.toml").promise.name == "discounted"
            return
        with pytest.raises(RunFileError) as caught:
            parse(text.replace(old, new), base=Path("/house"), name="r.toml")
        assert message in str(caught.value)

    @pytest.mark.parametrize("fading", [("exponential", "0.9999999999"), ("hyperbolic", "0.000000000001")])
    def test_renewal_is_refused_where_the_ledger_cannot_tell_the_second_day_from_the_first(self, fading):
        text = (EXAMPLES / "ausgrid.toml").read_text("utf-8").replace("exponential", fading[0])
        text = text.replace("rate          = 0.99 ", f"rate = {fading[1]} ")
        text = text.replace('"optimal"\nhorizon_days  = 365', '"renewal"')
        says = r'rate = .*close to 1, so the second has no budget; take schedule = "constant" or "optimal"'
        with pytest.raises(RunFileError, match=says):
            parse(text, base=Path("/house"), name="r.toml")
        parse(text.replace('"renewal"', '"optimal"\nhorizon_days = 365'), base=Path("/house"), name="r.toml")

    def test_a_constant_loss_under_hyperbolic_discounting_needs_an_end(self):
        text = (EXAMPLES / "ausgrid.toml").read_text("utf-8").replace("exponential", "hyperbolic")
        text = text.replace('"optimal"\nhorizon_days  = 365', '"constant"')
        with pytest.raises(RunFileError, match="horizon_days: is missing; a constant loss under hyperbolic"):
            parse(text, base=Path("/house"), name="r.toml")

    def test_every_schedule_is_set_beside_the_promised_one(self):
        means = promise(rate=Decimal("0.99"), schedule="renewal").alternatives(365)
        assert list(means) == ["renewal", "optimal", "constant", "paper", "classical"]
        assert means["paper"] == pytest.approx(100, abs=0.01)
        assert means["optimal"] == pytest.approx(89.47, abs=0.01)
        unending = promise(schedule="classical").alternatives(365)
        assert unending["classical"] == pytest.approx(
            sum(k**2 for k in range(1, 366)) / 365 * 3.14159265**2 / 6, rel=1e-3
        )

    def test_schedules_that_a_cap_cuts_are_not_compared(self):
        # renewal begins with epsilon = 1; a year of .01 comes to 3.65, of the optimum to 4.26
        keys = {"rate": Decimal("0.99"), "schedule": "optimal", "horizon_days": 365}
        assert "renewal" in promise(**keys).alternatives(365)
        assert "renewal" not in promise(**keys, max_day_epsilon=Decimal("0.9")).alternatives(365)
        assert promise(**keys, epsilon_total=Decimal(4)).alternatives(365) == {}
        paper = promise(rate=Decimal("0.99"), schedule="paper", epsilon_total=Decimal(4)).alternatives(365)
        assert set(paper) == {"paper", "constant", "classical"}

    def test_days_published_on_one_date_are_not_compared_as_if_they_came_one_by_one(self):
        assert promise(clock="publication-day").alternatives(365) == {}
        assert promise(clock="publication-day", age_days=1).alternatives(365) == promise().alternatives(365)

"""The notion `temporal` against the recursions of true kernels, and day by day to the end of its plans."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import METHODS, allocate_with
from agedp_data.accounting.temporal_recursion import TemporalLosses
from agedp_data.epsilon import NANO, format_epsilon
from agedp_data.errors import Refused
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.function import leakage
from agedp_data.leakage.population_bound import composition_age_steps, leakage_bound
from agedp_data.markov.transitions import reverse
from agedp_data.notions import Temporal
from agedp_data.notions.temporal import LEAKAGE, TemporalLeakage
from tests.agedp_data.accounting.temporal_oracles import recursion_by_leaps
from tests.laws.promises import Line

FIRST = date(2013, 1, 1)
SLOW = np.array([[0.97, 0.02, 0.01], [0.02, 0.96, 0.02], [0.005, 0.025, 0.97]])
QUICK = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
UNLIKE = np.array([[0.5, 0.05, 0.45], [0.3, 0.6, 0.1], [0.4, 0.15, 0.45]])
STAY = np.array([[0.98, 0.02], [0.02, 0.98]])
CHAINS = {1: np.stack([QUICK, UNLIKE]), 48: np.stack([SLOW, UNLIKE])}


def bound_of(chains, steps_per_day, days=range(1, 15), *, pieces=False):
    stack = np.asarray(chains, float).reshape(-1, *np.shape(chains)[-2:])
    return leakage_bound(
        reverse(stack),
        composition_age_steps(days, steps_per_day=steps_per_day),
        LOSS_GRID,
        reliable=np.ones(len(stack), bool),
        forward=stack,
        steps_per_day=steps_per_day,
        pieces=pieces,
    )


KNOWN = {day: bound_of(chains, day) for day, chains in CHAINS.items()}


def table(ages, passed):
    """A bound of days: 1 where all is passed on at an age, 0 where nothing is."""
    tables = [[float(one), np.inf if one else 0.0] for one in passed]
    return LeakageBound(ages, [1.0, np.inf], tables, tables, assume="markov", steps_per_day=1)


NEVER = LeakageBound([1], [1.0], [[1.0]], [[1.0]], assume="markov", steps_per_day=1)
AT_ONCE = table([1], [0])
REGISTER = table([1, 2, 6], [1, 1, 0])
"""A register of six fair bits that moves on by one a day: a state tells all of those it shares a bit with."""


def promise(alpha="2", horizon="unlimited", budget="supremum", **more):
    caps = {"max_day_epsilon": Decimal(100), "epsilon_total": "unlimited"}
    return Temporal(notion="temporal", alpha=Decimal(alpha), horizon_days=horizon, budget=budget, **caps | more)


def line(number, loss=0, **more):
    day = FIRST + timedelta(days=number)
    return Line(day.isoformat(), loss, (day + timedelta(days=2)).isoformat(), **more)


def largest(losses, known):
    """Return the leakage about the most exposed day, as the statement reports it."""
    [bound] = TemporalLeakage().bounds([line(day, loss) for day, loss in losses.items()], known, None)
    return bound.value


def released(made, days, known, history=()):
    """Release days one after the other, each with all that it is granted."""
    rows = list(history)
    for number in days:
        row = replace(line(number), loss=made.loss(rows, line(number).day, known))
        if row.loss:
            made.admit(rows, row, known)
            rows.append(row)
    return rows


def leakage_of_days(chain, losses, days, steps_per_day):
    """docs/mathematics.md with leaps spelt out: kernels by numpy's powers, both directions alike."""

    def side(kernel, losses, days):
        composed, about = [], []
        for k, day in enumerate(days):
            carried, reached = (
                min(
                    (
                        sum(losses[i + 1 : k])
                        + float(leakage(np.linalg.matrix_power(kernel, steps + steps_per_day * (day - days[i])), loss))
                        for i, loss in enumerate(composed[max(k - 7, 0) :], max(k - 7, 0))
                    ),
                    default=0.0,
                )
                for steps in (0, 1 - steps_per_day)
            )
            composed.append(losses[k] + carried)
            about.append(reached)
        return np.array(about)

    ahead = side(chain, losses[::-1], [-day for day in days[::-1]])[::-1]
    return np.array(losses) + side(reverse(chain), losses, days) + ahead


def truth(rows, chains, steps_per_day):
    """The largest leakage about any released day, of the worst household, by the kernels themselves."""
    rows = sorted(rows, key=lambda row: row.day)
    days, losses = [date.fromisoformat(row.day).toordinal() for row in rows], [row.loss / NANO for row in rows]
    stack = np.reshape(chains, (-1, *np.shape(chains)[-2:]))
    return max(leakage_of_days(chain, losses, days, steps_per_day).max() for chain in stack)


def test_one_release_is_its_loss_and_without_mixing_losses_add_up():
    assert largest({5: 7}, KNOWN[48]) == 7
    assert largest({1: 100, 2: 20, 9: 3}, NEVER) == 123
    assert largest({1: 100, 2: 20, 9: 3}, AT_ONCE) == 100
    assert promise("0.07").loss([], line(0).day, AT_ONCE) == 70_000_000


def of_register(losses):
    """Return the leakage by the register: whoever reads a bit that a day has reads this day."""
    days = range(min(losses), max(losses) + 1)
    return max(sum(loss for other, loss in losses.items() if abs(other - day) < 6) for day in days)


def test_days_without_a_release_count_where_a_leap_is_shorter_than_a_step():
    losses = dict.fromkeys((0, 1, 2, 8, 9, 10), 100_000_000)
    assert largest(losses, REGISTER) == of_register(losses) == 600_000_000  # all six can read days 4 and 5
    chance = np.random.default_rng(6)
    for _ in range(30):
        days = np.cumsum(chance.choice([1, 1, 1, 2, 3, 6, 7, 8, 11], size=9)).tolist()
        losses = dict(zip(days, chance.integers(1, NANO, 9).tolist(), strict=True))
        assert largest(losses, REGISTER) >= of_register(losses)


def everywhere(through, losses, steps_per_day, leaps):
    """The largest leakage about any day from the first to the last, every day of them looked at."""

    def side(direction, losses):
        def least(day, others, steps):
            return min(
                (
                    sum(losses[other] for other in others[len(others) - j + 1 :])
                    + through(steps + steps_per_day * (day - others[-j]), direction=direction)(composed[others[-j]])
                    for j in leaps
                    if j <= len(others)
                ),
                default=0,
            )

        days, composed = sorted(losses), {}
        for k, day in enumerate(days):
            composed[day] = losses[day] + least(day, days[:k], 0)
        return {
            day: least(day, [other for other in days if other < day], 1 - steps_per_day)
            for day in range(days[0], days[-1] + 1)
        }

    back = side("backward", losses)
    ahead = side("forward", {-day: loss for day, loss in losses.items()})
    return max(losses.get(day, 0) + back[day] + ahead[-day] for day in back)


@pytest.mark.parametrize("ages", [(1, 2, 7, 30), (1, 2, 3, 5), (1, 3), (2, 6)])
@pytest.mark.parametrize("day", [1, 3])
def test_the_largest_of_a_ledger_with_gaps_is_that_of_all_its_days(day, ages):
    chance = np.random.default_rng(list(ages))
    pairs = np.kron(np.ones((2, 1)), np.kron(np.eye(2), [[0.7, 0.3]]))
    for chain in (STAY, UNLIKE, pairs):
        known = bound_of(chain, day, ages)
        through = cache(known.exact_leakage)
        for spent in (chance.integers(1, NANO, 8), np.full(8, 100_000_000)):
            days = np.cumsum(chance.choice([1, 1, 1, 2, 3, 8, 12, 20], size=8)).tolist()
            losses = dict(zip(days, spent.tolist(), strict=True))
            assert largest(losses, known) == everywhere(through, losses, day, {1, *ages} & set(range(8)))


@pytest.mark.parametrize("day", [1, 48])
def test_an_endless_series_stays_below_alpha_and_comes_near_it(day):
    rows = released(promise("1.5"), range(25), KNOWN[day])
    assert len({row.loss for row in rows}) == 1
    exact = truth(rows, CHAINS[day], day)
    [bound] = TemporalLeakage().bounds(rows, KNOWN[day], None)
    assert (bound.name, bound.kind) == (LEAKAGE, "conditional")
    assert 0.9 * 1.5 < exact <= bound.value / NANO <= 1.5


@pytest.mark.parametrize("day", [1, 48])
def test_a_plan_holds_to_its_end_and_then_the_series_is_over(day):
    noise, known = {}, KNOWN[day]
    for budget in METHODS:
        made = promise("1.2", 9, budget)
        rows = released(made, range(11), known)
        assert [row.day for row in rows] == [line(i).day for i in range(9)]
        assert truth(rows, CHAINS[day], day) <= 1.2
        assert made.bounds(rows, known, None)[-1].value <= 1_200_000_000
        with pytest.raises(Refused, match="horizon_days = 9 days are released and the series is over"):
            made.admit(rows, line(10_000, 1), known)
        noise[budget] = np.mean([NANO / row.loss for row in rows])
    assert noise["best"] == min(noise.values())
    assert noise["even"] == pytest.approx(9 / 1.2)


@pytest.mark.parametrize("kernel", [STAY, QUICK, UNLIKE], ids=["stay", "quick", "unlike"])
def test_under_a_declared_kernel_no_plan_is_worse_than_the_papers(kernel):
    known, paper = bound_of(kernel, 1, (1, 2, 3, 7), pieces=True), recursion_by_leaps(kernel, max_days=1)
    plans = {}
    for budget in METHODS:
        rows = released(promise("1", 10, budget), range(10), known)
        plans[budget] = np.array([row.loss for row in rows]) / NANO
        assert recursion_by_leaps(kernel, max_days=7).leakage_totals(plans[budget]).total.max() <= 1 + 1e-12
    for budget in ("even", "supremum", "exact"):
        expected = allocate_with(paper, alpha=1.0, horizon=10, method=budget)
        # whole 1e-9, of a loss that is smaller the more days there are
        assert np.mean(1 / plans[budget]) <= np.mean(1 / expected) * (1 + 5e-9 / expected.min())
        assert np.mean(1 / plans["best"]) <= np.mean(1 / plans[budget])


def test_days_that_come_late_leave_what_all_days_to_come_need():
    endless, known = promise("1.5"), KNOWN[1]
    rows = released(endless, [*range(9), *range(10, 16)], known)
    rows[9] = replace(rows[9], loss=rows[9].loss + 100_000_000)  # more than the plan has, so what is left is asked for
    late = endless.loss(rows, line(9).day, known)
    assert 0 < late < rows[0].loss
    more = released(endless, [9, *range(16, 26)], known, rows)
    assert truth(more, CHAINS[1], 1) <= 1.5
    assert min(row.loss for row in more) > 0.5 * late
    # at the end of a plan the ninth loss is the largest, in the middle there is less; half-way less to give up
    made = promise("1.2", 9, "exact")
    rows = released(made, [0, 1, 2, 4, 5, 6, 7, 8], known)
    assert 0 < made.loss(rows, line(3).day, known) < made.loss(rows, line(9).day, known)
    assert truth(released(made, [3], known, rows), CHAINS[1], 1) <= 1.2
    rows = released(made, [3, 5, 6, 7, 8], known, rows[:4])
    assert (len(rows), truth(rows, CHAINS[1], 1) <= 1.2) == (9, True)
    assert min(row.loss for row in rows) > 0.9 * rows[2].loss


def test_a_smaller_alpha_binds_days_that_are_released_and_those_to_come():
    known, lowered = KNOWN[1], promise("1.3")
    rows = released(promise("1.5"), range(25), known)
    # the leakage is larger already: nothing any more, however late
    assert [lowered.loss(rows, line(25 + later).day, known) for later in (0, 1, 3000)] == [0] * 3
    more = released(lowered, range(3, 20), known, rows[:3])
    assert (len(more), truth(more, CHAINS[1], 1) <= 1.3) == (20, True)
    assert rows[0].loss > released(lowered, [0], known)[0].loss == more[3].loss
    # on the days between releases too
    rows = released(promise("1"), range(3), REGISTER)
    rows = released(promise("0.3"), (8, 9, 10), REGISTER, rows)
    spent = {date.fromisoformat(row.day).toordinal(): row.loss for row in rows}
    assert len(spent) == 6
    assert of_register(spent) <= 300_000_000


def test_a_day_next_to_one_that_shows_all_is_left_nothing():
    # All of a day shows in the next one, nothing two days later: a day is told of by itself and both its neighbours.
    made, known, rows = promise("1"), table([1, 2], [1, 0]), [line(0, NANO - 1)]
    assert made.loss([], line(0).day, known) == NANO // 3
    assert made.loss(rows, line(1).day, known) == 0
    assert made.loss(rows, line(2).day, known) == 0  # the day between would be told of by both
    assert made.loss(rows, line(3).day, known) == NANO // 3
    made.admit(rows, line(3, NANO // 3), known)


def test_a_newer_model_that_mixes_more_slowly_stops_releases():
    made = promise("1.5")
    rows = released(made, range(20), KNOWN[48])
    made.review(rows, KNOWN[48])
    slower = np.array([[0.999, 0.001], [0.001, 0.999]])
    exact = truth(rows, slower, 48)
    assert exact > 2
    message = rf"alpha = 1.5 is below {int(exact)}\.\d+, the leakage so far about 2013-01-\d\d; releases stop"
    with pytest.raises(Refused, match=message):
        made.review(rows, bound_of(slower, 48))
    made.review(rows[:1], bound_of(slower, 48))


@pytest.mark.parametrize("known", [*KNOWN.values(), REGISTER, NEVER], ids=["days", "half-hours", "register", "never"])
def test_losses_that_grow_change_and_go_have_the_leakage_of_losses_looked_at_for_the_first_time(known):
    rng, grown, losses = np.random.default_rng(3), TemporalLosses(known), {}
    for step in range(150):
        day = step if rng.random() < 0.6 else int(rng.integers(0, 200))
        losses = {**losses, day: int(rng.choice([0, 1, 10**8, 10**9]))}
        later = int(rng.choice([0, 0, 10**7]))
        anew = TemporalLosses(known)
        assert grown.largest(losses, loss_of_every_later_day=later) == anew.largest(
            losses, loss_of_every_later_day=later
        )
        if rng.random() < 0.2:
            assert list(grown.of(losses)) == list(TemporalLosses(known).of(losses))


@pytest.mark.parametrize("day", [1, 3])
def test_a_series_that_grows_has_the_largest_leakage_of_all_its_days(day):
    ages = (1, 2, 3, 7)
    for chain in (STAY, UNLIKE):
        known = bound_of(chain, day, ages, pieces=True)
        through, grown, losses = cache(known.exact_leakage), TemporalLosses(known), {}
        for number in [*range(24), 23, 22, *range(26, 32), 20]:  # a day that comes again is taken back
            losses = {**losses, number: 0 if number in losses else 300_000_000}
            largest = grown.largest_after({number: losses[number]})
            expected = {each: loss for each, loss in losses.items() if loss}
            assert largest == everywhere(through, expected, day, {1, *ages}), number


def test_the_most_exposed_day_may_be_one_without_a_release():
    made, rows = promise("0.5"), [line(day, 100_000_000) for day in (0, 1, 2, 8, 9, 10)]
    [(key, message)] = made.violations(rows, REGISTER).items()
    assert (key, message[:-2]) == ("alpha", "alpha = 0.5 is below 0.6, the leakage so far about 2013-01-")
    assert 3 < int(message[-2:]) < 9  # after 3 January, before 9 January: no day with a release
    [message] = promise("0.000000006").violations([line(3, 5), line(20, 7)], REGISTER).values()
    assert message.endswith("is below 0.000000007, the leakage so far about 2013-01-21")
    assert made.violations(rows[:5], REGISTER) == {} == made.violations([], REGISTER)


def test_a_refusal_says_by_how_much_a_release_exceeds_alpha():
    made, known, rows = promise("1"), KNOWN[1], [line(0, 600_000_000)]
    excess = format_epsilon(largest({0: 600_000_000, 1: 700_000_000}, known) - NANO)
    text = "2013-01-02: the temporal leakage of all releases about one day would come to 1."
    with pytest.raises(Refused, match=rf"^{re.escape(text)}.*{re.escape(excess)} more than alpha = 1$"):
        made.admit(rows, line(1, 700_000_000), known)
    made.admit(rows, line(30, 700_000_000), known)


def test_where_days_are_too_much_alike_nothing_is_granted():
    known = bound_of(np.eye(2) * 0.5 + 0.25, 1, days=(7,))
    for made in (promise("1"), promise("1", 10, "exact"), promise("1", 10, "supremum")):
        assert (made.loss([], line(0).day, NEVER), bool(made.obstacle(NEVER))) == (0, True)
        assert made.obstacle(known) == ""
        assert made.loss([], line(0).day, known) > 0
    rows = released(promise("1", 8, "best"), range(9), NEVER)
    assert [row.loss for row in rows] == [125_000_000] * 8


def test_a_cap_of_a_day_cuts_the_plan_and_the_other_days_keep_theirs():
    free, capped = promise("1.5", 6, "exact"), promise("1.5", 6, "exact", max_day_epsilon=Decimal("0.3"))
    losses = [[row.loss for row in released(made, range(6), KNOWN[1])] for made in (free, capped)]
    assert losses[1] == [min(loss, 300_000_000) for loss in losses[0]] != losses[0]


@pytest.mark.parametrize("known", [None, replace(KNOWN[1], forward=None), replace(KNOWN[1], assume="curve")])
def test_a_model_that_looks_back_only_cannot_keep_it(known):
    for ask in (lambda: promise().loss([], line(0).day, known), lambda: promise().admit([], line(0, 1), known)):
        with pytest.raises(Refused, match=r"needs a model with forward leakage.*calibrate again under another"):
            ask()
    assert TemporalLeakage().bounds([line(0, 1)], known, None) == []

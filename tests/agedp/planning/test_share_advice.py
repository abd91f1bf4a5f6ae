"""The plan shows what a total beside groups costs: figures of the limit of many days, within 0.02."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from agedp.planning.share_advice import advise_shares
from agedp.stages.plan import forecast_run
from agedp_flows.text.plan_text import plan_lines
from agedp_flows.text.share_text import share_lines

FIRST = date(2013, 1, 1)
SPAN = 'notion = "classical"\nepsilon_per_day = 0.05\nmax_day_epsilon = 1\nepsilon_total = '
PURE, AT_DELTA = f"{SPAN}20\n", f'{SPAN}10\ndelta = "1e-6"\n'
ALONE = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
BESIDE = '[series.tariffs]\nstatistic = "mean"\nclamp_kwh = 50\nby = "tariff"\nshare = 0.67\n'


@pytest.fixture
def lines(house):
    """Return the lines of a run file with four tariffs of two households; `total`: beside a total with a third."""

    def planned(promise, *, total, tariffs="AABBCCDD", days=120):
        rows = [f"H{i},{FIRST},,{tariff}" for i, tariff in enumerate(tariffs)]
        (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
        house.write(FIRST, FIRST + timedelta(days=days - 1), promise=promise, rest=BESIDE if total else "")
        house.edit((ALONE, f"{ALONE}share = 0.33\n" if total else f'{ALONE}by = "tariff"\n'))
        session = house.session(today=FIRST)
        return share_lines(session, forecast_run(session))

    return planned


def numbers(line):
    """The share, and the noise of groups and total."""
    return [float(number) for number in re.findall(r"\d\.\d\d(?= times|: after| \()", line)]


def is_best(line):
    """Whether a share is the best one: with r = w / (1 - w), (1 + r^2)(1 + 3 r^2) = 1.21 (1 + 4 r^2)."""
    return numbers(line) == pytest.approx([0.398, 1.1, 0.73], abs=0.025)


def test_a_total_beside_groups_is_judged_by_the_bound_of_the_span(lines):
    judged, best = lines(AT_DELTA, total=True)
    assert judged.startswith("Total daily_mean beside tariffs (4 groups), share of the total 0.33")
    assert judged.endswith("at an equal bound of 120 days (delta 1e-6)")
    assert numbers(judged) == pytest.approx([0.33, 1.046, 1.581 / 2], abs=0.02)
    assert "at a cost of 10% to the groups: 0.38" in best
    assert is_best(best)


def test_without_a_delta_the_shares_are_judged_by_sums(lines):
    judged, best = lines(PURE, total=True)
    assert judged.endswith("at an equal sum of losses")
    assert numbers(judged)[1] == pytest.approx(1.403, abs=0.02)
    assert "if delta = 1e-6 were promised: 0.38" in best
    assert is_best(best)


def test_an_unlimited_horizon_is_no_number_of_days(lines):
    endless = 'notion = "temporal"\nalpha = 10\nhorizon_days = "unlimited"\nbudget = "best"\nmax_day_epsilon = 0.05\n'
    judged, *_ = lines(f'{endless}epsilon_total = 10\ndelta = "1e-6"\n', total=True)
    assert "at an equal bound of 120 days (delta 1e-6)" in judged


def test_groups_alone_get_advice_where_a_total_pays(lines):
    [advice] = lines(AT_DELTA, total=False)
    assert advice.startswith("A total beside daily_mean (4 groups) could have a share of 0.38 (the groups have")
    assert is_best(advice)
    [advice] = lines(PURE, total=False)
    assert advice.startswith("If delta = 1e-6 were promised, a total beside daily_mean (4 groups) could have")
    assert lines(PURE, total=False, days=7) == []
    assert lines(AT_DELTA.replace("max_day_epsilon = 1", "max_day_epsilon = 0.05"), total=False) == []
    assert lines(AT_DELTA, total=False, tariffs="AABBCCD") == []


def test_groups_that_leave_out_households_are_named(lines, house):
    *_, last = lines(AT_DELTA, total=True, tariffs="AABBCCD")
    assert "released groups of tariffs leave out households on the next day" in last
    session = house.session(today=FIRST)
    plan = forecast_run(session)
    [advice] = advise_shares(plan.terms, plan.forecast, session.forecast_view.roster)
    assert (advice.groups, advice.incomplete, advice.days) == ({"tariffs": 3}, ("tariffs",), 120)
    later = house.session(today=FIRST + timedelta(days=200))
    assert "120 days, 240 releases are due:" in plan_lines(later)

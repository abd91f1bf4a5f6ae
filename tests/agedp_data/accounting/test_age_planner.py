"""Plans against exhaustive search, and the continuous reference against the whole-step one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from agedp_data.accounting.age_planner import frontier, plan_ageing, plan_least_penalty, smallest_loss
from agedp_data.accounting.ageing import peak
from agedp_data.errors import ChainError
from docs.papers.age.geometric_decay import GeometricDecay, plan_geometric_decay

FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])


def penalty(total, loss):
    return 0.02 / loss**2 + 0.1 * (1 - 0.8**total)


@pytest.mark.parametrize("chain", [FLIP, THREE])
@pytest.mark.parametrize("method", ["tight", "total_variation"])
@pytest.mark.parametrize("allowed", [0.05, 0.09])
def test_no_schedule_of_a_fine_grid_beats_the_plan(chain, method, allowed):
    found = plan_ageing(partial(peak, chain, method=method), penalty, max_penalty=allowed, horizon=8)
    assert penalty(found.age + found.interval, found.loss) == found.penalty <= allowed
    assert found.risk == peak(chain, found.loss, age=found.age, interval=found.interval, method=method)
    losses = np.geomspace(0.05, 40, 80)
    for total in range(1, 9):
        feasible = losses[[penalty(total, loss) <= allowed for loss in losses]]
        for age in range(total):
            if feasible.size:
                risks = peak(chain, feasible, age=age, interval=total - age, method=method)
                assert risks.min() >= found.risk - 1e-12


def test_the_loss_is_the_smallest_that_keeps_the_penalty_to_the_last_digit():
    loss = smallest_loss(penalty, 3, max_penalty=0.09)
    assert loss == pytest.approx(np.sqrt(0.02 / (0.09 - 0.1 * (1 - 0.8**3))), rel=1e-12)
    assert penalty(3, loss) <= 0.09
    assert penalty(3, np.nextafter(loss, 0) * (1 - 1e-14)) > 0.09
    assert smallest_loss(penalty, 30, max_penalty=0.05) is None
    assert smallest_loss(lambda t, e: 0.0, 3, max_penalty=0.0) == 1e-12


def test_of_equal_risks_the_freshest_schedule_is_taken():
    found = plan_ageing(lambda loss, age, interval: 1.0, lambda t, e: t / 100 + 1 / e, max_penalty=9, horizon=5)
    assert (found.age, found.interval) == (0, 1)


def test_risks_are_called_by_name_or_by_position():
    by_position = plan_ageing(lambda e, a, s: e + 0 * a - s / 100, penalty, max_penalty=0.09, horizon=6)
    by_name = plan_ageing(
        lambda loss, *, interval, age: loss + 0 * age - interval / 100, penalty, max_penalty=0.09, horizon=6
    )
    assert by_position == by_name


def test_where_nothing_is_feasible_there_is_no_plan():
    with pytest.raises(ChainError, match="allow more"):
        plan_ageing(partial(peak, FLIP, method="tight"), lambda t, e: 1.0, max_penalty=0.5, horizon=3)
    with pytest.raises(ChainError, match="one step ahead"):
        plan_ageing(partial(peak, FLIP, method="tight"), penalty, max_penalty=0.5, horizon=0)


def test_the_frontier_falls_as_more_error_is_allowed():
    found = frontier(partial(peak, FLIP, method="tight"), penalty, max_penalties=[0.001, 0.05, 0.08, 0.2], horizon=8)
    assert found[0] is None
    risks = [plan.risk for plan in found[1:]]
    assert risks == sorted(risks, reverse=True)


def test_the_whole_step_search_is_never_better_than_the_continuous_one():
    losses = np.geomspace(0.05, 20, 1500)
    for allowed in (0.084, 0.09, 0.0995):
        smooth = plan_geometric_decay(
            GeometricDecay(1.0, 0.8), penalty, max_penalty=allowed, losses=losses, precision=1e-9, max_total=40.0
        )
        whole = plan_ageing(
            lambda loss, age, interval: GeometricDecay(1.0, 0.8).peak(loss, age=age, interval=interval),
            penalty,
            max_penalty=allowed,
            horizon=40,
        )
        assert smooth.risk <= whole.risk * (1 + 1e-3)
        assert smooth.penalty <= allowed


@pytest.mark.parametrize(("scale", "rate"), [(0.9, 0.5), (1.0, 1.0), (1.0, 0.0)])
def test_a_decay_that_is_none_is_refused(scale, rate):
    with pytest.raises(ChainError, match="geometric decay"):
        GeometricDecay(scale, rate)


@pytest.mark.parametrize("most", [0.4, pytest.param(1.0, marks=pytest.mark.long), 5.0])
@pytest.mark.parametrize("longest", [None, 1, 2])
def test_no_schedule_of_a_fine_grid_is_cheaper_at_its_risk(most, longest):
    risk_of = partial(peak, FLIP, method="tight")
    found = plan_least_penalty(risk_of, penalty, max_risk=0.5, horizon=5, max_loss=most, max_interval=longest)
    assert found.risk <= 0.5
    assert found.loss <= most
    assert found.penalty == penalty(found.age + found.interval, found.loss)
    assert found.interval <= (longest or 5)
    losses = np.geomspace(0.02, most, 60)
    for interval in range(1, (longest or 5) + 1):
        for age in range(6 - interval):
            feasible = losses[peak(FLIP, losses, age=age, interval=interval, method="tight") <= 0.5]
            if feasible.size:
                assert penalty(age + interval, feasible.max()) >= found.penalty - 1e-12


def test_a_longer_interval_is_taken_where_it_is_cheaper_and_allowed():
    def risk_of(loss, age, interval):
        return loss / interval

    free = plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1, horizon=4, max_loss=9)
    assert (free.age, free.interval, free.loss) == (0, 4, 4.0)
    daily = plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1, horizon=4, max_loss=9, max_interval=1)
    assert (daily.interval, daily.loss) == (1, 1.0)
    capped = plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1, horizon=4, max_loss=2.5)
    assert (capped.interval, capped.loss) == (4, 2.5)  # as cheap with 3, at more risk
    assert plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1e-30, horizon=4, max_loss=9) is None


def test_no_plan_asks_for_a_loss_above_the_cap():
    risk_of = partial(peak, FLIP, method="tight")
    needed = plan_ageing(risk_of, penalty, max_penalty=0.09, horizon=3).loss
    with pytest.raises(ChainError, match="allow more"):
        plan_ageing(risk_of, penalty, max_penalty=0.09, horizon=1, max_loss=0.1)
    assert plan_ageing(risk_of, penalty, max_penalty=0.09, horizon=3, max_loss=needed).loss == needed
    assert frontier(risk_of, penalty, max_penalties=[0.09], horizon=1, max_loss=0.1) == [None]

"""Plans against exhaustive search over whole steps and a fine grid of losses."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from agedp_data.accounting.ageing import peak, plan_ageing, plan_least_penalty, smallest_loss
from agedp_data.errors import ChainError

FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
RISK = partial(peak, FLIP, method="tight")


def penalty(total, loss):
    return 0.02 / loss**2 + 0.1 * (1 - 0.8**total)


@pytest.mark.parametrize(("chain", "method", "allowed"), [(FLIP, "tight", 0.09), (THREE, "total_variation", 0.05)])
def test_no_schedule_of_a_fine_grid_beats_the_plan(chain, method, allowed):
    plan = plan_ageing(partial(peak, chain, method=method), penalty, max_penalty=allowed, horizon=6)
    assert penalty(plan.age + plan.interval, plan.loss) == plan.penalty <= allowed
    assert plan.risk == peak(chain, plan.loss, age=plan.age, interval=plan.interval, method=method)
    losses = np.geomspace(0.05, 40, 60)
    for total in range(1, 7):
        feasible = losses[[penalty(total, loss) <= allowed for loss in losses]]
        for age in range(total if feasible.size else 0):
            risks = peak(chain, feasible, age=age, interval=total - age, method=method)
            assert risks.min() >= plan.risk - 1e-12


def test_the_loss_is_the_smallest_that_keeps_the_penalty_to_the_last_digit():
    loss = smallest_loss(penalty, 3, max_penalty=0.09)
    assert loss == pytest.approx(np.sqrt(0.02 / (0.09 - 0.1 * (1 - 0.8**3))), rel=1e-12)
    assert penalty(3, loss) <= 0.09 < penalty(3, np.nextafter(loss, 0) * (1 - 1e-14))
    assert smallest_loss(penalty, 30, max_penalty=0.05) is None
    assert smallest_loss(lambda t, e: 0.0, 3, max_penalty=0.0) == 1e-12


def test_where_nothing_is_feasible_there_is_no_plan():
    with pytest.raises(ChainError, match="allow more"):
        plan_ageing(RISK, lambda t, e: 1.0, max_penalty=0.5, horizon=3)
    with pytest.raises(ChainError, match="one step ahead"):
        plan_ageing(RISK, penalty, max_penalty=0.5, horizon=0)


def test_no_plan_asks_for_a_loss_above_the_cap():
    needed = plan_ageing(RISK, penalty, max_penalty=0.09, horizon=3).loss
    with pytest.raises(ChainError, match="allow more"):
        plan_ageing(RISK, penalty, max_penalty=0.09, horizon=1, max_loss=0.1)
    assert plan_ageing(RISK, penalty, max_penalty=0.09, horizon=3, max_loss=needed).loss == needed


@pytest.mark.parametrize(("most", "longest"), [(0.4, 2), (5.0, None)])
def test_no_schedule_of_a_fine_grid_is_cheaper_at_its_risk(most, longest):
    plan = plan_least_penalty(RISK, penalty, max_risk=0.5, horizon=4, max_loss=most, max_interval=longest)
    assert plan.risk <= 0.5
    assert plan.loss <= most
    assert plan.penalty == penalty(plan.age + plan.interval, plan.loss)
    assert plan.interval <= (longest or 4)
    losses = np.geomspace(0.02, most, 40)
    for interval in range(1, (longest or 4) + 1):
        for age in range(5 - interval):
            feasible = losses[RISK(losses, age=age, interval=interval) <= 0.5]
            if feasible.size:
                assert penalty(age + interval, feasible.max()) >= plan.penalty - 1e-12


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"max_loss": 9}, (0, 4, 4.0)),
        ({"max_loss": 9, "max_interval": 1}, (0, 1, 1.0)),
        ({"max_loss": 2.5}, (0, 4, 2.5)),  # as cheap with 3, at more risk
    ],
)
def test_a_longer_interval_is_taken_where_it_is_cheaper_and_allowed(keys, expected):
    def risk_of(loss, age, interval):
        return loss / interval

    plan = plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1, horizon=4, **keys)
    assert (plan.age, plan.interval, plan.loss) == expected
    assert plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1e-30, horizon=4, **keys) is None

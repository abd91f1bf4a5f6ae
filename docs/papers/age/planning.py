"""Figure 6: the least peak risk of periodic outputs whose error stays within bounds.

The integer planner searches all whole ages and intervals; Algorithms 1 and 2, repaired, are the continuous reference.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from agedp_data.accounting.ageing import AgePlan, Penalty, peak
from agedp_data.errors import ChainError
from docs.papers.age.frontier import frontier
from docs.papers.age.geometric_decay import GeometricDecay, plan_geometric_decay
from docs.papers.age.two_state import AGENTS, CHAIN, MOVE
from docs.papers.age.two_state_model import failure_rate, mean_square_error
from docs.papers.households import PaperReadings
from docs.papers.results import PUBLISHED, Floats, Panel, PaperFigure, curve

DECAY = GeometricDecay(1.0, 1 - 2 * MOVE)
_RESTS_ON = f"{PUBLISHED} (p = q = .1, I = 20)"
_RISK = "peak loss about the present, ε* [-]"
SQUARE_ERROR = partial(mean_square_error, agents=AGENTS, move=MOVE)


@cache
def rate(total: float, loss: float) -> float:
    """Return the failure rate; cached, because a planner needs the same one often."""
    return failure_rate(total, loss, agents=AGENTS, move=MOVE)  # type: ignore[arg-type]


def plans(penalty: Penalty, allowed: Floats, *, horizon: int, method: str, max_loss: float) -> list[AgePlan | None]:
    """Return the best whole plan for each bound of the error, by one of the ways to compose."""
    cached_peak = cache(partial(peak, CHAIN, method=method))
    return frontier(
        lambda loss, age, interval: float(cached_peak(loss, age=age, interval=interval)),
        penalty,
        max_penalties=allowed.tolist(),
        horizon=horizon,
        max_loss=max_loss,
    )


def continuous(penalty: Penalty, allowed: Floats, *, losses: Floats, longest: float) -> list[AgePlan | None]:
    """Return the better of Algorithms 1 and 2, repaired, for each bound; None where no candidate keeps it."""
    plans: list[AgePlan | None] = []
    for most in allowed.tolist():
        try:
            search = {"max_penalty": most, "losses": losses.tolist(), "precision": 1e-3, "max_total": longest}
            plans.append(plan_geometric_decay(DECAY, penalty, **search))
        except ChainError:
            plans.append(None)
    return plans


def figure_6a(data: PaperReadings) -> PaperFigure:
    """Return the frontier of the mean square error."""
    # From 2/I on the error bounds no age: the least peak tends to 0, and a search ends at its horizon only.
    allowed = np.linspace(0.03, 0.0995, 5 if data.small else 15)
    losses, horizon = np.geomspace(0.2, 5.0, 40 if data.small else 200), 12 if data.small else 40
    printed = [
        _risk(plan)
        for plan in plans(SQUARE_ERROR, np.array([0.084, 0.0995]), horizon=24, method="total_variation", max_loss=10.0)
    ]
    trade = (
        f"Allowing an error of .084 the least peak by eq. 30 is {printed[0]:.3f}, allowing .0995 it is {printed[1]:.3f}"
    )
    panels = _panels("mean square error, peak [states²]", allowed, [
        plans(SQUARE_ERROR, allowed, horizon=horizon, method="total_variation", max_loss=10.0),
        plans(SQUARE_ERROR, allowed, horizon=horizon, method="tight", max_loss=10.0),
        continuous(SQUARE_ERROR, allowed, losses=losses, longest=60.0),
    ])  # fmt: skip
    return PaperFigure(
        "figure_6a",
        "Figure 6(a), Algorithms 1 and 2",
        "More error allowed does buy a smaller peak risk: there is a trade-off",
        f"{trade}; the paper denies such a trade. The tight peak is lower throughout, and finite"
        " where eq. 30 diverges.",
        _RESTS_ON,
        panels,
        "Corollary 3 does not apply to the mean square error, so the paper's single best pair does not exist;"
        " Algorithms 1 and 2 as printed never enter their loops ([errata]) and are drawn repaired.",
        parts={"trade": trade},
    )


def figure_6b(data: PaperReadings) -> PaperFigure:
    """Return the frontier of the failure rate."""
    edge = classical_edge()
    # Just above the edge stands a point, or the grid would hide where finite plans begin.
    allowed = np.sort(np.append(np.linspace(0.2, 0.4, 3 if data.small else 11), edge + 1e-3))
    losses, horizon = np.geomspace(0.2, 8.0, 5 if data.small else 30), 6 if data.small else 16
    plan_rows = [
        plans(rate, allowed, horizon=horizon, method="total_variation", max_loss=10.0),
        plans(rate, allowed, horizon=horizon, method="tight", max_loss=10.0),
        continuous(rate, allowed, losses=losses, longest=float(horizon)),
    ]
    classic, tight = (np.array([_risk(plan) for plan in row]) for row in plan_rows[:2])
    last = allowed.size - 1
    description = (
        f"Allowing failures in {allowed[last]:.0%} of the cases the least peak is {classic[last]:.2f} by eq. 30 and"
        f" {tight[last]:.2f} by the tight composition; at {edge:.2%} and below eq. 30 has no finite plan."
    )
    return PaperFigure(
        "figure_6b",
        "Figure 6(b), Algorithms 1 and 2",
        "A lower peak risk costs a higher failure rate, and less of it by the tight composition",
        description,
        _RESTS_ON,
        _panels("failure rate, peak [-]", allowed, plan_rows),
        parts={"trade": description},
    )


def classical_edge() -> float:
    """Return the failure rate at which eq. 30 has no finite plan yet: the least of f(T, -T ln(1 - 2p)) over T.

    A finite peak needs Delta(S) e^eps < 1 ([A] eq. 31); of the splits of a total T = A + S, S = T allows the largest
    loss, and the failure rate falls with the loss.
    """
    return min(rate(total, -total * float(np.log(1 - 2 * MOVE))) for total in range(1, 31))


def _panels(error: str, allowed: Floats, plans: list[list[AgePlan | None]]) -> tuple[Panel, ...]:
    names = (("eq. 30, whole steps", "paper", 1), ("tight, whole steps", "ours", 0),
             ("Algorithms 1, 2, repaired", "reference", 0))  # fmt: skip
    tight_plans = plans[1]
    return (
        Panel(
            "Least peak risk",
            f"{error}, allowed",
            _RISK,
            tuple(
                curve(name, allowed, [_risk(plan) for plan in row], look, shade=shade)  # type: ignore[arg-type]
                for (name, look, shade), row in zip(names, plans, strict=True)
            ),
            bottom=0,
        ),
        Panel(
            "The tight plan behind it",
            f"{error}, allowed",
            "age, interval [steps]",
            (
                curve("age A", allowed, [plan.age if plan else np.nan for plan in tight_plans]),
                curve("interval S", allowed, [plan.interval if plan else np.nan for plan in tight_plans], shade=1),
            ),
            bottom=0,
        ),
        Panel(
            "Loss of each output",
            f"{error}, allowed",
            "loss of an output, ε [-]",
            (curve("", allowed, [plan.loss if plan else np.nan for plan in tight_plans]),),
            bottom=0,
        ),
    )


def _risk(plan: AgePlan | None) -> float:
    return plan.risk if plan else float("nan")

"""The bounds that the caps of every promise are about: the largest loss of a day, and the sum over all days."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.notions.notion import ASSUMPTION_FREE, CALIBRATION_DAY_BOUND, DAY_BOUND, TOTAL_BOUND, LossBound
from agedp_data.notions.period_loss import (
    Charges,
    charge_on,
    covered_losses,
    format_periods,
    largest_charged_window,
    total_charge,
)


def is_total_at_delta(name: str) -> bool:
    """Return whether a bound is the (epsilon, delta) bound of all days.

    Source: text, as `name_at_delta`.

    Args:
        name: name of a bound.

    >>> is_total_at_delta("total (delta 1e-6)"), is_total_at_delta("total")
    (True, False)
    """
    return name.startswith(f"{TOTAL_BOUND} (delta ")


def own_bound_name(limits: Mapping[str, int | None]) -> str:
    """Return the bound that a promise limits in addition to a day's loss and the total; "" if there is none.

    Source: data structure, without a formula.

    Args:
        limits: upper bounds over future releases by name [nano-epsilon], None if unlimited.

    >>> own_bound_name({"day": 5, "total": None, "window of 7 days": None, "window of 7 days (delta 1e-6)": 9})
    'window of 7 days (delta 1e-6)'
    """
    caps = (DAY_BOUND, TOTAL_BOUND)
    own = (name for name, limit in limits.items() if limit is not None and name not in caps)
    return next((name for name in own if not is_total_at_delta(name)), "")


def spent_bounds(losses: Mapping[str, int], charges: Charges = ()) -> list[LossBound]:
    r"""Return the assumption-free bounds of every notion: the largest loss of a day, and the sum over all days.

    .. math:: \max_d \Bigl[ \varepsilon_d + \sum_{i:\, d \in P_i} e_i \Bigr], \qquad
        \sum_d \varepsilon_d + \sum_i e_i

    With draws e_i about the periods P_i the first is over published days; a third bound is over the days of all P_i,
    published or not, which no cap of the promise limits where nothing is published.

    Source: sequential composition, [A] Proposition 2, as `day_losses` and `period_loss`.

    Args:
        losses: loss of each day [nano-epsilon].
        charges: losses of calibration draws, and of released rows that cover several days.

    >>> [bound.value for bound in spent_bounds({"2013-01-01": 5, "2013-01-02": 7})]
    [7, 12]
    >>> from agedp_data.notions.period_loss import PeriodLoss
    >>> draw = PeriodLoss("2012-01-01", "2013-01-01", 4)
    >>> [bound.value for bound in spent_bounds({"2013-01-01": 5, "2013-01-02": 7}, (draw,))]
    [9, 16, 9]
    """
    draws = tuple(charge for charge in charges if not charge.is_release)
    releases = tuple(charge for charge in charges if charge.is_release)
    total = sum(losses.values()) + total_charge(charges)
    losses = covered_losses(losses, releases)
    with_draws = {day: loss + charge_on(draws, day) for day, loss in losses.items()}
    day = LossBound(
        DAY_BOUND,
        max(with_draws.values(), default=0),
        ASSUMPTION_FREE,
        "any one published day of one household" if draws else "any one day of one household",
    )
    scope = "all published days of one household"
    if not draws:
        return [day, LossBound(TOTAL_BOUND, total, ASSUMPTION_FREE, scope)]
    in_periods = {day: loss for day, loss in losses.items() if charge_on(draws, day)}
    return [
        day,
        LossBound(TOTAL_BOUND, total, ASSUMPTION_FREE, f"{scope}, and all its days of the calibration"),
        LossBound(
            CALIBRATION_DAY_BOUND,
            largest_charged_window(draws, in_periods, days=1),
            ASSUMPTION_FREE,
            f"any one day of one household from {format_periods(draws)}, published or not",
        ),
    ]

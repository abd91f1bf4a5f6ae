"""A first loss of a day between released days: it never lowers what the exact L says, and may lower what a table says.

Days 0, 1, 2, 4, 5 with a loss of 0.001 each, and day 3 with none or with 1e-9, under a household that forgets as
0.2^days. The table has the losses 0.001, 0.0857, ...; for c between them it says L_2(c) = L_2(0.001) + c - 0.001, which
may be more than L_1(L_1(c)) = L_1(0.001).
"""

from __future__ import annotations

from math import expm1, log1p

from agedp_data.epsilon import NANO
from agedp_data.notions.temporal import TemporalLeakage
from tests.laws.promises import Line, exact_bound, leakage_bound

FORGETS = 0.2
EXACT, TABLE = exact_bound("markov", FORGETS), leakage_bound("markov", FORGETS)
WITHOUT = dict.fromkeys((0, 1, 2, 4, 5), 1_000_000)
WITH = {**WITHOUT, 3: 1}


def largest(model, losses: dict[int, int]) -> int:
    """Return the temporal leakage that a statement would give, of the days of a January."""
    rows = [Line(f"2013-01-{day + 1:02}", loss, "2013-02-01") for day, loss in losses.items()]
    return TemporalLeakage().bounds(rows, model, None)[0].value


def leakage(days: int, loss: float) -> float:
    return log1p(FORGETS**days * expm1(loss))


def about(day: int, losses: dict[int, float]) -> float:
    """Leakage of the earlier releases about the first half-hour of a day, which is a whole number of days later."""
    composed, last = 0.0, min(losses)
    for earlier in sorted(each for each in losses if each < day):
        composed, last = losses[earlier] + leakage(earlier - last, composed), earlier
    return leakage(day - last - 1, composed) if composed else 0.0


def in_closed_form(losses: dict[int, int]) -> float:
    """In closed form: 0.2^g 0.2^h = 0.2^(g + h), so that no step over several releases is smaller [nano]."""
    ahead = {day: loss / NANO for day, loss in losses.items()}
    back = {-day: loss for day, loss in ahead.items()}
    return NANO * max(ahead.get(day, 0.0) + about(day, ahead) + about(-day, back) for day in range(6))


def test_no_exact_bound_is_lowered_by_a_first_loss_and_a_table_may_be():
    for losses in (WITHOUT, WITH):
        exact = largest(EXACT, losses)
        assert in_closed_form(losses) <= exact <= in_closed_form(losses) + 3  # roundings fade by 0.2 a step
        assert exact <= largest(TABLE, losses)
    assert largest(EXACT, WITHOUT) <= largest(EXACT, WITH)
    # about day 1: 0.001 of its own, 0.001 of day 0, and the days ahead through L_2(c) or L_1(1e-9 + L_1(c))
    assert (largest(TABLE, WITHOUT), largest(TABLE, WITH)) == (3_240_101, 3_200_081)

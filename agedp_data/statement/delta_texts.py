"""What a statement says of bounds with a delta: those of all days, or of a window of days, of one household.

Such a bound compares all that one household did on these days with anything else that it might have done. For every
set S of results, Pr[S | x] <= e^epsilon Pr[S | x'] + delta.

Decisions:

* The sentence "but for a probability of delta the odds change by at most e^epsilon" is false and is not written: the
  loss may exceed epsilon with a probability above delta. Odds never change by more than e^total.
* `SPANS`, `SECOND_POPULATION`, `SECOND_POPULATION_COUNTED` and `ACCOUNT_WITHOUT_DELTA` are stored in the ledger and
  hashed; their wording never changes.
* Amounts in sentences round up: e^10.75, one in 1,000,000.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from agedp_data.epsilon import format_delta
from agedp_data.notions.notion import TOTAL_BOUND, LossBound
from agedp_data.notions.notion_text import name_at_delta
from agedp_data.statement.document import StatedBound

SPANS: Final = (
    "The total and window figures with a delta are about all that one household did on their days. Had it used "
    "anything else on these days, every set of results would be at most e^epsilon times as probable, plus "
    "delta{aside}. No model of the household is needed, and the total holds however its days depend on each other. "
    "They say nothing beyond the total without a delta, which also holds, and bound no change of odds by themselves."
)
SECOND_POPULATION: Final = (
    "A household that is counted in a second population as well, of this ledger or another one, is told about twice, "
    "and the losses add: a second population under the same promise may add the amounts given here to the day's "
    "figure, and to epsilon and delta of the total with a delta. The tool adds up what one ledger says about one "
    "population; it cannot see shared homes."
)
SECOND_POPULATION_COUNTED: Final = (
    "A household that is counted in a second population as well is told about twice, and the losses add. The register "
    "of households adds up the losses without a delta; its largest sums stand under one account per household. A "
    "second population under the same promise may add the amounts given here to the day's figure, and to epsilon and "
    "delta of the total with a delta."
)
ACCOUNT_WITHOUT_DELTA: Final = " The amounts of this account are sums of losses and have no delta."

_OF_DELTA: Final = (
    "A *delta* in the name of a row belongs to its *epsilon*. In *{name}* they mean: had one household used anything "
    "else on {days}, every set of results would be at most e^{epsilon} times as probable, plus {part}{exception}. A "
    "bound on all days, or on a window, needs no model of the household. That on all days holds whatever the "
    "correlation between them, habits and absences included; that on a window is about the days of the window alone. "
    "Rows with a delta reveal nothing beyond *total*, the sum of the losses, which also holds. They have no *factor*, "
    "because e^epsilon alone bounds no change of odds here: odds may change by more, with a small probability, but "
    "never by more than the factor of *total*. delta is not free: a smaller one comes with a larger epsilon. The same "
    "releases are shown with two deltas, and neither row makes them safer than the other."
)
_SPAN = re.compile(r"(total|window of [1-9][0-9]* days) \(delta [^()]+\)")
_FOUR_DIGITS: Final = Context(prec=4, rounding=ROUND_CEILING)


def is_of_span(bound: StatedBound | LossBound) -> bool:
    """Return whether a bound is that of all days or of a window of days, with a delta."""
    return bound.delta is not None and _SPAN.fullmatch(bound.name) is not None


def explanation(bound: StatedBound, exception: str) -> str:
    """Return the paragraph of STATEMENT.md on bounds with a delta, with one of them as an example.

    Args:
        bound: the example, which has a delta.
        exception: what no bound counts, the end of a sentence; "" for nothing.
    """
    window = re.match(r"window of ([0-9]+ days)", bound.name)
    return _OF_DELTA.format(
        name=bound.name,
        days=f"any {window[1]} in a row" if window else "the days in its *scope*",
        epsilon=short_epsilon(bound.epsilon),
        part=part_text(Decimal(bound.delta or 1)),
        exception=exception,
    )


def with_delta(delta: str | None) -> str:
    """Return the delta of a bound, for a sentence with its epsilon; "" without one.

    >>> with_delta("0.000001"), with_delta(None)
    (' with delta 1e-6', '')
    """
    return "" if delta is None else f" with delta {format_delta(Decimal(delta))}"


def total_name(delta: str | None) -> str:
    """Return the name of the bound on all days at a delta, as a statement writes it.

    >>> total_name("0.000001"), total_name(None)
    ('total (delta 1e-6)', 'total')
    """
    return name_at_delta(TOTAL_BOUND, None if delta is None else Decimal(delta))


def part_text(delta: Decimal) -> str:
    """Return a probability in words, rounded up.

    >>> part_text(Decimal("0.000001")), part_text(Decimal("0.3"))
    ('one in 1,000,000', 'one in 3')
    """
    return f"one in {int(1 / delta):,}"


def short_epsilon(text: str) -> str:
    """Return an epsilon rounded up to four digits.

    >>> short_epsilon("10.748499677"), short_epsilon("36.5"), short_epsilon("81660.1")
    ('10.75', '36.5', '81670')
    """
    return f"{_FOUR_DIGITS.plus(Decimal(text)):f}"

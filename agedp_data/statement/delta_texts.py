"""What a statement says of bounds with a delta: those of all days, or of a window of days, of one household.

Such a bound compares all that one household did on these days with anything else that it might have done. For every
set S of results, Pr[S | x] <= e^epsilon Pr[S | x'] + delta.

Decisions:

* The sentence "but for a probability of delta the odds change by at most e^epsilon" is false and is not written: the
  loss may exceed epsilon with a probability above delta. Odds never change by more than e^total.
* `SPANS`, `PROMISED_SPANS`, `PROTECTED_SPANS`, `SECOND_POPULATION`, `SECOND_POPULATION_COUNTED` and
  `ACCOUNT_WITHOUT_DELTA` are stored in the ledger and hashed; a published statement keeps its own wording.
* Losses of two populations add in the day's bound and in those of a span. No sum is stated for temporal leakage, which
  may exceed the sum of both under a chain.
* Amounts in sentences round up: e^10.75, one in 1,000,000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from agedp_data.config.contract_document import ContractDocument
from agedp_data.config.delta_size import is_large_delta
from agedp_data.epsilon import format_delta
from agedp_data.notions.cap_bounds import is_total_at_delta
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, TOTAL_BOUND, LossBound
from agedp_data.notions.notion_text import name_at_delta
from agedp_data.parameters import exact_text
from agedp_data.statement.document import AddedLoss, StatedBound
from agedp_data.statement.note_texts import LARGE_DELTA
from agedp_data.statement.odds import short_number

SPANS: Final = (
    "The total and window bounds with a delta are about all that one household did on their days. Had it used "
    "anything else on these days, every set of results would be at most e^epsilon times as probable, plus "
    "delta{aside}. No model of the household is needed, and the total holds for every dependence between its days. "
    "They add nothing to the total without a delta, which also holds, and bound no change of odds by themselves."
)
PROMISED_SPANS: Final = (
    "The promise over several days is a bound with a delta. Had one household used anything else on the days of that "
    "bound, every set of results would be at most e^epsilon times as probable, plus delta{aside}. It bounds no change "
    "of odds by itself; the total without a delta, which also holds, does."
)
PROTECTED_SPANS: Final = (
    " The promise with a delta protects more than one day, namely {days}. Had the use on these days been anything "
    "else, every set of results would be at most e^epsilon times as probable, plus delta. Epsilon and delta are those "
    "of the promised bound{aside}."
)
SECOND_POPULATION: Final = (
    "Composition: a household that is counted in a second population as well, of this ledger or another one, is part "
    "of both releases, and its losses add up, epsilons and deltas alike. A second population under the same promise "
    "may add the day's cap to the bound 'day'. To a promised bound of all days or of a window it may add the epsilon "
    "and the delta of that bound. The tool adds up the releases of one population in one ledger; it cannot see shared "
    "households."
)
SECOND_POPULATION_COUNTED: Final = (
    "Composition: a household that is counted in a second population as well is part of both releases, and its losses "
    "add up, epsilons and deltas alike. The register of households adds up the losses without a delta; the section on "
    "one account per household has its largest sums. A second population under the same promise may add the day's cap "
    "to the bound 'day'. To a promised bound of all days or of a window it may add the epsilon and the delta of that "
    "bound."
)
ACCOUNT_WITHOUT_DELTA: Final = " The amounts of this account are sums of losses and have no delta."

_OF_DELTA: Final = (
    "A *delta* in the name of a row belongs to its *epsilon*. In *{name}* they mean: had one household used anything "
    "else on {days}, every set of results would be at most e^{epsilon} times as probable, plus {part}{exception}. Such "
    "a bound needs no model of the household. The bound on all days holds for every correlation between them."
    "{window} Habits and absences that show on many days are covered "
    "by *total* and by {totals} alike, not by *day*. Rows with a delta describe the same releases as *total*; both "
    "hold. Either may be quoted, with its delta and its scope. Rows with a delta have no *factor*: odds may change by "
    "more than e^epsilon, with a small probability, but never by more than the factor of *total*. A delta is not free: "
    "a smaller one comes with a larger epsilon, and no row makes the releases safer than another."
)
_SPAN = re.compile(r"(total|window of [1-9][0-9]* days) \(delta [^()]+\)")
_DELTA_IN_NAME = re.compile(r" \(delta [^()]+\)")


def in_statement_order(bounds: Sequence[LossBound]) -> list[LossBound]:
    """Return the bounds without duplicates: assumption-free ones first, and those of a span with a delta beside it."""
    distinct = list(dict.fromkeys(bounds))
    names = [_span_name(bound) for bound in distinct]
    return sorted(distinct, key=lambda bound: (bound.kind != ASSUMPTION_FREE, names.index(_span_name(bound))))


def _span_name(bound: LossBound) -> str:
    return _DELTA_IN_NAME.sub("", bound.name)


def is_of_span(bound: StatedBound | LossBound) -> bool:
    """Return whether a bound is that of all days or of a window of days, with a delta."""
    return bound.delta is not None and _SPAN.fullmatch(bound.name) is not None


def is_promised(bound: StatedBound) -> bool:
    """Return whether a bound has a delta and is limited by the promise."""
    return bound.delta is not None and bound.limit not in ("", "unlimited")


def scope_days(about: str) -> str:
    """Return the days of a scope, without what its delta means.

    >>> scope_days("any 7 consecutive days of one household; every set of results at most e^epsilon times as probable")
    'any 7 consecutive days of one household'
    """
    return about.partition("; every set of results")[0]


def explanation(bounds: Sequence[StatedBound], exception: str) -> str:
    """Return the paragraph of STATEMENT.md on bounds with a delta; "" without one.

    The example is a promised bound, or the first one with a delta.

    Args:
        bounds: bounds of the statement.
        exception: what no bound counts, the end of a sentence; "" for nothing.
    """
    spans = sorted(filter(is_of_span, bounds), key=is_promised, reverse=True)
    if not spans:
        return ""
    example, totals = spans[0], [f"*{bound.name}*" for bound in spans if bound.name.startswith(TOTAL_BOUND)]
    window = re.match(r"window of ([0-9]+ days)", example.name)
    has_window = any(not bound.name.startswith(TOTAL_BOUND) for bound in spans)
    return _OF_DELTA.format(
        window=" That on a window is about the days of the window alone." if has_window else "",
        name=example.name,
        days=f"any {window[1]} in a row" if window else "the days in its *scope*",
        epsilon=short_number(example.epsilon),
        part=part_text(Decimal(example.delta or 1)),
        exception=exception,
        totals=totals[0] if totals else "its bounds with a delta",
    )


def promise_paragraph(bounds: Sequence[StatedBound], exception: str) -> str:
    """Return which bounds are promised with a delta, and the day's cap beside them; "" without a promised delta.

    Args:
        bounds: bounds of the statement.
        exception: what no bound counts, the end of a sentence; "" for nothing.
    """
    promised = [bound for bound in bounds if is_promised(bound)]
    if not promised:
        return ""
    caps = [bound for bound in bounds if bound.name == DAY_BOUND and bound.limit]
    sentences = " ".join(_promised_sentence(bound) for bound in [*promised, *caps])
    return f"**Promised:** {sentences} Larger numbers in other rows do not break it{exception}."


def _promised_sentence(bound: StatedBound) -> str:
    about = scope_days(bound.scope)
    condition = "" if bound.is_unconditional else ", if the assumption of its row holds"
    return (
        f"{about[:1].upper()}{about[1:]}: at most epsilon {bound.limit}{with_delta(bound.delta)} (row *{bound.name}*; "
        f"so far {_so_far(bound)}){condition}."
    )


def _so_far(bound: StatedBound) -> str:
    """Return a bound for people; exact where rounding would raise it above its limit."""
    short = short_number(bound.epsilon)
    is_above = "infinite" not in (short, bound.limit) and Decimal(short) > Decimal(bound.limit)
    return bound.epsilon if is_above else short


def promised_caps(bounds: Sequence[StatedBound]) -> list[str]:
    """Return the promised bounds with a delta beyond which no release takes them, but that on all days."""
    promised = (bound for bound in bounds if is_promised(bound) and not is_total_at_delta(bound.name))
    return [f"*{bound.name}* beyond epsilon {bound.limit}" for bound in promised]


def added_losses(bounds: Sequence[StatedBound], adds: AddedLoss, exception: str) -> str:
    """Return what a second population may add: to a day and all days, with a delta to each promised bound.

    Args:
        bounds: bounds of the statement.
        adds: what it may add to a day, and to all days at the promised delta.
        exception: what no bound counts, the end of a sentence; "" for nothing.
    """
    if adds.delta is None:
        caps = ((adds.day, "a day"), (adds.total, "all days"))
        doubled = [f"{exact_text(2 * Decimal(cap))} about {scope}" for cap, scope in caps if cap != "unlimited"]
        added = (
            f"Under the same promise it may add {adds.day} to the bound *day* and {adds.total} to the bound *total*."
        )
        both = f" Both together then come to at most epsilon {' and '.join(doubled)}{exception}." if doubled else ""
        return added + both
    sentences = [f"Under the same promise it may add epsilon {adds.day} to the bound *day*."]
    sentences += [
        _doubled(bound, Decimal(bound.delta or 0), exception)
        if is_of_span(bound)
        else f"What both come to in *{bound.name}* is not stated."
        for bound in bounds
        if is_promised(bound)
    ]
    if adds.total == "unlimited":
        sentences.append("What it may add to the composed loss of all days has no cap.")
    return " ".join(sentences)


def _doubled(bound: StatedBound, delta: Decimal, exception: str) -> str:
    epsilon = Decimal(bound.limit)
    return (
        f"To *{bound.name}* it may add epsilon {exact_text(epsilon)} and delta {format_delta(delta)}: together at most "
        f"epsilon {exact_text(2 * epsilon)} with delta {format_delta(2 * delta)}{exception}."
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


def large_delta_warnings(contract: ContractDocument) -> Iterator[str]:
    """Yield a warning if the delta of a contract is large for its fewest households."""
    delta, households = contract.promise.delta, contract.population.min_households
    if delta is not None and is_large_delta(Decimal(delta), households):
        yield LARGE_DELTA.format(delta=format_delta(Decimal(delta)), households=households)

"""A bound of a statement in the terminal's words: the stored texts of scope and assumption in the terms of the field.

Ledgers and statements keep their stored texts, which are hashed. A text that is not listed here is shown as stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agedp_data.notions.aged_loss import ASSUMED, NO_MODEL
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, TOTAL_BOUND
from agedp_data.notions.notion_text import RESULTS
from agedp_data.statement.delta_texts import with_delta
from agedp_data.statement.document import StatedBound
from agedp_flows.text.number_text import format_bound

_EARLIER_ASSUMPTIONS = {
    "each household forgets at least as fast as the model says, by a Markov chain, and on its own": ASSUMED["markov"],
    "each household forgets at least as fast as the model says, and on its own": ASSUMED["curve"],
}
_SCOPES = {
    "any one day of one household, released or not, by all days released so far": (
        "any one day of one household, released or not, from all days released so far"
    )
}
_LABELS = {
    (DAY_BOUND, "any one day of one household"): "Largest epsilon of any one day of one household",
    (TOTAL_BOUND, "all published days of one household"): (
        "Cumulative epsilon per household (sequential composition of all published days)"
    ),
}
_DISCOUNTED = re.compile(
    r"all published days of one household, a loss j (?P<ago>days of [a-z ]+) ago counted (?P<weight>.+?)"
    r"(?P<draws>, the calibration draws counted in full)?(?P<worst>, on the worst day)?"
)
_EXPONENTIAL, _HYPERBOLIC = re.compile(r"(.+)\^j"), re.compile(r"1/\(1 \+ (.+) j\)")


def labelled_bound(bound: StatedBound) -> str:
    """Return a bound of a statement as one line: its label and its value.

    >>> days = "all published days of one household"
    >>> labelled_bound(StatedBound(name="total", epsilon="182.5", about=days, kind="assumption-free", assumption=""))
    'Cumulative epsilon per household (sequential composition of all published days): 182.5'
    """
    at_delta = with_delta(bound.delta)
    label = _LABELS.get((bound.name, bound.scope)) or f"Epsilon{at_delta} of {scope_text(bound.scope)}"
    return f"{label}: {format_bound(bound.epsilon, limit=bound.limit)}{exception_text(bound.conditional_days)}"


def exception_text(envelope_days: str | None) -> str:
    """Return what bounds leave out beside a model that is published without noise, a part of their sentence.

    >>> exception_text("2012-01-01 to 2012-12-31")[:65]
    ', of the noisy releases alone; with the published model, estimate'
    """
    if not envelope_days:
        return ""
    return (
        f", of the noisy releases alone; with the published model, estimated without noise from the days "
        f"{envelope_days}, not about these days nor about days like them"
    )


def exception_once(lines: Sequence[str], envelope_days: str | None) -> list[str]:
    """Return lines with bounds in which the first alone explains the exception of `exception_text`.

    >>> text = exception_text("2012-01-01 to 2012-12-31")
    >>> exception_once([f"Day: 1{text}", f"Total: 3{text}"], "2012-01-01 to 2012-12-31")[1]
    'Total: 3, of the noisy releases alone'
    """
    text = exception_text(envelope_days)
    if not text:
        return list(lines)
    first = next((i for i, line in enumerate(lines) if text in line), 0)
    return [line if i <= first else line.replace(text, text.partition(";")[0]) for i, line in enumerate(lines)]


def scope_text(about: str) -> str:
    """Return the scope of a bound, a discounted sum with the name and rate of its discount.

    What a delta means is left out: the delta is named beside the epsilon.

    >>> scope_text("all published days of one household, a loss j days of publication ago counted 1/(1 + 2 j)")
    'discounted sum of all published days of one household, hyperbolic discounting with rate 2 per day of publication'
    """
    about = about.partition(RESULTS)[0]
    discounted = _DISCOUNTED.fullmatch(about)
    if discounted is None:
        return _SCOPES.get(about, about)
    unit = discounted["ago"].replace("days", "day", 1)
    scope = f"discounted sum of all published days of one household, {_discount_text(discounted['weight'])} per {unit}"
    scope += discounted["draws"] or ""
    return f"{scope}; maximum over days" if discounted["worst"] else scope


def _discount_text(weight: str) -> str:
    if exponential := _EXPONENTIAL.fullmatch(weight):
        return f"exponential discounting with rate {exponential[1]}"
    if hyperbolic := _HYPERBOLIC.fullmatch(weight):
        return f"hyperbolic discounting with rate {hyperbolic[1]}"
    return f"weight {weight} of a loss j days old"


def assumption_text(assumption: str) -> str:
    """Return the assumption of a conditional bound as a sentence, "" without one.

    >>> assumption_text("each household forgets at least as fast as the model says, and on its own (method tight)")
    'Assumption: each household is independent of the others and mixes at least as fast as the model (method tight).'
    """
    if not assumption:
        return ""
    if assumption == NO_MODEL:
        return "The bound needs a model, and the run file has none."
    stored, method, rest = assumption.partition(" (method")
    return f"Assumption: {_EARLIER_ASSUMPTIONS.get(stored, stored)}{method}{rest}."


def condition_text(kind: str, assumption: str, envelope_days: str = "") -> str:
    """Return whether a bound is free of assumptions, or its assumption, and what model without noise it leaves out."""
    text = "Assumption-free." if kind == ASSUMPTION_FREE else assumption_text(assumption)
    return f"{text.removesuffix('.')}{exception_text(envelope_days)}." if text else ""

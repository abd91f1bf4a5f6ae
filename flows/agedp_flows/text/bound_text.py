"""Sentences on the bounds of a statement, in the terms of the field.

Ledgers and statements keep their stored texts of scope and assumption, which are hashed; a text that is not listed here
is shown as stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agedp_data.messages import sentence_start
from agedp_data.notions.age_dependent import ASSUMED, NO_MODEL
from agedp_data.notions.enforcement import is_total_at_delta, own_bound_name
from agedp_data.notions.notion import DAY_BOUND, RESULTS, TOTAL_BOUND, Notion
from agedp_data.statement.document import StatedBound
from agedp_data.statement.note_texts import with_delta
from agedp_flows.text.screen import format_bound

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
    weight, unit = discounted["weight"], discounted["ago"].replace("days", "day", 1)
    if exponential := _EXPONENTIAL.fullmatch(weight):
        discount = f"exponential discounting with rate {exponential[1]}"
    elif hyperbolic := _HYPERBOLIC.fullmatch(weight):
        discount = f"hyperbolic discounting with rate {hyperbolic[1]}"
    else:
        discount = f"weight {weight} of a loss j days old"
    scope = f"discounted sum of all published days of one household, {discount} per {unit}{discounted['draws'] or ''}"
    return f"{scope}; maximum over days" if discounted["worst"] else scope


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


def promised_bound_lines(notion: Notion, bounds: Mapping[str, StatedBound], *, when: str = "") -> list[str]:
    """Return the bounds that a promise limits in addition to a day's loss and the pure total, with their limits.

    `bounds` are those of a statement by name, `when` follows their label. A bound with a delta has its own name.
    """
    total_at_delta = (name for name, limit in notion.limits.items() if limit is not None and is_total_at_delta(name))
    lines = []
    for bound in [bounds[name] for name in (*total_at_delta, own_bound_name(notion.limits)) if name in bounds]:
        label = sentence_start(bound.name.partition(" (delta")[0]) if bound.delta else "Bound of the notion"
        epsilon = f"epsilon {format_bound(bound.epsilon, limit=bound.limit)}{with_delta(bound.delta)}"
        exception, scope = exception_text(bound.conditional_days), scope_text(bound.scope)
        text = f"{label}{when}: {epsilon} of at most {bound.limit}{exception}. Scope: {scope}."
        lines.append(" ".join(filter(None, [text, assumption_text(bound.assumption)])))
    return lines

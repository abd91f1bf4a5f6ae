"""Notes of a statement: what is particular about a release, its ledger, its households and those of other releases.

The notes are stored in the ledger and hashed. A statement that is published already keeps the texts that it has; a new
wording is for new statements, and a note that an earlier statement decides by is recognised in each of its wordings.

The prose of all modules of the statement is in `texts.toml`, by section and name, with names to fill in in braces: it
is written, read and compared as prose, and the modules say when a sentence applies.

>>> NOTES.own_days_too
'The model was estimated from days that are released here as well.'
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any, Final

from agedp_data.config.contract_document import ContractDocument
from agedp_data.config.run_file import is_large_delta
from agedp_data.epsilon import NANO, exact_text, format_delta, round_nano, rounded_up
from agedp_data.notions.enforcement import is_total_at_delta
from agedp_data.notions.notion import ASSUMPTION_FREE, CALIBRATION_DAY_BOUND, DAY_BOUND, TOTAL_BOUND, LossBound
from agedp_data.statement.document import AddedLoss, StatedBound


class Texts:
    """The texts of a section, each an attribute; or several under one name, in order or by a key."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._texts = texts

    def __getattr__(self, name: str) -> str:
        if name not in self._texts:
            raise AttributeError(f"there is no text {name!r}")
        text: str = self._texts[name]
        return text

    def several(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        return tuple(self._texts[name])

    def by_key(self, name: str) -> Mapping[str, str]:
        """Return the texts of a table by their keys."""
        texts: Mapping[str, str] = self._texts[name]
        return texts


def read_texts(file: Path) -> dict[str, Texts]:
    """Return the texts of a TOML file by section."""
    return {section: Texts(texts) for section, texts in tomllib.loads(file.read_text(encoding="utf-8")).items()}


_SECTIONS: Final = read_texts(Path(__file__).with_name("texts.toml"))
NOTES: Final = _SECTIONS["notes"]
FACTS: Final = _SECTIONS["facts"]
WORDS: Final = _SECTIONS["markdown"]


# --------------------------------------------------------------------------------------------------
# The factor by which odds may change under a bound, as decimal text: exact for the table, short for people.
#
# Example: epsilon 0.5 has the factor 1.65, which is e^0.5 rounded up.
# --------------------------------------------------------------------------------------------------

_FINE = Context(prec=50, Emax=MAX_EMAX)
_LARGE, _TWO_DIGITS = 1000, Context(prec=2, Emax=MAX_EMAX, rounding=ROUND_CEILING)
_THREE_DIGITS = Context(prec=3, Emax=MAX_EMAX, rounding=ROUND_CEILING)
INFINITE: Final = "infinite"
"""Epsilon of a bound without a limit."""
_THREE_DIGITS_DOWN = Context(prec=3, rounding=ROUND_FLOOR)
_CERTAIN: Final = 30
_NEARLY: Final = 99
"""Chances above it are in tenths of a percent [%]."""
TOGETHER: Final = (2, 5, 10)
"""Numbers of households whose pure losses together are stated: so many times those of one."""
_USELESS, _HUGE = 10**6, 10**12
"""A factor that protects nothing in practice, and one of which only the power of ten is of interest."""


def odds_factor(loss: int) -> str:
    """Return e^epsilon of a whole loss as decimal text, rounded up: to hundredths, from 1000 on to two digits.

    >>> odds_factor(0), odds_factor(500_000_000), odds_factor(182_500_000_000)
    ('1', '1.65', '1.9e79')
    """
    if loss == 0:
        return "1"
    power = _power(loss)
    if power < _LARGE:
        return str(power.quantize(Decimal("0.01"), rounding=ROUND_CEILING))
    return f"{_TWO_DIGITS.plus(power):e}".replace("e+", "e")


def short_factor(epsilon: str) -> str:
    """Return e^epsilon for people, rounded up to three digits; of a huge factor a power of ten.

    >>> short_factor("0.5"), short_factor("2.5"), short_factor("10"), short_factor("20"), short_factor("182.5")
    ('1.65', '12.2', '22,100', '486 million', '10^80')
    """
    power = _power(round_nano(Decimal(epsilon)))
    if power >= _HUGE:
        return f"10^{power.adjusted() + 1}"
    if power >= _USELESS:
        return f"{_THREE_DIGITS.plus(power.scaleb(-6)).normalize():,f} million"
    return f"{_THREE_DIGITS.plus(power).normalize():,f}"


def is_useless_factor(epsilon: str) -> bool:
    """Return whether a factor is too large, or missing, to protect anything in practice.

    >>> is_useless_factor("2.5"), is_useless_factor("14"), is_useless_factor("infinite")
    (False, True, True)
    """
    return epsilon == INFINITE or _power(round_nano(Decimal(epsilon))) >= _USELESS


def largest_of_day(epsilons: Mapping[str, str]) -> str:
    """Return the largest pure epsilon about one day, of published days and of days of a calibration, by bound.

    >>> largest_of_day({"day": "0.5", "total": "7"}), largest_of_day({})
    ('0.5', 'infinite')
    """
    of_day = [epsilons[name] for name in (DAY_BOUND, CALIBRATION_DAY_BOUND) if name in epsilons]
    return max(of_day or [INFINITE], key=lambda epsilon: float("inf") if epsilon == INFINITE else float(epsilon))


def odds_percent(nano_epsilon: int) -> str:
    """Return what a loss does to an even chance, rounded up.

    >>> odds_percent(500_000_000), odds_percent(5_000_000_000), odds_percent(182_500_000_000)
    ('50 to 63 %', '50 to 99.4 %', '50 to 100 %')
    """
    loss = nano_epsilon / NANO
    chance = 100 / (1 + math.exp(-loss)) if loss < _CERTAIN else 100.0
    digits = 1 if chance > _NEARLY else 10
    return f"50 to {math.ceil(chance * 10 / digits - 1e-9) * digits / 10:g} %"


def short_number(value: str) -> str:
    """Return a decimal number for people, rounded up to three digits; text that is no number as it is.

    >>> short_number("182.5"), short_number("0.100000001"), short_number("0.5"), short_number("infinite")
    ('183', '0.101', '0.5', 'infinite')
    """
    return rounded_up(Decimal(value)) if value[:1].isdecimal() else value


def short_rest(value: str) -> str:
    """Return what remains of a budget for people, rounded down to three digits; text that is no number as it is.

    >>> short_rest("0.620323604"), short_rest("unlimited")
    ('0.62', 'unlimited')
    """
    return exact_text(_THREE_DIGITS_DOWN.plus(Decimal(value))) if value[:1].isdecimal() else value


def _power(loss: int) -> Decimal:
    return _FINE.next_plus(_FINE.exp(Decimal(loss) / NANO)) if loss else Decimal(1)


# --------------------------------------------------------------------------------------------------
# What a statement says of a model that was made from readings: an envelope without noise, or a private selection.
#
# An envelope is computed from the readings of its period and published without noise. Figures bound what the noisy
# releases say beyond it; together with it none is unconditional: about the days of its period because it may change
# with one of them, about other days because a household's days resemble each other. Every sentence with a bound says
# so.
#
# A privately selected model is a draw with a loss, which the bounds count. It bounds the chains of a share of the
# households, with a probability; no sentence calls its bounds bounds for every household.
#
# Decisions. The texts are stored in the ledger and hashed; a published statement keeps its own wording. `protects`,
# `always` and the others are functions of public facts: the periods of envelopes, and whether anything was drawn from
# the readings.
# --------------------------------------------------------------------------------------------------


_EXACT: Final = Context(prec=MAX_PREC)


def is_private(model: Mapping[str, Any] | None) -> bool:
    """Return whether a model's public part is a private selection's."""
    return model is not None and model.get("publish") == "private"


def protects(envelope_days: str, *, has_draws: bool) -> str:
    """Return what is protected, where something was made from the readings besides the releases.

    Args:
        envelope_days: the periods of published envelopes; "" without one.
        has_draws: whether the bounds count calibration draws.
    """
    return NOTES.protects.format(
        noisy=" with noise" if envelope_days else "",
        bound="'day', or 'calibration day' for a day of the calibration" if has_draws else "'day'",
        draws=", which counts the draws of the calibration" if has_draws else "",
        envelope=NOTES.envelope_on_top.format(days=envelope_days) if envelope_days else "",
    )


def aside(envelope_days: str) -> str:
    """Return the end of a sentence with a bound: that no bound counts the envelopes; "" without one."""
    return NOTES.envelope_aside if envelope_days else ""


def always(envelope_days: str, *, has_draws: bool) -> str:
    """Return which bounds rest on no assumption, and what they leave out; as `protects`."""
    return NOTES.always.format(
        draws=", and count the draws of the calibration" if has_draws else "",
        envelope=NOTES.envelope_exception.format(days=envelope_days) if envelope_days else "",
        and_draws=" and these draws" if has_draws else "",
        noisy=", beyond the leakage bound of the model" if envelope_days else "",
    )


def selection_texts(model: Mapping[str, Any]) -> tuple[str, str]:
    """Return of which households a privately selected model is a bound, with which probability, and by what.

    >>> public = {"coverage": "0.95", "failure_probability": "0.000001", "households": 5566, "confidence": "plug-in",
    ...           "period": ["2012-01-01", "2012-12-31"]}
    >>> selection_texts(public)[0][:80]
    'With probability at least 0.999999, the estimated chains of at least 95 % of the'
    """
    level = model.get("level")
    confidence = f" (at the confidence level {level})" if level is not None else ""
    return (
        NOTES.selected.format(**_numbers(model), confidence=confidence),
        NOTES.selected_of.format(period=" to ".join(model["period"]), households=model["households"]),
    )


def share_text(model: Mapping[str, Any]) -> str:
    """Return the share of the households that a model bounds, "" if it is meant to bound each of them.

    >>> share_text({"publish": "private", "coverage": "0.95", "failure_probability": "0.01", "households": 900,
    ...             "period": ["2012-01-01", "2012-12-31"]})[:66]
    'with probability at least 0.99 at least 95 % of the 900 households'
    >>> share_text({"source": "declared"})
    ''
    """
    if not is_private(model):
        return ""
    return NOTES.share.format(**_numbers(model), households=model["households"], period=" to ".join(model["period"]))


def _numbers(model: Mapping[str, Any]) -> dict[str, str]:
    probability = _EXACT.subtract(Decimal(1), Decimal(str(model["failure_probability"])))
    share = _EXACT.multiply(Decimal(100), Decimal(str(model["coverage"])))
    return {"probability": exact_text(probability), "share": exact_text(share)}


# --------------------------------------------------------------------------------------------------
# What a statement says of bounds with a delta: those of all days, or of a window of days, of one household.
#
# Such a bound compares all that one household did on these days with anything else that it might have done. For every
# set S of results, Pr[S | x] <= e^epsilon Pr[S | x'] + delta.
#
# Decisions:
#
# * The sentence "but for a probability of delta the odds change by at most e^epsilon" is false and is not written: the
#   loss may exceed epsilon with a probability above delta. Odds never change by more than e^total.
# * The texts on spans, and those on a second population or an account beside a delta, are stored in the ledger and
#   hashed; a published statement keeps its own wording.
# * Losses of two populations add in the day's bound and in those of a span. No sum is stated for temporal leakage,
#   which may exceed the sum of both under a chain.
# * Amounts in sentences round up: e^10.75, one in 1,000,000.
# --------------------------------------------------------------------------------------------------


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
    return NOTES.of_delta.format(
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
    so_far = short_number(bound.epsilon)
    if "infinite" not in (so_far, bound.limit) and Decimal(so_far) > Decimal(bound.limit):
        so_far = bound.epsilon  # exact where rounding would raise it above its limit
    return (
        f"{about[:1].upper()}{about[1:]}: at most epsilon {bound.limit}{with_delta(bound.delta)} (row *{bound.name}*; "
        f"so far {so_far}){condition}."
    )


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


def part_text(delta: Decimal) -> str:
    """Return a probability in words, rounded up.

    >>> part_text(Decimal("0.000001")), part_text(Decimal("0.3"))
    ('one in 1,000,000', 'one in 3')
    """
    return f"one in {int(1 / delta):,}"


def large_delta_warnings(contract: ContractDocument, households: int) -> Iterator[str]:
    """Yield a warning if the delta of a contract is large for the fewest households that any contract releases."""
    delta = contract.promise.delta
    if delta is not None and is_large_delta(Decimal(delta), households):
        yield NOTES.large_delta.format(delta=format_delta(Decimal(delta)), households=households)

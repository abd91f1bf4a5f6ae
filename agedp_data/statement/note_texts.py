"""Notes of a statement: what is particular about a release, its ledger, its households and those of other releases.

The texts are stored in the ledger and hashed. A statement that is published already keeps the texts that it has; a new
wording is for new statements, and a note that an earlier statement decides by is recognised in each of its wordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final

from agedp_data.config.contract_document import ContractDocument
from agedp_data.config.run_file import is_large_delta
from agedp_data.epsilon import NANO, format_delta, round_nano
from agedp_data.notions.enforcement import is_total_at_delta
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, TOTAL_BOUND, LossBound
from agedp_data.parameters import exact_text
from agedp_data.statement.document import AddedLoss, StatedBound

BEYOND = (
    "{name}: what was released before the last change of the promise has epsilon {said}, more than its limit of "
    "{bound} now. No change undoes that. The limit of {bound} binds every sum that a further release is part of."
)
LARGE_DELTA = (
    "The promise has delta = {delta}, more than 1/n^2 for n = {households}, the fewest households of a released day or "
    "group. A bound with a delta permits every set of results to be more probable than e^epsilon times by delta, for "
    "each household. The bounds 'day' and 'total' have no delta."
)
SMOOTHING = (
    "Estimates that any reader computes from these averages with a calendar and the weather (`agedp smooth`) are "
    "post-processing: they disclose nothing more about any household. They are published beside the averages and do "
    "not replace them. Their 90 % intervals assume a model and leave out use above the clamp. In a test on means of 18 "
    "and 19 real households they held 91 to 93 % of days, 91 to 93 % of holidays and 72 to 88 % of the tenth of days "
    "that a calendar explains least."
)
OVERLAP = (
    "This ledger contains other populations as well. It was not checked whether they share households; the losses of "
    "shared households add up."
)
RECOVERED = (
    "The ledger was lost and recovered from a release folder. What it contained beyond that folder is unknown, and "
    "losses of releases that were in no recipient's folder are not counted."
)
TAKEN_OVER = (
    "The ledger continues a copy of one that was lost. What the lost ledger contained beyond the copy is unknown, and "
    "those losses are not counted."
)
UNWITNESSED = (
    "The ledger has no witness in another place. A machine that was restored from a backup, ledger and release folder "
    "together, could release published days a second time, and those losses would not be counted."
)
TEMPORARY_LEDGER = (
    "The ledger of this release was kept in memory: no record of the spent losses outlives the process that made it. "
    "Another release of the same days draws again, and the losses add up."
)
ROSTER_FROM_FILES = (
    "The roster was derived from the input files. Which households have readings, and from which day to which, counts "
    "as public: no bound counts it, and the bounds hold for this roster."
)
NET_EXPORTS = (
    "Energy that households feed into the grid is subtracted from what they take. A net export counts as 0: that of a "
    "day in means and distributions, that of a half-hour in profiles and states."
)
ACCEPTED_FINDINGS = (
    "A judge looked at the input before the first release. Its findings {names} are accepted in writing: they may "
    "touch more than 1 % of the household-days of the roster, or of a group. This choice was made after looking at "
    "readings."
)
READ_OFF_KEYS = (
    "The keys {names} of [input.columns] were read off the first readings, and a judge looked at the input before the "
    "first release. These choices were made after looking at readings: no bound counts them."
)
EARLIER_ROSTER_NOTES: Final = frozenset(
    {
        "The roster was derived from the input files. The households with readings, and their first and last days, are "
        "then public, and no bound counts this.",
        "The roster was read off the input files: who has readings, and from when to when, is then public, and no "
        "figure counts it.",
        "The roster was read off the input files: who has readings, and from when to when, is then public.",
    }
)
"""Wordings of `ROSTER_FROM_FILES` in statements of earlier versions."""
OWN_DAYS_TOO = "The model was estimated from days that are released here as well."
REHEARSAL = "REHEARSAL: the dates are simulated. This is not a publication."
REHEARSED_ON_SYNTHETIC = (
    "The households are synthetic: the released sums follow from constants of the software, the run file and the "
    "number of households on the roster, by day and group. No reading entered them. The losses stated here are losses "
    "of no real household."
)
REHEARSED_ON_READINGS = (
    "Only the dates are simulated. The noise was drawn for the readings of the input: the losses are losses of these "
    "households like those of any release, and count as such."
)
REHEARSED_EARLIER = (
    "Only the dates are simulated. The noise was drawn for the readings of the input: the losses are losses of these "
    "households like those of any release. The rehearsal began before rehearsals were counted. It is not known "
    "whether other statements about these households count its losses."
)
SECOND_POPULATION = (
    "Composition: a household that is counted in a second population as well, of this ledger or another one, is part "
    "of both releases, and its losses add up. A second population under the same promise may add the amounts given "
    "here to the bounds 'day' and 'total'. The tool adds up the releases of one population in one ledger; it cannot "
    "see shared households."
)
SECOND_POPULATION_COUNTED = (
    "Composition: a household that is counted in a second population as well is part of both releases, and its losses "
    "add up. The register of households adds them up; the section on one account per household has its largest sums. A "
    "second population under the same promise may add the amounts given here to the bounds 'day' and 'total'."
)
HOUSEHOLD_ACCOUNT = (
    "Over all releases that this register knows, the losses of one household come to at most: of a day {day}, in all "
    "{total}{aside}. The register of households adds up the releases of a household's readings in every population, "
    "series, ledger and rehearsal. A household that nothing else counts has the bounds 'day' and 'total' of this "
    "statement. The register counts since {since}. Of earlier releases of other populations, ledgers and rehearsals, "
    "it knows only those of populations, ledgers and rehearsals that have run again since. It does not know releases "
    "that were made with another confidential folder which does not share it, on this machine or another one, from "
    "tables in memory, or by other tools."
)
REGISTER_REBUILT = (
    "The register of households was lost, and on {since} it was filled again from this ledger. Earlier releases of "
    "other populations, ledgers and rehearsals are counted only where these have released again since."
)
EARLIER_REHEARSALS = (
    "Rehearsals took place beside this release before the register of households counted them. If they were over real "
    "readings, they were draws as well, and their losses are not counted."
)
EARLIER_RELEASES = (
    "Other populations or ledgers released beside this release before the register of households counted them; their "
    "losses are not counted."
)
OUTSIDE_REGISTER = (
    "This release was made from a table in memory, and no register of households counts it. The losses of other "
    "populations, ledgers and rehearsals of the same households are to be added."
)


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


def short_number(value: str) -> str:
    """Return a decimal number for people, rounded up to three digits; text that is no number as it is.

    >>> short_number("182.5"), short_number("0.100000001"), short_number("0.5"), short_number("infinite")
    ('183', '0.101', '0.5', 'infinite')
    """
    return _three_digits(value, _THREE_DIGITS)


def short_rest(value: str) -> str:
    """Return what remains of a budget for people, rounded down to three digits; text that is no number as it is.

    >>> short_rest("0.620323604"), short_rest("unlimited")
    ('0.62', 'unlimited')
    """
    return _three_digits(value, _THREE_DIGITS_DOWN)


def _three_digits(value: str, context: Context) -> str:
    return f"{context.plus(Decimal(value)).normalize():f}" if value[:1].isdecimal() else value


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

_PROTECTS: Final = (
    "One household's use on one day. Had its readings of that day been any others, the probability of every result "
    "released about the day{noisy} would differ by at most a factor e^epsilon, where epsilon is the bound "
    "{bound}{envelope}. For all days of the household together the same holds with the bound 'total'{draws}{envelope}."
)
_ALWAYS: Final = (
    "The bounds of a day, of windows and of the total need no assumption about the behaviour of "
    "households{draws}{envelope}. The total limits what all published days{and_draws} together disclose about one "
    "household{noisy}."
)
_ENVELOPE_ASIDE: Final = (
    "; no bound counts the leakage bound of the model, computed from the readings of {days} and published without noise"
)
_ENVELOPE_EXCEPTION: Final = (
    ", and limit the noisy releases alone. They leave out the leakage bound of the model, computed from the readings "
    "of {days} and published without noise; with it none of them is unconditional about these days, nor about days "
    "that resemble them"
)
ENVELOPE: Final = (
    "Bounds limit what the noisy releases disclose beyond the leakage bound of the model, which was computed from the "
    "readings of {days} and has no noise. Together with that publication without noise no bound is unconditional: "
    "neither about a household's use on these days nor about days that resemble them. Each row of the table repeats "
    "this."
)
NOT_PROTECTED_FROM_ENVELOPE: Final = (
    "What the leakage bound of the model discloses: it was computed from the readings of {days} and published without "
    "noise. So it may disclose a household's use on these days with certainty, and its habits on others. No bound "
    "limits this."
)
HABITS_BESIDE_ENVELOPE: Final = (
    "Use on many days: days resemble each other, so the release of one day discloses something about others. As far as "
    "the noisy releases disclose them, this and habits that show every day are limited by the bound 'total', not by "
    "the bound 'day'{aside}."
)
MOVED_OUT_BESIDE_ENVELOPE: Final = (
    "Moving out while still on the roster: it shows in all later days of the household. As far as the noisy releases "
    "disclose it, only the bound 'total' protects it{aside}."
)
SELECTED: Final = (
    "With probability at least {probability}, the estimated chains{confidence} of at least {share} % of the households "
    "lie below the curve of the model. For the other households only the caps hold, and the bounds that need no model. "
    "It is not published which households these are."
)
SELECTED_OF: Final = (
    "The curve of the model was drawn from a public family of curves, by the readings of {period}; the households are "
    "the {households} that were on the roster then."
)
SHARE: Final = (
    "with probability at least {probability} at least {share} % of the {households} households that were on the roster "
    "from {period} are"
)


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
    return _PROTECTS.format(
        noisy=" with noise" if envelope_days else "",
        bound="'day', or 'calibration day' for a day of the calibration" if has_draws else "'day'",
        envelope=aside(envelope_days),
        draws=", which counts the draws of the calibration" if has_draws else "",
    )


def aside(envelope_days: str) -> str:
    """Return the end of a sentence with a bound: that no bound counts the envelopes; "" without one."""
    return _ENVELOPE_ASIDE.format(days=envelope_days) if envelope_days else ""


def always(envelope_days: str, *, has_draws: bool) -> str:
    """Return which bounds rest on no assumption, and what they leave out; as `protects`."""
    return _ALWAYS.format(
        draws=", and count the draws of the calibration" if has_draws else "",
        envelope=_ENVELOPE_EXCEPTION.format(days=envelope_days) if envelope_days else "",
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
        SELECTED.format(**_numbers(model), confidence=confidence),
        SELECTED_OF.format(period=" to ".join(model["period"]), households=model["households"]),
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
    return SHARE.format(**_numbers(model), households=model["households"], period=" to ".join(model["period"]))


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
# * `SPANS`, `PROMISED_SPANS`, `PROTECTED_SPANS`, `SECOND_POPULATION_AT_DELTA`, `SECOND_POPULATION_COUNTED_AT_DELTA`
#   and `ACCOUNT_WITHOUT_DELTA` are stored in the ledger and hashed; a published statement keeps its own wording.
# * Losses of two populations add in the day's bound and in those of a span. No sum is stated for temporal leakage,
#   which may exceed the sum of both under a chain.
# * Amounts in sentences round up: e^10.75, one in 1,000,000.
# --------------------------------------------------------------------------------------------------

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
SECOND_POPULATION_AT_DELTA: Final = (
    "Composition: a household that is counted in a second population as well, of this ledger or another one, is part "
    "of both releases, and its losses add up, epsilons and deltas alike. A second population under the same promise "
    "may add the day's cap to the bound 'day'. To a promised bound of all days or of a window it may add the epsilon "
    "and the delta of that bound. The tool adds up the releases of one population in one ledger; it cannot see shared "
    "households."
)
SECOND_POPULATION_COUNTED_AT_DELTA: Final = (
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


def large_delta_warnings(contract: ContractDocument) -> Iterator[str]:
    """Yield a warning if the delta of a contract is large for its fewest households."""
    delta, households = contract.promise.delta, contract.population.min_households
    if delta is not None and is_large_delta(Decimal(delta), households):
        yield LARGE_DELTA.format(delta=format_delta(Decimal(delta)), households=households)

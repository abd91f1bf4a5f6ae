"""What a statement says of a model that was made from readings: an envelope without noise, or a private selection.

An envelope is computed from the readings of its period and published without noise. Figures bound what the noisy
releases say beyond it; together with it none is unconditional: about the days of its period because it may change with
one of them, about other days because a household's days resemble each other. Every sentence with a bound says so.

A privately selected model is a draw with a loss, which the bounds count. It bounds the chains of a share of the
households, with a probability; no sentence calls its bounds bounds for every household.

Decisions. The texts are stored in the ledger and hashed; a published statement keeps its own wording. `protects`,
`always` and the others are functions of public facts: the periods of envelopes, and whether anything was drawn from
the readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import MAX_PREC, Context, Decimal
from typing import Any, Final

from agedp_data.parameters import exact_text

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

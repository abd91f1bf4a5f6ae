"""Sentences of STATEMENT.md on the series: what each counts, its clamp and noise, made from the contract."""

from __future__ import annotations

from decimal import Decimal

from agedp_data.config.contract_document import ContractDocument, SeriesTerms
from agedp_data.datasets.validation import SLOTS
from agedp_data.messages import sentence_start
from agedp_data.parameters import exact_text, watt_hours
from agedp_data.roster import columns_text
from agedp_data.series.load_profile import profile_sensitivity
from agedp_data.series.monthly_profile import WEIGHTS
from agedp_data.series.series import BY_NAME
from agedp_data.series.series_terms import layer_number
from agedp_data.statement.consistency_text import consistency_texts
from agedp_data.statement.layer_texts import layer_series_text, layers_texts
from agedp_data.statement.level_texts import levels_texts

_MEAN = "mean daily use of the households"
_RANGES = (
    "Ranges in kWh: {bins}; each from one number to below the next, the last one including its end. Noise is added to "
    "each count (discrete Laplace, scale = "
)
_PERIODS = (
    ". A row covers all days of a {every} of the calendar and names the first and the last of them; only a whole "
    "{every} is released. Noise is added to the sum over all these days, in whole watt-hours (discrete Laplace, scale "
    "= days x clamp / epsilon): it is that of all days of a household which the row covers. The noisy sum is divided "
    "by the household-days on the roster. Values below 0 are published as drawn. The loss of a row counts in full on "
    "each day that it covers and in every window of days that touches one of them, and once in the total"
)
_DRAWN = ". Counts are published as drawn: whole numbers that may be negative and need not "
_COUNTS = {
    "histogram": f"{_RANGES}2 / epsilon: a household whose use changes leaves one range for another){_DRAWN}add up",
    "cumulative": (
        "Each count is of the households below an end; the last one, of all households, is known and not drawn. "
        f"{_RANGES}number of counts / epsilon: a household whose use changes may change each by one){_DRAWN}increase"
    ),
}

_PROFILE = (
    "mean use of the households by {reading} of the day{by}. A household's {reading} counts at most {clamp} kWh. Where "
    "its {readings} then add up to more than {day_clamp} kWh (clamp of the day), each is reduced in proportion and "
    "rounded down to whole watt-hours. {Readings} without a reading count 0 kWh. The whole day counts {missing} kWh, "
    "spread evenly, if more than {max_missing} of its {readings} have no reading"
)
_PROFILE_NOISE = (
    ". Noise is added to the sum of each {reading}, in whole watt-hours (discrete Laplace, scale = {sensitivity} kWh / "
    "epsilon). {sensitivity} kWh is the sensitivity of all {readings} of a day together, {smaller}. A household that "
    "moves its use to other {readings} lowers some sums and raises others. Each noisy sum is divided by the number of "
    "households on the roster. Values below 0 are published as drawn. A day on which the clock goes forward by an hour "
    "lacks the {readings} that it skips. Where the clock goes back, repeated {readings} are counted together with "
    "those before them, and their clamp is that of any {reading}"
)
_PROFILE_OF_MONTHS = (
    ". A row covers all days of a calendar month and names the first and the last of them; only a whole month is "
    "released. It has two profiles: of weekdays, Monday to Friday, and of weekends, Saturday and Sunday; public "
    "holidays count by their day of the week. Each {reading} is added up over all days of its kind, times {weekday} "
    "on weekdays and times {weekend} on weekends, so that both profiles have nearly the same noise. Noise is added to"
    " each sum, in whole watt-hours (discrete Laplace, scale = ({weekday} x weekdays + {weekend} x days of weekends) "
    "x {sensitivity} kWh / epsilon). {sensitivity} kWh is the sensitivity of all {readings} of a day together, "
    "{smaller}; the scale is that of all days of a household which the row covers. Each noisy sum is divided by the "
    "same number, {weekday} or {weekend}, by the household-days on the roster, and by how often the {reading} occurs "
    "on a day of its kind: less than once where a clock skips it, more than once where it occurs twice. Values below "
    "0 are published as drawn. The loss of a row counts in full on each day that it covers and in every window of "
    "days that touches one of them, and once in the total"
)


def series_paragraphs(contract: ContractDocument) -> list[str]:
    """Return what each series counts and how noise is added to it, and what holds for several of them."""
    small = (
        f"A day, or a group, with fewer than {contract.population.min_households} households on the roster is never "
        "released."
    )
    shared = contract.terms.promise.shared_quantity
    states = _states_text(contract) if any(series.values == "states" for series in contract.series.values()) else ""
    readings = "hours" if contract.input.interval_minutes == 60 else "half-hours"
    texts = [_series_text(name, series, shared, states, readings) for name, series in sorted(contract.series.items())]
    paragraphs = *layers_texts(contract), *levels_texts(contract), *consistency_texts(contract)
    return ["\n".join(f"* {text}" for text in texts), *paragraphs, small]


def _states_text(contract: ContractDocument) -> str:
    """Return the sentences on public states and their representative values, "" without such states."""
    states = contract.terms.states
    if states is None:
        return ""
    edges, values_kwh = (
        ", ".join(exact_text(Decimal(wh) / 1000) for wh in values_wh)
        for values_wh in (states.edges_wh, states.representative_values_wh)
    )
    quantity = "each half-hour" if states.step == "half-hour" else "the day's use"
    return (
        f". States are counted, not readings: {quantity} counts as the representative value of its state, the middle "
        f"of the range that it lies in. The ranges begin at 0, {edges} kWh; each ends where the next begins, and the "
        f"last has no end. Their representative values are {values_kwh} kWh"
    )


def _series_text(name: str, series: SeriesTerms, shared: str, states: str, readings: str) -> str:
    share = f" The share of the series is {series.share} of {shared}." if series.share != "1" else ""
    kind = BY_NAME[series.statistic]
    if kind.stated:
        text = kind.stated.format(by=_group_text(series), max_missing=series.max_missing, readings=readings)
    elif kind.reads_half_hours:
        text = _profile_text(series, states, readings)
    else:
        return f"{_day_text(name, series, states, readings)}.{share}"
    return f"{name}: {text}.{share}"


def _group_text(series: SeriesTerms) -> str:
    return "" if series.by is None else f", by {columns_text(series.by)} of the roster"


def _profile_text(series: SeriesTerms, states: str, readings: str) -> str:
    half_hour, day = (Decimal(clamp or 0) for clamp in (series.half_hour_clamp_kwh, series.clamp_kwh))
    clamps = {"half_hour_clamp": watt_hours(half_hour), "day_clamp": watt_hours(day)}
    sensitivity = Decimal(profile_sensitivity("replacement", slots=SLOTS, **clamps)) / 1000
    number, clamp = (SLOTS // 2, 2 * half_hour) if readings == "hours" else (SLOTS, half_hour)
    words = {"reading": readings.removesuffix("s"), "readings": readings, "Readings": sentence_start(readings)}
    all_clamps = f"{number} times the clamp of the {words['reading']}, less than twice that of the day"
    counted = _PROFILE.format(
        by=_group_text(series),
        clamp=exact_text(clamp),
        day_clamp=series.clamp_kwh,
        missing=series.missing_kwh,
        max_missing=series.max_missing,
        **words,
    )
    is_daily = series.every in (None, "day")
    noise = (_PROFILE_NOISE if is_daily else _PROFILE_OF_MONTHS).format(
        sensitivity=exact_text(sensitivity),
        smaller="twice the clamp of the day" if sensitivity == 2 * day else all_clamps,
        weekday=WEIGHTS["weekday"],
        weekend=WEIGHTS["weekend"],
        **words,
    )
    return counted + states + noise


def _day_text(name: str, series: SeriesTerms, states: str, readings: str) -> str:
    is_distribution = BY_NAME[series.statistic].unit == "households"
    range_name = "clamp" if series.above_kwh is None else "width"
    covers_periods = series.every not in (None, "day")
    if layer_number(name):
        text = layer_series_text(name, series)
    else:
        text = f"{name}: {'number of households by range of daily use' if is_distribution else _MEAN}"
        text += f", over each {series.every}" if covers_periods else ""
        text += _group_text(series)
        text += f"; a household's daily total counts at most {series.clamp_kwh} kWh (clamp)"
    if series.max_missing is not None:
        text += f", and {series.missing_kwh} kWh if more than {series.max_missing} of its {readings} have no reading"
    if series.values == "states":
        text += states
    if is_distribution:
        text += f". {_COUNTS.get(series.form or '', '').format(bins=', '.join(series.bins_kwh or ()))}"
    elif covers_periods:
        text += _PERIODS.format(every=series.every)
    else:
        text += (
            f". Noise is added to the sum, in whole watt-hours (discrete Laplace, scale = {range_name} / epsilon), and "
            "the noisy sum is divided by the number of households on the roster. Values below 0 are published as drawn"
        )
    return text

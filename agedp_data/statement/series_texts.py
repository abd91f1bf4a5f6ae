"""Sentences of STATEMENT.md on the series: what each counts, its clamp and noise; their wording never changes."""

from __future__ import annotations

from decimal import Decimal

from agedp_data.config.contract_document import Contract, SeriesTerms
from agedp_data.config.model_section import contract_states
from agedp_data.notions import NOTIONS, Promise
from agedp_data.parameters import exact_text
from agedp_data.roster import columns_text
from agedp_data.series.layers import layer_number
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


def series_paragraphs(contract: Contract) -> list[str]:
    """Return what each series counts and how noise is added to it, and what holds for several of them."""
    small = (
        f"A day, or a group, with fewer than {contract.population.min_households} households on the roster is never "
        "released."
    )
    terms = contract.promise
    shared = {notion.name: notion.shared_quantity for notion in NOTIONS}.get(terms.notion, Promise.shared_quantity)(
        terms.content()
    )
    states = _states_text(contract) if any(series.values == "states" for series in contract.series.values()) else ""
    readings = "hours" if contract.input.interval_minutes == 60 else "half-hours"
    texts = [_series_text(name, series, shared, states, readings) for name, series in sorted(contract.series.items())]
    paragraphs = *layers_texts(contract), *levels_texts(contract), *consistency_texts(contract)
    return ["\n".join(f"* {text}" for text in texts), *paragraphs, small]


def _states_text(contract: Contract) -> str:
    """Return the sentences on public states and their representative values, "" without such states."""
    states = contract_states(contract.content())
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
    is_distribution, range_name = series.statistic == "distribution", "clamp" if series.above_kwh is None else "width"
    covers_periods = series.every not in (None, "day")
    if layer_number(name):
        text = layer_series_text(name, series)
    else:
        text = f"{name}: {'number of households by range of daily use' if is_distribution else _MEAN}"
        text += f", over each {series.every}" if covers_periods else ""
        text += f", by {columns_text(series.by)} of the roster" if series.by is not None else ""
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
    share = f" The share of the series is {series.share} of {shared}." if series.share != "1" else ""
    return f"{text}.{share}"

"""Sentences of STATEMENT.md on the series: what each counts, its clamp and noise, made from the contract.

First what several series share (layers of a mean, levels of a hierarchy, groups that add up), then each series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from agedp_data.config.contract_document import ContractDocument, SeriesTerms
from agedp_data.datasets.validation import SLOTS
from agedp_data.messages import sentence_start
from agedp_data.notions import Neighbourhood
from agedp_data.parameters import exact_text, watt_hours
from agedp_data.roster import PATH_SEPARATOR, columns_of, columns_text
from agedp_data.series.consistency import Columns, next_coarser, totals_with_groups
from agedp_data.series.levels import level_column, table_name
from agedp_data.series.profile import WEIGHTS, profile_sensitivity
from agedp_data.series.series import BY_NAME
from agedp_data.series.series_terms import layer_number, mean_name

# --------------------------------------------------------------------------------------------------
# Sentences of STATEMENT.md on the layers of a mean with a list of clamps, made from the contract.
# --------------------------------------------------------------------------------------------------

_LAYERS = (
    "{names} are layers of one mean. Before noise, the layers of a household's day add up to its daily total, at most "
    "{clamp} kWh. So their published values of a day add up to an estimate of the mean up to {clamp} kWh, with the "
    "noise of all of them. A layer above the first is a part of a mean and none by itself. What a household uses above "
    "{clamp} kWh is in no layer. One household's day can change every layer by its width at once: the losses of the "
    "layers add, and every bound counts all of them."
)
_SMALL = (
    " A change of at most {delta_kwh} kWh is counted in every layer as far as its width permits. No household can "
    "attain this in all layers at once, so the bounds on such changes are upper bounds."
)


def layer_series_text(name: str, series: SeriesTerms) -> str:
    """Return what a layer counts, up to the rule for missing days."""
    above, clamp = series.above_kwh or "0", series.clamp_kwh or "0"
    width = exact_text(Decimal(clamp) - Decimal(above))
    by = f", by {columns_text(series.by)} of the roster" if series.by is not None else ""
    if series.above_kwh is None:
        return (
            f"{name}: mean daily use of the households up to {clamp} kWh, layer {layer_number(name)} of "
            f"{mean_name(name)}{by}; a household's daily total counts at most {clamp} kWh (clamp)"
        )
    return (
        f"{name}: mean daily use of the households above {above} and up to {clamp} kWh, a layer of {mean_name(name)}"
        f"{by}; a household's day counts at most {width} kWh (width)"
    )


def layers_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each mean of a contract that has layers."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series):
        if layer_number(name):
            by_table.setdefault(mean_name(name), []).append(name)
    promise = contract.terms.promise
    small = _SMALL.format(delta_kwh=exact_text(promise.delta_kwh)) if isinstance(promise, Neighbourhood) else ""
    for names in by_table.values():
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        yield _LAYERS.format(names=listed, clamp=contract.series[names[-1]].clamp_kwh) + small


# --------------------------------------------------------------------------------------------------
# Sentences of STATEMENT.md on the levels of a hierarchy of groups, made from the contract.
# --------------------------------------------------------------------------------------------------

_LEVELS = (
    "{names} are levels of one hierarchy, {columns}. A group is named by its path, the coarsest label first: {path}. "
    "Every household is in one group of each level, so one household's day can change every level at once: the losses "
    "of the levels add, and every bound counts all of them. Each level is drawn by itself, so the published values of "
    "one level add up to those of the next but for their noise."
)


def levels_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each table of a contract that has levels."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series, key=lambda name: -len(columns_of(contract.series[name].by))):
        if level_column(name):
            by_table.setdefault(table_name(name), []).append(name)
    for names in by_table.values():
        columns = columns_of(contract.series[names[0]].by)
        yield _LEVELS.format(
            names=f"{', '.join(names[:-1])} and {names[-1]}",
            columns=" within ".join(columns),
            path=PATH_SEPARATOR.join(column.upper() for column in reversed(columns)),
        )


# --------------------------------------------------------------------------------------------------
# Sentence of STATEMENT.md on estimates in which groups add up, made from the contract.
# --------------------------------------------------------------------------------------------------

_CONSISTENT = (
    "`consistent_daily_averages.parquet` contains least-squares estimates in which {sums}. They are computed "
    "from the released values alone, add no privacy loss and replace no released value; "
    "where the released groups of a day leave out households, the released value is repeated."
)


def consistency_texts(contract: ContractDocument) -> list[str]:
    """Return one sentence for each quantity of which a contract releases means that add up to each other."""
    series = contract.terms.series
    return [
        _CONSISTENT.format(sums=_sums_text({name: series[name].columns for name in names}))
        for names in totals_with_groups(series)
    ]


def _sums_text(columns: Mapping[str, Columns]) -> str:
    """Return which groups add up to what, totals first."""
    names_by_columns: dict[Columns, list[str]] = {}
    for name, of_series in columns.items():
        names_by_columns.setdefault(of_series, []).append(name)
    finer: dict[Columns, list[str]] = {}
    for of_series, names in names_by_columns.items():
        coarser = next_coarser(of_series, names_by_columns)
        if coarser is not None:
            finer.setdefault(coarser, []).extend(names)
    *first, last = (
        f"the groups of {' and '.join(groups)} add up to {'those of ' if coarser else ''}"
        f"{' and '.join(names_by_columns[coarser])}"
        for coarser, groups in finer.items()
    )
    return f"{', '.join(first)}, and {last}" if first else last


# --------------------------------------------------------------------------------------------------
# All sentences on the series.
# --------------------------------------------------------------------------------------------------

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

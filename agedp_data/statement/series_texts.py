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
from agedp_data.statement.texts import SENTENCES

# --------------------------------------------------------------------------------------------------
# Sentences of STATEMENT.md on the layers of a mean with a list of clamps, made from the contract.
# --------------------------------------------------------------------------------------------------


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
    small = (
        SENTENCES.small.format(delta_kwh=exact_text(promise.delta_kwh)) if isinstance(promise, Neighbourhood) else ""
    )
    for names in by_table.values():
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        yield SENTENCES.layers.format(names=listed, clamp=contract.series[names[-1]].clamp_kwh) + small


# --------------------------------------------------------------------------------------------------
# Sentences of STATEMENT.md on the levels of a hierarchy of groups, made from the contract.
# --------------------------------------------------------------------------------------------------


def levels_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each table of a contract that has levels."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series, key=lambda name: -len(columns_of(contract.series[name].by))):
        if level_column(name):
            by_table.setdefault(table_name(name), []).append(name)
    for names in by_table.values():
        columns = columns_of(contract.series[names[0]].by)
        yield SENTENCES.levels.format(
            names=f"{', '.join(names[:-1])} and {names[-1]}",
            columns=" within ".join(columns),
            path=PATH_SEPARATOR.join(column.upper() for column in reversed(columns)),
        )


# --------------------------------------------------------------------------------------------------
# Sentence of STATEMENT.md on estimates in which groups add up, made from the contract.
# --------------------------------------------------------------------------------------------------


def consistency_texts(contract: ContractDocument) -> list[str]:
    """Return one sentence for each quantity of which a contract releases means that add up to each other."""
    series = contract.terms.series
    return [
        SENTENCES.consistent.format(sums=_sums_text({name: series[name].columns for name in names}))
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
    counted = SENTENCES.profile.format(
        by=_group_text(series),
        clamp=exact_text(clamp),
        day_clamp=series.clamp_kwh,
        missing=series.missing_kwh,
        max_missing=series.max_missing,
        **words,
    )
    is_daily = series.every in (None, "day")
    noise = (SENTENCES.profile_noise if is_daily else SENTENCES.profile_of_months).format(
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
        counts = SENTENCES.by_key("counts").get(series.form or "", "")
        text += f". {counts.format(bins=', '.join(series.bins_kwh or ()))}"
    elif covers_periods:
        text += SENTENCES.periods.format(every=series.every)
    else:
        text += (
            f". Noise is added to the sum, in whole watt-hours (discrete Laplace, scale = {range_name} / epsilon), and "
            "the noisy sum is divided by the number of households on the roster. Values below 0 are published as drawn"
        )
    return text

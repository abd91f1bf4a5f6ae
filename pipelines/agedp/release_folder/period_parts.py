"""LEDGER rows -> the parts of weeks, months and years whose averages are derived: released values that add up.

A part is the released days of one series in one period that count a household's day alike. The sum of the layers of a
mean is a value of the mean by its name in the run file. `period_averages` states the decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final, Literal

from agedp.budget import closed_days, days_by_row, series_by_contract
from agedp_data.config.contract_values import meaning_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.layers import layer_number, layers_of, mean_name
from agedp_data.series.periods import days_of, period_of
from agedp_data.series.series import Mean, is_daily_mean

Period = Literal["week", "month", "year"]
PERIODS: Final[tuple[Period, ...]] = ("week", "month", "year")
_Quantity = tuple[int, int, int, int, str]
"""What counts as a household's day, `Mean.quantity`."""


@dataclass(frozen=True, slots=True)
class DailyValue:
    """Released values of a mean on one day: one row, or those of all its layers, which are added."""

    series: str
    group_column: str
    quantity: _Quantity
    version: int
    rows: tuple[ReleaseRecord, ...]


@dataclass(frozen=True, slots=True)
class PeriodPart:
    """Daily values of one series in one period that count a household's day alike."""

    first_day: date
    last_day: date
    series: str
    group_column: str
    quantity: _Quantity
    values: list[DailyValue] = field(default_factory=list)

    @property
    def version(self) -> int:
        """Return the first contract that counts so."""
        return min(value.version for value in self.values)

    @property
    def key(self) -> tuple[object, ...]:
        """Return what the part is of, and the numbers of its ledger rows."""
        return self.first_day, self.series, self.group_column, self.quantity, tuple(row.seq for row in self.ledger_rows)

    @property
    def ledger_rows(self) -> tuple[ReleaseRecord, ...]:
        """Return the ledger rows that the part is made from."""
        return tuple(row for value in self.values for row in value.rows)

    def completed(self, rows: Mapping[int, ReleaseRecord]) -> PeriodPart | None:
        """Return the part with complete rows by number in place of outlines; None if no layers of it add up."""
        of_rows = [replace(value, rows=tuple(rows[row.seq] for row in value.rows)) for value in self.values]
        values = [value for value in of_rows if _have_equal_groups(value.rows)]
        return replace(self, values=values) if values else None


def _daily_values(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> Iterator[DailyValue]:
    """Yield the released values of means by day, then the sums of layers."""
    series = series_by_contract(contracts)
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    layers: dict[tuple[str, str, str], list[ReleaseRecord]] = {}
    for row in sorted(rows, key=lambda row: (row.day, versions[row.contract])):
        mean = series[row.contract].get(row.series)
        if row.state == "released" and is_daily_mean(mean):
            yield DailyValue(row.series, mean.level, mean.quantity, versions[row.contract], (row,))
            if layer_number(row.series):
                layers.setdefault((row.day, row.contract, mean_name(row.series)), []).append(row)
    for (_, contract, name), of_day in layers.items():
        terms = [series[contract][layer] for layer in layers_of(of_day[0].series, series[contract])]
        means = [mean for mean in terms if isinstance(mean, Mean)]
        if len(of_day) == len(terms) and _have_equal_groups(of_day):
            yield DailyValue(name, means[0].level, _summed_quantity(means), versions[contract], tuple(of_day))


def _have_equal_groups(layers: Sequence[ReleaseRecord]) -> bool:
    return len({(row.cells, row.households) for row in layers}) == 1


def _summed_quantity(layers: Sequence[Mean]) -> _Quantity:
    """Return what counts as a household's day in the sum of all layers of a mean."""
    lowest = layers[0]
    clamp_wh, missing_wh = max(layer.clamp_wh for layer in layers), sum(layer.missing_wh for layer in layers)
    return 0, clamp_wh, missing_wh, lowest.max_missing, lowest.values


def closed_parts(
    period: Period, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> list[PeriodPart]:
    """Return the parts of the periods of which no day is still to be released, by first day, series and version."""
    bounds = {row.day: period_of(date.fromisoformat(row.day), period) for row in rows}
    parts: dict[tuple[date, str, str, _Quantity], PeriodPart] = {}
    for value in _daily_values(rows, contracts):
        first, last = bounds[value.rows[0].day]
        key = first, value.series, value.group_column, value.quantity
        part = parts.setdefault(key, PeriodPart(first, last, *key[1:]))
        part.values.append(value)
    is_open = open_periods({(part.first_day, part.last_day, part.series) for part in parts.values()}, rows, contracts)
    ordered = sorted(parts.values(), key=lambda part: (part.first_day, part.series, part.version))
    return [part for part in ordered if (part.first_day, part.series) not in is_open]


def open_periods(
    periods: Collection[tuple[date, date, str]], rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> set[tuple[date, str]]:
    """Return first day and series of the periods (first day, last day, series) of which a day may still be released.

    A series that was ended may be continued, but only after the days that a row of any series covers.
    """
    terms = meaning_of(contracts[-1].promise)
    schedule, continued = terms["schedule"], terms["series"].keys()
    begin = date.fromisoformat(schedule["first_day"])
    end = date.fromisoformat(schedule["last_day"]) if "last_day" in schedule else date.max
    closed = closed_days(rows, contracts)
    days_with_rows = {day for _, days in days_by_row(rows, contracts) for day in days}
    names: dict[str, set[str]] = {}
    for series in {name for of_contract in series_by_contract(contracts).values() for name in of_contract}:
        for name in (series, mean_name(series)):
            names.setdefault(name, set()).add(series)

    def is_open(day: str, name: str) -> bool:
        undecided = (series for series in names[name] if (day, series) not in closed)
        return any(series in continued or day not in days_with_rows for series in undecided)

    return {
        (first, name)
        for first, last, name in periods
        if any(is_open(day.isoformat(), name) for day in days_of(max(first, begin), min(last, end)))
    }

"""Released row of a mean -> mean and noise of each of its cells, per household.

The daily averages, the signal against noise and the smoothed estimates have their figures from here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from agedp_data import mechanisms
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.release_headers import AnyRelease, ReleaseHeader
from agedp_data.series.mean import is_daily_mean

_WH_PER_KWH: Final = 1000.0


class NoisyMean(NamedTuple):
    """Mean of a group and the standard deviation of its noise [kWh per household], and its number of households."""

    group: str
    mean_kwh: float
    noise_sd_kwh: float
    households: int


def noisy_means(row: ReleaseRecord, groups: Collection[str] | None = None) -> Iterator[NoisyMean]:
    """Yield the cells of a released row of a mean, or of a layer of one; all, or those of some groups.

    The variance of the noise is that of the discrete Laplace law, 2 q / (1 - q)^2 with q = exp(-1 / scale), in units
    of the sum.
    """
    deviation = _standard_deviation(row.scale)
    for place in range(len(row.cells)) if groups is None else places_of(row.cells, frozenset(groups)):
        households = row.households[place]
        wh_per_kwh_mean = _WH_PER_KWH * households
        yield NoisyMean(row.cells[place], row.values[place] / wh_per_kwh_mean, deviation / wh_per_kwh_mean, households)


@lru_cache(maxsize=8)
def places_of(cells: tuple[str, ...], groups: frozenset[str]) -> tuple[int, ...]:
    """Return the places of groups among the cells of a row, in the order of the row; most rows have the same cells."""
    return tuple(place for place, cell in enumerate(cells) if cell in groups)


def rows_of_means(rows: Sequence[AnyRelease], contracts: Sequence[ContractRecord]) -> list[ReleaseRecord]:
    """Return the rows that were means of a day, or layers of one, under the contract by which they were charged."""
    means = _mean_rows(rows, contracts)
    complete = [row for row in means if not isinstance(row, ReleaseHeader)]
    if len(complete) < len(means):
        raise TypeError("means are asked for, but only the headers of their rows were read")
    return complete


def _mean_rows(rows: Sequence[AnyRelease], contracts: Sequence[ContractRecord]) -> list[AnyRelease]:
    series = {contract.hash: contract.terms.series for contract in contracts}
    return [row for row in rows if is_daily_mean(series[row.contract].get(row.series))]


def read_mean_rows(ledger: Ledger, population: str) -> list[ReleaseRecord]:
    """Return the rows of a population that `rows_of_means` returns; the values of no others are read."""
    return [*ledger.rows_of(_mean_rows(ledger.history(population), ledger.contracts(population)))]


def read_newest_rows(ledger: Ledger, population: str) -> list[ReleaseRecord]:
    """Return the newest released row of each series under each contract; the values of no others are read."""
    released = (header for header in ledger.history(population) if header.state == "released")
    newest = {(header.series, header.contract): header for header in sorted(released, key=lambda header: header.day)}
    return [*ledger.rows_of(newest.values())]


@lru_cache(maxsize=1024)
def _standard_deviation(scale: float) -> float:
    return mechanisms.standard_deviation(scale)

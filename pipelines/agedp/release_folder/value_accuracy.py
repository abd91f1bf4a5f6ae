"""LEDGER rows -> how exact the newest values of each series are: the error by the noise alone, for the statement.

Decisions:

* The error is the half-width that the noise exceeds in 5 of 100 cases, whatever coverage the intervals of the tables
  have, so that statements of several releases can be compared.
* Of several groups the one with the largest error speaks for a series: readers who use it are safe for the others.
* Of profiles of months the error is that of a half-hour that every day of its kind has once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from agedp.budget import series_by_contract
from agedp_data import mechanisms
from agedp_data.epsilon import ceil_nano, format_epsilon
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.series import AnySeries
from agedp_data.statement.stated_accuracy import StatedAccuracy

COVERAGE: Final = Decimal("0.95")
_WH_PER_KWH: Final = 1000


def value_accuracy(rows: Iterable[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[StatedAccuracy]:
    """Return the accuracy of the newest released row of each series of the newest contract, by name of the series."""
    series = series_by_contract(contracts)
    newest: dict[str, ReleaseRecord] = {}
    for row in sorted(rows, key=lambda row: (row.day, row.seq)):
        if row.state == "released":
            newest[row.series] = row
    present: Mapping[str, AnySeries] = series[contracts[-1].hash] if contracts else {}
    return [_accuracy(newest[name], series[newest[name].contract][name]) for name in sorted(present) if name in newest]


def _accuracy(row: ReleaseRecord, series: AnySeries) -> StatedAccuracy:
    parts = series.by_part(row.cells, row.households).items()
    divisor, households, group = 1, min(row.households), ""
    if series.unit == "kWh":  # what the noisy sums of a part are divided by [Wh per kWh]
        divisor, households, group = min(
            (_WH_PER_KWH * series.weight(part.kind) * number, number, series.write_part(part)) for part, number in parts
        )
    return StatedAccuracy(
        series=row.series,
        day=row.day,
        group=group,
        households=households,
        unit=series.unit,
        within=format_epsilon(ceil_nano(Fraction(mechanisms.interval(row.scale, COVERAGE), divisor))),
    )

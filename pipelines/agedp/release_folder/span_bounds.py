"""Ledger rows of a release folder -> its (epsilon, delta) bounds over spans of days, for every delta and span.

Sensitivity and noise scale of a row are all that is needed, so folders of every version have these bounds, whether or
not their statement contains them. Example: a year of releases with epsilon 0.1 a day has a sum of 36.5, and epsilon
10.75 with delta 1e-6.

Decisions:

* The error is the half-width that the noise exceeds in 5 of 100 cases, whatever coverage the intervals of the tables
  have, so that statements of several releases can be compared.
* Of several groups the one with the largest error speaks for a series: readers who use it are safe for the others.
* Of profiles of months the error is that of a half-hour that every day of its kind has once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agedp.budget import estimation_periods, series_by_contract
from agedp_data import mechanisms
from agedp_data.epsilon import NANO, ceil_nano, format_epsilon
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.lifecycle import calibration_draws, charges_of
from agedp_data.ledger.records import Row
from agedp_data.messages import escape_text
from agedp_data.notions.notion import day_losses
from agedp_data.notions.publication import Publication, largest_window, total_charge
from agedp_data.notions.spans import SpanCurves, SpanLoss
from agedp_data.parameters import MANY_DAYS, Delta
from agedp_data.series.series import AnySeries
from agedp_data.statement.document import StatedAccuracy, StatedBound
from agedp_data.statement.note_texts import is_of_span

_DELTA: Final = TypeAdapter[Decimal](Delta, config=ConfigDict(defer_build=True))
_WINDOW: Final = re.compile(r"window of ([0-9]+) days")


@dataclass(frozen=True, slots=True)
class SpanBound:
    """Bound on the loss about one household from any `days` consecutive days of the data, or from all days (None).

    Had the household used anything else on these days, every set of results would be at most e^`epsilon` times as
    probable, plus `delta`. `sum_of_losses`, the largest sum of losses in such a span, holds without a delta. Neither
    counts a model that was estimated from the readings of `conditional_days` and published without noise.
    """

    days: int | None
    delta: Decimal
    epsilon: Decimal
    sum_of_losses: Decimal
    name: str
    scope: str
    conditional_days: str = ""


def span_bounds(rows: Sequence[Row], days: int | None, delta: str | float | Decimal) -> tuple[SpanBound, ...]:
    """Return the bound of any so many days, if `days` is a number, and that of all days.

    Raises:
        InputError: days or delta out of range.
    """
    probability = _check_delta(delta)
    if days is not None and (isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MANY_DAYS):
        raise InputError(f"days = {escape_text(str(days))}: name a whole number of days from 1 to {MANY_DAYS}")
    publication = publication_of(rows)
    releases = [row for row in rows if isinstance(row, ReleaseRecord)]
    curves = SpanCurves(publication)
    spans = [None] if days is None else [days, None]
    models = (row.terms.model for row in rows if isinstance(row, ContractRecord))
    conditional_days = " and ".join(estimation_periods(models))
    bounds = (_span_bound(SpanLoss(publication, probability, span, curves), releases) for span in spans)
    return tuple(replace(bound, conditional_days=conditional_days) for bound in bounds)


def _check_delta(delta: str | float | Decimal) -> Decimal:
    try:
        return _DELTA.validate_python(str(delta))
    except ValidationError:
        text = escape_text(str(delta))
        raise InputError(f"delta = {text}: name a probability above 0 and below 1, such as 1e-6") from None


def _span_bound(loss: SpanLoss, releases: Sequence[ReleaseRecord]) -> SpanBound:
    [bound] = loss.bounds(releases, None, None)
    days, events = loss.publication.parted(releases)
    losses = day_losses(days)
    if loss.days is None:
        pure = sum(losses.values()) + total_charge(events)
    else:
        pure = largest_window(losses, days=loss.days, events=events)
    epsilon, total = (Decimal(nano_epsilon) / NANO for nano_epsilon in (bound.value or 0, pure))
    return SpanBound(loss.days, loss.delta, epsilon, total, bound.name, bound.about)


def publication_of(rows: Sequence[Row]) -> Publication:
    """Return what the rows of a folder or ledger, of one population, were published under."""
    contracts = [row for row in rows if isinstance(row, ContractRecord)]
    series = series_by_contract(contracts)
    newest = series[contracts[-1].hash] if contracts else {}
    minutes = contracts[-1].terms.interval_minutes if contracts else 60
    return Publication(newest, series, charges=charges_of(calibration_draws(rows)), interval_minutes=minutes)


def span_losses(bounds: Iterable[StatedBound], publication: Publication) -> Iterator[SpanLoss]:
    """Yield the accountants of the bounds over spans of days with a delta in a statement; they share their curves."""
    curves = SpanCurves(publication)
    for bound in filter(is_of_span, bounds):
        window = _WINDOW.match(bound.name)
        yield SpanLoss(publication, Decimal(bound.delta or 0), int(window[1]) if window else None, curves)


# --------------------------------------------------------------------------------------------------
# LEDGER rows -> how exact the newest values of each series are: the error by the noise alone, for the statement.
# --------------------------------------------------------------------------------------------------

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

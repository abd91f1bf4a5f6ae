"""What tables of figures and rows of a ledger say of their draws, in one form, so that the two can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agedp_data import losses
from agedp_data.config.series import Distribution
from agedp_data.ledger import ContractRecord, ReleaseRecord
from pipelines.promise.in_force import series_by_contract


class PublishedValue(NamedTuple):
    """One figure: a group of a day, of counts with its range [kWh], what was drawn, at which loss [1e-9], when.

    `households` is 0 for counts, which stand without.
    """

    day: str
    group: str
    range_kwh: tuple[float, ...]
    revision: int
    households: int
    value: int
    published_on: str
    loss: int
    version: int


def published_value(row: Mapping[str, Any]) -> PublishedValue:
    """Return what a line of a table says."""
    counts = "households_noisy" in row
    return PublishedValue(
        row["day"].isoformat(),
        row["group"],
        (row["bin_low_kwh"], row["bin_high_kwh"]) if counts else (),
        row["revision"],
        0 if counts else row["households"],
        row["households_noisy" if counts else "noisy_sum_wh"],
        row["published_on"].isoformat(),
        losses.round_nano(row["epsilon"]),
        row["version"],
    )


def ledger_values(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[PublishedValue]:
    """Return what the tables of these rows say of their draws."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    series = series_by_contract(contracts)
    values = []
    for row in rows:
        if row.state == "released":
            release = row.published_on, row.loss, versions[row.contract]
            statistic = series[row.contract][row.series]
            for cell, households, cell_value in zip(row.cells, row.households, row.values, strict=True):
                if isinstance(statistic, Distribution):
                    group, low, high = statistic.place(cell)
                    values.append(
                        PublishedValue(row.day, group, (float(low), float(high)), row.revision, 0, cell_value, *release)
                    )
                else:
                    values.append(PublishedValue(row.day, cell, (), row.revision, households, cell_value, *release))
    return values


def first_differing_day(published: Sequence[PublishedValue], stored: Sequence[PublishedValue]) -> str | None:
    """Return the first day of which the two do not say the same, None if there is none."""
    published_counts, stored_counts = Counter(published), Counter(stored)
    return (
        None
        if published_counts == stored_counts
        else min((published_counts - stored_counts) + (stored_counts - published_counts)).day
    )

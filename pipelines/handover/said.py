"""Published values in one form, from the tables of a folder and from the rows of a ledger, for comparing the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agedp_data import losses
from agedp_data.config.series import Distribution
from agedp_data.ledger import ContractRecord, ReleaseRecord
from pipelines.promise.in_force import series_by_contract


class PublishedValue(NamedTuple):
    """One published value: day, group, range of a count [kWh], noisy value [Wh or households], loss [nano-epsilon].

    `households` is 0 for counts, whose table has no such column.
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
    """Return the published value in a row of a table."""
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
    """Return the published values of ledger rows, as the tables contain them."""
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
    """Return the first day on which the two differ, None if they are equal."""
    published_counts, stored_counts = Counter(published), Counter(stored)
    return (
        None
        if published_counts == stored_counts
        else min((published_counts - stored_counts) + (stored_counts - published_counts)).day
    )

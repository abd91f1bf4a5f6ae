"""Tables of a release folder -> their rows, verified, and published values in one form for comparison with a ledger.

* Each row is checked against the other columns and the guarantee in the metadata. It follows from its noisy sum, its
  households and its epsilon: mean, noise and interval are recomputed from these.
* Published values have one form, whether from the tables of a folder or from the rows of a ledger, so that the two can
  be compared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from agedp.budget import series_by_contract
from agedp_data import epsilon, table_schemas
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.mechanisms import interval, standard_deviation
from agedp_data.parameters import watt_hours
from agedp_data.series.series import Distribution, series_in

METADATA_KEY = b"agedp"
_TOLERANCE = 1e-9
_RELEASE_COLUMNS = ("noise_sd", "published_on", "epsilon", "version")
"""Columns that are equal in all rows of one release."""


@dataclass(frozen=True, slots=True)
class _NoiseTerms:
    """Noise parameters of a series in its guarantee: sensitivity [Wh] and coverage of the interval [-]."""

    sensitivity: int
    coverage: Decimal


def check_averages(name: str, table: pa.Table, statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a mean, each with the name of its series, checked against the table's guarantee.

    Raises:
        InputError: a value that does not follow from the other columns.
    """
    guarantee = _guarantee(name, table, table_schemas.DAILY_AVERAGES, statement)
    rows: list[dict[str, Any]] = table.to_pylist()
    noise_terms = {version: _noise_terms(guarantee, version) for version in {row["version"] for row in rows}}
    for row in rows:
        _check_row(name, row, noise_terms[row["version"]])
    keys = ((row["day"], row["group"], row["revision"]) for row in rows)
    if not all(key < next_key for key, next_key in pairwise(keys)):
        raise InputError(f"{name} does not hold each day once, in order")
    return _add_series_name(rows, guarantee["of"])


def check_distribution(name: str, table: pa.Table, statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a distribution, as `check_averages`: each group of a day has every bin once, in order.

    Raises:
        InputError: a value that does not follow from the other columns.
    """
    guarantee = _guarantee(name, table, table_schemas.DAILY_DISTRIBUTION, statement)
    series = {version: series_in(terms) for version, terms in guarantee["series_by_version"].items()}
    rows: list[dict[str, Any]] = table.to_pylist()
    releases = []
    for release, rows_of_key in groupby(rows, key=_release_key):
        release_rows = list(rows_of_key)
        distribution = series[str(release_rows[0]["version"])]
        if not isinstance(distribution, Distribution):
            raise InputError(f"{name} contains a series that is not a distribution by its own guarantee")
        if len({tuple(row[key] for key in _RELEASE_COLUMNS) for row in release_rows}) > 1:
            raise _inconsistent_row(name, release_rows[0])
        _check_bins(name, release_rows, distribution)
        # these columns are the same in every row of a release, which may have thousands
        _check_draw(name, release_rows[0], distribution.sensitivity("replacement"))
        releases.append(release)
    if releases != sorted(set(releases)):
        raise InputError(f"{name} does not hold each day once, in order")
    return _add_series_name(rows, guarantee["of"])


def _add_series_name(rows: list[dict[str, Any]], series: str) -> list[dict[str, Any]]:
    for row in rows:
        row["of"] = series
    return rows


def _release_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["day"], row["revision"]


def _check_bins(name: str, rows: Sequence[Mapping[str, Any]], series: Distribution) -> None:
    """Check that each group of a release has every bin once, in order."""
    bins = [(float(low), float(high)) for low, high in series.ranges_kwh]
    groups = [rows[i]["group"] for i in range(0, len(rows), len(bins))]
    groups_and_bins = [(row["group"], row["bin_low_kwh"], row["bin_high_kwh"]) for row in rows]
    if groups != sorted(set(groups)) or groups_and_bins != [(group, *bounds) for group in groups for bounds in bins]:
        raise InputError(f"{name} does not hold each bin of {rows[0]['day']} once, in order")


def _guarantee(name: str, table: pa.Table, schema: pa.Schema, statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee in a table's metadata, checked against the statement."""
    if table.schema.remove_metadata() != schema.remove_metadata():
        raise InputError(f"{name} has other columns than a published table")
    guarantee: dict[str, Any] = json.loads((table.schema.metadata or {})[METADATA_KEY])
    expected = {key: statement[key] for key in ("ledger", "population", "rehearsal", "figures")}
    expected |= {key: statement["contract"][key] for key in ("promise", "series")}
    if any(guarantee[key] != value for key, value in expected.items()):
        raise InputError(f"{name} and statement.json are of different releases")
    return guarantee


def _noise_terms(guarantee: Mapping[str, Any], version: int) -> _NoiseTerms:
    clamp = guarantee["clamp_kwh_by_version"][str(version)]
    return _NoiseTerms(watt_hours(Decimal(clamp)), Decimal(guarantee["interval"]["coverage"]))


def _loss(name: str, row: Mapping[str, Any]) -> int:
    loss = epsilon.round_nano(row["epsilon"])
    if loss < 1 or row["epsilon"] != epsilon.to_float(loss):
        raise _inconsistent_row(name, row)
    return loss


@lru_cache(maxsize=4096)
def _noise_sd_range(loss: int, sensitivity: int) -> tuple[float, float]:
    """Return the smallest and largest standard deviation of the noise of a loss."""
    low_scale, high_scale = _scale_range(loss, sensitivity)
    return standard_deviation(low_scale), standard_deviation(high_scale)


@lru_cache(maxsize=4096)
def _interval_range(loss: int, noise: _NoiseTerms) -> tuple[int, int]:
    """Return the smallest and largest half-width of the interval of a loss; often the same for every day."""
    low_scale, high_scale = _scale_range(loss, noise.sensitivity)
    return interval(low_scale * (1 - _TOLERANCE), noise.coverage), interval(
        high_scale * (1 + _TOLERANCE), noise.coverage
    )


def _scale_range(loss: int, sensitivity: int) -> tuple[float, float]:
    """Return the range of scales of a loss that was rounded up to nano-epsilon: S / L <= scale < S / (L - 1)."""
    return sensitivity / (loss / epsilon.NANO), sensitivity / (max(loss - 1, 0.5) / epsilon.NANO)


def _check_draw(name: str, row: Mapping[str, Any], sensitivity: int) -> None:
    """Check the noise and the dates that are equal for all counts of a release."""
    low_sd, high_sd = _noise_sd_range(_loss(name, row), sensitivity)
    is_consistent = (
        low_sd * (1 - _TOLERANCE) <= row["noise_sd"] <= high_sd * (1 + _TOLERANCE)
        and row["published_on"] > row["day"]
        and row["revision"] == 0
    )
    if not is_consistent:
        raise _inconsistent_row(name, row)


def _check_row(name: str, row: Mapping[str, Any], noise: _NoiseTerms) -> None:
    """Check one row of a mean."""
    households, value = row["households"], row["noisy_sum_wh"]
    if households < 1:
        raise _inconsistent_row(name, row)
    loss, wh_per_kwh_mean = _loss(name, row), 1000.0 * households
    low_half, high_half = _interval_range(loss, noise)
    sd_range = [sd / wh_per_kwh_mean for sd in _noise_sd_range(loss, noise.sensitivity)]
    is_consistent = (
        row["mean_kwh"] == value / wh_per_kwh_mean
        and sd_range[0] * (1 - _TOLERANCE) <= row["noise_sd_kwh"] <= sd_range[1] * (1 + _TOLERANCE)
        and (value - high_half) / wh_per_kwh_mean <= row["low_kwh"] <= (value - low_half) / wh_per_kwh_mean
        and (value + low_half) / wh_per_kwh_mean <= row["high_kwh"] <= (value + high_half) / wh_per_kwh_mean
        and row["published_on"] > row["day"]
        and row["revision"] == 0
    )
    if not is_consistent:
        raise _inconsistent_row(name, row)


def _inconsistent_row(name: str, row: Mapping[str, Any]) -> InputError:
    return InputError(f"{name}: the values of {row['day']} contradict each other")


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
        epsilon.round_nano(row["epsilon"]),
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

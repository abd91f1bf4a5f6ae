"""CONTRACTS + LEDGER rows -> the series that were ever published, and the file of each.

Decisions:

* The first series of a statistic keeps the plain file name.
* Layer 1 of a mean with a list of clamps (`series.layers`) is in the file of the mean, before and after an amendment
  that changes the number of clamps. Its upper layers, which are no means of a day, have a file of their own.
* A series that was ended and later continued with another statistic is two series: a row belongs to the one of its
  contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agedp_data.config.contract_values import meaning_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.layers import is_upper
from agedp_data.series.series_tables import table_name

MEANS: Final = "daily_averages"
LAYERS: Final = "daily_average_layers"
DISTRIBUTION: Final = "daily_distribution"
PERIODS: Final = "period_releases"
PROFILE: Final = "daily_profile"
COVERAGE: Final = "daily_coverage"
PROFILE_MONTHS: Final = "profile_releases"
FILES: Final[Mapping[str, str]] = {
    "mean": MEANS,
    "periods": PERIODS,
    "layers": LAYERS,
    "distribution": DISTRIBUTION,
    "profile": PROFILE,
    "profile months": PROFILE_MONTHS,
    "coverage": COVERAGE,
}
"""File name of each kind of table, without ending."""


@dataclass(frozen=True, slots=True)
class PublishedSeries:
    """A table of the run file and one kind of its series: their file, and their terms by contract hash and series.

    `kind` is a key of `FILES`; `name` is the table's name, which the layers of a mean share.
    """

    name: str
    kind: str
    file: str = ""
    terms: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)

    def has(self, row: ReleaseRecord) -> bool:
        """Return whether a row is of this table and kind."""
        return row.series in self.terms.get(row.contract, {})


def _kind_of(name: str, terms: Mapping[str, Any]) -> str:
    if terms.get("every", "day") != "day":
        return "profile months" if terms["statistic"] == "profile" else "periods"
    return "layers" if is_upper(name) else str(terms["statistic"])


def list_published_series(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[PublishedSeries]:
    """Return the series, means first, by first release, then by name; a series without a release has a file too."""
    terms_by_series: dict[tuple[str, str], dict[str, dict[str, Mapping[str, Any]]]] = {}
    for contract in contracts:
        for name, terms in meaning_of(contract.promise)["series"].items():
            kind = _kind_of(name, terms)
            of_contracts = terms_by_series.setdefault((kind, table_name(name)), {})
            of_contracts.setdefault(contract.hash, {})[name] = terms
    ordered = []
    for kind, file in FILES.items():
        in_contracts = [name for of_kind, name in sorted(terms_by_series) if of_kind == kind]
        released = [
            table_name(row.series)
            for row in rows
            if row.series in terms_by_series.get((kind, table_name(row.series)), {}).get(row.contract, {})
        ]
        for index, name in enumerate(dict.fromkeys([*released, *in_contracts])):
            file_name = f"{file}.parquet" if index == 0 else f"{file}_{name}.parquet"
            ordered.append(PublishedSeries(name, kind, file_name, terms_by_series[kind, name]))
    return ordered

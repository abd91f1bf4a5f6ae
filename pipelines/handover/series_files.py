"""LEDGER -> the series ever published and the file of each: the first one of a statistic keeps the plain file name.

A series that was ended and later continued with another statistic is two series: a row belongs to the one of its
contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agedp_data.config.meanings import meaning_of
from agedp_data.ledger import ContractRecord, ReleaseRecord
from pipelines.handover.received import DISTRIBUTION, MEANS

FILES: Final[Mapping[str, str]] = {"mean": MEANS, "distribution": DISTRIBUTION}
"""File name of each statistic, without ending."""


@dataclass(frozen=True, slots=True)
class PublishedSeries:
    """A series of one statistic: its file, and its terms by the hash of each contract that has it."""

    name: str
    statistic: str
    file: str = ""
    terms: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def has(self, row: ReleaseRecord) -> bool:
        """Tell whether a row is of this series and statistic."""
        return row.series == self.name and row.contract in self.terms


def list_published_series(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> list[PublishedSeries]:
    """Return the series, means first, by first release, then by name; a series without a release has a file too."""
    terms_by_series: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for contract in contracts:
        for name, terms in meaning_of(contract.promise)["series"].items():
            terms_by_series.setdefault((terms["statistic"], name), {})[contract.hash] = terms
    ordered = []
    for statistic, file in FILES.items():
        in_contracts = [name for kind, name in sorted(terms_by_series) if kind == statistic]
        released = [row.series for row in rows if row.contract in terms_by_series.get((statistic, row.series), {})]
        for index, name in enumerate(dict.fromkeys([*released, *in_contracts])):
            file_name = f"{file}.parquet" if index == 0 else f"{file}_{name}.parquet"
            ordered.append(PublishedSeries(name, statistic, file_name, terms_by_series[statistic, name]))
    return ordered

"""Sentence of STATEMENT.md on estimates in which groups add up, made from the contract."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.config.contract_document import ContractDocument
from agedp_data.series.quantities import Columns, next_coarser, totals_with_groups

_CONSISTENT = (
    "`consistent_daily_averages.parquet` contains least-squares estimates in which {sums}. They are computed "
    "from the released values alone, add no privacy loss and replace no released value; "
    "where the released groups of a day leave out households, the released value is repeated."
)


def consistency_texts(contract: ContractDocument) -> list[str]:
    """Return one sentence for each quantity of which a contract releases means that add up to each other."""
    series = contract.terms.series
    return [
        _CONSISTENT.format(sums=_sums_text({name: series[name].columns for name in names}))
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

"""Sentences of STATEMENT.md on the levels of a hierarchy of groups, made from the contract."""

from __future__ import annotations

from collections.abc import Iterator

from agedp_data.config.contract_document import ContractDocument
from agedp_data.roster import PATH_SEPARATOR, columns_of
from agedp_data.series.levels import level_column
from agedp_data.series.series_tables import table_name

_LEVELS = (
    "{names} are levels of one hierarchy, {columns}. A group is named by its path, the coarsest label first: {path}. "
    "Every household is in one group of each level, so one household's day can change every level at once: the losses "
    "of the levels add, and every bound counts all of them. Each level is drawn by itself, so the published values of "
    "one level add up to those of the next but for their noise."
)


def levels_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each table of a contract that has levels."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series, key=lambda name: -len(columns_of(contract.series[name].by))):
        if level_column(name):
            by_table.setdefault(table_name(name), []).append(name)
    for names in by_table.values():
        columns = columns_of(contract.series[names[0]].by)
        yield _LEVELS.format(
            names=f"{', '.join(names[:-1])} and {names[-1]}",
            columns=" within ".join(columns),
            path=PATH_SEPARATOR.join(column.upper() for column in reversed(columns)),
        )

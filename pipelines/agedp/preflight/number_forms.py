"""First rows of files -> whether the form of their numbers is ambiguous. Confidential.

Example: 987 and 1.234 in one column are 1,234 and 987 watt-hours with a point between thousands, or 1.234 and 987 with
three decimals. Decimals are written with one, two or three digits, as 0.5, or all with three, as 987.000: a column with
whole numbers below 1,000 and numbers with exactly three digits after a mark, none below one, has thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final

from agedp.store.file_identity import read_header
from agedp.store.store import Store
from agedp_data.datasets import file_listing
from agedp_data.datasets.csv_lines import split_fields
from agedp_data.datasets.file_listing import InputFile
from agedp_data.datasets.layout import Header
from agedp_data.errors import InputError

_MAX_FILES: Final = 20
_MIN_CELLS: Final = 3


def are_ambiguous(cells: Iterable[str], decimal: str) -> bool:
    """Return whether numbers may have a mark between thousands where `decimal` is declared.

    >>> are_ambiguous(["987", "1.234", "12", "2.345", "310", "1.001"], "."), are_ambiguous(["987", "1.234", "0.5"], ".")
    (True, False)
    """
    whole = thousands = 0
    for cell in cells:
        before, mark, after = cell.strip().lstrip("+-").partition(decimal)
        if not before.isdigit() or (mark and not after.isdigit()):
            continue  # no number
        if len(before) > 3 or (mark and (len(after) != 3 or before.startswith("0"))):
            return False
        thousands += bool(mark)
        whole += not mark and int(before) > 0
    return min(whole, thousands) >= _MIN_CELLS


def has_ambiguous_numbers(store: Store, patterns: Sequence[str]) -> bool:
    """Return whether the energies in the first rows of the files have an ambiguous form, of twenty files at most."""
    columns = store.rules.columns
    if columns is None or columns.thousands:
        return False
    cells = []
    for source, header, start in _sampled_files(store, patterns):
        with suppress(InputError):
            lines = file_listing.read_head(source)[start:].decode("latin-1").splitlines()[:-1]
            positions = [header.names.index(name) for name in header.energies]
            rows = (split_fields(line, header.separator) for line in lines)
            cells.append([row[i] for row in rows if len(row) == len(header.names) for i in positions])
    return are_ambiguous(chain.from_iterable(cells), columns.decimal)


def column_orders(store: Store, patterns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the columns of the files, in the order of each, of twenty files at most."""
    return tuple(header.columns for _, header, _ in _sampled_files(store, patterns))


def _sampled_files(store: Store, patterns: Sequence[str]) -> Iterator[tuple[InputFile, Header, int]]:
    """Yield CSV files with their header and the position of their rows, without those that cannot be read now."""
    sources = [
        replace(source, encoding=store.layout.encoding)
        for source in file_listing.list_input_files(patterns, required=False).sources
        if not file_listing.is_parquet(source.location)
    ]
    for source in sources[:: -(-len(sources) // _MAX_FILES) or 1]:
        with suppress(InputError):  # a file that is refused, or that a run beside this one removed
            header, start = read_header(source, store.layout)
            if header is not None:
                yield source, header, start

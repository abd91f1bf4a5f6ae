"""Rows of a roster file, as they are parsed, and the rules that all of them keep together.

A parser gives columns of the same length: household, first and last day, groups, and the number of the row in its file,
by which errors name it. The rules are: labels of a hierarchy can be parts of a path, and a household has at most one
row a day.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from agedp_data.datasets import filesystem
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import InputError
from agedp_data.roster_counts import PATH_SEPARATOR
from agedp_data.text_columns import TextColumn, sorted_codes

FIXED_COLUMNS: Final = ["household_id", "from", "to"]
NO_LAST_DAY: Final = int(np.iinfo(np.int32).max)
"""Last day of a membership that has not ended."""
READ_OFF_MARK: Final = "# read off the input files"


@dataclass(frozen=True, slots=True)
class ParsedRoster:
    """The rows (n) of a roster file, in its order.

    Attributes:
        households: the ids.
        first: first day of each row, since 1970.
        last: last day, `NO_LAST_DAY` where it has not ended.
        groups: the labels by group column.
        number: number of each row in the file.
        unit: what is numbered: "line" or "row".
        read_off: whether `agedp init` wrote the file.
    """

    households: Sequence[str]
    first: Ints
    last: Ints
    groups: Mapping[str, Sequence[str]]
    number: Ints
    unit: str
    read_off: bool = False


@dataclass(frozen=True, slots=True)
class RosterRows:
    """Rows (n) of a roster: index into `ids` (sorted, distinct), first and last day (since 1970), groups as text."""

    ids: Sequence[str]
    household: Ints
    first: Ints
    last: Ints
    groups: Mapping[str, Sequence[str]]


def check_header(path: str, names: Sequence[str]) -> None:
    """Check the columns of a roster, the three fixed ones first.

    Raises:
        InputError: one of them is missing, or a group column has no name of its own.
    """
    if list(names[:3]) != FIXED_COLUMNS or len(set(names)) != len(names) or not all(names):
        raise roster_error(path, "must begin with household_id,from,to, then group columns with names of their own")


def sort_rows(path: str, parsed: ParsedRoster, path_columns: Collection[str]) -> RosterRows:
    """Return the rows sorted by household and first day, after the checks of all rows together.

    Raises:
        InputError: the file has no households, a label cannot be part of a path, or rows of one household overlap.
    """
    _check_labels(path, parsed, path_columns)
    if not len(parsed.first):
        raise roster_error(path, "has no households; `agedp init` writes a first one from the files")
    ids, household = sorted_codes(parsed.households)
    columns: tuple[Ints, Ints, Ints, Ints] = household, parsed.first, parsed.last, parsed.number
    groups = {name: _encoded(labels) for name, labels in parsed.groups.items()}
    if not _is_sorted(household, parsed.first):
        order = np.lexsort((parsed.first, household))
        columns = household[order], parsed.first[order], parsed.last[order], parsed.number[order]
        groups = {name: TextColumn(labels.array.take(pa.array(order))) for name, labels in groups.items()}
    household, first, last, number = columns
    overlaps = np.flatnonzero((household[1:] == household[:-1]) & (first[1:] <= last[:-1]))
    if len(overlaps):
        before, after = (int(number[overlaps[0] + step]) for step in (0, 1))
        problem = f"{parsed.unit}s {before} and {after} count one household twice on the same day"
        public = "rows count one household twice on the same day" if parsed.unit == "row" else ""
        raise roster_error(path, problem, public=public)
    return RosterRows(TextColumn(ids), household, first, last, groups)


def check_path_labels(groups: Mapping[str, Sequence[str]], path_columns: Collection[str]) -> bool:
    """Return whether all labels of the columns of hierarchies can be parts of a path."""
    return not any(
        _is_no_path_part(label) for column in path_columns if column in groups for label in set(groups[column])
    )


def roster_error(path: str, problem: str, suggestion: str = "", *, public: str = "") -> InputError:
    """Return the error about a roster file.

    Args:
        path: the file, in the private text only.
        problem: what is wrong.
        suggestion: a nearest name, in the private text only.
        public: the problem in the public text, if it differs.
    """
    location = filesystem.format_location(path)
    return InputError(f"[population] roster: {public or problem}", private=f"{location}: {problem}{suggestion}")


def _encoded(labels: Sequence[str]) -> TextColumn:
    array = labels.array if isinstance(labels, TextColumn) else pa.array(labels, pa.string())
    return TextColumn(array if pa.types.is_dictionary(array.type) else array.dictionary_encode())


def _is_sorted(household: Ints, first: Ints) -> bool:
    steps = np.diff(household)
    return bool(np.all((steps > 0) | ((steps == 0) & (np.diff(first) >= 0))))


def _is_no_path_part(label: str) -> bool:
    return not label or PATH_SEPARATOR in label


def _check_labels(path: str, parsed: ParsedRoster, path_columns: Collection[str]) -> None:
    """Check the labels of a hierarchy; public is the column, the row is private."""
    wrong_rows: list[tuple[int, int, str, str]] = []
    for position, column in enumerate(parsed.groups):
        if column not in path_columns:
            continue
        labels, codes = sorted_codes(parsed.groups[column])
        texts = labels.to_pylist()
        is_wrong: Flags = np.array([_is_no_path_part(label) for label in texts], bool)
        rows = np.flatnonzero(is_wrong[codes]) if is_wrong.any() else np.zeros(0, np.int64)
        if len(rows):
            wrong_rows.append((int(rows[0]), position, column, texts[codes[rows[0]]]))
    if wrong_rows:
        row, _, column, label = min(wrong_rows)
        problem_of_label = f'contains "{PATH_SEPARATOR}"' if label else "is empty"
        advice = f"its groups are named by paths such as north{PATH_SEPARATOR}S1. Write another label"
        problem = f"a label in column {column}, a level of a hierarchy, {problem_of_label}; {advice}"
        raise roster_error(path, f"{parsed.unit} {int(parsed.number[row])}: {problem}", public=problem)

"""Links below a chart: to the Parquet file beside the page, and the chart's values as a CSV file within the page.

Decisions:

* The page remains one file that requests nothing. A link to a Parquet file is relative, so it works in the release
  folder; the CSV file is in the link itself (a data: address), so it works wherever the page is.
* A CSV file has at most `MOST_ROWS` rows, about 0.2 MB. Above that one line converts the Parquet file.
* A text that a spreadsheet would take for a formula, such as the group "=1+1", begins with an apostrophe (the rule of
  OWASP); numbers do not. The command that converts a Parquet file, and the Parquet files, have the label unchanged.
* Values in kWh are rounded to 0.000001 kWh; the Parquet file has all digits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from agedp.reports.html import part

MOST_ROWS = 2000
"""Rows of a CSV file within a page."""
_DIGITS = 6
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_CONVERT = "python -c \"import pandas; pandas.read_parquet('{file}').to_csv('{stem}.csv', index=False)\""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a chart as a table: names of the columns, and rows of texts and numbers."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


def download_links(name: str, values: Values, file: str = "", *, holds: str = "") -> str:
    """Return one paragraph of links; "" without rows.

    Args:
        name: what the CSV file is called, without ending.
        values: what the chart shows.
        file: the Parquet file in the folder of the page that has these values, or the folder of such files with a
            "/" at its end; "" without one.
        holds: what the rows of the CSV file are, a part of the link text; "" for nothing.
    """
    if not values.rows:
        return ""
    has_csv = len(values.rows) <= MOST_ROWS
    address = f"data:text/csv;charset=utf-8,{quote(csv_text(values), safe=',.:+')}" if has_csv else ""
    stem = file.removesuffix("/").removesuffix(".parquet")
    command = "" if has_csv or not file else _CONVERT.format(file=file, stem=stem)
    return part("downloads", file, address, f"{name.replace('/', '_')}.csv", f"{len(values.rows):,}", command, holds)


def csv_text(values: Values) -> str:
    r"""Return a table as CSV with a header.

    >>> csv_text(Values(("day", "mean_kwh"), [("2013-01-01", 7.1234567)]))
    'day,mean_kwh\n2013-01-01,7.123457\n'
    """
    text = io.StringIO()
    rows = [[_cell(cell) for cell in row] for row in values.rows]
    # csv.writer leaves a lone carriage return unquoted, which readers take for a line end
    has_return = any("\r" in cell for row in rows for cell in row if isinstance(cell, str))
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL)
    writer.writerow(values.columns)
    writer.writerows(rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Return a value as a cell of a CSV file: a number rounded, a text that a spreadsheet would compute as a text."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value

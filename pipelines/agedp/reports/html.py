"""HTML pages that open offline and request nothing from the network: Jinja2 templates, and Markdown as HTML.

    templates/page.html     the frame of every page: title, contents, sections; style.css its style
    templates/parts.html    sections, tables, figures, key facts: what the functions below return
    templates/<page>.html   the opening, the prose and the end of one page

Decisions:

* A template escapes every text, and its control and direction characters. What the functions of this module return is
  HTML already and stays as it is; a template that joins them joins a list, since a text that Python joins counts as
  text again. An undefined name is an error.
* Light and dark follow the reader's screen, print is light.
* A page without a script can be used by keyboard: a link skips the contents, a long table scrolls once it is chosen,
  and a closed section opens by its summary. Each chart can be chosen, but not each of its thousand values: those are
  in the table below it.
* A closed section is not printed. Who wants it on paper opens it first.
* The page remains one file that requests nothing. A link to a Parquet file is relative, so it works in the release
  folder; the CSV file is in the link itself (a data: address), so it works wherever the page is.
* A CSV file has at most `MOST_ROWS` rows, about 0.2 MB. Above that the Parquet file alone has them.
* A text that a spreadsheet would take for a formula, such as the group "=1+1", begins with an apostrophe (the rule
  of OWASP); numbers do not. The Parquet files have the label unchanged.
* Values in kWh are rounded to 0.000001 kWh; the Parquet file has all digits.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from agedp_data.messages import escape_controls
from agedp_data.statement.note_texts import read_texts


def _escape_text_of_page(value: Any) -> Any:  # noqa: ANN401  (whatever a template shows)
    """Return a text with its control and direction characters escaped; HTML and numbers unchanged."""
    return escape_controls(value, has_lines=True) if type(value) is str else value


_TEMPLATES = Environment(
    loader=PackageLoader("agedp.reports"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_escape_text_of_page,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEXTS = read_texts(Path(__file__).with_name("texts.toml"))
"""Sentences of the pages, by the module that uses them."""
_BRIEF, _TAG = 14, re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of a page with its heading: parts, which are HTML, then subsections.

    `anchor` is the target of its link in the contents.
    """

    title: str
    anchor: str
    parts: Sequence[str] = ()
    subsections: Sequence[PageSection] = ()


def anchor_of(title: str) -> str:
    """Return the anchor of a heading.

    >>> anchor_of("Privacy loss: by day & month")
    'privacy-loss-by-day-month'
    """
    return re.sub(r"[^a-z0-9_]+", "-", title.lower()).strip("-")


def render_page(template: str, **values: Any) -> str:  # noqa: ANN401  (whatever the template shows)
    """Return the page of a template; `sections` are its sections."""
    return _TEMPLATES.get_template(template).render(values)


def part(macro: str, *values: Any) -> str:  # noqa: ANN401  (whatever the macro shows)
    """Return a part of a page: a macro of parts.html with these values, whose texts it escapes."""
    html: str = getattr(_TEMPLATES.get_template("parts.html").module, macro)(*values)
    return html


def paragraph(text: str, kind: str = "", *, anchor: str = "") -> str:
    """Return a paragraph of plain text."""
    return part("paragraph", text, kind, anchor)


def closed(summary: str, parts: Sequence[str]) -> str:
    """Return parts behind a summary that opens them; "" without parts."""
    return part("closed", summary, parts) if parts else ""


def side_by_side(parts: Sequence[str]) -> str:
    """Return figures in two columns, many in three, one below the other on a narrow screen; the only one as it is."""
    return part("side_by_side", parts) if len(parts) > 1 else parts[0]


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of numbers, the first column naming the row; a long table scrolls on screen, not on paper."""
    return part("table", caption, columns, rows)


def text_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts and parts; on a narrow screen each row becomes a list, with short cells on one line."""
    brief = [all(len(_TAG.sub("", row[i])) <= _BRIEF for row in rows) for i in range(1, len(columns))]
    return part("text_table", caption, columns, rows, brief)


# --------------------------------------------------------------------------------------------------
# Links below a chart: to the Parquet file beside the page, and the chart's values as a CSV file within the page.
# --------------------------------------------------------------------------------------------------

MOST_ROWS = 2000
"""Rows of a CSV file within a page."""
_DIGITS = 6
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a chart as a table: names of the columns, and rows of texts and numbers."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


def download_links(name: str, values: Values, file: str = "") -> str:
    """Return one paragraph of links; "" without rows.

    Args:
        name: what the CSV file is called, without ending.
        values: what the chart shows.
        file: the Parquet file in the folder of the page that has these values, or the folder of such files with a
            "/" at its end; "" without one.
    """
    has_csv = 0 < len(values.rows) <= MOST_ROWS
    address = f"data:text/csv;charset=utf-8,{quote(csv_text(values), safe=',.:+')}" if has_csv else ""
    return part("downloads", file, address, f"{name.replace('/', '_')}.csv", f"{len(values.rows):,}")


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

"""LEDGER -> explore.html: the published tables as charts that a reader zooms, pans and takes groups from. Public.

The page shows what the Parquet files beside it contain, and the bounds of the statement as they grew. It works offline:
its one script file is BokehJS, taken from the installed package, its values are JSON in the page.

    {"label": "Mean use per household and day, by month", "file": "averages_by_month.parquet", "groups": ["all"],
     "periods": [[15706, 15736]], "lines": [[0, 0, 0]], "values": [[8.123457]], ...}

Decisions:

* The policy of the page permits the two scripts by their digest and nothing else: no network, no eval, no handler in an
  attribute. Values are escaped so that no text ends their element; the script sets texts, never HTML.
* A table is in the page only if its file is in the folder. A table with more than `MOST_VALUES` values loses its oldest
  days or periods, and the page says so. A value has six digits after the point, the file has all.
* Groups never reach BokehJS, which would take "$$" for mathematics: names are in the lists beside the charts.
* Notions side by side are the bounds of one release under all notions that apply, by day of the data. Another promise
  would have drawn other values, so no folder contains its values; `agedp compare` says what they would cost.
* The same rows and versions of agedp and BokehJS give the same bytes. Who verifies with another BokehJS compares
  everything but its script.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from agedp.release_folder.result_tables import closed_units, contract_terms, released_table
from agedp.reports.chart_library import ChartLibrary
from agedp.reports.html import render_page
from agedp.reports.loss_charts import BoundKey, LossOverTime, labelled_bounds
from agedp.reports.public_report import ReportData, opening_notes
from agedp.reports.series_charts import Lines, half_widths_of, largest_groups, percent, titled
from agedp_data.arrays import Floats
from agedp_data.ledger import ReleaseRecord
from agedp_data.messages import escape_controls
from agedp_data.series.layered_mean import is_upper, series_text
from agedp_data.series.result_table import Noise
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES
from agedp_data.statement.span_errors import stated_noises

MOST_VALUES: Final = 250_000
"""Values of a table in the page, about 30 bytes each with their interval."""
_FIRST_GROUPS: Final = 3
"""Groups that are drawn when the page opens, the largest ones."""
_DIGITS: Final = 6
_DAYS: Final = "days_released"
"""Column of the days that enter a mean of a period, which is shown beside it."""
_OWN: Final = (Path(__file__).with_name("templates") / "explore.js").read_text("utf-8")
_EPOCH: Final = date(1970, 1, 1).toordinal()


def explore_page(report: ReportData, library: ChartLibrary) -> bytes:
    """Return explore.html of a report's data."""
    values, losses = [*_value_tables(report)], _loss_tables(report)
    data = {"values": values, "losses": losses, "first": _first_table(report, values)}
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return render_page(
        "explore.html",
        title=f"{report.statement.full_title}: explore",
        statement=report.statement,
        marks=opening_notes(report),
        has_values=bool(values),
        coverage=percent(report.coverage),
        since=report.released.since,
        library=replace(library, script=Markup(library.script)),  # noqa: S704  (the script of the installed package)
        own=Markup(_OWN),  # noqa: S704
        data=Markup(text),  # noqa: S704  (escaped above)
        digests=[b64encode(sha256(script.encode()).digest()).decode() for script in (library.script, _OWN)],
    ).encode()


# --------------------------------------------------------------------------------------------------
# The published tables, each as lines by group, colour and place, over the same days or periods.
# --------------------------------------------------------------------------------------------------


def _value_tables(report: ReportData) -> Iterator[dict[str, Any]]:
    labels = {row.series: series_text(row.series, report.series(row)) for row in report.rows}
    shown = [*_published_lines(report)]
    tables = [*dict.fromkeys(name.partition("/")[0] for name, _ in shown)]
    order = sorted({name for name, _ in shown}, key=lambda name: (tables.index(name.partition("/")[0]), name))
    for name, lines in sorted(shown, key=lambda of: order.index(of[0])):
        yield _value_table(lines, labels.get(name, name) if len(order) > 1 else "")


def _first_table(report: ReportData, tables: Sequence[Mapping[str, Any]]) -> int:
    """Return the table that is drawn first: that of months, as in report.html, unless single days are fit for use."""
    is_fit = any(next(noise.errors()).grade == "fit" for noise in stated_noises(report.statement))
    by_month = (i for i, table in enumerate(tables) if table["period"] == "month" and table["places"] == [""])
    return 0 if is_fit else next(by_month, 0)


def _published_lines(report: ReportData) -> Iterator[tuple[str, Lines]]:
    """Yield name and lines of each series in each file of the folder."""
    noise, terms = Noise(report.coverage), contract_terms(report.contracts)
    for kind in RESULT_TABLES:
        if kind.chart is None:
            continue
        rows_of: dict[str, list[ReleaseRecord]] = {}
        for row in report.rows:
            if report.series(row).table is kind and report.file(kind.file, row.series):
                rows_of.setdefault(row.series, []).append(row)
        for name, rows in rows_of.items():
            table, file = released_table(kind, rows, terms, noise), report.file(kind.file, name)
            yield name, Lines(table, kind.chart, file, half_widths_of(rows, noise))
    first = date.fromisoformat(report.released.since or "0001-01-01")  # a period that begins earlier is cut
    for of in DERIVED_TABLES:
        file = report.file(of.file)
        if of.chart is None or not file or not of.has_source(terms):
            continue
        units = [
            unit
            for unit in closed_units(of, report.released.charted, report.contracts)
            if unit.first_day >= first and not is_upper(unit.series)
        ]
        for name in dict.fromkeys(unit.series for unit in units):
            table = of.lines([unit for unit in units if unit.series == name], terms, noise)
            yield name, Lines(table, of.chart, file)


def _value_table(lines: Lines, label: str) -> dict[str, Any]:
    """Return a table as the page has it; of two values of a line and period the later one."""
    all_starts = np.asarray(lines.table[lines.date_column].cast(pa.int32()))
    days, counts = np.unique(all_starts, return_counts=True)
    most = max(1, MOST_VALUES // int(counts.max()))
    table, chart = lines.table.filter(pa.array(all_starts >= days[-most:][0])), lines.chart
    starts = np.asarray(table[lines.date_column].cast(pa.int32()))
    _, index, column = np.unique(starts, return_index=True, return_inverse=True)
    if lines.is_over_time:
        of_place = [""] * table.num_rows
    else:
        of_place = [*map(lines.place, table.select([chart.x] if isinstance(chart.x, str) else [*chart.x]).to_pylist())]
    groups = table["group"].to_pylist()
    colours = [str(of) for of in table[chart.colour].to_pylist()] if chart.colour else [""] * len(groups)
    group_names, colour_names, places = ([*dict.fromkeys(names)] for names in (groups, colours, of_place))
    keys = [*zip(groups, colours, of_place, strict=True)]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    row_of = np.array([number[key] for key in keys], np.int64)

    def cells(of_rows: Floats) -> list[list[float | None]]:
        grid = np.full((len(number), len(index)), np.nan)
        grid[row_of, column] = of_rows
        return [[None if math.isnan(of) else round(of, _DIGITS) for of in line] for line in grid.tolist()]

    drawn = np.asarray(table[chart.y]) * lines.factor
    if chart.band is None:
        widths = lines.factor * np.array([lines.half_widths[date.fromordinal(_EPOCH + int(day))] for day in starts])
        low, high = drawn - widths, drawn + widths
    else:
        low, high = (np.asarray(table[end]) * lines.factor for end in chart.band)
    shown, one_each = replace(lines, table=table), table.take(index).to_pylist()  # without groups that ended before
    periods = [tuple(day.toordinal() - _EPOCH for day in lines.period(row)) for row in one_each]
    period = lines.period_name(one_each[int(np.argmax(np.diff(periods)))])  # the schedule may cut the others
    return {
        "label": escape_controls(titled(f"{chart.title or lines.file}, by {period}", label)),
        "file": lines.file,
        "unit": lines.unit,
        "period": period,
        "groups": [*map(escape_controls, group_names)],
        "start": [group_names.index(name) for name in largest_groups(shown.sizes(), _FIRST_GROUPS)],
        "colours": [*map(escape_controls, colour_names)],
        "places": places,
        "periods": periods,
        "isCut": len(days) > most,
        "isJoined": not isinstance(chart.x, tuple),
        "lines": [[group_names.index(g), colour_names.index(c), places.index(p)] for g, c, p in number],
        "values": cells(drawn),
        "low": cells(low),
        "high": cells(high),
        **({"days": cells(np.asarray(table[_DAYS]))} if _DAYS in table.column_names else {}),
    }


# --------------------------------------------------------------------------------------------------
# The privacy loss: each bound of the statement as it grew with the released days.
# --------------------------------------------------------------------------------------------------


def _loss_tables(report: ReportData) -> list[dict[str, Any]]:
    curves = report.curves
    bounds = [bound for bound in labelled_bounds(report.statement) if bound.key in curves]
    if not bounds:
        return []
    days = sorted({day for bound in bounds for day in curves[bound.key].days})
    numbers = [date.fromisoformat(day).toordinal() - _EPOCH for day in days]
    values = [_by_day(curves, bound.key, days) for bound in bounds]
    return [
        {
            "label": "Upper bounds on epsilon, by day of the data",
            "file": "statement.json",
            "unit": "epsilon",
            "period": "day",
            "groups": [f"{bound.letter}: {escape_controls(bound.name)}" for bound in bounds],
            "notes": [escape_controls(f"{bound.stated.scope} · {bound.stated.holds}") for bound in bounds],
            "start": [*range(min(6, len(bounds)))],
            "colours": [""],
            "places": [""],
            "periods": [(day, day) for day in numbers],
            "isCut": False,
            "isJoined": True,
            "lines": [[i, 0, 0] for i in range(len(bounds))],
            "values": values,
            "low": values,
            "high": values,
        }
    ]


def _by_day(curves: Mapping[BoundKey, LossOverTime], key: BoundKey, days: Sequence[str]) -> list[float | None]:
    """Return a bound by day, rounded up; None where it is infinite or not computed."""
    curve = curves[key]
    values = {day: value for day, value in zip(curve.days, curve.values, strict=True) if value is not None}
    return [math.ceil(values[day] / 1000) / 10**_DIGITS if day in values else None for day in days]

"""What the command and the artifacts say about a run: public facts in a few lines.

Everything here is a function of run file, model's public part and ledger; counts of input rows appear on the
terminal only (`quality_line`), never in `--json`, a log or an artifact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from agedp_data import noise
from agedp_data.config.series import AnySeries
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import format_epsilon
from agedp_data.notions.notion import DAY_FIGURE, TOTAL_FIGURE, Notion
from agedp_data.readers.storage import is_url, told
from agedp_data.statement import markdown
from flows.preflight_text import preflight_lines
from pipelines.handover.received import DISTRIBUTION, ReleaseFolder
from pipelines.internal_reports import reports_text
from pipelines.promise.changes import DayToDayChange
from pipelines.promise.outlook import Skip
from pipelines.sanitise import end_within_30_days
from pipelines.work import Work

_MOST_COUNTS = 12
_OF_EVERY_PROMISE = (DAY_FIGURE, TOTAL_FIGURE)
_YARDSTICK_DAY_KWH, _YARDSTICK_CHANGE_KWH = 10.0, 1.0


def four_digits(number: float) -> str:
    """Return a number to four digits, without an exponent.

    >>> four_digits(0.000000001), four_digits(0.123456), four_digits(12345678.0)
    ('0.000000001', '0.1235', '12350000')
    """
    return f"{Decimal(f'{number:.4g}'):f}"


def statement_words(work: Work) -> str:
    """Return the statement of the release folder in plain words."""
    folder = ReleaseFolder(work.release)
    return markdown(folder.statement) if (folder.path / "statement.json").exists() else "Nothing was due yet."


def result(work: Work) -> dict[str, Any]:
    """Return the result of a run for machines: public facts only."""
    done = [row for row in work.released if row.state == "released"]
    return {
        "population": work.run.population.name,
        "mode": work.run.schedule.mode,
        "released": [{"series": row.series, "day": row.day, "epsilon": format_epsilon(row.loss)} for row in done],
        "waiting": [day.isoformat() for day in work.due_days.waiting],
        "skipped": [{"series": row.series, "day": row.day} for row in work.released if row.state == "skipped"],
        "folder": shown(work.run.output.release),
        "reports": reports_text(work),
    }


def result_lines(work: Work) -> list[str]:
    """Return the result of a run for people."""
    lines = [_quality_line(work), *preflight_lines(work)] if work.delivery else []
    fresh = [row for row in work.released if row.state == "released"]
    days = len({row.day for row in fresh})
    skipped, least = len(work.released) - len(fresh), work.run.population.min_households
    why = f"skip_days, no delivery, below {least} homes, or nothing left for the day"
    lines.append(
        f"{counted(days, 'day')} released now"
        + (f", {skipped} skipped ({why})" if skipped else "")
        + ("" if work.released else ": nothing was due that is not released already")
    )
    lines += waiting_lines(work.due_days.waiting)
    if (end := end_within_30_days(work)) is not None:
        lines.append(f"the promise ends soon: {end} is the last day it permits")
    folder = ReleaseFolder(work.release)
    if (folder.path / "statement.json").exists():
        lines += _newest_lines(folder)
        figures = folder.statement["figures"]
        lines += [_figure_line(figure) for figure in figures[:2]]
        lines += promised_lines(work.run.notion, {figure["name"]: figure for figure in figures})
        lines.append(f"release folder: {shown(work.run.output.release)}")
    return lines


def _newest_lines(folder: ReleaseFolder) -> list[str]:
    """Return the newest figures: of the first mean, or where there is none of the first distribution."""
    if folder.averages():
        table = folder.table()
        return [*_table_lines(table.tail(3)), noise_line(table.to_dict("records"))] if len(table) else []
    counts = folder.table(DISTRIBUTION)
    return _count_lines(counts[counts["day"] == counts["day"].max()].to_dict("records"))


def _count_lines(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    if not rows:
        return []
    cells = [f"{row['group']} {row['bin_low_kwh']:g}-{row['bin_high_kwh']:g} kWh" for row in rows[:_MOST_COUNTS]]
    return [
        f"day         households by use, noise {rows[0]['noise_sd']:.3f} (standard deviation)",
        *(
            f"{row['day']:%Y-%m-%d}  {row['households_noisy']:8d}   {cell}"
            for row, cell in zip(rows, cells, strict=False)
        ),
    ]


def counted(number: int, noun: str) -> str:
    """Return a number and what it counts.

    >>> counted(1, "day"), counted(1200, "day")
    ('1 day', '1,200 days')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def shown(place: str) -> str:
    """Return a path as it is reached from the current folder, where it lies below it; of a URL no user and no query."""
    path = Path(place)
    return str(path.relative_to(Path.cwd())) if not is_url(place) and path.is_relative_to(Path.cwd()) else told(place)


def waiting_lines(days: Sequence[date]) -> list[str]:
    """Return which due days wait for their delivery's marker."""
    if not days:
        return []
    wait = f"{counted(len(days), 'due day')} wait{'s' * (len(days) == 1)} for delivery"
    return [f"{wait}: {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")]


def skips_text(skips: Sequence[Skip]) -> str:
    """Return days that will be skipped in a few words, neighbours together, those of one series by its name.

    >>> skips_text([(date(2013, 1, 4), ""), (date(2013, 1, 5), ""), (date(2013, 1, 8), "n")])
    '2013-01-04 to 2013-01-05, n of 2013-01-08'
    """
    found: list[tuple[str, date, date]] = []
    for day, series in sorted(skips, key=lambda skip: (skip[1], skip[0])):
        if found and found[-1][0] == series and (day - found[-1][2]).days == 1:
            found[-1] = (series, found[-1][1], day)
        else:
            found.append((series, day, day))
    return ", ".join(_stretch(*each) for each in found)


def _stretch(series: str, first: date, last: date) -> str:
    return (f"{series} of " if series else "") + (f"{first} to {last}" if last > first else f"{first}")


def skips_json(skips: Sequence[Skip]) -> list[dict[str, str]]:
    """Return days that will be skipped for machines."""
    return [{"day": day.isoformat()} | ({"series": series} if series else {}) for day, series in skips]


def _quality_line(work: Work) -> str:
    found = work.delivery
    if found is None:
        return ""
    aside = ", ".join(f"{number:,} {reason}" for reason, number in found.aside.items()) or "none"
    return (
        f"{counted(found.files, 'input file')} ({found.files_new} new): {found.rows_read:,} rows = "
        f"{found.rows_kept:,} kept + {found.rows_read - found.rows_kept:,} set aside ({aside})"
        + (f"; {work.late_rows:,} rows came too late for days that are released" if work.late_rows else "")
    )


def _table_lines(table: Any) -> list[str]:  # noqa: ANN401  (a data frame; pandas is not imported here)
    return [
        "day         homes   mean kWh   noise interval       published",
        *map(_table_line, table.to_dict("records")),
    ]


def _table_line(row: Mapping[Any, Any]) -> str:
    return (
        f"{row['day']:%Y-%m-%d}  {row['households']:5d}   {row['mean_kwh']:8.3f}   "
        f"{row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}   {row['published_on']:%Y-%m-%d}"
    )


def _figure_line(figure: Mapping[str, str]) -> str:
    return f"epsilon {figure['epsilon']} about {figure['about']}"


def promised_lines(notion: Notion, figures: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the figure that a promise bounds beside a day's loss and the total, with its bound, if it bounds one.

    `figures` by name, as in a statement.
    """
    own = [name for name, limit in notion.limits.items() if limit is not None and name not in _OF_EVERY_PROMISE]
    figure = next((figures[name] for name in own if name in figures), None)
    if figure is None:
        return []
    assumed = f", if {figure['assumption']}" if figure["assumption"] else ""
    return [f"epsilon {figure['epsilon']} of at most {figure['limit']} about {figure['about']}{assumed}"]


def noise_line(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return one line that says how large the noise is against the day-to-day change of the published series.

    The change of published means has the noise of two days in it; what is left of its mean square is the estimate
    of the true change. All of it is computed from what is published.
    """
    deviation = math.sqrt(sum(row["noise_sd_kwh"] ** 2 for row in rows) / len(rows))
    pairs = [(b["mean_kwh"] - a["mean_kwh"], b["day"] - a["day"]) for a, b in pairwise(rows)]
    changes = [change for change, gap in pairs if gap.days == 1]
    if not changes:
        return yardstick_line(deviation)
    seen = math.sqrt(sum(change**2 for change in changes) / len(changes))
    true = math.sqrt(max(seen**2 - 2 * deviation**2, 0.0))
    share = f"the noise is {deviation / true:.2f} times that" if true > 0 else "the noise hides it"
    return (
        f"noise: {deviation:.3f} kWh a home (standard deviation); from day to day the published mean changes by "
        f"{seen:.3f}, of which {true:.3f} is not noise: {share}"
    )


def yardstick_line(deviation: float) -> str:
    """Return how large the noise is against 10 kWh a home and 1 kWh from day to day."""
    return (
        f"noise: {deviation:.3f} kWh a home (standard deviation), {deviation / _YARDSTICK_DAY_KWH:.1%} of 10 kWh "
        f"a home, {deviation / _YARDSTICK_CHANGE_KWH:.2f} of a change of 1 kWh from day to day"
    )


def change_json(change: DayToDayChange) -> dict[str, Any]:
    """Return what a mean changes by from day to day for machines; without an error it is the yardstick."""
    return {
        "change_kwh": change.kwh,
        "change_error_kwh": change.error_kwh,
        "change_from": "published series" if change.is_estimated else "yardstick",
    }


def change_words(change: DayToDayChange) -> str:
    """Return where the change from day to day comes from, in words."""
    if change.error_kwh is None:
        return "assumed until the published series tells it from noise"
    return f"give or take {change.error_kwh:.2f} (standard error), as published"


def deviation(row: ReleaseRecord, series: AnySeries) -> tuple[float, str]:
    """Return the standard deviation of a planned day's noise, and its unit.

    Of a mean that of its smallest group, kWh; of a distribution that of every count, homes.
    """
    sd = noise.standard_deviation(row.scale)
    return (sd / (1000.0 * min(row.households)), "kwh") if series.statistic == "mean" else (sd, "households")

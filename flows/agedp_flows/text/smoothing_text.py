"""The text and the JSON of `agedp smooth`. Everything here is public: it follows from a release folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agedp.reports.svg import format_number
from agedp.smoothed_estimates.smoothed_page import cell_name, largest_cells, layer_note, median_noise, median_width
from agedp.smoothed_estimates.smoothed_release import PAGE, TABLE, usual_region
from agedp_data.smoothing.public_calendar import HEATING_BASE_C, WITHOUT_HOLIDAYS
from agedp_flows.text.screen import heading, table_lines, warning

if TYPE_CHECKING:
    from agedp.smoothed_estimates.smoothed_release import SmoothedRelease

_MAX_CELLS = 12


def smoothing_json(estimates: SmoothedRelease, target: Path) -> dict[str, Any]:
    """Return what was computed, from what and where it is, for programs."""
    cells = [
        {
            "series": series,
            "group": group,
            "days": len(rows),
            "published": sum(row["published_kwh"] is not None for row in rows),
            "noise_90_kwh": round(median_noise(rows), 6),
            "estimate_90_kwh": round(median_width(rows), 6),
        }
        for series, group, rows in largest_cells(estimates.arrow.to_pylist())
    ]
    return {"folder": str(target), **estimates.source, "cells": cells}


def smoothing_lines(estimates: SmoothedRelease, target: Path) -> Iterator[str]:
    """Yield what was computed, from what, and what to do with it."""
    source, rows = estimates.source, estimates.arrow.to_pylist()
    days, cells = source["days"], largest_cells(rows)
    drawn = len({row["day"] for row in rows if row["published_kwh"] is not None})
    number = len({row["day"] for row in rows})
    yield f"{source['population']}: {number} days from {days['first']} to {days['last']}, {drawn} of them published"
    yield heading("90 % intervals of a typical day, kWh per household:")
    lines = []
    for series, group, of_cell in cells[:_MAX_CELLS]:
        name, note = cell_name(series, group), layer_note(of_cell)
        noise, width = format_number(median_noise(of_cell)), format_number(median_width(of_cell))
        lines.append((f"{name} ({note})" if note else name, f"\u00b1 {noise}", f"\u00b1 {width}"))
    yield from table_lines(["series and group", ">published value, its noise", ">estimate"], lines, indent="  ")
    if len(cells) > _MAX_CELLS:
        yield f"  and {len(cells) - _MAX_CELLS} more groups"
    yield "The interval of an estimate assumes that the model is right, and leaves out what the clamp cuts off."
    yield f"Calendar: {source['calendar']}. {_weather_text(source['weather'])}"
    region, usual = source["region"], usual_region(estimates.statement)
    if usual is not None and region != WITHOUT_HOLIDAYS and region.partition("-")[0] != usual.partition("-")[0]:
        yield warning(
            f"Notice: the days of this release are usually of region {usual}; the holidays are those of {region}."
        )
    yield f"Written to {target}: {PAGE} shows the estimates beside the published values, {TABLE} has both."


def _weather_text(weather: dict[str, Any] | None) -> str:
    if weather is None:
        return "Without weather; with daily mean temperatures (--weather FILE) estimates of cold months are closer."
    extent = f"{weather['lowest_c']:.1f} to {weather['highest_c']:.1f} degrees C"
    is_cold = weather["lowest_c"] < HEATING_BASE_C
    effect = "" if is_cold else f"; no day is below {HEATING_BASE_C}, so none counts as cold"
    return f"Weather: {weather['column']} of {weather['file']}, {extent}{effect}."

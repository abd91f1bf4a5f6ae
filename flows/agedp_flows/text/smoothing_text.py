"""The text and the JSON of `agedp smooth`. Everything here is public: it follows from a release folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agedp.reports.svg import format_number
from agedp.smoothed_estimates.smoothed_page import cell_name, largest_cells, layer_note, median_noise, median_width
from agedp.smoothed_estimates.smoothed_release import PAGE, TABLE, usual_region
from agedp_data.smoothing.public_calendar import HEATING_BASE_C, WITHOUT_HOLIDAYS
from agedp_flows.text.template_lines import render_lines

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


def smoothing_lines(estimates: SmoothedRelease, target: Path) -> list[str]:
    """Return what was computed, from what, and what to do with it, as lines for the terminal."""
    rows, region, usual = estimates.arrow.to_pylist(), estimates.source["region"], usual_region(estimates.statement)
    cells = largest_cells(rows)
    is_usual = usual is None or region == WITHOUT_HOLIDAYS or region.partition("-")[0] == usual.partition("-")[0]
    return render_lines(
        "smoothing",
        source=estimates.source,
        number=len({row["day"] for row in rows}),
        drawn=len({row["day"] for row in rows if row["published_kwh"] is not None}),
        cells=[
            (cell_name(*cell), layer_note(of), format_number(median_noise(of)), format_number(median_width(of)))
            for *cell, of in cells[:_MAX_CELLS]
        ],
        others=len(cells) - _MAX_CELLS,
        heating_base_c=HEATING_BASE_C,
        usual=None if is_usual else usual,
        target=target,
        page=PAGE,
        table=TABLE,
    )

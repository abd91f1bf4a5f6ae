"""A heat map of values as SVG: rows and columns of cells in sixteen colours, with a legend, values at the pointer.

Decisions:

* The colours are those of cividis, sixteen of them in equal steps. Their lightness grows evenly from dark to light, so
  that the map reads the same in greyscale, and they differ alike for readers with and without colour-vision deficiency.
* The legend is one bar of all colours with the values of its ends, so that no range seems to be missing.
* The map is on white in light and dark: a white cell has no value.
* The range of the colours leaves out the lowest and highest hundredth of the values, which have the end colours.
* Cells of one colour are one path, neighbours in a row one line of it: a year of half-hours takes at most 0.2 MB.

Nuñez, Anderton, Renslow: Optimizing colormaps with consideration for color vision deficiency. PLOS ONE 13(7), 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from agedp.reports.axes import format_number
from agedp.reports.hover import area, positions_per_area
from agedp.reports.html import paragraph, part

COLOURS = (
    "#00224e", "#002e6c", "#1e3a6f", "#35456c", "#47516c", "#575d6d", "#666970", "#757575",
    "#848279", "#948e77", "#a59c74", "#b7a96e", "#c8b866", "#dbc75a", "#eed649", "#fee838",
)  # fmt: skip
"""From low to high."""
_CELL = 2
_TRIMMED = 100


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A map: values from top to bottom and left to right, NaN for none, and the labels of both axes.

    `x_ticks` and `y_ticks` are positions from 0 to 1 with their texts. `text` names the cells of a row from a first to
    a last column at the pointer; `most` is the number of areas at the pointer.
    """

    values: Sequence[Sequence[float]]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    unit: str
    text: Callable[[int, int, int], str]
    most: int
    limits: tuple[float, float]


def value_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of the colours: that of the values without the lowest and highest hundredth.

    >>> value_limits([float(value) for value in range(101)])
    (1.0, 99.0)
    """
    ordered = sorted(value for value in values if not math.isnan(value)) or [0.0, 1.0]
    cut = len(ordered) // _TRIMMED
    return ordered[cut], ordered[-1 - cut]


def step_of(value: float, limits: tuple[float, float]) -> int:
    """Return the colour of a value, an index into `COLOURS`.

    >>> step_of(0.0, (0.0, 16.0)), step_of(8.5, (0.0, 16.0)), step_of(99.0, (0.0, 16.0))
    (0, 8, 15)
    """
    low, high = limits
    share = (value - low) / (high - low) if high > low else 0.0
    return min(max(int(share * len(COLOURS)), 0), len(COLOURS) - 1)


def value_map(title: str, about: str, shown: HeatMap, *, height: int) -> str:
    """Return a figure of values; a sentence if they are all equal.

    Args:
        title: subject of the figure, different from every other title of the page.
        about: description for a reader who cannot see the figure.
        shown: values and labels.
        height: height of the drawing [px].
    """
    rows, columns = len(shown.values), len(shown.values[0])
    distinct = {value for row in shown.values for value in row if not math.isnan(value)}
    if len(distinct) <= 1:
        text = f"{format_number(*distinct)} {shown.unit} in every cell" if distinct else "no value"
        return paragraph(f"{title}: {text}.")
    size = columns * _CELL, rows * _CELL
    drawing = "\n".join(
        [
            '<g class="cells">',
            f'<path style="fill:#fff" d="M0 0h{size[0]}v{size[1]}h-{size[0]}z"/>',
            *_cell_paths(shown),
            "</g>",
            '<g class="hit">',
            *_areas(shown),
            "</g>",
        ]
    )
    labels = [
        *(("x", f"left:{round(100 * position, 2):g}%", text) for position, text in shown.x_ticks),
        *(("y", f"top:{round(100 * position, 2):g}%", text) for position, text in shown.y_ticks),
    ]
    return part("figure", title, about, height, size, drawing, labels, [*_legend(shown)], ())


def _cell_paths(shown: HeatMap) -> Iterator[str]:
    """Yield one path for the cells of each colour."""
    by_step: dict[int, list[str]] = {}
    for row, values in enumerate(shown.values):
        steps = [None if math.isnan(value) else step_of(value, shown.limits) for value in values]
        for step, run in groupby(range(len(steps)), key=steps.__getitem__):
            if step is not None:
                cells = list(run)
                line = f"M{cells[0] * _CELL} {row * _CELL + _CELL // 2}h{len(cells) * _CELL}"
                by_step.setdefault(step, []).append(line)
    for step, lines in sorted(by_step.items()):
        yield f'<path style="stroke:{COLOURS[step]}" d="{"".join(lines)}"/>'


def _areas(shown: HeatMap) -> Iterator[str]:
    """Yield the areas at the pointer: of one cell, or of neighbouring ones of a row if there are too many."""
    rows, columns = len(shown.values), len(shown.values[0])
    count = positions_per_area(columns, max(shown.most // rows, 1))
    for row, values in enumerate(shown.values):
        for start in range(0, columns, count):
            end = min(start + count, columns) - 1
            if not all(map(math.isnan, values[start : end + 1])):
                width = (end - start + 1) * _CELL
                yield area(start * _CELL, row * _CELL, width, _CELL, shown.text(row, start, end))


def _legend(shown: HeatMap) -> Iterator[tuple[str, int, str, str]]:
    """Yield the colour bar with the values of its ends, and the sample of an empty cell."""
    low, high = map(format_number, shown.limits)
    size = 28 / len(COLOURS)
    bar = "".join(
        f'<path style="fill:{colour}" d="M{step * size:g} 0H28v12H{step * size:g}z"/>'
        for step, colour in enumerate(COLOURS)
    )
    yield "", 0, bar, f"{low} {shown.unit} and below (dark) to {high} {shown.unit} and above (light), evenly"
    yield "", 0, '<path style="fill:#fff;stroke:currentColor" d="M1 1h26v10h-26z"/>', "no value"

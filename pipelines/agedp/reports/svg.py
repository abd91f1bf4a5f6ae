"""A chart or a heat map as HTML with an SVG inside, for screens of any width and for print.

Decisions:

* The SVG holds only lines and areas and is stretched to its column. Strokes are not stretched (non-scaling), so that
  one chart fits a phone and a desktop. Text is HTML beside it: it wraps, keeps its size and can be selected.
* Coordinates are integers, each relative to the previous one: a line of a thousand days is 6 kB. Tried: matplotlib
  writes 45 to 65 kB per chart, takes 0.4 s, and its text does not grow with the page; plotly adds 4.9 MB.
* Values are readable at the pointer (`hover`), without a script.
* Lines differ by dash and by a letter at their end, not by colour alone. Every chart describes its content in words
  (`about`), and the caller adds a table of its numbers.
* A chart of values at the pointer whose values never change becomes a sentence (`constant_sentence`).
* A heat map draws shares in [0, 1] as opacity of one colour in steps of 5 %: a dark page, a light page and paper show
  the same order. Cells of one opacity are one path: a 12 x 12 matrix takes about 4 kB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from agedp.reports.axes import Scale
from agedp.reports.chart_layers import Bars, Hover, Layer, Level, Line, Marks, Points
from agedp.reports.constants import constant_sentence
from agedp.reports.hover import hover_areas
from agedp.reports.html import paragraph, part

__all__ = ["Bars", "Hover", "Layer", "Level", "Line", "Marks", "Points", "chart", "heat_map"]

_MAX_DOTS = 45
_LETTER_PX = 17


def chart(
    title: str, about: str, layers: Sequence[Layer], *, x: Scale, y: Scale, y_title: str = "", height: int = 220
) -> str:
    """Return a figure: title, legend if needed, drawing and axis labels; a sentence if no value changes.

    Args:
        title: subject of the chart, different from every other title of the page.
        about: description for a reader who cannot see the chart.
        layers: lines, bars, levels and marks, the lowest layer first.
        x: horizontal axis.
        y: vertical axis.
        y_title: quantity and unit of the vertical axis.
        height: height of the drawing [px].
    """
    hover = next((layer for layer in layers if isinstance(layer, Hover)), None)
    if hover is not None and (text := constant_sentence(title, layers, hover)):
        return paragraph(text)
    sheet = _DrawingArea(x, y, 2000, 2 * height)
    drawing = [
        *(f'<path class="grid" d="M0 {sheet.down(value)}H{sheet.width}"/>' for value, _ in y.ticks),
        *(f'<path class="grid" d="M{sheet.across(value)} {sheet.height}v12"/>' for value, _ in x.ticks),
        *(path for layer in layers for path in _layer_paths(layer, sheet)),
        *(() if hover is None else _areas(layers, hover, sheet)),
    ]
    lettered = [layer for layer in layers if isinstance(layer, Line) and layer.letter]
    labels, letters = [*_axis_labels(x, y, y_title)], [*_end_letters(lettered, sheet, height)]
    legend, size = [_legend_entry(layer) for layer in layers if layer.name], (sheet.width, sheet.height)
    return part("figure", title, about, height, size, "\n".join(drawing), labels, legend, letters)


@dataclass(frozen=True, slots=True)
class _DrawingArea:
    """Integer coordinates of the drawing."""

    x: Scale
    y: Scale
    width: int
    height: int

    def across(self, value: float) -> int:
        return round(self.x.position(value) * self.width)

    def down(self, value: float) -> int:
        return round((1 - self.y.position(value)) * self.height)


def _areas(layers: Sequence[Layer], hover: Hover, sheet: _DrawingArea) -> Iterator[str]:
    return hover_areas(layers, hover, across=sheet.across, size=(sheet.width, sheet.height))


def _layer_paths(layer: Layer, sheet: _DrawingArea) -> Iterator[str]:
    match layer:
        case Line():
            yield from _line_paths(layer, sheet)
        case Points():
            yield from _point_paths(layer, sheet)
        case Bars():
            yield from _bar_paths(layer, sheet)
        case Level():
            yield f'<path class="level" d="M0 {sheet.down(layer.value)}H{sheet.width}"/>'
        case Hover():
            pass
        case Marks():
            path = "".join(f"M{sheet.across(value)} {sheet.height}v-16" for value in layer.x)
            yield f'<path class="skip" d="{path}"/>'


def _line_paths(line: Line, sheet: _DrawingArea) -> Iterator[str]:
    if line.band is not None:
        yield from _band_paths(line, line.band, sheet)
    shapes, dots = [], []
    present = [i for i, value in enumerate(line.values) if not math.isnan(value)]
    for run in _runs(line.values):
        points = [(sheet.across(line.x[i]), sheet.down(line.values[i])) for i in run]
        if len(points) == 1:
            dots += points
        shapes.append(_path(_step_corners(points) if line.steps else points))
    if line.dots and len(present) <= _MAX_DOTS and not line.steps:
        dots = [(sheet.across(line.x[i]), sheet.down(line.values[i])) for i in present]
    yield f'<path class="line s{line.style}" d="{"".join(shapes)}"/>'
    if dots:
        yield f'<path class="dot s{line.style}" d="{"".join(f"M{at} {down}h0" for at, down in dots)}"/>'


def _band_paths(line: Line, band: tuple[Sequence[float], Sequence[float]], sheet: _DrawingArea) -> Iterator[str]:
    low, high = band
    areas, alone = [], []
    for run in _runs([a + b for a, b in zip(low, high, strict=True)]):
        upper = [(sheet.across(line.x[i]), sheet.down(high[i])) for i in run]
        lower = [(sheet.across(line.x[i]), sheet.down(low[i])) for i in reversed(run)]
        if len(run) == 1:
            alone.append(f"M{upper[0][0]} {upper[0][1]}V{lower[0][1]}")
        else:
            areas.append(_path([*upper, *lower]) + "z")
    if areas:
        yield f'<path class="band s{line.style}" d="{"".join(areas)}"/>'
    if alone:
        yield f'<path class="whisker s{line.style}" d="{"".join(alone)}"/>'


def _point_paths(points: Points, sheet: _DrawingArea) -> Iterator[str]:
    present = [i for i, value in enumerate(points.values) if not math.isnan(value)]
    low, high = points.whiskers
    whiskers = "".join(f"M{sheet.across(points.x[i])} {sheet.down(high[i])}V{sheet.down(low[i])}" for i in present)
    dots = "".join(f"M{sheet.across(points.x[i])} {sheet.down(points.values[i])}h0" for i in present)
    yield f'<path class="noise s{points.style}" d="{whiskers}"/>'
    yield f'<path class="point s{points.style}" d="{dots}"/>'
    if arrows := "".join(_beyond_arrows(points, sheet, present)):
        yield f'<path class="beyond s{points.style}" d="{arrows}"/>'


def _beyond_arrows(points: Points, sheet: _DrawingArea, present: Sequence[int]) -> Iterator[str]:
    """Yield an arrowhead at the end of the axis for each whisker that extends beyond it."""
    low, high = points.whiskers
    for i in present:
        x = sheet.across(points.x[i])
        if high[i] > sheet.y.high:
            yield f"M{x - 8} 10l8-10 8 10"
        if low[i] < sheet.y.low:
            yield f"M{x - 8} {sheet.height - 10}l8 10 8-10"


def _bar_paths(bars: Bars, sheet: _DrawingArea) -> Iterator[str]:
    if bars.x:
        positions = sorted(sheet.across(value) for value in bars.x)
        narrowest = min((b - a for a, b in pairwise(positions) if b > a), default=sheet.width // 8)
        half, floor = max(1, round(0.4 * narrowest)), sheet.down(max(sheet.y.low, 0.0))
        shapes = [
            f"M{sheet.across(x) - half} {floor}V{sheet.down(value)}h{2 * half}V{floor}z"
            for x, value in zip(bars.x, bars.values, strict=True)
            if not math.isnan(value)
        ]
        yield f'<path class="bar s{bars.style}" d="{"".join(shapes)}"/>'


def _runs(values: Sequence[float]) -> list[list[int]]:
    """Return the runs of consecutive indices that have a value."""
    stretches = groupby(range(len(values)), key=lambda i: not math.isnan(values[i]))
    return [list(run) for is_present, run in stretches if is_present]


def _path(points: Sequence[tuple[int, int]]) -> str:
    """Return a line through points, each relative to the one before.

    >>> _path([(0, 5), (10, 3), (20, 9)])
    'M0 5l10-2 10 6'
    """
    start, text, before = points[0], "", points[0]
    for point in points[1:]:
        across, down = point[0] - before[0], point[1] - before[1]
        text += (" " if text and across >= 0 else "") + f"{across}" + (f" {down}" if down >= 0 else f"{down}")
        before = point
    return f"M{start[0]} {start[1]}" + (f"l{text}" if text else "")


def _step_corners(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the corners of a line that stays at each value until the next.

    >>> _step_corners([(0, 5), (1, 5), (2, 5), (3, 9)])
    [(0, 5), (3, 5), (3, 9)]
    """
    corners = [points[0]]
    for point in points[1:]:
        if point[1] != corners[-1][1]:
            corners += [(point[0], corners[-1][1]), point]
    return corners if corners[-1][0] == points[-1][0] else [*corners, points[-1]]


def _legend_entry(layer: Layer) -> tuple[str, int, str, str]:
    """Return a layer's letter, style, sample drawing and name."""
    style = getattr(layer, "style", 0)
    match layer:
        case Line():
            band = f'<path class="band s{style}" d="M1 1h26v10h-26z"/>' if layer.band is not None else ""
            sample = f'{band}<path class="line s{style}" d="M1 6h26"/>'
        case Points():
            sample = f'<path class="noise s{style}" d="M14 0v12"/><path class="point s{style}" d="M14 6h0"/>'
        case Bars():
            sample = f'<path class="bar s{style}" d="M4 1h20v10h-20z"/>'
        case Level():
            sample = '<path class="level" d="M1 6h26"/>'
        case Marks():
            sample = '<path class="skip" d="M8 1v10M14 1v10M20 1v10"/>'
        case Hover():
            sample = ""
    return getattr(layer, "letter", ""), style, sample, layer.name


def _axis_labels(x: Scale, y: Scale, y_title: str) -> Iterator[tuple[str, str, str]]:
    """Yield class, position and text of the labels of both axes."""
    for value, text in y.ticks:
        yield "y", f"top:{_percent(1 - y.position(value))}", text
    for value, text in x.ticks:
        position = x.position(value)
        end = " first" if position < 0.05 else " last" if position > 0.95 else ""
        yield f"x{end}", f"left:{_percent(position)}", text
    if y_title:
        yield "yt", "", y_title


def _end_letters(lines: Sequence[Line], sheet: _DrawingArea, height: int) -> Iterator[tuple[int, str, str]]:
    """Yield style, position and letter of the ends of lines, moved apart where they would overlap."""
    ends = []
    for line in lines:
        last = next((value for value in reversed(line.values) if not math.isnan(value)), None)
        if last is not None:
            ends.append((sheet.down(last) / 2, line))
    ends.sort(key=lambda end: end[0])
    positions = [position for position, _ in ends]
    for i in range(1, len(positions)):
        positions[i] = max(positions[i], positions[i - 1] + _LETTER_PX)
    lowest = height + 0.5 * _LETTER_PX
    for i in reversed(range(len(positions))):
        positions[i] = min(positions[i], lowest)
        lowest = positions[i] - _LETTER_PX
    for position, (_, line) in zip(positions, ends, strict=True):
        yield line.style, _percent(position / height), line.letter


def _percent(share: float) -> str:
    return f"{round(100 * share, 1):g}%"


_MAP_HEIGHT, _CELL, _STEPS = 300, 20, 20


def heat_map(title: str, about: str, shares: Sequence[Sequence[float]], *, x_title: str, y_title: str) -> str:
    """Return a figure of a square matrix of shares in [0, 1].

    Args:
        title: subject of the figure, different from every other title of the page.
        about: description for a reader who cannot see the figure.
        shares: rows from top to bottom, columns from left to right [-].
        x_title: meaning of the columns.
        y_title: meaning of the rows.
    """
    edge = len(shares) * _CELL
    drawing = "\n".join([*_cells(shares), f'<path class="grid" d="M0 0H{edge}V{edge}H0z"/>'])
    labels = [*_labels(len(shares), x_title, y_title)]
    return part("figure", title, about, _MAP_HEIGHT, (edge, edge), drawing, labels, (), ())


def _cells(shares: Sequence[Sequence[float]]) -> Iterator[str]:
    """Yield one path for the cells of each opacity; a share above 0 always has a visible cell."""
    by_step: dict[int, list[str]] = {}
    for row, values in enumerate(shares):
        for column, share in enumerate(values):
            step = min(_STEPS, max(round(share * _STEPS), int(share > 0)))
            by_step.setdefault(step, []).append(f"M{column * _CELL} {row * _CELL}h{_CELL}v{_CELL}h-{_CELL}z")
    for step, squares in sorted(by_step.items()):
        if step:
            yield f'<path style="fill:var(--s0);fill-opacity:{step / _STEPS:g}" d="{"".join(squares)}"/>'


def _labels(size: int, x_title: str, y_title: str) -> Iterator[tuple[str, str, str]]:
    """Yield class, position and text of the numbers of rows and columns, from 1, and of the titles of both axes."""
    for i in range(size):
        middle = _percent((i + 0.5) / size)
        yield "y", f"top:{middle}", f"{i + 1}"
        yield "x", f"left:{middle}", f"{i + 1}"
    yield "yt", "", y_title
    yield "xt", "top:100%;right:0;padding-top:1.7rem", x_title

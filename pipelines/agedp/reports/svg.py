"""A chart or a heat map as HTML with an SVG inside, for screens of any width and for print.

Decisions:

* The SVG holds only lines and areas and is stretched to its column. Strokes are not stretched (non-scaling), so that
  one chart fits a phone and a desktop. Text is HTML beside it: it wraps, keeps its size and can be selected.
* Coordinates are integers, each relative to the previous one: a line of a thousand days is 6 kB. Tried: matplotlib
  writes 45 to 65 kB per chart, takes 0.4 s, and its text does not grow with the page; plotly adds 4.9 MB.
* Values are readable at the pointer, without a script.
* Lines differ by dash and by a letter at their end, not by colour alone. Every chart describes its content in words
  (`about`), and the caller adds a table of its numbers.
* A chart of values at the pointer whose values never change becomes a sentence (`constant_sentence`).
* Charts side by side, of groups, have one legend above them (`legend`).
* A heat map draws shares in [0, 1] as opacity of one colour in steps of 5 %: a dark page, a light page and paper show
  the same order. Cells of one opacity are one path: a 12 x 12 matrix takes about 4 kB.
* An area has the height of the drawing, so that any place above or below a point shows the point's value.
* A title names the position, the values with their unit, and the interval where there is one: "2013-02-01: 7.76 kWh
  per household (7.67 to 7.85)".
* The size of a page is bounded. A chart has at most `MOST_AREAS` areas, and charts side by side share
  `MOST_IN_SERIES`. Where a chart has more positions, an area stands for several neighbouring ones: its title has the
  lowest and the highest value. 4,000 areas take about 0.5 MB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html import escape
from itertools import groupby, pairwise
from statistics import median
from typing import TypeVar

from agedp.reports.html import paragraph, part
from agedp_data.epsilon import rounded_up
from agedp_data.messages import escape_controls

# --------------------------------------------------------------------------------------------------
# Axes of a chart: the position of a value between the two ends, and the labelled values; months and numbers.
# --------------------------------------------------------------------------------------------------

Shown = TypeVar("Shown")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MAX_TICKS = 5
_SHORT_DAYS = 62


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, linear or logarithmic, with its ticks as (value, text)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def position(self, value: float) -> float:
        """Return the position of a value, 0 at the low end and 1 at the high end; values beyond an end are at that end.

        >>> linear_axis([0, 10]).position(2.5), logarithmic_axis([1, 100]).position(10)
        (0.25, 0.5)
        """
        if self.high <= self.low:
            return 0.5
        inside = min(max(value, self.low), self.high)
        if self.log:
            return math.log(inside / self.low) / math.log(self.high / self.low)
        return (inside - self.low) / (self.high - self.low)


def linear_axis(values: Iterable[float], *, zero: bool = False) -> Scale:
    """Return an axis with round ends that contains all finite values, and 0 if `zero` or if that costs little space.

    >>> [text for _, text in linear_axis([9.2, 13.1]).ticks], linear_axis([1, 10]).low
    (['9', '10', '11', '12', '13', '14'], 0.0)
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if zero or (low > 0 and low < 0.35 * high) or (high < 0 and high > 0.35 * low):
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        low, high = low - (abs(low) / 10 or 0.5), high + (abs(high) / 10 or 0.5)
    step = _round_step((high - low) / _MAX_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((number * step, _tick_text(number * step)) for number in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def logarithmic_axis(values: Iterable[float], *, decades: int = 6) -> Scale:
    """Return an axis between powers of ten that contains all positive values, at most `decades` below the highest.

    >>> logarithmic_axis([0.03, 180]).ticks[0], logarithmic_axis([1e-9, 1]).low
    ((0.01, '0.01'), 1e-06)
    """
    positive = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    last = math.ceil(math.log10(max(positive)) - 1e-9)
    first = max(min(math.floor(math.log10(min(positive)) + 1e-9), last - 1), last - decades)
    ticks = tuple((10.0**number, _tick_text(10.0**number)) for number in range(first, last + 1))
    return Scale(10.0**first, 10.0**last, ticks, log=True)


def date_axis(first: date, last: date) -> Scale:
    r"""Return an axis of days by their ordinal with a few labelled dates, the year below the first date of a year.

    >>> [text for _, text in date_axis(date(2013, 1, 1), date(2013, 12, 31)).ticks]
    ['Jan\n2013', 'Apr', 'Jul', 'Oct']
    >>> [text for _, text in date_axis(date(2013, 1, 1), date(2013, 1, 3)).ticks]
    ['1 Jan\n2013', '2 Jan', '3 Jan']
    """
    low, high = first.toordinal(), last.toordinal()
    if high - low <= _SHORT_DAYS:
        step = max(1, -(-(high - low + 1) // (_MAX_TICKS - 1)))
        dates = [date.fromordinal(number) for number in range(low, high + 1, step)]
        texts = _with_years(dates, [f"{day.day} {_MONTHS[day.month - 1]}" for day in dates])
    else:
        months = next((m for m in (1, 2, 3, 6, 12) if (high - low) / (30.5 * m) <= _MAX_TICKS), 12)
        years = -(-(high - low) // (366 * _MAX_TICKS)) if months == 12 else 1
        starts = (date(year, month, 1) for year in range(first.year, last.year + 1) for month in range(1, 13, months))
        dates = [day for day in starts if low <= day.toordinal() <= high and (day.year - first.year) % years == 0]
        texts = _with_years(dates, [_MONTHS[day.month - 1] for day in dates])
    return Scale(float(low), float(high), tuple((float(d.toordinal()), t) for d, t in zip(dates, texts, strict=True)))


def named_axis(ticks: Mapping[float, str]) -> Scale:
    """Return an axis whose positions have names."""
    return Scale(min(ticks), max(ticks), tuple(ticks.items()))


def evenly_spaced(values: Sequence[Shown], count: int) -> list[Shown]:
    """Return at most `count` of the values, evenly spaced, with the first and the last.

    >>> evenly_spaced("abcde", 3), evenly_spaced("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    last, shown = len(values) - 1, min(count, len(values))
    return [values[round(i * last / max(1, shown - 1))] for i in range(shown)]


def by_month(values: Iterable[Shown], day_of: Callable[[Shown], date]) -> dict[str, list[Shown]]:
    """Return the values by the month of their day, such as "2013-02"."""
    months: dict[str, list[Shown]] = {}
    for value in values:
        months.setdefault(f"{day_of(value):%Y-%m}", []).append(value)
    return months


def _with_years(dates: list[date], texts: list[str]) -> list[str]:
    """Return the labels of days, with the year below where it changes."""
    years = [0, *(day.year for day in dates)]
    return [
        text if day.year == before else f"{text}\n{day.year}"
        for day, text, before in zip(dates, texts, years, strict=False)
    ]


def _round_step(step: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))


def _tick_text(value: float) -> str:
    """Return the label of a tick, in all digits that round steps need.

    >>> _tick_text(0.30000000000000004), _tick_text(12_500.0), _tick_text(1e-9)
    ('0.3', '12,500', '10⁻⁹')
    """
    if value == 0:
        return "0"
    size = _size(value)
    if not _SMALLEST <= size <= _LARGEST:
        return _with_power(value)
    return _without_zeros(f"{value:,.{max(0, 2 - size)}f}")


def format_column(values: Iterable[float]) -> Iterator[str]:
    """Yield numbers of one column: all with the decimals that the largest has in three significant digits.

    >>> [*format_column([13.0, 9.514, -0.04])], [*format_column([2500.0, 12.0, 0.2])]
    (['13.0', '9.5', '0.0'], ['2,500', '12', '0'])
    """
    numbers = list(values)
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
    decimals = 2 - math.floor(math.log10(largest)) if 0.001 < largest < 1000 else 0
    for number in numbers:
        text = f"{round(number, decimals) + 0.0:.{decimals}f}".replace("-", "−")
        yield text if abs(number) < 1000 else format_number(number)


def format_number(value: float) -> str:
    """Return a number for people in three significant digits, rounded to the nearest.

    >>> [format_number(value) for value in (0.30000000000000004, 2500.0, -0.0, 12345.6, 999.7, math.inf)]
    ['0.3', '2,500', '0', '12,300', '1,000', 'infinite']
    >>> [format_number(value) for value in (0.00012345, 3.2e-7, -3.2e-7, 1.9e79)]
    ['0.000123', 'below 0.000001', 'above −0.000001', '1.9 × 10⁷⁹']
    """
    if value == 0 or math.isinf(value):
        return "infinite" if value else "0"
    size = _size(value)
    if size < _SMALLEST:
        return "below 0.000001" if value > 0 else "above −0.000001"
    if size > _LARGEST:
        return _with_power(value)
    digits = 2 - size
    return _without_zeros(f"{round(value, digits):,.{max(0, digits)}f}")


def format_rounded_up(value: float) -> str:
    """Return a non-negative number in three digits, rounded up; "< 0.001" below a thousandth. Use it for losses.

    >>> format_rounded_up(0.123401), format_rounded_up(0.5), format_rounded_up(2e-9), format_rounded_up(25016.3)
    ('0.124', '0.5', '< 0.001', '25,100')
    """
    if not 0.001 <= value < math.inf:
        return "< 0.001" if 0 < value < 0.001 else format_number(value)
    return f"{Decimal(rounded_up(value)):,f}"


def number_or_dash(value: float) -> str:
    """Return a number for people as `format_number`, and a dash for one that is not known (nan)."""
    return "–" if math.isnan(value) else format_number(value)


def format_percent(share: float) -> str:
    """Return a share in percent, in three significant digits.

    >>> format_percent(0.94512), format_percent(1.0), format_percent(0.99996)
    ('94.5 %', '100 %', 'above 99.9 %')
    """
    if 0.9995 <= share < 1:
        return "above 99.9 %"
    return f"{format_number(100 * share)} %"


_SMALLEST, _LARGEST = -6, 12
"""Powers of ten between which a number is written without one."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _size(value: float) -> int:
    return math.floor(math.log10(abs(value)) + 1e-12)


def _with_power(value: float) -> str:
    """Return a number with a power of ten, for a label that must differ from its neighbours."""
    digits, _, power = f"{value:.3g}".partition("e")
    if not power:
        digits, _, power = f"{value:.2e}".partition("e")
    return _times_power(_without_zeros(digits), int(power))


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


_POWER = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)e(-?[0-9]+)(?!\w)")


def with_powers(text: str) -> str:
    """Return a text whose numbers with an exponent are written with a power of ten.

    >>> with_powers("total (delta 1e-6)"), with_powers("delta 2.5e-7")
    ('total (delta 10⁻⁶)', 'delta 2.5 × 10⁻⁷')
    """
    return _POWER.sub(lambda match: _times_power(match[1], int(match[2])), text)


def _times_power(digits: str, power: int) -> str:
    of_ten = f"10{str(power).translate(_SUPERSCRIPTS)}"
    return of_ten if digits == "1" else f"{digits} × {of_ten}"


# --------------------------------------------------------------------------------------------------
# Layers of a chart: lines, points, marks and values at the pointer.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line of values by x, NaN where a value is missing, with an optional `band` (low, high) and end `letter`.

    Lines of few values have `dots`, unless the line is drawn in `steps`.
    """

    name: str
    x: Sequence[float]
    values: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    letter: str = ""
    style: int = 0
    steps: bool = False
    dots: bool = True


@dataclass(frozen=True, slots=True)
class Points:
    """Points by x, NaN where a value is missing, each with a whisker from `low` to `high`."""

    name: str
    x: Sequence[float]
    values: Sequence[float]
    whiskers: tuple[Sequence[float], Sequence[float]]
    style: int = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks along the bottom, such as skipped days."""

    name: str
    x: Sequence[float]


MOST_AREAS = 1000
"""Areas at the pointer of one chart."""


@dataclass(frozen=True, slots=True)
class Hover:
    """Values at the pointer, of all other layers: how a chart names a position and a value, and its number of areas.

    Neighbouring positions of the same name share an area. Of losses, `number` rounds up.
    """

    place: Callable[[float], str]
    unit: str
    number: Callable[[float], str] = format_number
    most: int = MOST_AREAS
    name: str = ""


Layer = Line | Points | Marks | Hover


# --------------------------------------------------------------------------------------------------
# Values at the pointer: transparent areas over a chart, each with an SVG title that every browser shows.
# --------------------------------------------------------------------------------------------------

MOST_IN_SERIES = 4000
"""Areas of all charts side by side."""
_FEWEST_AREAS = 12


def share_of_areas(charts: int) -> int:
    """Return how many areas each of these charts side by side may have.

    >>> share_of_areas(1), share_of_areas(40)
    (1000, 100)
    """
    return max(_FEWEST_AREAS, min(MOST_AREAS, MOST_IN_SERIES // max(charts, 1)))


def positions_per_area(positions: int, most: int) -> int:
    """Return how many neighbouring positions one area stands for.

    >>> positions_per_area(365, 1000), positions_per_area(365, 100)
    (1, 4)
    """
    return -(-positions // most) if positions else 1


def day_text(number: float) -> str:
    """Return the day of an ordinal number.

    >>> day_text(734_869.0)
    '2013-01-01'
    """
    return date.fromordinal(round(number)).isoformat()


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a layer at a position, with the ends of its interval, if it has one; marks have a name alone."""

    place: float
    name: str
    value: float | None
    interval: tuple[float, float] | None = None


def hover_areas(
    layers: Sequence[Layer], hover: Hover, *, across: Callable[[float], int], size: tuple[int, int]
) -> Iterator[str]:
    """Yield the areas of a chart as one SVG group; nothing for a chart without values.

    Args:
        layers: layers of the chart.
        hover: names of positions and values.
        across: horizontal coordinate of a position.
        size: width and height of the drawing.
    """
    by_place: dict[float, list[_Value]] = {}
    for layer in layers:
        for value in _values(layer):
            by_place.setdefault(value.place, []).append(value)
    places = sorted(by_place)
    if not places:
        return
    measured = (value for values in by_place.values() for value in values if value.value is not None)
    is_single = len({value.name for value in measured}) <= 1
    named = [[*of_name] for _, of_name in groupby(places, hover.place)]
    count = positions_per_area(len(named), hover.most)
    edges = dict(zip(places, _edges([across(place) for place in places], size[0]), strict=True))
    yield '<g class="hit">'
    for start in range(0, len(named), count):
        shown = [place for of_name in named[start : start + count] for place in of_name]
        left, right = edges[shown[0]][0], edges[shown[-1]][1]
        of_places = [value for place in shown for value in by_place[place]]
        yield area(left, 0, max(right - left, 1), size[1], _text(shown, of_places, hover, is_single=is_single))
    yield "</g>"


def area(left: int, top: int, width: int, height: int, text: str) -> str:
    """Return one area with its title."""
    escaped = escape(escape_controls(text, has_lines=True), quote=False)
    return f'<path d="M{left} {top}h{width}v{height}h-{width}z"><title>{escaped}</title></path>'


def _values(layer: Layer) -> Iterator[_Value]:
    match layer:
        case Line(name=name, x=x, values=values, band=ends) | Points(name=name, x=x, values=values, whiskers=ends):
            for i, value in enumerate(values):
                if not math.isnan(value):
                    yield _Value(x[i], name, value, None if ends is None else (ends[0][i], ends[1][i]))
        case Marks():
            yield from (_Value(place, layer.name, None) for place in layer.x)
        case _:
            pass


def _edges(places: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Return left and right end of the area of each position: half-way to its neighbours, but not across a gap.

    >>> _edges([0, 10, 20, 100], 100)
    [(0, 5), (5, 15), (15, 30), (90, 100)]
    """
    gaps = [after - before for before, after in pairwise(places)]
    typical = round(median(gaps)) if gaps else width
    reaches = [min(gap // 2, typical) for gap in gaps]
    before, after = [typical // 2, *reaches], [*reaches, typical // 2]
    return [
        (max(place - left, 0), min(place + right, width))
        for place, left, right in zip(places, before, after, strict=True)
    ]


def _text(places: Sequence[float], values: Sequence[_Value], hover: Hover, *, is_single: bool) -> str:
    first, last = hover.place(places[0]), hover.place(places[-1])
    where = first if first == last else f"{first} to {last}"
    names = dict.fromkeys(value.name for value in values)
    lines = [_layer_text([value for value in values if value.name == name], hover) for name in names]
    if is_single and len(lines) == 1:
        return f"{where}: {lines[0] or values[0].name}"
    short_names = (name.partition(",")[0] for name in names)
    return "\n".join(
        [where, *(f"{name}: {line}" if line else name for name, line in zip(short_names, lines, strict=True))]
    )


def _layer_text(values: Sequence[_Value], hover: Hover) -> str:
    numbers = [value.value for value in values if value.value is not None]
    if not numbers:
        return ""
    unit = f" {hover.unit}" if hover.unit else ""
    if len({(value.value, value.interval) for value in values}) > 1:
        return f"{hover.number(min(numbers))} to {hover.number(max(numbers))}{unit}, {len(values)} values"
    interval = values[0].interval
    ends = "" if interval is None else f" ({hover.number(interval[0])} to {hover.number(interval[1])})"
    return f"{hover.number(numbers[0])}{unit}{ends}"


# --------------------------------------------------------------------------------------------------
# Charts whose values never change become one sentence with the number.
#
# Example: "Loss of each day. 5 equal values, the first at 2013-01-01, the last at 2013-01-05. spent: 0.5 epsilon."
# --------------------------------------------------------------------------------------------------


def constant_sentence(title: str, layers: Sequence[Layer], hover: Hover) -> str:
    """Return the sentence in place of a chart, whose lines are all constant or empty; "" for any other chart.

    Args:
        title: title of the chart.
        layers: its layers.
        hover: names of its positions and values.
    """
    drawn = [layer for layer in layers if isinstance(layer, Line | Points)]
    values = [[*_values(layer)] for layer in drawn]
    if any(len({(value.value, value.interval) for value in of_layer}) > 1 for of_layer in values):
        return ""
    places = sorted({value.place for of_layer in values for value in of_layer})
    if not places:
        return f"{title}: no value."
    parts = [f"{of_layer[0].name}: {_layer_text(of_layer[:1], hover)}" for of_layer in values if of_layer]
    parts += [f"{len(layer.x):,} {layer.name}" for layer in layers if isinstance(layer, Marks)]
    first, last = hover.place(places[0]), hover.place(places[-1])
    where = first if len(places) == 1 else f"{len(places):,} equal values, the first at {first}, the last at {last}"
    return f"{title}. {where}. {'; '.join(parts)}."


# --------------------------------------------------------------------------------------------------
# A chart or a heat map as HTML with an SVG inside, for screens of any width and for print.
# --------------------------------------------------------------------------------------------------

_MAX_DOTS = 45
_LETTER_PX = 17


def chart(  # noqa: PLR0913  (all but three have a name)
    title: str,
    about: str,
    layers: Sequence[Layer],
    *,
    x: Scale,
    y: Scale,
    y_title: str = "",
    height: int = 220,
    has_legend: bool = True,
    anchor: str = "",
) -> str:
    """Return a figure: title, legend if needed, drawing and axis labels; a sentence if no value changes.

    Args:
        title: subject of the chart, different from every other title of the page.
        about: description for a reader who cannot see the chart.
        layers: lines, points and marks, the lowest layer first.
        x: horizontal axis.
        y: vertical axis.
        y_title: quantity and unit of the vertical axis.
        height: height of the drawing [px].
        has_legend: whether the chart names its layers itself; charts side by side share one `legend`.
        anchor: target of links to the chart, "" for none.
    """
    hover = next((layer for layer in layers if isinstance(layer, Hover)), None)
    if hover is not None and (text := constant_sentence(title, layers, hover)):
        return paragraph(text, anchor=anchor)
    sheet = _DrawingArea(x, y, 2000, 2 * height)
    drawing = [
        *(f'<path class="grid" d="M0 {sheet.down(value)}H{sheet.width}"/>' for value, _ in y.ticks),
        *(f'<path class="grid" d="M{sheet.across(value)} {sheet.height}v12"/>' for value, _ in x.ticks),
        *(path for layer in layers for path in _layer_paths(layer, sheet)),
        *(() if hover is None else hover_areas(layers, hover, across=sheet.across, size=(sheet.width, sheet.height))),
    ]
    lettered = [layer for layer in layers if isinstance(layer, Line) and layer.letter]
    labels, letters = [*_axis_labels(x, y, y_title)], [*_end_letters(lettered, sheet, height)]
    entries, size = _legend_entries(layers) if has_legend else [], (sheet.width, sheet.height)
    return part("figure", title, about, height, size, "\n".join(drawing), labels, entries, letters, anchor)


def legend(layers: Sequence[Layer]) -> str:
    """Return the legend of charts side by side whose layers have these names."""
    return part("legend", _legend_entries(layers))


def _legend_entries(layers: Sequence[Layer]) -> list[tuple[str, int, str, str]]:
    return [_legend_entry(layer) for layer in layers if layer.name]


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


def _layer_paths(layer: Layer, sheet: _DrawingArea) -> Iterator[str]:
    match layer:
        case Line():
            yield from _line_paths(layer, sheet)
        case Points():
            yield from _point_paths(layer, sheet)
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
        lower = [(sheet.across(line.x[i]), sheet.down(low[i])) for i in run]
        if line.steps:
            upper, lower = _step_corners(upper), _step_corners(lower)
        if len(run) == 1:
            alone.append(f"M{upper[0][0]} {upper[0][1]}V{lower[0][1]}")
        else:
            areas.append(_path([*upper, *reversed(lower)]) + "z")
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
    return part("figure", title, about, _MAP_HEIGHT, (edge, edge), drawing, labels, (), (), "")


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

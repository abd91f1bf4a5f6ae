"""Charts whose values never change become one sentence with the number.

Example: "Loss of each day. 5 equal values, the first at 2013-01-01, the last at 2013-01-05. spent: 0.5 epsilon."
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from agedp.reports.chart_layers import Bars, Hover, Layer, Level, Line, Marks, Points

_Value = tuple[float, ...]
"""A value, and the ends of its interval if it has one."""


def constant_value(values: Iterable[float]) -> float | None:
    """Return the value that all of these equal; None if they differ or there are none.

    >>> constant_value([0.5, 0.5]), constant_value([0.5, 0.6]), constant_value([])
    (0.5, None, None)
    """
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def constant_sentence(title: str, layers: Sequence[Layer], hover: Hover) -> str:
    """Return the sentence in place of a chart, whose lines are all constant or empty; "" for any other chart.

    Args:
        title: title of the chart.
        layers: its layers.
        hover: names of its positions and values.
    """
    drawn = [layer for layer in layers if isinstance(layer, Line | Points | Bars)]
    values = [{value for _, value in _values(layer)} for layer in drawn]
    if any(len(distinct) > 1 for distinct in values):
        return ""
    places = sorted({place for layer in drawn for place, _ in _values(layer)})
    if not places:
        return f"{title}: no value."
    parts = [
        f"{layer.name}: {_value_text(value, hover)}"
        for layer, distinct in zip(drawn, values, strict=True)
        for value in distinct
    ]
    parts += [layer.name for layer in layers if isinstance(layer, Level)]
    parts += [f"{len(layer.x):,} {layer.name}" for layer in layers if isinstance(layer, Marks)]
    first, last = hover.place(places[0]), hover.place(places[-1])
    where = first if len(places) == 1 else f"{len(places):,} equal values, the first at {first}, the last at {last}"
    return f"{title}. {where}. {'; '.join(parts)}."


def _values(layer: Line | Points | Bars) -> Iterator[tuple[float, _Value]]:
    """Yield the position of each value of a layer, and the value with its interval."""
    match layer:
        case Line(band=ends):
            pass
        case Points(whiskers=ends):
            pass
        case Bars():
            ends = None
    for i, value in enumerate(layer.values):
        if not math.isnan(value):
            yield layer.x[i], (value,) if ends is None else (value, ends[0][i], ends[1][i])


def _value_text(value: _Value, hover: Hover) -> str:
    number, *ends = map(hover.number, value)
    unit = f" {hover.unit}" if hover.unit else ""
    return f"{number}{unit}" + (f" ({ends[0]} to {ends[1]})" if ends else "")

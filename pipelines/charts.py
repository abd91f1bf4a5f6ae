"""Line charts as SVG text for reports that open offline: no library, no script, no font, the same bytes every time.

Tried: matplotlib writes 31 kB for a chart of three lines with its letters as shapes and 15 kB with text, other bytes on
every run unless told otherwise, and brings 80 MB and a second or so of importing; plotly brings 4.9 MB a page. Here it
is 4 to 5 kB, its text grows with the page and can be searched and read aloud.

Lines differ by dash and marker, not by colour alone; every chart has a title and a description, and whoever shows one
puts its numbers in a table beside it (`table`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

_WIDTH, _LEFT, _RIGHT, _PLOT, _BELOW, _LEGEND = 400, 40, 12, 190, 42, 18
_STYLES = (  # colour (Okabe and Ito), dash, marker
    ("#0072b2", "", "circle"),
    ("#d55e00", "6 3", "square"),
    ("#5b5b5b", "2 3", "triangle"),
    ("#117733", "8 3 2 3", "diamond"),
)
_MARKERS = {
    "circle": '<circle cx="{x}" cy="{y}" r="3.5"/>',
    "square": '<rect x="{left}" y="{above}" width="6.4" height="6.4"/>',
    "triangle": '<path d="M{x} {above} l3.8 6.6 h-7.6 z"/>',
    "diamond": '<path d="M{x} {above} l4 4 l-4 4 l-4 -4 z"/>',
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line by x, NaN where it has no value; `band` is drawn around it (low, high)."""

    name: str
    values: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """Where the values of every line lie, the ticks by place, and what is counted along it."""

    values: Sequence[float]
    ticks: Mapping[float, str]
    title: str


def line_chart(
    title: str,
    about: str,
    lines: Sequence[Line],
    *,
    x: Axis,
    y_title: str,
    y_top: float,
) -> str:
    """Return a chart from 0 to `y_top`, as wide as its column, with a legend above.

    `about` is what somebody who cannot see the chart should know. Texts are escaped here.
    """
    top = 30 + _LEGEND * len(lines)
    height = top + _PLOT + _BELOW
    scale = _Scale(min(x.values), max(x.values), y_top, top)
    key = "".join(each for each in title.lower() if each.isalnum())
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="{key}-t {key}-d">',
        f'<title id="{key}-t">{escape(title)}</title><desc id="{key}-d">{escape(about)}</desc>',
        *_grid(scale, y_top, x.ticks),
        f'<text class="axis" x="{_LEFT - 34}" y="{top - 10}">{escape(y_title)}</text>',
        f'<text class="axis" x="{_WIDTH - _RIGHT}" y="{height - 5}" text-anchor="end">{escape(x.title)}</text>',
        *(part for number, line in enumerate(lines) for part in _drawn(number, line, x.values, scale)),
        *(part for number, line in enumerate(lines) for part in _named(number, line)),
        "</svg>",
    ]
    return "\n".join(parts)


def table(caption: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]], *, digits: int = 3) -> str:
    """Return the numbers of a chart as an HTML table that may be scrolled; a dash where there is none."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{'–' if math.isnan(value) else f'{value:.{digits}f}'}</td>" for value in values)
        + "</tr>\n"
        for name, values in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr><td></td>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    y_top: float
    top: float

    def x(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(_LEFT + 10 + share * (_WIDTH - _LEFT - _RIGHT - 20), 1)

    def y(self, value: float) -> float:
        return round(self.top + _PLOT * (1 - min(max(value, 0.0), self.y_top) / self.y_top), 1)


def _grid(scale: _Scale, y_top: float, x_ticks: Mapping[float, str]) -> list[str]:
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = scale.y(share * y_top)
        parts.append(f'<path class="grid" d="M{_LEFT} {y} H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 5}" y="{y + 4}" text-anchor="end">{share * y_top:.3g}</text>')
    base = scale.top + _PLOT
    for value, text in x_ticks.items():
        at = scale.x(value)
        parts.append(f'<path class="grid" d="M{at} {base} v4"/>')
        parts.append(f'<text class="tick" x="{at}" y="{base + 17}" text-anchor="middle">{escape(text)}</text>')
    return parts


def _drawn(number: int, line: Line, x: Sequence[float], scale: _Scale) -> list[str]:
    colour, dash, marker = _STYLES[number % len(_STYLES)]
    parts = []
    if line.band is not None:
        both = zip(x, *line.band, strict=True)
        for known, run in groupby(both, key=lambda each: not (math.isnan(each[1]) or math.isnan(each[2]))):
            stretch = list(run)
            if known:
                outline = [(at, high) for at, _, high in stretch] + [(at, low) for at, low, _ in reversed(stretch)]
                shape = " L".join(f"{scale.x(at)} {scale.y(value)}" for at, value in outline)
                parts.append(f'<path class="band" fill="{colour}" d="M{shape} Z"/>')
    points = list(zip(x, line.values, strict=True))
    for known, connected in groupby(points, key=lambda each: not math.isnan(each[1])):
        if known:
            shape = " L".join(f"{scale.x(at)} {scale.y(value)}" for at, value in connected)
            parts.append(f'<path class="line" stroke="{colour}" stroke-dasharray="{dash}" d="M{shape}"/>')
    if len(points) <= 40:  # more would hide the line
        parts += [_marked(marker, colour, scale.x(at), scale.y(value)) for at, value in points if not math.isnan(value)]
    return parts


def _named(number: int, line: Line) -> list[str]:
    colour, dash, marker = _STYLES[number % len(_STYLES)]
    y = 10 + _LEGEND * number
    return [
        f'<path class="line" stroke="{colour}" stroke-dasharray="{dash}" d="M{_LEFT - 34} {y} h30"/>',
        _marked(marker, colour, _LEFT - 19, y),
        f'<text class="tick" x="{_LEFT + 4}" y="{y + 4}">{escape(line.name)}</text>',
    ]


def _marked(marker: str, colour: str, x: float, y: float) -> str:
    shape = _MARKERS[marker].format(x=x, y=y, left=round(x - 3.2, 1), above=round(y - 4, 1))
    return f'<g fill="{colour}">{shape}</g>'


STYLE = """
:root{color-scheme:light;--ink:#1a1a1a;--soft:#555;--rule:#cfcfcf}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:#fff;max-width:44rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.15rem;margin:2rem 0 .5rem}
svg{width:100%;max-width:34rem;height:auto;display:block}
svg text{font:12.5px system-ui,sans-serif;fill:var(--ink)}svg .axis{font-size:11.5px;fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1;fill:none}.line{stroke-width:2;fill:none}.band{opacity:.16}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.3rem 0}td,th{padding:.2rem .6rem;text-align:right;font-weight:400}
thead th{border-bottom:1px solid var(--ink)}tbody th{text-align:left;min-width:8.5rem}
tbody tr{border-bottom:1px solid var(--rule)}
.note{color:var(--soft);font-size:.92rem}.mark{border:2px solid var(--ink);padding:.5rem .8rem;font-weight:600}
@media (max-width:32rem){table{font-size:.8rem}td,th{padding:.2rem .3rem}tbody th{min-width:6.5rem}}
@media print{body{max-width:none;padding:0;font-size:11pt}svg,table{break-inside:avoid}
h2,section p{break-after:avoid}svg{max-width:22rem}.wide{overflow:visible}}
"""
"""The style of a report: readable on a phone and in print."""


def document(title: str, body: Sequence[str]) -> str:
    """Return a page that asks the network for nothing."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )

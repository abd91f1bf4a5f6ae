"""One style for all figures: readable in print and without colour, the same bytes for the same numbers.

A curve's look (the paper's, ours, measured, reference) has its own colour AND its own dashes; curves of one look
differ by mark and lightness. Text stays text in SVG, so that a figure is small and can be searched.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from agedp_data.errors import RunFileError
from docs.papers.references import cited
from docs.papers.results import Curve, Panel, PaperFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_SHADES = {
    "paper": ("#b33c00", "#e8722e", "#7a2900", "#f2a56f", "#c9581a"),
    "ours": ("#0b5394", "#3f8fd2", "#06325a", "#85b9e3", "#1f6fb2"),
    "measured": ("#1b7f4d", "#4fb07f", "#0d4a2c", "#8ccbac", "#2d9963"),
    "reference": ("#555555", "#888888", "#222222", "#aaaaaa", "#6b6b6b"),
}
"""Okabe-Ito's vermilion, blue and green in five steps each, and grey: distinct for most eyes and in print."""

_DASHES = {"paper": (0, (5, 2)), "ours": "-", "measured": (0, (6, 2, 1, 2)), "reference": (0, (1, 1.5))}
_MARKS = ("o", "s", "^", "D", "v")
_MARKED = 8
_RESTLESS = 250
_FEW_DECADES = 150
_SMALLEST, _LARGEST = 1e-3, 2e4
"""Beyond these an axis has powers of ten throughout, and no mixture of both ways to write."""
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "svg.hashsalt": "agedp",
    "svg.fonttype": "none",
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}
_WIDTH, _HEIGHT = 4.4, 3.5
_ROW = 0.17
_NARROWEST = 7.0
_ACROSS = 3
_LABEL = 46
_DPI = 150


def require_matplotlib() -> None:
    """Check that figures can be drawn.

    Raises:
        RunFileError: matplotlib is not there.
    """
    try:
        import matplotlib  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError:
        raise RunFileError("figures are drawn by matplotlib: install agedp with its extra `papers`") from None
    del matplotlib


def drawn(figure: PaperFigure) -> dict[str, bytes]:
    """Return the figure as SVG and PNG, by the ending of the file's name.

    Raises:
        RunFileError: matplotlib is not there.
    """
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  (an extra)
    from matplotlib.figure import Figure as Drawing  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        across = len(figure.panels) if len(figure.panels) <= _ACROSS else 2
        down = -(-len(figure.panels) // across)
        width, named = max(_NARROWEST, _WIDTH * across), max(_legend_rows(panel) for panel in figure.panels)
        drawing = Drawing(figsize=(width, down * (_HEIGHT + _ROW * named)), layout="constrained")
        for axes, panel in zip(np.ravel(drawing.subplots(down, across)), figure.panels, strict=True):
            _draw(axes, panel)
        _write_around(drawing, figure, width)
        # Laid out once; saving would do it again for each format.
        drawing.draw_without_rendering()
        drawing.set_layout_engine("none")
        return {ending: _saved(drawing, ending) for ending in ("svg", "png")}


def _saved(drawing: Drawing, ending: str) -> bytes:
    stream = BytesIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None} if ending == "svg" else {"Software": None}
    drawing.savefig(stream, format=ending, dpi=_DPI, metadata=metadata, bbox_inches="tight", pad_inches=0.08)
    return stream.getvalue()


def _write_around(drawing: Drawing, figure: PaperFigure, width: float) -> None:
    """Write the finding above the panels, and below them what they rest on and what cannot be reproduced."""
    letters = int(width * 14.5)
    drawing.suptitle(textwrap.fill(figure.title, int(width * 11.5)), fontsize=11, fontweight="bold", x=0.01, ha="left")
    notes = [f"{figure.shows}. Rests on {figure.rests_on}."]
    notes += [f"Erratum: {cited(figure.erratum)}"] * bool(figure.erratum)
    lines = [line for text in notes for line in textwrap.wrap(text, letters)]
    drawing.text(0.01, -0.02, "\n".join(lines), fontsize=7.5, color="#333333", va="top", ha="left", linespacing=1.35)


def _draw(axes: Axes, panel: Panel) -> None:
    for line in panel.curves:
        _add(axes, line)
    for value, name in panel.levels:
        axes.axhline(value, color="#222222", lw=0.8, ls=(0, (2, 2)), zorder=1)
        is_left, is_below = panel.levels_named == "left", panel.levels_named == "below"
        axes.annotate(
            name, (0.0 if is_left else 1.0, value), xycoords=("axes fraction", "data"),
            xytext=(2 if is_left else -2, -2 if is_below else 2), textcoords="offset points",
            ha="left" if is_left else "right", va="top" if is_below else "bottom",
            fontsize=7, color="#222222", zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )  # fmt: skip
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(textwrap.fill(panel.y, _LABEL))
    _number_axes(axes, panel)
    axes.set_ylim(bottom=panel.bottom, top=panel.top)
    if _legend_rows(panel):
        columns = _columns(panel)
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.17), ncols=columns, handlelength=3.2, borderaxespad=0)


def _number_axes(axes: Axes, panel: Panel) -> None:
    """Write plain numbers at logarithmic axes, and whole ones where every place is whole."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter  # noqa: PLC0415

    def plain(value: float, _place: int | None) -> str:
        return f"{value:g}"

    def power(value: float, _place: int | None) -> str:
        return _power(value)

    def between(value: float, _place: int | None) -> str:
        return f"{value:g}" if f"{value:e}"[0] in "25" else ""

    for axis in panel.log:
        axes.set(**{f"{axis}scale": "log"})
        ruler = {"x": axes.xaxis, "y": axes.yaxis}[axis]
        low, high = ruler.get_view_interval()
        ruler.set_major_formatter(FuncFormatter(plain if low >= _SMALLEST and high <= _LARGEST else power))
        ruler.set_minor_formatter(FuncFormatter(between) if high < _FEW_DECADES * low else NullFormatter())
    if "x" not in panel.log and all((line.x == np.rint(line.x)).all() for line in panel.curves):
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    if "y" not in panel.log and all((line.y == np.rint(line.y))[np.isfinite(line.y)].all() for line in panel.curves):
        axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _power(value: float) -> str:
    """Return a power of ten.

    >>> _power(1e-06), _power(1000.0)
    ('10⁻⁶', '10³')
    """
    return "10" + str(round(np.log10(value))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _columns(panel: Panel) -> int:
    """Return the columns of a legend: two, or one where a label would not fit into half a panel."""
    return 1 if max(len(line.label) for line in panel.curves) > 32 else 2


def _legend_rows(panel: Panel) -> int:
    named = sum(bool(line.label) for line in panel.curves)
    return -(-named // _columns(panel))


def _add(axes: Axes, line: Curve) -> None:
    is_finite = np.isfinite(line.x) & np.isfinite(line.y)
    x, y = line.x[is_finite], line.y[is_finite]
    shades = _SHADES[line.look]
    colour, mark = shades[line.shade % len(shades)], _MARKS[line.shade % len(_MARKS)]
    # Dashes of a curve of hundreds of ups and downs cannot be seen; it is drawn thin, and distinguished by its marks.
    restless = len(x) > _RESTLESS
    dashes: Any = "-" if restless else _DASHES[line.look]
    filled = "none" if line.look == "paper" else colour
    if line.kind == "bars":
        wide = float(np.min(np.diff(x), initial=np.inf)) if x.size > 1 else 1.0
        axes.bar(x, y, width=0.9 * wide, color=colour, label=line.label)
    elif line.kind == "points":
        axes.plot(x, y, ls="none", marker=mark, mfc=filled, mec=colour, ms=6, label=line.label, zorder=4)
    elif line.kind == "steps":
        axes.step(x, y, where="post", color=colour, ls=dashes, label=line.label)
    else:
        axes.plot(
            x, y, color=colour, ls=dashes, marker=mark, mfc=filled, mec=colour, markevery=_spaced(len(x), line),
            label=line.label, zorder=3 if line.look == "ours" else 2, lw=0.9 if restless else 1.5,
        )  # fmt: skip


def _spaced(count: int, line: Curve) -> Sequence[int]:
    """Return the places of a few marks, different for curves that may lie on each other."""
    if count <= _MARKED + 2:
        return list(range(count))
    apart = count / _MARKED
    first = apart * (list(_SHADES).index(line.look) / 4 + line.shade / 20)
    return sorted({min(count - 1, int(first + i * apart)) for i in range(_MARKED)})

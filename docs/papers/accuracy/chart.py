"""Measured errors -> the chart docs/accuracy.svg: the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any, Final

from docs.papers.style import require_matplotlib

_LINES: Final = (
    ("year", "raw", "raw, by the sum of the days", "#b33c00", "o", "-"),
    ("year-delta", "raw", "raw, by the span accountant (delta 1e-6)", "#0b5394", "s", "-"),
    ("year", "smoothed", "smoothed, by the sum", "#b33c00", "^", (0, (5, 2))),
    ("year-delta", "smoothed", "smoothed, by the span accountant", "#0b5394", "D", (0, (5, 2))),
)
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "agedp",
}


def chart(figures: Mapping[str, Any]) -> str:
    """Return the chart: root mean square error against households for an epsilon of 10 a year, both logarithmic.

    Raises:
        RunFileError: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  (an extra)
    from matplotlib.figure import Figure  # noqa: PLC0415

    households = figures["households"]
    by_key = {promise["key"]: promise for promise in figures["promises"]}
    with mpl.rc_context(_STYLE):
        drawing = Figure(figsize=(7, 4.2), layout="constrained")
        drawing.patch.set_facecolor("white")
        axes = drawing.subplots()
        for key, kind, label, color, mark, dash in _LINES:
            axes.plot(households, by_key[key][kind], label=label, color=color, marker=mark, linestyle=dash, ms=4)
        axes.plot(
            households, figures["change_kwh"], label="change of the mean from day to day", color="#555555", ls=":"
        )
        axes.set(xscale="log", yscale="log", xlabel="households", ylabel="error, kWh per household and day")
        axes.set_title("Epsilon 10 a year, clamp 50 kWh: root mean square error", loc="left", fontsize=9.5)
        axes.set_xticks(households, [f"{number:,}" for number in households], minor=False)
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(color="#d9d9d9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
        written = StringIO()
        drawing.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"

"""Plots of tables, by matplotlib (extra `plot`): each returns the Axes, to be titled, saved or drawn upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agedp.result_summary import CONFIDENTIAL
from agedp_data.arrays import Floats
from agedp_data.errors import InputError
from agedp_data.messages import escape_controls

if TYPE_CHECKING:
    import pandas as pd

    from agedp_data.series.result_table import Chart

_SMALLEST = 1e-6
"""Smallest total variation of a plot; smaller ones are rounding."""


def new_axes() -> Any:  # noqa: ANN401  (matplotlib.axes.Axes)
    """Return the axes of a new figure.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise InputError("plot() needs matplotlib, which is not installed; install agedp with its extra plot") from None
    axes = plt.subplots(figsize=(8, 4), layout="constrained")[1]
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _label(name: object) -> str:
    """Return the name of a series or group as a legend shows it."""
    return escape_controls(str(name))


def _concise_dates(axes: Any) -> None:  # noqa: ANN401
    from matplotlib import dates  # noqa: PLC0415

    matplotlib_dates: Any = dates
    locator = matplotlib_dates.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(matplotlib_dates.ConciseDateFormatter(locator))


def released(table: pd.DataFrame, chart: Chart) -> Any:  # noqa: ANN401
    """Plot a published table with its noise intervals, a line for each group.

    A value of a day is shown over the days; one of a half-hour over the newest day, one of a range as the mean of all
    days over the ranges.
    """
    if "bin_low_kwh" in table:
        axes = _counts(table)
    elif "start_minute" in table:
        axes = _lines(table[table["day"] == table["day"].max()], chart)
        axes.set(xlabel=f"hour of the day, {table['day'].max():%Y-%m-%d}", xlim=(0, 24))
        axes.set_ylabel(f"{chart.unit} per household and half-hour")
    else:
        axes = _lines(table, chart)
        _concise_dates(axes)
        axes.set_ylabel("kWh per household and day" if chart.unit == "kWh" else f"{chart.unit} of households")
    interval = "their noise intervals" if chart.band else "two standard deviations of their noise"
    axes.set_title(f"published values with {interval}")
    return axes


def _lines(table: pd.DataFrame, chart: Chart) -> Any:  # noqa: ANN401
    axes = new_axes()
    names = [name for name in ("group", "day_kind") if name in table]
    for of_line, rows in table.groupby(names, sort=True):
        if chart.band is not None and "first_day" in rows and "start_minute" not in rows:
            _spans(axes, rows, chart.y, chart.band, label=_label(", ".join(map(str, of_line))))
            continue
        x = rows["start_minute"] / 60 if "start_minute" in rows else rows["day"]
        line = axes.plot(
            x, rows[chart.y], ".-", label=_label(", ".join(map(str, of_line))), linewidth=1.2, markersize=4
        )[0]
        if chart.band is not None:
            _band(axes, x, rows[chart.band[0]], rows[chart.band[1]], line)
    _legend(axes)
    return axes


def _spans(axes: Any, rows: pd.DataFrame, y: str, band: tuple[str, str], *, label: str) -> None:  # noqa: ANN401
    """Plot values of several days each as crosses: as wide as their days, as high as their intervals."""
    half = (rows["day"] - rows["first_day"]) / 2
    heights = [rows[y] - rows[band[0]], rows[band[1]] - rows[y]]
    axes.errorbar(rows["first_day"] + half, rows[y], yerr=heights, xerr=half, fmt=".", label=label, linewidth=1.2)


def _band(axes: Any, x: Any, low: Any, high: Any, line: Any) -> None:  # noqa: ANN401
    axes.fill_between(x, low, high, alpha=0.2, color=line.get_color(), linewidth=0)


def _legend(axes: Any) -> None:  # noqa: ANN401
    """Show the names of the lines, if there are several."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False)


def estimates(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot smoothed estimates with their intervals, a line for each series and group, and the published values."""
    axes = new_axes()
    for (series, group), rows in table.groupby(["series", "group"], sort=True):
        label = _label(series if group == "all" else f"{series}, {group}")
        line = axes.plot(rows.index, rows["estimate_kwh"], label=label, linewidth=1.4)[0]
        _band(axes, rows.index, rows["low_kwh"], rows["high_kwh"], line)
        axes.plot(rows.index, rows["published_kwh"], ".", markersize=3, alpha=0.6, color=line.get_color())
    _concise_dates(axes)
    axes.set(ylabel="kWh per household and day", title="estimates with their 90 % intervals; points: published values")
    axes.legend(frameon=False)
    return axes


def _counts(table: pd.DataFrame) -> Any:  # noqa: ANN401
    axes = new_axes()
    for name, rows in table.groupby("group", sort=True):
        of_range = rows.assign(variance=rows["noise_sd"] ** 2).groupby("bin_low_kwh")
        high, count = of_range["bin_high_kwh"].first(), of_range["households_noisy"].mean()
        steps = axes.stairs(count, [*count.index, high.iloc[-1]], label=_label(name), linewidth=1.2)
        error = 2 * of_range["variance"].sum() ** 0.5 / of_range.size()
        axes.errorbar((count.index + high) / 2, count, yerr=error, fmt="none", color=steps.get_edgecolor())
    axes.set(xlabel="kWh of a day", ylabel="households, mean of all days")
    _legend(axes)
    return axes


def mixing(curves: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot total variations by age, a faint line for each household, and their median and maximum."""
    axes = new_axes()
    ages = np.asarray(curves.columns, float)
    axes.plot(ages, curves.to_numpy().T, color="tab:blue", alpha=max(0.02, min(0.4, 10 / max(len(curves), 1))), lw=0.8)
    axes.plot(ages, curves.median(), color="black", label="median household")
    axes.plot(ages, curves.max(), color="black", linestyle="--", label="slowest household")
    axes.set(xlabel="age (days)", ylabel="total variation", yscale="log", ylim=(_SMALLEST, 1), title=CONFIDENTIAL)
    axes.legend(frameon=False)
    return axes


def matrix(kernel: Floats, *, name: str) -> Any:  # noqa: ANN401
    """Plot the transition matrix of a household."""
    return _image(
        kernel, "probability", xlabel="to state", ylabel="from state", title=f"{CONFIDENTIAL}: {_label(name)}"
    )


def shares(table: Floats, *, step: str) -> Any:  # noqa: ANN401
    """Plot the share of readings in each state (rows), by half-hour of the day, or by weekday (columns)."""
    xlabel = "half-hour of the day" if step == "half-hour" else "day of the week (0: Monday)"
    return _image(table, "share of readings", xlabel=xlabel, ylabel="state", title=CONFIDENTIAL, origin="lower")


def _image(values: Floats, unit: str, *, origin: str = "upper", **texts: str) -> Any:  # noqa: ANN401
    axes = new_axes()
    image = axes.imshow(values, cmap="viridis", vmin=0, origin=origin, aspect="auto" if origin == "lower" else "equal")
    axes.figure.colorbar(image, ax=axes, label=unit)
    axes.set(**texts)
    axes.yaxis.get_major_locator().set_params(integer=True)
    return axes


def losses(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot the epsilon of each planned row, a line for each series."""
    axes = new_axes()
    for name, rows in table.drop_duplicates(["day", "series"]).groupby("series", sort=True):
        axes.plot(rows["day"], rows["epsilon"], ".", drawstyle="steps-mid", linestyle="-", label=_label(name))
    _concise_dates(axes)
    axes.set(ylabel="epsilon of a row", ylim=(0, None), title="planned, before any draw")
    _legend(axes)
    return axes

"""Plots of tables, by matplotlib (extra `plot`): each returns the Axes, to be titled, saved or drawn upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import InputError
from agedp_data.messages import escape_controls

if TYPE_CHECKING:
    import pandas as pd


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


def means(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot published daily means with their intervals, a line for each group."""
    axes = new_axes()
    groups = list(table.groupby("group", sort=True)) if "group" in table else [("", table)]
    for name, rows in groups:
        line = axes.plot(rows.index, rows["mean_kwh"], label=_label(name) or None, linewidth=1.2)[0]
        axes.fill_between(rows.index, rows["low_kwh"], rows["high_kwh"], alpha=0.2, color=line.get_color(), linewidth=0)
    _concise_dates(axes)
    axes.set_ylabel("kWh per household and day")
    if len(groups) > 1:
        axes.legend(frameon=False)
    return axes


def estimates(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot smoothed estimates with their intervals, a line for each series and group, and the published values."""
    axes = new_axes()
    for (series, group), rows in table.groupby(["series", "group"], sort=True):
        label = _label(series if group == "all" else f"{series}, {group}")
        line = axes.plot(rows.index, rows["estimate_kwh"], label=label, linewidth=1.4)[0]
        axes.fill_between(rows.index, rows["low_kwh"], rows["high_kwh"], alpha=0.2, color=line.get_color(), linewidth=0)
        axes.plot(rows.index, rows["published_kwh"], ".", markersize=3, alpha=0.6, color=line.get_color())
    _concise_dates(axes)
    axes.set_ylabel("kWh per household and day")
    axes.legend(frameon=False)
    return axes


def counts(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot the published counts of a distribution, averaged over its days: a step for each range, a line by group."""
    axes = new_axes()
    for name, rows in table.groupby("group", sort=True):
        ranges = rows.groupby("bin_low_kwh").agg(high=("bin_high_kwh", "first"), count=("households_noisy", "mean"))
        axes.stairs(ranges["count"], [*ranges.index, ranges["high"].iloc[-1]], label=_label(name), linewidth=1.2)
    axes.set(xlabel="kWh of a day", ylabel="households, mean of all days")
    axes.legend(frameon=False)
    return axes


def mixing(curves: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot total variations by age, a faint line for each household, and their median and maximum."""
    axes = new_axes()
    ages = np.asarray(curves.columns, float)
    axes.plot(ages, curves.to_numpy().T, color="tab:blue", alpha=max(0.02, min(0.4, 10 / max(len(curves), 1))), lw=0.8)
    axes.plot(ages, curves.median(), color="black", label="median household")
    axes.plot(ages, curves.max(), color="black", linestyle="--", label="slowest household")
    axes.set(xlabel="age (days)", ylabel="total variation", yscale="log", ylim=(_SMALLEST, 1))
    axes.legend(frameon=False)
    return axes


def matrix(kernel: Floats, *, title: str) -> Any:  # noqa: ANN401
    """Plot a transition matrix."""
    axes = new_axes()
    image = axes.imshow(kernel, cmap="viridis", vmin=0)
    axes.figure.colorbar(image, ax=axes, label="probability")
    axes.set(xlabel="to state", ylabel="from state", title=title)
    return axes


def losses(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot the epsilon of each planned day."""
    axes = new_axes()
    axes.plot(table["day"], table["epsilon"], drawstyle="steps-mid")
    _concise_dates(axes)
    axes.set_ylabel("epsilon of the day")
    return axes

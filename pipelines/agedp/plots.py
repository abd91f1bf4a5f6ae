"""Plots of tables, by matplotlib (extra `plot`): each returns the Axes, to be titled, saved or drawn upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def new_axes() -> Any:  # noqa: ANN401  (matplotlib.axes.Axes)
    """Return the axes of a new figure.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise InputError("plot() needs matplotlib, which is not installed; pip install 'agedp[plot]'") from None
    axes = plt.subplots(figsize=(8, 4), layout="constrained")[1]
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def means(table: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot published daily means with their intervals, a line for each group."""
    axes = new_axes()
    groups = list(table.groupby("group", sort=True)) if "group" in table else [("", table)]
    for name, rows in groups:
        line = axes.plot(rows.index, rows["mean_kwh"], label=str(name) or None, linewidth=1.2)[0]
        axes.fill_between(rows.index, rows["low_kwh"], rows["high_kwh"], alpha=0.2, color=line.get_color(), linewidth=0)
    axes.set_ylabel("kWh per household and day")
    if len(groups) > 1:
        axes.legend(frameon=False)
    return axes


def mixing(curves: pd.DataFrame) -> Any:  # noqa: ANN401
    """Plot total variations by age, a faint line for each household, and their median and maximum."""
    axes = new_axes()
    ages = np.asarray(curves.columns, float)
    axes.plot(ages, curves.to_numpy().T, color="tab:blue", alpha=max(0.02, min(0.4, 10 / max(len(curves), 1))), lw=0.8)
    axes.plot(ages, curves.median(), color="black", label="median household")
    axes.plot(ages, curves.max(), color="black", linestyle="--", label="slowest household")
    axes.set(xlabel="age (days)", ylabel="total variation", ylim=(0, 1))
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
    """Plot the planned noise and epsilon of each day."""
    axes = new_axes()
    axes.plot(table.index, table["epsilon"], drawstyle="steps-mid")
    axes.set_ylabel("epsilon of the day")
    return axes

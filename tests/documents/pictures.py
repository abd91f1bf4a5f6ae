"""Draws docs/release.svg: what the first release of README.md publishes, and what it reveals at most.

    python -m tests.documents.pictures    runs the commands of the README in an empty folder and draws their release

The noise is repeatable, so that the picture changes only if a release does.
"""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

from agedp.frame_reader import read
from agedp_data import mechanisms
from tests.command import agedp
from tests.documents.notebook import STYLE, svg
from tests.documents.pages import ROOT, repeatable_noise

RELEASE = ROOT / "docs" / "release.svg"
SAMPLE = "sample london sample --households 500 --days 14 --seed 7"
SANITISE = "sanitise sample/input/*.csv --out published --quiet --protect week --epsilon 2"
_PUBLISHED, _CONFIDENTIAL, _GAINED = "#1f5fa8", "#8a8478", "#c65d21"


def drawn() -> str:
    """Return the picture, drawn in the folder in hand."""
    agedp(*SAMPLE.split())
    readings = read("sample/input/*.csv", dataset="london")
    with mock.patch.object(mechanisms, "discrete_laplace", repeatable_noise):
        agedp(*SANITISE.split())
    days = pd.read_parquet("published/daily_averages.parquet").set_index("day")
    figures = json.loads(Path("published/statement.json").read_text("utf-8"))["figures"]
    plt.close("all")
    plt.switch_backend("agg")
    with mpl.rc_context(STYLE | {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.7, 1), constrained_layout=True)
        spread = [days["mean_kwh"] - days["low_kwh"], days["high_kwh"] - days["mean_kwh"]]
        left.errorbar(
            days.index,
            days["mean_kwh"],
            spread,
            fmt="o",
            color=_PUBLISHED,
            capsize=3,
            label="published, with the interval of its noise (95 %)",
        )
        left.plot(
            days.index,
            daily_mean(readings),
            color=_CONFIDENTIAL,
            ls="--",
            label="before noise: confidential, known here because they are synthetic",
        )
        left.set(title="What 500 households used", ylabel="kWh per household and day", ylim=(0, 14))
        left.xaxis.set_major_formatter(mpl.dates.DateFormatter("%-d %b"))
        left.xaxis.set_major_locator(mpl.dates.DayLocator(interval=3))
        left.legend(loc="lower left", frameon=False)
        epsilons = {each["name"]: float(each["epsilon"]) for each in figures}
        shown = {"one day": "day", "any 7 days": "window of 7 days", "all 14 days": "total"}
        for place, (label, name) in enumerate(shown.items()):
            chance = math.ceil(100 / (1 + math.exp(-epsilons[name])))
            right.barh(place, 50, color="#e4e0d8")
            right.barh(place, chance - 50, left=50, color=_GAINED)
            right.text(chance + 1.5, place, f"{chance} %", va="center")
            right.text(2, place, label, va="center")
        right.set(title="What it says of one household", xlabel="an even chance becomes at most", xlim=(0, 112))
        right.set(yticks=[], ylim=(2.6, -0.6), xticks=[0, 50, 100], xticklabels=["0", "50 %", "100 %"])
        return svg(figure)["image/svg+xml"]


def daily_mean(readings: pd.DataFrame) -> pd.Series:
    """Return the mean of the households' complete days [kWh]."""
    day = readings["interval_start"].dt.date
    daily = readings["energy_wh"].groupby([readings["household_id"], day]).agg(["sum", "count"])
    return daily[daily["count"] == 48].groupby(level=1)["sum"].mean() / 1000


def main() -> None:
    """Draw the picture."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = drawn()
    RELEASE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()

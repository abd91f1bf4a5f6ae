"""Draws pictures of releases that the pages make: docs/release.svg by README.md, docs/month.svg by docs/recipient.md.

    python -m tests.documents.pictures    runs their commands in an empty folder each and draws what was published

The noise is repeatable, so that a picture changes only if a release does.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from agedp.frame_reader import read
from agedp_data import mechanisms
from tests.command import agedp
from tests.documents.notebook import STYLE, svg
from tests.documents.pages import ROOT, repeatable_noise

COMMANDS = {
    "README.md": (
        "sample london sample --households 500 --days 14 --seed 7",
        "sanitise sample/input/*.csv --out published --quiet --protect week --epsilon 2",
    ),
    "docs/recipient.md": ("sample ausgrid solar --households 60 --days 35 --seed 5", "run solar/ausgrid.toml"),
}
"""The commands of each page that make the release of its picture."""
_PUBLISHED, _CONFIDENTIAL, _GAINED, _MONTH = "#1f5fa8", "#8a8478", "#c65d21", "#3f7d43"
_BEFORE_NOISE = "before noise: confidential, known here because they are synthetic"


def _release() -> str:
    days, readings = _published("published"), read("sample/input/*.csv", dataset="london")
    figures = json.loads(Path("published/statement.json").read_text("utf-8"))["figures"]
    epsilons = {figure["name"]: float(figure["epsilon"]) for figure in figures}
    with _canvas():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.7, 1))
        _draw_days(left, days, daily_mean(readings))
        left.set(title="What 500 households used", ylim=(0, 14))
        for place, (label, name) in enumerate(
            {"one day": "day", "any 7 days": "window of 7 days", "all 14 days": "total"}.items()
        ):
            chance = math.ceil(100 / (1 + math.exp(-epsilons[name])))
            right.barh(place, 50, color="#e4e0d8")
            right.barh(place, chance - 50, left=50, color=_GAINED)
            right.text(chance + 1.5, place, f"{chance} %", va="center")
            right.text(2, place, label, va="center")
        right.set(title="What it says of one household", xlabel="an even chance becomes at most", xlim=(0, 112))
        right.set(yticks=[], ylim=(2.6, -0.6), xticks=[0, 50, 100], xticklabels=["0", "50 %", "100 %"])
        return svg(figure)["image/svg+xml"]


def _month() -> str:
    days, readings = _published("solar/release"), read("solar/input/*.csv", dataset="ausgrid")
    month = pd.read_parquet("solar/release/averages_by_month.parquet").iloc[0]
    assert month["days_released"] == 30
    with _canvas():
        figure, axes = plt.subplots(figsize=(9, 3.6))
        _draw_days(axes, days.head(30), daily_mean(readings).head(30))
        axes.axhspan(
            month["low_kwh"], month["high_kwh"], color=_MONTH, alpha=0.35, label="mean of September, published"
        )
        axes.set(title="60 households: days drown in noise, the month does not", ylim=(0, None))
        axes.set_xticks(days.index[:30:7])
        axes.get_legend().remove()
        figure.legend(loc="outside lower center", frameon=False, ncols=2)
        return svg(figure)["image/svg+xml"]


DRAWINGS = {"README.md": ("release.svg", _release), "docs/recipient.md": ("month.svg", _month)}


def drawn(page: str) -> str:
    """Return the picture of a page, drawn in the folder in hand."""
    with mock.patch.object(mechanisms, "discrete_laplace", repeatable_noise):
        for command in COMMANDS[page]:
            assert agedp(*command.split()).status == 0
    return DRAWINGS[page][1]()


def daily_mean(readings: pd.DataFrame) -> pd.Series:
    """Return the mean of the households' complete days [kWh]."""
    day = readings["interval_start"].dt.date
    daily = readings["energy_wh"].groupby([readings["household_id"], day]).agg(["sum", "count"])
    return daily[daily["count"] == 48].groupby(level=1)["sum"].mean() / 1000


def _published(folder: str) -> pd.DataFrame:
    return pd.read_parquet(f"{folder}/daily_averages.parquet").set_index("day")


@contextlib.contextmanager
def _canvas() -> Iterator[None]:
    plt.close("all")
    plt.switch_backend("agg")
    spines = {"axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True}
    with mpl.rc_context(STYLE | spines | {"font.size": 10}):
        yield


def _draw_days(axes: Axes, days: pd.DataFrame, means: pd.Series) -> None:
    spread = [days["mean_kwh"] - days["low_kwh"], days["high_kwh"] - days["mean_kwh"]]
    label = "published, with the interval of its noise (95 %)"
    axes.errorbar(days.index, days["mean_kwh"], spread, fmt="o", color=_PUBLISHED, capsize=3, label=label)
    axes.plot(means.index, means, color=_CONFIDENTIAL, ls="--", label=_BEFORE_NOISE)
    axes.set(ylabel="kWh per household and day")
    axes.xaxis.set_major_formatter(mpl.dates.DateFormatter("%-d %b"))
    axes.xaxis.set_major_locator(mpl.dates.DayLocator(interval=3))
    axes.legend(loc="lower left", frameon=False)


def main() -> None:
    """Draw the pictures."""
    for page, (name, _) in DRAWINGS.items():
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = drawn(page)
        (ROOT / "docs" / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()

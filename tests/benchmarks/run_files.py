"""The run files of all benchmarks: London files, one population, classical promises of use to few households."""

from __future__ import annotations

from datetime import date
from typing import Final

_RUN = """version = 1
[input]
dataset = "london"
files = ["{files}"]
corrections = "set-aside"
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
[population]
name = "benchmark"
roster = "{roster}"
min_households = 1
[schedule]
mode = "{mode}"
first_day = {first}
{last}[promise]
notion = "classical"
{age}epsilon_per_day = 50
max_day_epsilon = 50
epsilon_total = "unlimited"
{engine}[series.{series}]
{statistic}
"""
MEAN: Final = """statistic = "mean"
clamp_kwh = {clamp}
max_missing = 45"""
DISTRIBUTION: Final = """statistic = "distribution"
by = "area"
clamp_kwh = {clamp}
bins_kwh = [{bins}]
max_missing = 45"""


def run_text(
    *,
    first: date | str,
    statistic: str,
    last: date | str | None = None,
    files: str = "in/*",
    roster: str = "roster.csv",
    age_days: int | None = None,
    keep_days: int | None = None,
) -> str:
    """Return a run file: live nights, or with a last day an archive."""
    return _RUN.format(
        files=files,
        roster=roster,
        mode="live" if last is None else "archive",
        first=first,
        last="" if last is None else f"last_day = {last}\n",
        age="" if age_days is None else f"age_days = {age_days}\n",
        engine="" if keep_days is None else f"[engine]\nkeep_days = {keep_days}\n",
        series="daily_mean" if "mean" in statistic else "distribution",
        statistic=statistic,
    )

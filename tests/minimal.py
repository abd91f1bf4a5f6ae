"""The smallest run file that tests start from, with what each of them needs otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

MINIMAL: dict[str, dict[str, Any]] = {
    "input": {"dataset": "london", "files": ["input/*.csv"]},
    "output": {"release": "release", "confidential": "confidential", "ledger": "sqlite:///ledger.sqlite"},
    "population": {"name": "homes", "roster": "roster.csv", "min_households": 2},
    "schedule": {"mode": "archive", "first_day": date(2013, 1, 1), "last_day": date(2013, 1, 5)},
    "series.daily_mean": {"statistic": "mean", "clamp_kwh": 50},
    "promise": {
        "notion": "classical", "epsilon_per_day": Decimal("0.5"), "max_day_epsilon": Decimal("0.5"),
        "epsilon_total": "unlimited",
    },
}  # fmt: skip


def of_three_states(period: str) -> str:
    """Return the keys of [model] for a chain of three states of half-hours, estimated from the days of a period."""
    return f"""source = "estimated"
assume = "markov"
file = "model"
period = [{period}]
step = "half-hour"
states = 3
edges = "quantile"
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
"""


def run_file(**tables: Mapping[str, Any]) -> str:
    """Return a run file's text: the minimal one, some keys otherwise (None: without them), other tables added."""
    names = [*MINIMAL, *(name for name in tables if name not in MINIMAL)]
    text = ["version = 1"]
    for name in names:
        keys = {**MINIMAL.get(name, {}), **tables.get(name, {})}
        text += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in keys.items() if value is not None)]
    return "\n".join(text) + "\n"


def _toml(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return (
        value.isoformat()
        if isinstance(value, date)
        else str(value)
        if isinstance(value, Decimal)
        else json.dumps(value)
    )

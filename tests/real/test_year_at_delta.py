"""A year promised at (10, 1e-6): its noise and its figures, of 40 real London households and of a town of 5,000."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from math import exp, sqrt

import pyarrow.parquet as pq
import pytest

from agedp.pipeline import sanitise
from agedp_data.epsilon import NANO
from tests.laws.test_spans import Row, figure
from tests.minimal import run_file

YEAR = {"notion": "w-event", "window_days": 365, "epsilon_per_window": 10, "spend": "even", "max_day_epsilon": 1,
        "epsilon_total": "unlimited", "delta": "1e-6", "epsilon_per_day": None, "accept": ["useless"]}  # fmt: skip


LENGTHS = [40, pytest.param(365, marks=pytest.mark.long)]
"""Forty days of the year, each of which has an equal part of it, or all of it."""


@pytest.fixture(scope="module", params=LENGTHS)
def release(request, kaggle, tmp_path_factory):
    folder, last = tmp_path_factory.mktemp("year"), date(2013, 1, 1) + timedelta(days=request.param - 1)
    (folder / "input").mkdir()
    roster = ["household_id,from,to"]
    for path in sorted(kaggle.glob("*.csv")):
        header, *lines = path.read_text().splitlines()
        until = [line for line in lines if f",{last + timedelta(days=2)}" > line[line.index(",") :]]
        (folder / "input" / path.name).write_text("\n".join([header, *until, ""]))
        roster.append(f"{path.stem},2013-01-01,")
    (folder / "roster.csv").write_text("\n".join(roster))
    days = {"first_day": date(2013, 1, 1), "last_day": last}
    (folder / "run.toml").write_text(run_file(schedule=days, promise=YEAR, population={"min_households": 30}))
    return sanitise(folder / "run.toml")


@pytest.mark.long
def test_a_town_of_5000_has_less_than_a_third_of_the_noise_of_a_pure_year(tmp_path):
    homes = [f"T{number:06d},2013-01-01," for number in range(5000)]
    (tmp_path / "roster.csv").write_text("\n".join(["household_id,from,to", *homes]))
    days = {"first_day": date(2013, 1, 1), "last_day": date(2013, 12, 31)}
    rehearsal = {"mode": "rehearsal", "rehearsal_on": "synthetic"}
    noises = []
    for name, edit in (("delta", {}), ("pure", {"delta": None})):
        output = {"release": name, "confidential": f"{name}-inside", "ledger": f"sqlite:///{name}.sqlite"}
        text = run_file(schedule=days | rehearsal, promise=YEAR | {"age_days": 1} | edit, output=output)
        (tmp_path / f"{name}.toml").write_text(text)
        folder = sanitise(tmp_path / f"{name}.toml")
        noises.append(set(pq.read_table(folder.path / "daily_averages.parquet")["noise_sd_kwh"].to_pylist()))
    [[with_delta], [pure]] = noises
    assert with_delta <= 0.30 * pure


def test_noise_is_less_than_a_third_of_that_of_a_pure_year(release):
    """By pure losses a day has 10/365 of the year, and noise of scale 50 kWh x 36.5."""
    [noise] = set(pq.read_table(release.path / "daily_averages.parquet")["noise_sd_kwh"].to_pylist())
    q = exp(-10 / 365 / 50_000)
    assert noise <= 0.30 * sqrt(2 * q) / (1 - q) / 40 / 1000


def test_the_figures_of_the_statement_follow_from_its_rows(release):
    lines = [json.loads(line) for line in (release.path / "ledger_rows.jsonl").read_text().splitlines()]
    texts = [json.loads(line["text"]) for line in lines if line.get("table") == "release"]
    rows = [Row(row["day"], row["series"], row["loss"], row["sensitivity"], float(row["scale"])) for row in texts]
    assert len(rows) in (40, 365)
    stated = {each["name"]: each["epsilon"] for each in release.statement["figures"]}
    expected = figure(rows, (), Decimal("1e-6"))
    assert expected < sum(row.loss for row in rows)
    for name in ("total (delta 1e-6)", "window of 365 days (delta 1e-6)"):
        assert float(stated[name]) * NANO == pytest.approx(expected, abs=2)

"""The noise that is shown before anything is decided is the closed form of the discrete Laplace law."""

from __future__ import annotations

import math
from datetime import date

import pytest

from agedp.setup.init_run_file import noise_table
from agedp.setup.run_file_draft import FileFacts
from agedp.setup.run_file_options import toml_of
from agedp_data.notions import NOTIONS
from agedp_data.roster import format_roster, read_roster

HOUSEHOLDS, DAYS = 4, 10
FACTS = FileFacts("london", ("*.csv",), date(2013, 1, 1), date(2013, 1, DAYS), HOUSEHOLDS)


@pytest.fixture(scope="module")
def roster(tmp_path_factory):
    path = tmp_path_factory.mktemp("noise") / "roster.csv"
    path.write_text(format_roster((f"h{i}", FACTS.first, None) for i in range(HOUSEHOLDS)))
    return read_roster(path).counts


def noise(epsilon: float, clamp_kwh: float) -> float:
    """Standard deviation [kWh per household] of a mean: q = e^(-epsilon / clamp in Wh), sqrt(2 q) / (1 - q) Wh."""
    q = math.exp(-epsilon / (1000 * clamp_kwh))
    return math.sqrt(2 * q) / (1 - q) / 1000 / HOUSEHOLDS


def test_all_notions_are_shown_at_their_closed_forms(roster):
    table = noise_table(FACTS, toml_of({"clamp_kwh": "20", "notion": "classical", "epsilon_per_day": "0.7"}), roster)
    assert [tuple(map(float, pair)) for pair in table.pairs] == [(0.7, 20.0)]
    assert (table.is_given_pair, table.households) == (True, (HOUSEHOLDS, HOUSEHOLDS))
    found = [(row.notion, row.noise_kwh[0]) for row in table.rows]
    closed = {
        "classical": noise(0.7, 20), "w-event": noise(0.7 / 7, 20), "age-dependent": noise(0.7, 20),
        "neighbourhood": noise(0.7 / 7, 1),  # a seventh for 1 kWh, so that any change is in proportion
    }  # fmt: skip
    for name, expected in closed.items():
        assert [value for notion, value in found if notion == name] == [pytest.approx(expected, rel=1e-6)]
    # nothing mixes: a tenth of alpha each day; all mixes: alpha each day
    assert [value for notion, value in found if notion == "temporal"] == [
        pytest.approx(noise(0.7 / DAYS, 20), rel=1e-6), pytest.approx(noise(0.7, 20), rel=1e-6),
    ]  # fmt: skip
    discounted = dict(found)["discounted"]
    assert noise(0.7, 20) < discounted < noise(0.7 / DAYS, 20) * 1.05
    assert {name for name, _ in found} == {notion.name for notion in NOTIONS}


def test_given_parameters_take_the_place_of_the_example(roster):
    given = toml_of(
        {"notion": "w-event", "window_days": "5", "epsilon_per_window": "1", "spend": "even", "clamp_kwh": "10"}
    )
    table = noise_table(FACTS, given, roster)
    row = next(row for row in table.rows if row.notion == "w-event")
    assert row.noise_kwh == (pytest.approx(noise(1 / 5, 10), rel=1e-6),)
    assert row.description == "epsilon e for any 5 consecutive days"
    at_delta = noise_table(FACTS, {**given, ("promise", "delta"): '"1e-6"'}, roster)
    assert "epsilon e for any 5 consecutive days, with delta 1e-6" in [row.description for row in at_delta.rows]


def test_an_age_does_not_hide_the_noise_of_a_notion_without_one(roster):
    given = toml_of({"notion": "classical", "epsilon_per_day": "0.7", "age_days": "1", "clamp_kwh": "20"})
    row = next(row for row in noise_table(FACTS, given, roster).rows if row.notion == "classical")
    assert row.noise_kwh == (pytest.approx(noise(0.7, 20), rel=1e-6),)

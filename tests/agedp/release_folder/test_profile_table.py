"""The table of half-hours has a line for each cell of its ledger rows, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from agedp.release_folder.result_tables import released_table
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns
from agedp_data.ledger import ReleaseRecord
from agedp_data.mechanisms import interval, standard_deviation
from agedp_data.series.profile import PROFILES, Profile, day_slots
from agedp_data.series.result_table import ContractTerms, Noise
from tests import exact_sums

TERMS = {"statistic": "profile", "clamp_kwh": Decimal(50), "half_hour_clamp_kwh": Decimal(4)}
PROFILE = Profile.model_validate(TERMS | {"by": "area"})
BACK, FORWARD = date(2013, 4, 7), date(2012, 10, 7)
"""Sydney's clock goes back at 3:00, and forward at 2:00."""
COLUMNS = NamedColumns("home", "at", "iso", "start", "Europe/London", "Europe/London", "wh", "Wh", ("",))


def row(day: date, cells: tuple[str, ...], **changes: object) -> ReleaseRecord:
    values, households = tuple(range(-5, len(cells) - 5)), tuple(2 + i % 3 for i in range(len(cells)))
    terms = ("discrete-laplace", 500_000_000, "2013-05-01T00:00:00Z", "2013-05-02", "hash", "")
    base = ReleaseRecord("homes", "p", str(day), 0, "released", cells, values, households, 100_000, 2e5, *terms)
    return replace(base, **changes)


def lines_of(rows, layout=None, profile=PROFILE):
    terms = {"hash": ContractTerms({"p": profile}, layout or Ausgrid(), 3)}
    return released_table(PROFILES, rows, terms, Noise(Decimal("0.9"))).to_pylist()


def test_each_cell_is_a_line_with_its_mean_and_interval():
    cells = ("North End 00:00", "North End 18:30", "South 00:00", "South 18:30")
    values = (-2_000, 5_600, 7, 2**61)
    first = row(BACK, cells, values=values, households=(14, 14, 3, 3))
    lines = lines_of([row(date(2013, 5, 1), ("South 00:00",)), first])
    half_width, deviation = interval(2e5, Decimal("0.9")), standard_deviation(2e5)
    assert [line["day"] for line in lines] == [BACK] * 4 + [date(2013, 5, 1)]
    for line, cell, value, number in zip(lines[:4], cells, values, first.households, strict=True):
        group, _, clock = cell.rpartition(" ")
        assert line == {
            "day": BACK,
            "group": group,
            "start_minute": {"00:00": 0, "18:30": 1110}[clock],
            "minutes": 30,
            "revision": 0,
            "households": number,
            "noisy_sum_wh": value,
            "mean_kwh": value / (1000 * number),
            "noise_sd_kwh": deviation / (1000 * number),
            "low_kwh": (value - half_width) / (1000 * number),
            "high_kwh": (value + half_width) / (1000 * number),
            "published_on": date(2013, 5, 2),
            "epsilon": 0.5,
            "version": 3,
        }


@pytest.mark.parametrize(("day", "cells", "hours"), [(BACK, 48, 25), (FORWARD, 46, 23), (date(2013, 4, 8), 48, 24)])
def test_the_half_hours_of_a_day_make_up_its_hours(day, cells, hours):
    lines = lines_of([row(day, exact_sums.cells(PROFILE, "x", slots=day_slots(Ausgrid(), day)))])
    assert len(lines) == cells
    assert sum(line["minutes"] for line in lines) == 60 * hours
    assert [line["start_minute"] for line in lines if line["minutes"] == 60] == ([120, 150] if day == BACK else [])


@pytest.mark.parametrize(("day", "hours"), [(date(2013, 10, 27), 25), (date(2013, 3, 31), 23), (date(2013, 6, 1), 24)])
def test_hourly_readings_have_a_line_an_hour(day, hours):
    layout = layout_of("long", COLUMNS, 60)
    lines = lines_of([row(day, exact_sums.cells(PROFILE, "x", slots=day_slots(layout, day)))], layout)
    assert len(lines) == min(hours, 24)
    assert sum(line["minutes"] for line in lines) == 60 * hours


def test_a_series_without_a_release_has_an_empty_table():
    assert lines_of([]) == []


def test_a_cell_of_another_series_has_no_line():
    with pytest.raises(ValueError, match="not one of the half-hours of this series"):
        lines_of([row(BACK, ("x 0-2",))])

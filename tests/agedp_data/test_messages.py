"""Proposals are slips of the pen; opposites and other magnitudes are never proposed."""

from __future__ import annotations

import pytest

from agedp_data.messages import suggest_name

SIDES, UNITS = ["end", "start"], ["kWh", "Wh"]


@pytest.mark.parametrize(
    ("written", "known", "proposed"),
    [
        ("frist_day", ["first_day", "last_day"], "first_day"), ("age_day", ["age_days", "method"], "age_days"),
        ("clampkwh", ["clamp_kwh"], "clamp_kwh"), ("KWH", UNITS, "kWh"), ("strat", SIDES, "start"),
        ("ned", SIDES, "end"), *((written, SIDES, None) for written in ("begin", "beginning", "entirely-other")),
        *((written, UNITS, None) for written in ("MWh", "GWh", "kW")), ("kWh", ["Wh"], None), ("Wh", ["kWh"], None),
        ("min_missing", ["max_missing"], None), ("clamp_wh", ["clamp_kwh"], None),
        ("missing_mwh", ["missing_kwh"], None), ("age_hours", ["age_days"], None),
        ("window_weeks", ["window_days"], None), ("last_day", ["first_day"], None),
        ("earlier-file", ["later-file"], None), ("inhomogeneous", ["homogeneous"], None),
    ],
)  # fmt: skip
def test_only_a_slip_of_the_pen_is_answered_with_the_name(written, known, proposed):
    assert suggest_name(written, known) == (f"; did you mean '{proposed}'?" if proposed else "")

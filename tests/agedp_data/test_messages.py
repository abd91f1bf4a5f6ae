"""Proposals are slips of the pen; opposites and other magnitudes are never proposed."""

from __future__ import annotations

import pytest

from agedp_data.config.error_messages import _SECTIONS
from agedp_data.messages import suggest_name

SIDES, UNITS = ["end", "start"], ["kWh", "Wh"]


@pytest.mark.parametrize(
    ("written", "known", "proposed"),
    [
        ("versoin", ["version", "input"], "version"),
        ("frist_day", ["first_day", "last_day"], "first_day"),
        ("age_day", ["age_days", "method"], "age_days"),
        ("clampkwh", ["clamp_kwh"], "clamp_kwh"),
        ("KWH", UNITS, "kWh"),
        ("strat", SIDES, "start"),
        ("ned", SIDES, "end"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_name(written, known, proposed):
    assert suggest_name(written, known) == f"; did you mean '{proposed}'?"


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("begin", SIDES),
        ("beginning", SIDES),
        ("MWh", UNITS),
        ("GWh", UNITS),
        ("kW", UNITS),
        ("kWh", ["Wh"]),
        ("Wh", ["kWh"]),
        ("min_missing", ["max_missing"]),
        ("clamp_wh", ["clamp_kwh"]),
        ("missing_mwh", ["missing_kwh"]),
        ("age_hours", ["age_days"]),
        ("window_weeks", ["window_days"]),
        ("last_day", ["first_day"]),
        ("earlier-file", ["later-file"]),
        ("inhomogeneous", ["homogeneous"]),
        ("entirely-other", ["end", "start"]),
    ],
)
def test_an_opposite_or_another_magnitude_is_never_proposed(written, known):
    assert suggest_name(written, known) == ""


def test_every_key_with_one_wrong_letter_is_proposed_or_left_alone():
    """Every key of every table, one letter left out or doubled: the key itself, or nothing; never another key."""
    proposed = 0
    for kind in {kind for kinds in _SECTIONS.values() for kind in kinds}:
        keys = list(kind.model_fields)
        for key in keys:
            for at in range(len(key)):
                for wrong in {key[:at] + key[at + 1 :], key[:at] + key[at] + key[at:]} - set(keys):
                    found = suggest_name(wrong, keys)
                    assert found in ("", f"; did you mean '{key}'?"), (wrong, found)
                    proposed += found != ""
    assert proposed > 1000

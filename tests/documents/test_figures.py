"""Figures that pages state by hand follow from a closed form."""

from __future__ import annotations

import math
import re

import pytest

from docs.papers.span.spans import MILLIONTH, day_loss
from tests.documents.pages import ROOT

CHOOSE = (ROOT / "docs" / "choose.md").read_text("utf-8")
CLAMP_KWH = 50
DAY_EPSILON = {
    "epsilon 1 per day": 1.0,
    "epsilon 0.1 per day": 0.1,
    "(10, 1e-6) per year": day_loss(365, 10, MILLIONTH),
    "epsilon 10 per year": 10 / 365,
}


@pytest.mark.parametrize("promise", DAY_EPSILON)
def test_errors_of_a_promise_follow_the_rule_above_them(promise):
    [row] = re.findall(rf"^\| {re.escape(promise)} \| (.*) \|$", CHOOSE, re.MULTILINE)
    total, *errors, households = [float(cell.removesuffix(" kWh").replace(",", "")) for cell in row.split(" | ")]
    one = CLAMP_KWH * math.log(20) / DAY_EPSILON[promise]
    assert total == pytest.approx(365 * DAY_EPSILON[promise], rel=2e-3)
    assert errors == pytest.approx([one / number for number in (100, 1000, 5000)], rel=5e-3)
    assert one / 0.5 <= households <= 1.1 * one / 0.5


def test_the_chances_of_the_officers_page_are_rounded_up():
    drawing = (ROOT / "docs" / "epsilon.svg").read_text("utf-8")
    shown = re.findall(r">epsilon ([\d.]+)</text>.*?>([\d.]+) %</text>", drawing)
    assert len(shown) == 5
    for epsilon, chance in shown:
        largest = 100 / (1 + math.exp(-float(epsilon)))
        assert largest <= float(chance) < largest + 1

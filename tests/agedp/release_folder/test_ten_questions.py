"""STATEMENT.md answers ten questions of somebody who has the release folder alone.

The expected answers are computed here: factors from the epsilons of statement.json, errors from the tail of the
discrete Laplace law, P(|Z| > w) = 2 q^(w + 1) / (1 + q) with q = exp(-epsilon / clamp), summed term by term.
"""

from __future__ import annotations

import json
import math
import re
from datetime import date, timedelta

import pytest

FIRST, DAYS = date(2013, 3, 1), 5
CLAMP_KWH, EPSILON, HOUSEHOLDS = 50, 0.5, 3
PROTECTED = "What is protected, from whom, and how much"
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.5\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 0.5\nepsilon_total = 30\n"
)
KERNEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "slow.csv"\nstep = "day"\n'


@pytest.fixture(scope="module", params=["classical", "age-dependent"])
def folder(request, houses, tmp_path_factory):
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.fill(days)
    house.roster([(name, FIRST, None) for name in "ABC"])
    (house.folder / "slow.csv").write_text("0.9,0.1\n0.2,0.8\n")
    promise, rest = (CLASSICAL, "") if request.param == "classical" else (AGED, KERNEL)
    house.write(FIRST, days[-1], mode="rehearsal", promise=promise, rest=rest)
    house.run(as_of=days[-1] + timedelta(days=3))
    return house.folder / "release"


@pytest.fixture(scope="module")
def statement(folder):
    return json.loads((folder / "statement.json").read_text())


@pytest.fixture(scope="module")
def sections(folder):
    """Return the sections of STATEMENT.md by title; the first, without one, is the lead."""
    text = (folder / "STATEMENT.md").read_text()
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], (" ".join(part.split()) for part in parts[2::2]), strict=True))}


def epsilon_of(statement, name):
    return float(next(bound["epsilon"] for bound in statement["figures"] if bound["name"] == name))


def rounded_up(value):
    """Return a number with three digits, rounded up."""
    digits = 2 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:,g}"


def half_width_wh(epsilon):
    """Return the smallest w with P(|noise| <= w) >= 0.95, by adding the probabilities up."""
    q = math.exp(-epsilon / (1000 * CLAMP_KWH))
    inside, width = (1 - q) / (1 + q), 0
    while inside < 0.95:
        width += 1
        inside += 2 * (1 - q) / (1 + q) * q**width
    return width


def test_how_strong_it_is_for_one_day_and_for_all(sections, statement):
    day, total = epsilon_of(statement, "day"), epsilon_of(statement, "total")
    assert (day, total) == (EPSILON, DAYS * EPSILON)
    of_day, of_all = rounded_up(math.exp(day)), rounded_up(math.exp(total))
    assert f"at most a factor of {of_day} (epsilon {day}) if they differ on one day" in sections[""]
    assert f"{of_all} (epsilon {total}) if on all days." in sections[""]
    for about, epsilon, factor in (("any one day", day, of_day), ("all its days", total, of_all)):
        share = math.ceil(100 * math.exp(epsilon) / (1 + math.exp(epsilon)))
        together = ", ".join(rounded_up(number * epsilon) for number in (2, 5, 10))
        assert f"| {about} | {epsilon} | {factor} | 50 to {share} % | {together} |" in sections[PROTECTED]
    for name, factor in (("day", of_day), ("total", of_all)):
        assert re.search(
            rf"\| {name} \| [0-9.]+ \| [^|]+ \| always \| {factor} \|", sections["Bounds on the privacy loss"]
        )


def test_how_exact_the_value_of_3_march_is(sections):
    within = half_width_wh(EPSILON) / HOUSEHOLDS / 1000
    section = sections["How exact a value is"]
    assert f"| daily_mean | all | 3 | 2013-03-05 | {rounded_up(within)} kWh |" in section
    half_width = CLAMP_KWH / EPSILON * math.log(10) / HOUSEHOLDS  # of a Laplace law, which 10 of 100 draws exceed
    [shown] = re.findall(r"\| daily_mean \| 3 \| ([0-9.]+) kWh \(", sections["How good the numbers are"])
    assert half_width <= float(shown) <= 1.02 * half_width
    q = math.exp(-EPSILON / (1000 * CLAMP_KWH))
    deviation = math.sqrt(2 * q) / (1 - q) / HOUSEHOLDS / 1000
    assert "in its row (`noise_sd_kwh` or `noise_sd`)" in section
    assert "its error is at most about 2.12 of these" in section
    assert within == pytest.approx(2.12 * deviation, rel=0.005)
    assert "**Days and months of daily_mean, with the newest day's noise:** if two days differ" in section


def test_which_assumption_a_conditional_bound_needs(sections, statement):
    for bound in statement["figures"]:
        assert (bound["kind"] == "conditional") == bool(bound["assumption"])
        held = r"if A(?: \(method \w+\))?" if bound["assumption"] else "always"
        assert re.search(rf"\| {re.escape(bound['about'])} \| {held} \|", sections["Bounds on the privacy loss"])
    if any(bound["kind"] == "conditional" for bound in statement["figures"]):
        chain = "each household is an independent Markov chain that mixes at least as fast as the model"
        assert f"*A:* {chain}" in sections["Bounds on the privacy loss"]

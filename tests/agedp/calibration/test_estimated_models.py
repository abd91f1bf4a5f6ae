"""Every kind of estimated model from readings to a verified release: calibrate, run, ledger, statement."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest

from agedp.calibration_pipeline import calibrate
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.model import model_settings
from agedp_flows.text.calibration_text import calibration_lines
from tests.agedp.conftest import House
from tests.model_tables import estimated_table

FIRST, DAYS, HOMES = date(2013, 1, 1), 60, ("A", "B", "C")
LAST = FIRST + timedelta(days=DAYS - 1)
TODAY = LAST + timedelta(days=3)
RISK = 0.3
PROMISE = (
    f'notion = "age-dependent"\nage_days = 1\nrisk = {RISK}\nmethod = "tight"\nsecret = "day"\nmax_day_epsilon = 20\n'
    'epsilon_total = "unlimited"\n'
)
MODEL = estimated_table(date(2013, 1, 1), date(2013, 3, 1), accepted=True)
CYCLIC = ('"homogeneous"', '"cyclic"')
BOUNDED = ('"plug-in"', '"sampling-bound"\nlevel = 0.9')
KINDS = {
    "plain": [],
    "day": [('"half-hour"', '"day"'), ("[0.5]", "[24]")],
    "bounded": [BOUNDED],
    "bounded and cyclic": [CYCLIC, BOUNDED, ("= 5", "= 400")],
}


@pytest.fixture(scope="module")
def readings():
    """Half-hours are drawn independently; days are low or high with a memory of a day."""
    chance = np.random.default_rng(4)
    found = {}
    for household in HOMES:
        high = False
        for number in range(DAYS):
            high ^= chance.random() < 0.3
            for slot in range(48):
                wh = 900 if chance.random() < 0.4 + 0.2 * high else 100
                found[household, FIRST + timedelta(days=number), slot] = wh
    return found


@pytest.fixture
def homes(house, readings):
    house.london(readings)
    house.roster([(household, FIRST, None) for household in HOMES])
    return house


def write(house: House, kind: str, promise: str = PROMISE) -> None:
    text = MODEL
    for old, new in KINDS[kind]:
        assert old in text
        text = text.replace(old, new)
    house.write(LAST - timedelta(days=4), LAST, promise=promise, rest=text)


def largest_daily_loss(readings):
    """Return the constant loss whose peak of aged leakage through the counted chains of days is the risk."""
    kernels = []
    for household in HOMES:
        days = [sum(readings[household, FIRST + timedelta(days=i), slot] for slot in range(48)) for i in range(DAYS)]
        flow = np.zeros((2, 2))
        for earlier, later in pairwise(int(total >= 24_000) for total in days):
            flow[later, earlier] += 1
        kernels.append(flow / flow.sum(axis=1, keepdims=True))

    def leakage(loss):
        """Return the largest ln of a ratio of (1 + (e^a - 1) q) over pairs of rows and columns."""
        ratios = [(1 + np.expm1(loss) * one) / (1 + np.expm1(loss) * one[::-1]) for one in kernels]
        return np.log(np.max(ratios))

    def peak(loss):
        composed = 0.0
        for _ in range(400):
            composed = loss + leakage(composed)
        return leakage(composed)

    low, high = 0.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if peak(middle) <= RISK else (low, middle)
    return low


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind in ("plain", "bounded") else ()) for kind in KINDS]
)
def test_from_readings_to_a_verified_release(homes, readings, kind):
    write(homes, kind)
    made = calibrate(homes.run_file)
    assert made.unmixed == 0
    rows = homes.run(today=TODAY).released
    assert [row.state for row in rows] == ["released"] * 5
    assert all(row.loss > RISK * 1e9 for row in rows)  # age is credited: a day may spend more than its risk
    if kind == "day":
        most = largest_daily_loss(readings)
        assert 0.85 * most < max(row.loss for row in rows) / 1e9 <= most
        assert most > 1.5 * RISK
    with homes.ledger() as ledger:
        [model], [contract] = ledger.models(), ledger.contracts()
    assert model.model == made.model.id == json.loads(contract.promise)["model"]["hash"]
    assert {row.model for row in rows} == {made.model.id}
    homes.release.verify()
    statement = homes.release.statement
    assert statement["model"] == model_settings(homes.context().run_file.model)
    confidence = ("sampling-bound", "0.9") if "bounded" in kind else ("plug-in", None)
    assert (statement["model"]["confidence"], statement["model"].get("level")) == confidence
    [risk] = [bound for bound in statement["figures"] if bound["name"] == "risk"]
    assert float(risk["epsilon"]) <= RISK
    lines = "\n".join(calibration_lines(made))
    assert f"{DAYS * 3 * (1 if kind == 'day' else 48):,} {'days' if kind == 'day' else 'readings'}, 0 gaps" in lines
    assert ("Spectral gap" in lines) == (MIXING_NAMES["reversibilised"] in lines) == ("cyclic" not in kind)
    assert ("sampling bound on total variation, median" in lines) == ("bounded" in kind)
    if "bounded" in kind:
        details = "\n".join(calibration_lines(made, verbose=True))
        of_half_hours = details.partition("Total variation, chain of half-hours, median")[2].splitlines()[1]
        assert of_half_hours.startswith("simulated from the chain") == ("cyclic" in kind)

"""Every kind of estimated model from readings to a verified release: calibrate, run, ledger, statement."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest

from agedp.pipeline import calibrate
from agedp.stages.amend import amend
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import ContractChanged, Refused, RunFileError
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.model import model_settings
from agedp_flows.text.calibration_text import calibration_lines

FIRST, DAYS, HOMES = date(2013, 1, 1), 60, ("A", "B", "C")
LAST = FIRST + timedelta(days=DAYS - 1)
ONE_DAY = timedelta(days=1)
TODAY = LAST + timedelta(days=3)
RISK = 0.3
PROMISE = (
    f'notion = "age-dependent"\nage_days = 1\nrisk = {RISK}\nmethod = "tight"\nsecret = "day"\nmax_day_epsilon = 20\n'
    'epsilon_total = "unlimited"\n'
)
MODEL = """[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2013-01-01, 2013-03-01]
step = "half-hour"
states = 2
edges = [{edge}]
chain = "homogeneous"
min_visits = 5
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
"""
KINDS = {
    "plain": {},
    "day": {"step": ("half-hour", "day")},
    "cyclic": {"chain": ("homogeneous", "cyclic")},
    "bounded": {"confidence": ('plug-in"', 'sampling-bound"\nlevel = 0.9')},
    "bounded and cyclic": {
        "chain": ("homogeneous", "cyclic"),
        "confidence": ('plug-in"', 'sampling-bound"\nlevel = 0.9'),
        "min_visits": ("= 5", "= 400"),
    },
}


def model_text(kind):
    text = MODEL.format(edge="24" if kind == "day" else "0.5")
    for old, new in KINDS[kind].values():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def lived_in(house):
    """Homes that are drawn anew every half-hour, and whose days are low or high with a memory of a day."""
    chance = np.random.default_rng(4)
    found = {}
    for home in HOMES:
        high = False
        for number in range(DAYS):
            high ^= chance.random() < 0.3
            for slot in range(48):
                found[home, FIRST + timedelta(days=number), slot] = 900 if chance.random() < 0.4 + 0.2 * high else 100
    house.london(found)
    house.roster([(home, FIRST, None) for home in HOMES])
    house.readings = found
    return house


def run(house):
    return house.run(today=TODAY)


@pytest.fixture
def write(lived_in):
    def written(kind, promise=PROMISE):
        rest = model_text(kind)
        lived_in.write(LAST - timedelta(days=4), LAST, promise=promise, rest=rest)
        return lived_in

    return written


@pytest.mark.parametrize("kind", KINDS)
def test_from_readings_to_a_verified_release(write, kind):
    house = write(kind)
    made = calibrate(house.run_file)
    assert made.unmixed == 0
    rows = run(house).released
    assert [row.state for row in rows] == ["released"] * 5
    # Age is credited: a day may spend more than its risk.
    assert all(row.loss > RISK * 1e9 for row in rows)
    with house.ledger() as ledger:
        assert ledger.verify() == ()
        [model] = ledger.models()
        [contract] = ledger.contracts()
    assert model.model == made.model.id == json.loads(contract.promise)["model"]["hash"]
    assert {row.model for row in rows} == {made.model.id}
    folder = house.release
    folder.verify()
    said = folder.statement["model"]
    asked = house.context().run_file.model
    assert isinstance(asked, EstimatedModel)
    assert said == model_settings(asked)
    assert said["confidence"] == ("sampling-bound" if "bounded" in kind else "plug-in")
    assert said.get("level") == ("0.9" if "bounded" in kind else None)
    [risk] = [figure for figure in folder.statement["figures"] if figure["name"] == "risk"]
    assert float(risk["epsilon"]) <= RISK
    if "bounded" in kind:
        assert "level = 0.9" in (house.folder / "release" / "STATEMENT.md").read_text()


def test_a_chain_of_days_permits_what_its_counts_permit(write):
    house = write("day")
    calibrate(house.run_file)
    spent = {row.loss / 1e9 for row in run(house).released}
    kernels = []
    for home in HOMES:
        totals = [sum(house.readings[home, FIRST + timedelta(days=d), s] for s in range(48)) for d in range(DAYS)]
        state = [int(total >= 24_000) for total in totals]
        flow = np.zeros((2, 2))
        for earlier, later in pairwise(state):
            flow[later, earlier] += 1
        kernels.append(flow / flow.sum(axis=1, keepdims=True))

    def left(loss):
        """The largest ln of a ratio of (1 + (e^a - 1) q) over pairs of rows and columns."""
        return max(
            np.log((1 + np.expm1(loss) * one[x][column]) / (1 + np.expm1(loss) * one[1 - x][column]))
            for one in kernels
            for x in (0, 1)
            for column in (0, 1)
        )

    def peak(loss):
        composed = 0.0
        for _ in range(400):
            composed = loss + left(composed)
        return left(composed)

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if peak(middle) <= RISK else (low, middle)
    assert max(spent) <= low
    assert max(spent) > 0.85 * low
    assert low > 1.5 * RISK


@pytest.mark.parametrize(
    ("kind", "old", "new", "key"),
    [
        ("day", '"day"\nstates', '"half-hour"\nstates', "step"),
        ("cyclic", '"cyclic"', '"homogeneous"', "chain"),
        ("plain", '"homogeneous"', '"cyclic"', "chain"),
        ("bounded", "level = 0.9", "level = 0.99", "level"),
        ("bounded", 'sampling-bound"\nlevel = 0.9', 'plug-in"', "confidence, level"),
        ("plain", 'plug-in"', 'sampling-bound"\nlevel = 0.9', "confidence, level"),
    ],
)
def test_a_model_made_under_other_settings_is_not_used(write, kind, old, new, key):
    house = write(kind)
    calibrate(house.run_file)
    text = house.run_file.read_text()
    assert old in text
    house.run_file.write_text(text.replace(old, new))
    with pytest.raises(RunFileError, match=rf"^\[model\] {key}: the model was made under other settings"):
        house.context()


@pytest.mark.parametrize(("before", "after"), [("day", "plain"), ("plain", "day")])
def test_a_model_of_another_kind_is_adopted_by_amendment_only_and_the_larger_figure_binds(write, before, after):
    ending = PROMISE.replace('"unlimited"', "300")  # a later last day may only be added to a sum that ends
    house = write(before, ending)
    calibrate(house.run_file)
    house.run_file.write_text(house.run_file.read_text().replace(f"last_day = {LAST}", f"last_day = {LAST - ONE_DAY}"))
    first = run(house).released
    write(after, ending)
    house.run_file.write_text(house.run_file.read_text().replace('"model"', '"another"'))
    made = calibrate(house.run_file)
    with pytest.raises(ContractChanged):
        run(house)
    amend(house.context(today=TODAY))
    if after == "day":  # days hang together more than half-hours: what is out already exceeds the promise
        with pytest.raises(Refused, match="releases stop, nothing is rewritten"):
            run(house)
        return
    [row] = run(house).released
    assert row.model == made.model.id != first[0].model
    assert row.loss == first[-1].loss  # what the earlier model permits
    names = [figure["name"] for figure in house.release.statement["figures"]]
    assert "risk" in names
    assert "risk as promised" in names


@pytest.mark.parametrize("kind", ["day", "bounded and cyclic"])
def test_readings_that_come_night_by_night_in_any_order_make_the_same_model(write, kind):
    house = write(kind)
    whole, text = calibrate(house.run_file).model.id, house.run_file.read_text()
    (house.folder / "input" / "a.csv").unlink()
    of_night: dict[date, dict[tuple[str, date, int], int]] = {}
    for cell, wh in reversed(house.readings.items()):
        of_night.setdefault(cell[1], {})[cell] = wh
    for day, cells in of_night.items():
        house.london(cells, name=f"{(LAST - day).days}.csv")
    house.run_file.write_text(text.replace('"confidential', '"other').replace('"model', '"another'))
    assert calibrate(house.run_file).model.id == whole


@pytest.mark.parametrize("kind", KINDS)
def test_the_operator_is_told_what_there_is_of_each_kind(write, kind):
    house = write(kind)
    lines = "\n".join(calibration_lines(calibrate(house.run_file)))
    assert f"{DAYS * 3 * (1 if kind == 'day' else 48):,} {'days' if kind == 'day' else 'readings'}, 0 gaps" in lines
    assert ("Spectral gap" in lines) == (MIXING_NAMES["spectral"] in lines) == ("cyclic" not in kind)
    assert (MIXING_NAMES["reversibilised"] in lines) == ("cyclic" not in kind)
    assert ("sampling bound on total variation, median" in lines) == ("bounded" in kind)
    assert "too few readings" not in lines


CHECKED = ("chain of day totals", "chain of half-hours")


@pytest.mark.parametrize("kind", ["bounded", "bounded and cyclic"])
def test_counts_of_series_drawn_from_a_cyclic_chain_are_not_called_powers(write, kind):
    house = write(kind)
    lines = calibration_lines(calibrate(house.run_file))
    of = {
        name: next(i for i, line in enumerate(lines) if line.startswith(f"Total variation, {name}, median"))
        for name in CHECKED
    }
    drawn = lines[of["chain of half-hours"] + 1].startswith("  simulated from the chain")
    assert drawn == ("cyclic" in kind)
    assert lines[of["chain of day totals"] + 1].startswith("  predicted by matrix powers")


def test_the_operator_is_told_when_chance_leaves_nothing_to_credit(write):
    house = write("bounded and cyclic")
    house.run_file.write_text(house.run_file.read_text().replace("min_visits = 400", "min_visits = 5"))
    made = calibrate(house.run_file)
    assert made.unmixed == 0
    assert float(made.model.leakage_bound(96, 0.5, direction="backward", method="tight")) == 0.5
    [line] = [line for line in calibration_lines(made) if "too few readings" in line]
    assert line.startswith(
        "3 households have too few readings for a sampling bound at level 0.9, so the model credits no"
    )
    assert "or a larger min_visits" in line

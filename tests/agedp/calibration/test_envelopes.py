"""Envelopes of cyclic chains, of days and with confidence: against kernels that are multiplied out one by one."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.calibration.bound import bound
from agedp.calibration.estimate import Transitions
from agedp.calibration.leakage_bounds import mixing_households
from agedp_data.config.model_section import EstimatedModel
from agedp_data.leakage.bound_table import LOSS_GRID
from agedp_data.leakage.function import leakage
from agedp_data.markov.confidence import sampling_bound
from agedp_data.roster import Roster

FIRST, LAST = date(2013, 1, 1), date(2013, 12, 31)
EPOCH = date(1970, 1, 1)


def model(folder, **keys):
    given = {
        "source": "estimated", "assume": "markov", "file": str(folder / "model"), "period": (FIRST, LAST),
        "step": "half-hour", "states": 2, "edges": "quantile", "chain": "homogeneous", "min_visits": 2,
        "confidence": "plug-in", "ages_days": (1, 2, 7), "publish": "envelope",
    }  # fmt: skip
    return EstimatedModel(**given | keys)


def made(folder, counts, every=None, **keys):
    stack = np.asarray(counts, np.int64)
    homes = len(stack)
    readings = stack.reshape(homes, -1).sum(axis=1) + 1
    found = Transitions(stack, readings, np.zeros(homes, np.int64), every or {})
    days = [np.full(homes, (day - EPOCH).days) for day in (FIRST, LAST)]
    roster = Roster(tuple(f"SECRET{i}" for i in range(homes)), np.arange(homes), days[0], days[1], {})
    edges = np.tile(np.arange(1, stack.shape[-1]) * 100.0, (homes, 1))
    return bound(found, edges, roster, model(folder, states=stack.shape[-1], **keys))


def of_the_clock(homes, k, seed, *, days=400, stay=0.98):
    """Counts (h, 48, k, k) that flow round the clock, more at home by night than by day."""
    chance = np.random.default_rng(seed)
    restless = np.where(np.arange(48) < 14, 0.2, 1.0)[:, None, None] * (1 - stay)
    counts = []
    for _ in range(homes):
        kernels = (1 - restless) * np.eye(k) + restless * chance.dirichlet(np.full(k, 3.0), size=(48, k))
        law = np.full(k, 1 / k)
        for kernel in [*kernels] * 20:
            law = law @ kernel
        tables = []
        for kernel in kernels:
            tables.append(np.rint(days * law[:, None] * kernel * 100))
            law = law @ kernel
        counts.append(tables)
    return np.array(counts, np.int64)


def days_multiplied(counts, days):
    """The kernels (48, k, k) from a half-hour to the same one so many days earlier, multiplied step by step."""
    found = []
    for p in range(48):
        kernel = np.eye(counts.shape[-1])
        for step in range(48 * days):
            flow = counts[(p - step - 1) % 48].T.astype(float)  # into phase p - step
            kernel = kernel @ (flow / flow.sum(axis=1, keepdims=True))
        found.append(kernel)
    return np.array(found)


def test_a_cyclic_envelope_is_the_largest_loss_over_all_households_and_half_hours(tmp_path):
    counts = of_the_clock(20, 3, 1)
    found = made(tmp_path, counts, chain="cyclic", ages_days=(1, 2))
    assert found.unmixed == 0
    leakage_bound = found.model.leakage_bound
    assert (leakage_bound.steps_per_day, leakage_bound.ages.tolist()) == (48, [1, 48, 96])
    for i, days in enumerate((1, 2)):
        kernels = np.array([days_multiplied(own, days) for own in counts])
        for loss in LOSS_GRID[[40, 120, 150, -1]]:  # between them a table says a little more
            exact = leakage(kernels, loss)
            claimed = float(leakage_bound(48 * days, loss, direction="backward", method="tight"))
            assert claimed >= exact.max()
            assert claimed <= exact.max() + 2e-9
            assert exact.max() > 1.01 * np.median(exact.max(axis=1))
        apart = np.abs(kernels[:, :, :, None] - kernels[:, :, None]).sum(axis=-1).max(axis=(2, 3)) / 2
        np.testing.assert_allclose(found.curves["total_variation"][:, i], apart.max(axis=1), rtol=1e-9)
    assert sorted(found.curves) == ["total_variation"]
    assert leakage_bound.methods == ("tight", "total_variation")


def test_one_chain_for_all_hours_would_understate_a_still_night(tmp_path):
    still, random = 1000 * np.eye(2, dtype=int), np.full((2, 2), 500)
    # Never seen to move in any half-hour but one: over a day nothing but that one is forgotten.
    counts = np.array([[still] * 47 + [np.array([[900, 100], [100, 900]])]])
    cyclic = made(tmp_path / "a", counts, chain="cyclic", ages_days=(1,)).model.leakage_bound
    plain = made(tmp_path / "b", counts.sum(axis=1), ages_days=(1,)).model.leakage_bound
    assert float(cyclic(48, 0.5, direction="backward", method="total_variation")) == pytest.approx(
        np.log1p(0.8 * np.expm1(0.5)), abs=2e-9
    )
    # The powers of a mixture move .002 a step, as it happens as fast; but not if the day is spread unevenly.
    uneven = np.array([[still * 9] * 47 + [random]])
    one = made(tmp_path / "c", uneven, chain="cyclic", ages_days=(1,)).model.leakage_bound
    other = made(tmp_path / "d", uneven.sum(axis=1), ages_days=(1,)).model.leakage_bound
    for loss in (0.5, 2.0):
        assert float(one(48, loss, direction="backward", method="tight")) == 0
        assert float(other(48, loss, direction="backward", method="tight")) > 0.5 * loss
    assert float(plain(48, 0.5, direction="backward", method="tight")) > 0


ODD = {
    "no readings": lambda counts: counts * 0,
    "one state": lambda counts: counts * np.array([[1, 0], [0, 0]]),
    "a state seen once": lambda counts: counts * np.array([[1, 0], [0, 0]]) + seen_once(),
    "two halves": lambda counts: counts * np.eye(2, dtype=int),
}


def seen_once():
    table = np.zeros((48, 2, 2), int)
    table[20, 0, 1] = table[21, 1, 0] = 1
    return table


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("confidence", ["plug-in", "sampling-bound"])
def test_a_household_without_a_reliable_clock_ends_all_credit(tmp_path, name, confidence):
    counts = of_the_clock(3, 2, 2, stay=0.9)
    counts[1] = ODD[name](counts[1])
    level = {} if confidence == "plug-in" else {"level": Decimal("0.9")}
    every = {6: counts.reshape(3, 8, 6, 2, 2).sum(axis=2)}
    found = made(tmp_path, counts, every, chain="cyclic", confidence=confidence, **level)
    for loss in (0.01, 0.5, 3.0, np.inf):
        assert float(found.model.leakage_bound(48 * 400, loss, direction="backward", method="tight")) == loss
    for curve in found.curves.values():
        assert curve[1].tolist() == [1, 1, 1]
        assert (curve[[0, 2]] < 1).all()
    table = pq.read_table(tmp_path / "model" / "households.parquet").to_pylist()
    # Two halves have rows enough; their kernels never meet, so their total variation is 1 all the same.
    assert [row["forgets"] for row in table] == [True, name == "two halves", True]


def test_the_counts_of_a_clock_stay_beside_the_model_by_phase_with_their_groups(tmp_path):
    counts = of_the_clock(3, 2, 4)
    counts[0, 10:14] //= 500  # few visits: merged with their neighbours
    made(tmp_path, counts, chain="cyclic", min_visits=200)
    rows = pq.read_table(tmp_path / "model" / "transitions.parquet").to_pylist()
    assert [(row["household_id"], row["phase"]) for row in rows] == [
        (f"SECRET{i}", p) for i in range(3) for p in range(48)
    ]
    kept = [[[[row[f"from_{i}_to_{j}"] for j in range(2)] for i in range(2)] for row in rows]]
    assert np.array(kept).reshape(counts.shape).tolist() == counts.tolist()
    assert len({row["group"] for row in rows[10:14]}) == 1
    assert [row["group"] for row in rows[48:96]] == list(range(48))
    homes = pq.read_table(tmp_path / "model" / "households.parquet").to_pylist()
    assert [row["groups_of_phases"] for row in homes][1:] == [48, 48]
    assert homes[0]["groups_of_phases"] < 48


def test_with_confidence_the_envelope_is_what_the_bound_leaves_of_a_loss(tmp_path):
    chance = np.random.default_rng(3)
    counts = (np.eye(2, dtype=int) * 9000 + chance.integers(900, 1500, (6, 2, 2))).astype(int)
    rarer = np.full((6, 2, 2), 900) + chance.integers(0, 200, (6, 2, 2))
    steps = [48, 96, 336]
    for name, every in (("one", {}), ("two", {5: rarer})):
        found = made(tmp_path / name, counts, every, min_visits=200, confidence="sampling-bound", level=Decimal("0.95"))
        # Half of what may fail is left to each direction.
        expected = sampling_bound({1: counts, **every}, steps, level=0.975, households=6)
        np.testing.assert_array_equal(found.curves["sampling_bound"], expected)
        assert every or (found.curves["total_variation"][:, 0] < expected[:, 0]).all()
        assert 1e-9 < expected[:, 0].max() < 0.7
        for i, step in enumerate(steps):
            for loss in LOSS_GRID[[40, 120, 150]]:
                left = np.log1p(expected[:, i].max() * np.expm1(loss))
                for method in ("tight", "total_variation"):
                    claimed = float(found.model.leakage_bound(step, loss, direction="backward", method=method))
                    assert left <= claimed <= left + 2e-9 * np.exp(loss)
        public = json.loads(found.model.text)
        assert (public["confidence"], public["level"]) == ("sampling-bound", "0.95")
    # All households count, those without a reliable row too, and one of them ends all credit.
    odd = np.concatenate((counts, [[[9000, 1], [1, 0]]]))
    never = made(tmp_path / "odd", odd, confidence="sampling-bound", level=Decimal("0.95"))
    again = sampling_bound(counts, steps, level=0.975, households=7)
    np.testing.assert_array_equal(never.curves["sampling_bound"], np.concatenate((again, [[1, 1, 1]])))
    assert float(never.model.leakage_bound(9999, 0.5, direction="backward", method="tight")) == 0.5


def test_a_higher_level_never_says_less(tmp_path):
    counts = of_the_clock(4, 2, 5, days=4000, stay=0.9)
    every = {6: counts.reshape(4, 8, 6, 2, 2).sum(axis=2) // 6}
    claims = []
    for i, level in enumerate((None, "0.5", "0.95", "0.999999")):
        asked = {} if level is None else {"confidence": "sampling-bound", "level": Decimal(level)}
        found = made(tmp_path / str(i), counts, every if asked else {}, chain="cyclic", min_visits=200, **asked)
        claims.append(
            [float(found.model.leakage_bound(48 * d, 1.0, direction="backward", method="tight")) for d in (1, 2)]
        )
    assert all(lower < higher for low, high in pairwise(claims) for lower, higher in zip(low, high, strict=True))
    assert claims[-1][0] < 0.9


@pytest.mark.parametrize("chain", ["homogeneous", "cyclic"])
def test_ages_of_a_chain_of_days_are_days_and_what_is_assumed_is_what_was_written(tmp_path, chain):
    if chain == "cyclic":
        found = made(tmp_path, of_the_clock(2, 2, 6), chain=chain, assume="curve")
        assert (found.model.leakage_bound.ages.tolist(), found.model.leakage_bound.steps_per_day) == ([48, 96, 336], 48)
    else:
        counts = np.array([[[900, 100], [100, 900]]])
        found = made(tmp_path, counts, step="day", assume="curve")
        assert (found.model.leakage_bound.ages.tolist(), found.model.leakage_bound.steps_per_day) == ([1, 2, 7], 1)
        for days in (1, 2, 7):
            assert found.model.leakage_bound.bounds["total_variation"][[1, 2, 7].index(days)] == pytest.approx(
                0.8**days
            )
    assert found.model.leakage_bound.assume == json.loads(found.model.text)["envelope"]["assume"] == "curve"


def test_a_state_that_is_left_often_and_entered_seldom_is_known_too_little():
    often = [[97, 103], [98, 102]]
    seldom = [[195, 5], [198, 2]]  # gaps end most stretches in the second state: its column is what risk reads
    found = mixing_households(np.array([often, seldom]), min_visits=50)
    assert found.tolist() == [True, False]
    assert mixing_households(np.array([seldom]), min_visits=7).tolist() == [True]


def test_an_envelope_looks_ahead_as_far_as_back_and_at_the_steps_between_daily_releases(tmp_path):
    counts = of_the_clock(8, 3, 8)
    found = made(tmp_path / "clock", counts, chain="cyclic").model.leakage_bound
    assert found.ages.tolist() == [1, 48, 96, 289, 336]
    forward = np.array([_ahead(own) for own in counts])
    for loss in LOSS_GRID[[40, 120, 150]]:
        for steps, kernels in ((1, forward), (48, np.array([_days_ahead(own) for own in forward]))):
            exact = leakage(kernels, loss).max()
            assert exact <= float(found(steps, loss, direction="forward", method="tight")) <= exact + 2e-9
    # One chain for all hours, and days: each direction has its own kernels.
    flow = np.array([[[700, 200, 100], [50, 800, 150], [250, 0, 750]]])
    for step, day in (("half-hour", 48), ("day", 1)):
        plain = made(tmp_path / step, flow, step=step).model.leakage_bound
        once = (flow[0] / flow[0].sum(axis=1, keepdims=True), (flow[0] / flow[0].sum(axis=0)).T)
        for kernel, direction in zip(once, ("forward", "backward"), strict=True):
            for steps in (1, day, 2 * day):
                exact = leakage(np.linalg.matrix_power(kernel, steps), 1.0)
                claimed = float(plain(steps, 1.0, direction=direction, method="tight"))
                assert exact - 1e-12 <= claimed <= exact * 1.03 + 2e-9


def _ahead(own):
    return own / own.sum(axis=-1, keepdims=True)


def _days_ahead(kernels):
    found = []
    for p in range(48):
        product = np.eye(kernels.shape[-1])
        for step in range(48):
            product = product @ kernels[(p + step) % 48]
        found.append(product)
    return np.array(found)


@pytest.mark.parametrize("chain", ["homogeneous", "cyclic"])
def test_a_level_holds_for_what_lies_ahead_too(tmp_path, chain):
    counts = of_the_clock(3, 2, 9, days=4000, stay=0.9)
    every = {6: counts.reshape(3, 8, 6, 2, 2).sum(axis=2) // 6}
    if chain == "homogeneous":
        counts, every = counts.sum(axis=1), {5: every[6].sum(axis=1)}
    level = {"confidence": "sampling-bound", "level": Decimal("0.95")}
    found = made(tmp_path / "a", counts, every, chain=chain, min_visits=200, **level).model.leakage_bound
    # Read from its end, the series has the directions exchanged.
    turned = {
        steps: np.swapaxes(table, -1, -2)[:, ::-1] if chain == "cyclic" else np.swapaxes(table, -1, -2)
        for steps, table in {1: counts, **every}.items()
    }
    other = made(tmp_path / "b", turned.pop(1), turned, chain=chain, min_visits=200, **level).model.leakage_bound
    np.testing.assert_array_equal(found.backward, other.forward)
    np.testing.assert_array_equal(found.forward, other.backward)
    assert (found.forward[:, 100] < LOSS_GRID[100]).any()
    assert (found.forward != found.backward).any()


def test_a_model_of_single_releases_looks_back_only(tmp_path):
    found = made(tmp_path, [[[900, 100], [100, 900]]], assume="curve").model.leakage_bound
    assert (found.ages.tolist(), found.forward, found.has_both_directions) == ([48, 96, 336], None, False)

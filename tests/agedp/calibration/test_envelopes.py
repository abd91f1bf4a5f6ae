"""Envelopes of cyclic chains, of days and with confidence: against kernels that are multiplied out one by one."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

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
from agedp_data.roster import RosterRows

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
    roster = RosterRows(tuple(f"SECRET{i}" for i in range(homes)), np.arange(homes), days[0], days[1], {})
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


def kernels_over(own, steps, *, ahead=False):
    """Return the kernels (48, k, k) from a half-hour to the one so many steps earlier, or later, step by step."""
    kernels = []
    for p in range(48):
        kernel = np.eye(own.shape[-1])
        for step in range(steps):
            flow = own[(p + step) % 48] if ahead else own[(p - step - 1) % 48].T
            kernel = kernel @ (flow / flow.sum(axis=1, keepdims=True))
        kernels.append(kernel)
    return np.array(kernels)


def test_a_cyclic_bound_is_the_maximum_over_households_and_phases(tmp_path):
    counts = of_the_clock(8, 3, 1)
    found = made(tmp_path, counts, chain="cyclic", ages_days=(1, 2))
    assert found.unmixed == 0
    leakage_bound = found.model.leakage_bound
    assert (leakage_bound.steps_per_day, leakage_bound.ages.tolist()) == (48, [1, 48, 96])
    for i, days in enumerate((1, 2)):
        kernels = np.array([kernels_over(own, 48 * days) for own in counts])
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


def test_with_confidence_the_envelope_is_the_sampling_bound(tmp_path):
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


def test_a_state_that_is_entered_seldom_has_too_few_visits():
    often = [[97, 103], [98, 102]]
    seldom = [[195, 5], [198, 2]]  # gaps end most stretches in the second state: its column is what risk reads
    found = mixing_households(np.array([often, seldom]), min_visits=50)
    assert found.tolist() == [True, False]
    assert mixing_households(np.array([seldom]), min_visits=7).tolist() == [True]


def test_an_envelope_has_both_directions_and_daily_steps(tmp_path):
    counts = of_the_clock(4, 3, 8)
    found = made(tmp_path / "clock", counts, chain="cyclic").model.leakage_bound
    assert found.ages.tolist() == [1, 48, 96, 289, 336]
    for steps in (1, 48):
        kernels = np.array([kernels_over(own, steps, ahead=True) for own in counts])
        for loss in LOSS_GRID[[40, 120, 150]]:
            exact = leakage(kernels, loss).max()
            assert exact <= float(found(steps, loss, direction="forward", method="tight")) <= exact + 2e-9
    # One kernel for all hours, and days: each direction has its own.
    flow = np.array([[[700, 200, 100], [50, 800, 150], [250, 0, 750]]])
    once = {"forward": flow[0] / flow[0].sum(axis=1, keepdims=True), "backward": (flow[0] / flow[0].sum(axis=0)).T}
    for step, day in (("half-hour", 48), ("day", 1)):
        plain = made(tmp_path / step, flow, step=step).model.leakage_bound
        for direction, kernel in once.items():
            for steps in (1, day, 2 * day):
                exact = leakage(np.linalg.matrix_power(kernel, steps), 1.0)
                claimed = float(plain(steps, 1.0, direction=direction, method="tight"))
                assert exact - 1e-12 <= claimed <= exact * 1.03 + 2e-9


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

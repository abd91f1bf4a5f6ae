"""A leakage bound is never below the truth, at no loss, age or composition, and says what it does not know."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound, max_leakage
from agedp_data.leakage.function import leakage, supremum
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import power, reverse

AGES = np.array([1, 2, 4, 8])
GRID = np.array([0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0])
CHAINS = np.random.default_rng(3).dirichlet(np.full(4, 0.6), size=(6, 4))
BACKWARD = reverse(CHAINS)
CURVE = {"total_variation": np.array([0.8, 0.5, 0.3, 0.1])}


def made(grid=GRID, **more):
    backward = np.array([max_leakage(power(BACKWARD, t), grid) for t in AGES])
    return LeakageBound(AGES, grid, backward, bounds=CURVE, assume="markov", **more)


KNOWN = made()


def tight(known, age, loss):
    return known(age, loss, direction="backward", method="tight")


def test_the_largest_household_decides_rounded_up_to_whole_nanos():
    many = np.random.default_rng(4).dirichlet(np.full(5, 0.4), size=(3000, 5))
    exact = leakage(many, GRID[:, None]).max(axis=1)
    largest = max_leakage(many, GRID)
    assert (exact <= largest).all()
    assert (largest <= exact + 1.01e-9).all()
    np.testing.assert_array_equal(np.rint(largest * 1e9) / 1e9, largest)


def test_it_never_exceeds_the_loss_and_leaves_rows_of_nan_out():
    odd = np.full((2, 3, 3), np.nan)
    odd[0] = np.eye(3)
    odd[1][np.ix_([0, 2], [0, 2])] = [[0.6, 0.4], [0.4, 0.6]]
    np.testing.assert_array_equal(max_leakage(odd, [0.0, 1 / 3, 2.0, np.inf]), [0.0, 1 / 3, 2.0, np.inf])
    assert max_leakage(odd[1:], [np.inf])[0] == pytest.approx(np.log(1.5), abs=2e-9)
    np.testing.assert_array_equal(max_leakage([np.full((2, 2), 0.5)], GRID), np.zeros(GRID.size))


@settings(max_examples=50)
@given(st.integers(0, 12), st.floats(0, 12), st.floats(0, 2))
def test_it_is_never_below_the_truth_rises_with_the_loss_and_falls_with_age(age, loss, more):
    bounds = [tight(KNOWN, t, [loss, loss + more]) for t in (age, age + 1)]
    assert leakage(power(BACKWARD, age), loss).max() - 1e-15 <= bounds[0][0] <= loss
    assert bounds[0][0] <= bounds[0][1]
    assert (bounds[1] <= bounds[0]).all()


def test_on_the_grid_it_is_the_table_and_between_the_sharp_interpolation():
    known = LeakageBound([1], [1.0, 2.0, 4.0], [[0.5, 0.75, 2.0]], assume="markov")
    np.testing.assert_array_equal(
        tight(known, 1, [0.25, 0.5, 1.0, 1.125, 1.5, 2.0, 3.0, 4.0, 5.0, np.inf]),
        [0.25, 0.5, 0.5, 0.625, 0.75, 0.75, 1.75, 2.0, 3.0, np.inf],
    )
    known = LeakageBound([1], [1.0, np.inf], [[0.5, 0.9]], assume="markov")  # infinity bounds all losses beyond
    np.testing.assert_array_equal(tight(known, 1, [1.0, 1.25, 7.0, np.inf]), [0.5, 0.75, 0.9, 0.9])


def test_ages_between_use_the_smaller_one_and_younger_ones_forget_nothing():
    assert tight(KNOWN, 0, 1.5) == 1.5
    assert tight(KNOWN, 7, 1.5) == tight(KNOWN, 4, 1.5)
    assert tight(KNOWN, 1000, 1.5) == tight(KNOWN, 8, 1.5)


def test_tables_are_whole_nanos_monotone_and_capped_on_the_safe_side():
    known = LeakageBound([1, 2], [1.0, 2.0], [[0.2, 0.1], [0.5, 3.0]], bounds={"total_variation": [0.1, 0.4]})
    np.testing.assert_array_equal(known.backward, [[0.5, 2.0], [0.5, 2.0]])
    np.testing.assert_array_equal(known.bounds["total_variation"], [0.4, 0.4])
    known = LeakageBound([1], [1 / 3], [[2 / 9]], bounds={"total_variation": [1 / 3]})
    assert (known.losses[0], known.backward[0, 0]) == (0.333333333, 0.222222223)
    assert known.bounds["total_variation"][0] == 0.333333334


def test_a_bound_does_not_change_and_travels():
    with pytest.raises(ValueError, match="read-only"):
        KNOWN.backward[0, 0] = 0.0
    with pytest.raises(AttributeError):
        KNOWN.assume = "curve"
    assert pickle.loads(pickle.dumps(KNOWN)) == KNOWN  # noqa: S301


def kernels_bound(**more):
    return leakage_bound(BACKWARD, [1, 7], LOSS_GRID, reliable=[True] * 6, forward=CHAINS, steps_per_day=1, **more)


@pytest.mark.parametrize(
    "known",
    [
        made(LOSS_GRID, forward=np.array([max_leakage(power(CHAINS, t), LOSS_GRID) for t in AGES])),
        kernels_bound(pieces=True),
        LeakageBound([48], GRID, bounds={"total_variation": [0.5]}),
    ],
    ids=["tables", "pieces", "curve"],
)
def test_the_text_holds_integers_and_strings_and_comes_back_exactly(known):
    text = json.dumps(known.to_json(), allow_nan=False)
    again = LeakageBound.from_json(json.loads(text, parse_float=pytest.fail))
    assert again == known
    assert hash(again) == hash(known)
    assert again != KNOWN
    assert (again.steps_per_day, again.assume, again.methods) == (known.steps_per_day, known.assume, known.methods)
    np.testing.assert_array_equal(again.bounds["total_variation"], known.bounds["total_variation"])


def test_pieces_are_beside_the_grid_and_sharper():
    grid, sharp = kernels_bound(), kernels_bound(pieces=True)
    assert {k: v for k, v in sharp.to_json().items() if k != "hulls"} == grid.to_json()
    losses = np.random.default_rng(2).uniform(0, 20, 100)
    exact = leakage(power(BACKWARD, 7), losses[:, None]).max(axis=1)
    assert (exact - 1e-9 <= tight(sharp, 9, losses)).all()
    assert (tight(sharp, 9, losses) <= np.minimum(exact + 3e-9, tight(grid, 9, losses))).all()
    limits = [known.supremum(1, 0.01, direction="forward", method="tight") for known in (sharp, grid)]
    assert limits[0] == pytest.approx(float(supremum(CHAINS, 0.01).max()), rel=1e-6)
    assert limits[0] < limits[1]


def test_a_text_that_is_no_leakage_bound_is_refused():
    good = LeakageBound([48, 96], [0.5, 1.0], bounds={"total_variation": [0.5, 0.2]}).to_json()
    changes = [
        {"ages": [1.5, "x"]},
        {"bounds": {"total_variation": [2_000_000_000]}},
        {"assume": "hope"},
        {"more": 1},
        {"backward": [[1]]},
    ]
    for text in ({"ages": [1]}, *({**good, **change} for change in changes)):
        with pytest.raises(ChainError):
            LeakageBound.from_json(text)
    fewer_ages, no_table = (kernels_bound(pieces=True).to_json() for _ in range(2))
    fewer_ages["hulls"]["backward"].pop()
    del no_table["forward"]
    for text in (fewer_ages, no_table):
        with pytest.raises(ChainError, match="pieces of L for all ages"):
            LeakageBound.from_json(text)


@pytest.mark.parametrize(
    ("direction", "method", "message"),
    [
        ("backward", "spectral", 'no backward bounds by method "spectral"; it has "tight", "total_variation"'),
        ("forward", "tight", "no forward bounds.*it has nothing"),
        ("forward", "total_variation", "no forward bounds.*it has nothing"),
        ("sideways", "tight", '"backward" or "forward"'),
    ],
)
def test_what_was_not_tabulated_is_named_with_what_was(direction, method, message):
    with pytest.raises(ChainError, match=message):
        KNOWN(1, 1.0, direction=direction, method=method)


@pytest.mark.parametrize(("age", "loss"), [(-1, 1.0), (1.5, 1.0), ([1, 2], 1.0), (1, -1.0), (1, np.nan)])
def test_ages_and_losses_that_are_none_are_refused(age, loss):
    with pytest.raises(ChainError):
        tight(KNOWN, age, loss)


def test_what_grows_for_ever_is_infinite():
    known = LeakageBound([1], [1.0, 2.0], [[1.0, 2.0]], bounds={"total_variation": [0.8]}, assume="markov")
    for gap, loss, method in ((1, 0.1, "tight"), (0, 0.1, "tight"), (1, np.log(1.25), "total_variation")):
        assert known.supremum(gap, loss, direction="backward", method=method) == np.inf
    assert known.supremum(1, np.inf, direction="backward", method="total_variation") == np.inf
    assert known.supremum(0, 0.0, direction="backward", method="tight") == 0.0
    # y = e^e (1 + .8 (y - 1)) by hand for e = .1
    y = 0.2 * np.exp(0.1) / (1 - 0.8 * np.exp(0.1))
    assert known.supremum(1, 0.1, direction="backward", method="total_variation") == pytest.approx(np.log(y), abs=1e-7)


@pytest.mark.parametrize(
    "arguments",
    [
        {"ages": []},
        {"ages": [2, 1]},
        {"losses": [-1.0]},
        {"losses": [0.1, 0.1 + 1e-12]},
        {"backward": [[0.1]]},
        {"bounds": {"total_variation": [0.1, 0.2]}},
        {"assume": "independence"},
        {"steps_per_day": 0},
    ],
)
def test_a_bound_that_is_none_is_refused(arguments):
    with pytest.raises(ChainError):
        LeakageBound(**{"ages": [1], "losses": [0.5, 1.0], **arguments})

"""An envelope is never below the truth, at no loss, age or composition, and says what it does not know."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.accounting.ageing import compose_with
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound, max_leakage
from agedp_data.leakage.function import leakage, leakage_from_total_variation, supremum
from agedp_data.markov.transitions import power, reverse

AGES = np.array([1, 2, 4, 8])
GRID = np.array([0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0])
CHAINS = np.random.default_rng(3).dirichlet(np.full(4, 0.6), size=(6, 4))
BACKWARD = reverse(CHAINS)
DISTANCE = np.array([0.8, 0.5, 0.3, 0.1])


def truth(age, loss):
    return leakage(power(BACKWARD, age), loss).max()


def made(grid=GRID, **more):
    backward = np.array([max_leakage(power(BACKWARD, t), grid) for t in AGES])
    return LeakageBound(AGES, grid, backward, bounds={"total_variation": DISTANCE}, assume="markov", **more)


def tight(known, age, loss):
    return known(age, loss, direction="backward", method="tight")


def test_the_largest_household_decides_rounded_up_to_whole_nanos():
    kernels = power(BACKWARD, 3)
    exact = leakage(kernels, GRID[:, None]).max(axis=1)
    found = max_leakage(kernels, GRID)
    assert (found >= exact).all()
    assert (found <= exact + 1.01e-9).all()
    np.testing.assert_array_equal(np.rint(found * 1e9) / 1e9, found)


def test_it_never_exceeds_the_loss_and_leaves_rows_of_nan_out():
    odd = np.full((2, 3, 3), np.nan)
    odd[0] = np.eye(3)
    odd[1][np.ix_([0, 2], [0, 2])] = [[0.6, 0.4], [0.4, 0.6]]
    np.testing.assert_array_equal(max_leakage(odd, [0.0, 1 / 3, 2.0, np.inf]), [0.0, 1 / 3, 2.0, np.inf])
    assert max_leakage(odd[1:], [np.inf])[0] == pytest.approx(np.log(1.5), abs=2e-9)
    np.testing.assert_array_equal(max_leakage([np.full((2, 2), 0.5)], GRID), np.zeros(GRID.size))


def test_thousands_of_households_have_the_maximum_of_each():
    many = np.random.default_rng(4).dirichlet(np.full(5, 0.4), size=(3000, 5))
    exact = leakage(many, GRID[:, None]).max(axis=1)
    np.testing.assert_allclose(max_leakage(many, GRID), exact, atol=1.01e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.floats(0, 12))
def test_it_is_never_below_the_truth_between_its_points(age, loss):
    found = tight(made(), age, loss)
    assert truth(age, loss) - 1e-15 <= found <= loss


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 12), st.floats(0, 2))
def test_it_rises_with_the_loss_and_falls_with_age(loss, more):
    known = made()
    values = [tight(known, age, [loss, loss + more]) for age in range(10)]
    assert all(low <= high for low, high in values)
    assert all((old <= young).all() for young, old in pairwise(values))


def test_on_the_grid_it_is_the_table_and_between_the_sharp_interpolation():
    known = LeakageBound([1], [1.0, 2.0, 4.0], [[0.5, 0.75, 2.0]], assume="markov")
    np.testing.assert_array_equal(
        tight(known, 1, [0.25, 0.5, 1.0, 1.125, 1.5, 2.0, 3.0, 4.0, 5.0, np.inf]),
        [0.25, 0.5, 0.5, 0.625, 0.75, 0.75, 1.75, 2.0, 3.0, np.inf],
    )


def test_an_infinite_grid_point_bounds_all_losses_beyond():
    known = LeakageBound([1], [1.0, np.inf], [[0.5, 0.9]], assume="markov")
    np.testing.assert_array_equal(tight(known, 1, [1.0, 1.25, 7.0, np.inf]), [0.5, 0.75, 0.9, 0.9])


def test_ages_between_use_the_smaller_one_and_younger_ones_forget_nothing():
    known = made()
    assert tight(known, 0, 1.5) == 1.5
    assert tight(known, 7, 1.5) == tight(known, 4, 1.5)
    assert tight(known, 1000, 1.5) == tight(known, 8, 1.5)


def test_a_distance_gives_theorem_1_rounded_up():
    known = made()
    for loss in (0.0, 1e-6, 0.3, 5.0, 800.0):
        exact = float(leakage_from_total_variation(0.3, loss))
        found = known(5, loss, direction="backward", method="total_variation")
        assert exact <= found <= min(exact + 1.1e-9, loss)
    assert known(0, 0.5, direction="backward", method="total_variation") == 0.5


def test_tables_are_made_monotone_and_capped_on_the_safe_side():
    known = LeakageBound([1, 2], [1.0, 2.0], [[0.2, 0.1], [0.5, 3.0]], bounds={"total_variation": [0.1, 0.4]})
    np.testing.assert_array_equal(known.backward, [[0.5, 2.0], [0.5, 2.0]])
    np.testing.assert_array_equal(known.bounds["total_variation"], [0.4, 0.4])


def test_stored_numbers_are_whole_nanos_on_the_safe_side():
    known = LeakageBound([1], [1 / 3], [[2 / 9]], bounds={"total_variation": [1 / 3]})
    assert known.losses[0] == 0.333333333
    assert known.backward[0, 0] == 0.222222223
    assert known.bounds["total_variation"][0] == 0.333333334


def test_an_envelope_does_not_change_and_travels():
    known = made()
    with pytest.raises(ValueError, match="read-only"):
        known.backward[0, 0] = 0.0
    with pytest.raises(AttributeError):
        known.assume = "curve"
    assert pickle.loads(pickle.dumps(known)) == known  # noqa: S301


@pytest.mark.parametrize("grid", [GRID, LOSS_GRID])
def test_the_text_holds_integers_and_strings_and_comes_back_exactly(grid):
    known = made(grid, forward=np.array([max_leakage(power(CHAINS, t), grid) for t in AGES]))
    text = json.dumps(known.to_json(), allow_nan=False)
    assert "." not in text.replace("assume", "")
    again = LeakageBound.from_json(json.loads(text))
    for name in ("ages", "losses", "backward", "forward"):
        np.testing.assert_array_equal(getattr(again, name), getattr(known, name))
    np.testing.assert_array_equal(again.bounds["total_variation"], known.bounds["total_variation"])
    assert (again.steps_per_day, again.assume) == (48, "markov")
    assert again == known
    assert hash(again) == hash(known)
    assert again != made()


def test_a_curve_alone_has_no_tables_in_its_text():
    known = LeakageBound([48], GRID, bounds={"total_variation": [0.5]})
    assert set(known.to_json()) == {"ages", "losses", "bounds", "steps_per_day", "assume"}
    assert LeakageBound.from_json(known.to_json()) == known


@pytest.mark.parametrize(
    "change",
    [
        {"ages": [1.5, "x"]},
        {"losses": None},
        {"losses": [2, 1]},
        {"bounds": [1]},
        {"bounds": {"total_variation": [2_000_000_000]}},
        {"assume": "hope"},
        {"more": 1},
        {"backward": [[1]]},
    ],
)
def test_a_text_that_is_no_envelope_is_refused(change):
    good = LeakageBound([48, 96], [0.5, 1.0], bounds={"total_variation": [0.5, 0.2]}).to_json()
    with pytest.raises(ChainError):
        LeakageBound.from_json({**good, **change})
    with pytest.raises(ChainError):
        LeakageBound.from_json({"ages": [1]})


def test_what_was_not_tabulated_is_named_with_what_was():
    known = made()
    with pytest.raises(ChainError, match='no backward bounds by method "spectral"; it has "tight", "total_variation"'):
        known(1, 1.0, direction="backward", method="spectral")
    for method in ("tight", "total_variation"):
        with pytest.raises(ChainError, match=r"no forward bounds.*it has nothing"):
            known(1, 1.0, direction="forward", method=method)
    with pytest.raises(ChainError, match='"backward" or "forward"'):
        known(1, 1.0, direction="sideways", method="tight")


def test_a_declared_curve_serves_both_directions_and_no_tight_one():
    known = LeakageBound([48], GRID, bounds={"total_variation": [0.5]})
    for direction in ("backward", "forward"):
        assert known(48, 1.0, direction=direction, method="total_variation") == pytest.approx(
            np.log1p(0.5 * np.expm1(1))
        )
        with pytest.raises(ChainError, match='has "total_variation"'):
            known(48, 1.0, direction=direction, method="tight")


@pytest.mark.parametrize(("age", "loss"), [(-1, 1.0), (1.5, 1.0), ([1, 2], 1.0), (1, -1.0), (1, np.nan)])
def test_ages_and_losses_that_are_none_are_refused(age, loss):
    with pytest.raises(ChainError):
        tight(made(), age, loss)


@pytest.mark.parametrize("loss", [0.05, 0.5])
def test_the_supremum_bounds_the_exact_one_and_is_near_it_on_a_fine_grid(loss):
    known = made(np.append(np.geomspace(1e-3, 20, 3000), np.inf))
    exact = supremum(power(BACKWARD, 4), loss).max()
    limit = known.supremum(4, loss, direction="backward", method="tight")
    assert exact <= limit <= exact * 1.01


def test_what_grows_for_ever_is_infinite():
    known = LeakageBound([1], [1.0, 2.0], [[1.0, 2.0]], bounds={"total_variation": [0.8]}, assume="markov")
    assert known.supremum(1, 0.1, direction="backward", method="tight") == np.inf
    assert known.supremum(0, 0.1, direction="backward", method="tight") == np.inf
    assert known.supremum(1, np.log(1.25), direction="backward", method="total_variation") == np.inf
    assert known.supremum(1, np.inf, direction="backward", method="total_variation") == np.inf
    assert known.supremum(0, 0.0, direction="backward", method="tight") == 0.0
    # y = e^e (1 + .8 (y - 1)) by hand for e = .1
    y = 0.2 * np.exp(0.1) / (1 - 0.8 * np.exp(0.1))
    assert known.supremum(1, 0.1, direction="backward", method="total_variation") == pytest.approx(np.log(y), abs=1e-7)


def test_a_composition_through_the_envelope_bounds_that_of_every_household():
    known = made(LOSS_GRID)
    published, ages, losses, at = [3, 4, 7, 7], [1, 3, 2, 6], [0.5, 0.3, 0.8, 0.1], [2, 3, 5, 7, 12]
    bound = compose_with(published, ages, losses, at, gap_leakage=lambda gap, z: tight(known, gap, z))
    for kernel in BACKWARD:
        each = compose_with(
            published, ages, losses, at, gap_leakage=lambda gap, z, kernel=kernel: leakage(power(kernel, gap), z)
        )
        assert (each <= bound + 1e-15).all()


def test_the_public_grid_is_dense_where_losses_are():
    finite = LOSS_GRID[:-1]
    assert 150 <= LOSS_GRID.size <= 250
    assert finite[0] == 1e-6
    assert (finite[-1], LOSS_GRID[-1]) == (64.0, np.inf)
    inner = finite[(finite >= 1e-3) & (finite <= 20)]
    assert (inner[1:] / inner[:-1] < 1.07).all()
    np.testing.assert_array_equal(np.rint(finite * 1e9) / 1e9, finite)


@pytest.mark.parametrize(
    "arguments",
    [
        {"ages": []},
        {"ages": [2, 1]},
        {"ages": [[1]]},
        {"losses": []},
        {"losses": [1.0, 1.0]},
        {"losses": [-1.0]},
        {"losses": [0.1, 0.1 + 1e-12]},
        {"backward": [[0.1]]},
        {"backward": [[np.nan, 1.0]]},
        {"bounds": {"total_variation": [0.1, 0.2]}},
        {"bounds": {"total_variation": [1.1]}},
        {"assume": "independence"},
        {"steps_per_day": 0},
    ],
)
def test_an_envelope_that_is_none_is_refused(arguments):
    with pytest.raises(ChainError):
        LeakageBound(**{"ages": [1], "losses": [0.5, 1.0], **arguments})

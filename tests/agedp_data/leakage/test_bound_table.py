"""Leakage bounds: tables, populations, nested families and their common contract."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.errors import ChainError
from agedp_data.leakage import population_bound
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound, max_leakage
from agedp_data.leakage.function import BatchedLeakage, KernelLeakage, gain, leakage, supremum
from agedp_data.leakage.nested_family import DEFAULT_FAMILY, NestedFamily, smallest_members
from agedp_data.leakage.population_bound import (
    composition_age_steps,
    leakage_bound,
    leakage_bound_from_distances,
    max_reversibilised_bound,
    upper_hulls,
)
from agedp_data.markov.mixing import reversibilised_bound, total_variation, total_variation_forward
from agedp_data.markov.transitions import power, reverse

# A leakage bound is never below the truth, at no loss, age or composition, and says what it does not know.

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


# The leakage bound of a population against its households one by one.

TIMES = np.array([1, 6, 48])
GRIDS = np.array([0.1, 1.0, 3.0, 10.0, np.inf])
HOMES = np.random.default_rng(8).dirichlet(np.full(4, 0.5), size=(300, 4))
ALL = np.ones(300, bool)


def test_tables_and_bounds_are_the_maxima_over_households():
    known = leakage_bound(reverse(HOMES), TIMES, GRIDS, reliable=ALL, forward=HOMES)
    for table, kernels in ((known.backward, reverse(HOMES)), (known.forward, HOMES)):
        exact = np.array([leakage(power(kernels, t), GRIDS[:, None]).max(axis=1) for t in TIMES])
        assert (table >= np.minimum(exact, GRIDS) - 1e-15).all()
        np.testing.assert_allclose(table, exact, atol=2e-9)
    behind = total_variation(HOMES, TIMES).max(axis=0)  # of the reversed chain
    np.testing.assert_allclose(known.bounds["total_variation"], behind, atol=2e-9)
    assert (known.bounds["total_variation"] >= behind).all()
    assert abs(total_variation(reverse(HOMES), TIMES).max(axis=0)[0] - behind[0]) > 0.003
    assert (known.bounds["reversibilised"] >= known.bounds["total_variation"] - 2e-9).all()
    assert "spectral" not in known.bounds
    assert (known.assume, known.steps_per_day) == ("markov", 48)
    alone = leakage_bound(reverse(HOMES), TIMES, GRIDS, reliable=ALL)  # what lies ahead changes nothing of ageing
    assert (known.bounds["total_variation"] == alone.bounds["total_variation"]).all()
    assert alone.forward is None


def test_one_household_that_does_not_forget_decides_for_all():
    mixes, unreliable = ALL.copy(), reverse(HOMES)
    mixes[131], unreliable[131] = False, np.nan  # nothing is computed, so nothing need be known
    known = leakage_bound(unreliable, TIMES, GRIDS, reliable=mixes, forward=HOMES)
    for table in (known.backward, known.forward):
        np.testing.assert_array_equal(table, np.tile(GRIDS, (3, 1)))
    for method in ("total_variation", "spectral", "reversibilised"):
        np.testing.assert_array_equal(known.bounds[method], np.ones(3))


def test_a_household_of_one_state_adds_nothing():
    quiet, some = np.full((1, 4, 4), np.nan), reverse(HOMES[:5])
    quiet[0, 2] = [0, 0, 1, 0]
    alone = leakage_bound(quiet, TIMES, GRIDS, reliable=[True])
    np.testing.assert_array_equal(alone.backward, np.zeros((3, 5)))
    np.testing.assert_array_equal(alone.bounds["total_variation"], np.zeros(3))
    both = leakage_bound(np.concatenate((some, quiet)), TIMES, GRIDS, reliable=[True] * 6)
    np.testing.assert_array_equal(both.backward, leakage_bound(some, TIMES, GRIDS, reliable=[True] * 5).backward)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_chain_of_many_that_is_not_reversible_leaves_no_spectral_bound(place, monkeypatch):
    """In any batch: the bound of [A] eq. 55 holds for reversible chains alone."""
    monkeypatch.setattr(population_bound, "_CHAINS_PER_BATCH", 1)
    symmetric = np.tile([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]], (3, 1, 1))
    assert population_bound.max_spectral_bound(symmetric, TIMES) is not None
    turning = symmetric.copy()
    turning[place] = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    assert population_bound.max_spectral_bound(turning, TIMES) is None


DISTANCES = np.array([[0.9, 0.5, 0.2], [0.8, 0.7, 0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leakage_bound(np.zeros((0, 2, 2)), TIMES, GRIDS, reliable=[]), "at least one household"),
        (lambda: leakage_bound(HOMES, TIMES, GRIDS, reliable=[True]), "at least one household"),
        (lambda: leakage_bound(HOMES[0], TIMES, GRIDS, reliable=[True]), "at least one household"),
        (lambda: leakage_bound(HOMES, TIMES, GRIDS, reliable=ALL, forward=HOMES[:3]), "same households"),
        *(
            (lambda d=d: leakage_bound_from_distances(d, TIMES, GRIDS, reliable=[True] * 2), "at least one household")
            for d in (DISTANCES[0], DISTANCES[:, :2], np.zeros((0, 3)))
        ),
        (lambda: leakage_bound_from_distances(DISTANCES + 0.2, TIMES, GRIDS, reliable=[True] * 2), "from 0 to 1"),
    ],
)
def test_a_population_needs_households_and_marks(call, message):
    with pytest.raises(ChainError, match=message):
        call()


def test_of_distances_alone_the_largest_makes_the_table():
    known = leakage_bound_from_distances(DISTANCES, TIMES, GRIDS, reliable=[True, True])
    exact = np.log1p(np.array([0.9, 0.7, 0.2])[:, None] * np.expm1(GRIDS[:-1]))
    np.testing.assert_allclose(known.backward[:, :-1], exact, atol=2e-9)
    assert (known.backward[:, :-1] >= exact).all()
    np.testing.assert_allclose(known.bounds["total_variation"], [0.9, 0.7, 0.2], atol=2e-9)
    assert not known.has_both_directions
    never = leakage_bound_from_distances(DISTANCES, TIMES, GRIDS, reliable=[True, False])
    np.testing.assert_array_equal(never.backward, np.tile(GRIDS, (3, 1)))
    both = leakage_bound_from_distances([[0.5], [0.2]], [48], [1.0], reliable=[True, True], forward=[[0.1], [0.3]])
    expected = np.log1p(np.array([0.5, 0.3]) * np.expm1(1.0))
    np.testing.assert_allclose([both.backward[0, 0], both.forward[0, 0]], expected, atol=2e-9)
    assert both.has_both_directions


def test_ages_between_releases_reach_from_the_end_of_a_day_to_both_ends_of_another():
    # 7 days: 336 half-hours from end to end, 289 from the end to the beginning; two days: one less is tabulated
    assert composition_age_steps((1, 2, 7), steps_per_day=48).tolist() == [1, 48, 96, 289, 336]
    assert composition_age_steps((3,), steps_per_day=1).tolist() == [1, 3]


STEPS = np.array([0, 1, 3, 48, 49, 200])
LOSSES = np.array([1e-6, 0.1, 1.0, 4.0, 12.0, np.inf])


def populations():
    rng = np.random.default_rng(4)
    mixed = rng.dirichlet(np.full(5, 0.3), size=(900, 5))
    slow = mixed[:1] * 0.02 + 0.98 * np.eye(5)
    odd = np.concatenate((mixed[:600], slow, np.full((40, 5, 5), 0.2)))
    holes = mixed[:30].copy()
    holes[:10, 2] = holes[:10, :, 2] = np.nan
    holes = np.where(np.isfinite(holes), holes / np.nansum(holes, axis=-1, keepdims=True), np.nan)
    return {"mixed": mixed, "one odd household in the middle": odd[rng.permutation(len(odd))], "holes": holes}


@pytest.mark.parametrize("chains", populations().values(), ids=populations())
def test_hulls_and_largest_bounds_are_those_of_every_household(chains):
    hulls = upper_hulls(chains, STEPS)
    for hull, step in zip(hulls.hulls, STEPS, strict=True):
        exact = leakage(power(chains, step), LOSSES[:, None]).max(axis=1)
        np.testing.assert_allclose(gain(*hull, LOSSES), exact, rtol=1e-9, atol=1e-12)
    distances = total_variation_forward(chains, STEPS).max(axis=0)
    np.testing.assert_allclose(hulls.distances, distances, rtol=1e-9, atol=1e-12)
    exact = reversibilised_bound(chains, STEPS).max(axis=0)
    np.testing.assert_allclose(max_reversibilised_bound(chains, STEPS), exact, rtol=1e-9, atol=1e-13)


# Members of a nested family: exact bounds that lie above a household's leakage where its total variation does.

EVERY_AGE = np.array([1, 2, 5, 20])


def table(text: str) -> NestedFamily:
    return NestedFamily.of_table([[Decimal(cell) for cell in line.split(",")] for line in text.split()])


def test_the_default_family_decays_with_its_time_constants():
    found = DEFAULT_FAMILY.distances(np.array([1, 48, 480]), steps_per_day=48)
    ages, tau = np.array([1 / 48, 1, 10]), np.array([0.25, 0.5, 1, 2, 4, 8, 16, 32, 64])
    expected = np.vstack([np.exp(-ages / tau[:, None]), np.ones(3)])
    assert ((found >= expected) & (found <= expected + 2e-12)).all()


@pytest.mark.parametrize("member", [1, 3, 10])
def test_a_member_is_the_bound_of_its_total_variation(member):
    bound = DEFAULT_FAMILY.member_bound(member, EVERY_AGE, steps_per_day=1, assume="markov", forward=True)
    distances = DEFAULT_FAMILY.distances(EVERY_AGE, steps_per_day=1)[member - 1]
    for age, distance in zip(EVERY_AGE.tolist(), distances.tolist(), strict=True):
        expected = np.log1p(distance * np.expm1(LOSS_GRID[:-1]))
        for direction in ("backward", "forward"):
            found = bound(age, LOSS_GRID[:-1], direction=direction, method="tight")
            assert (found >= np.minimum(expected, LOSS_GRID[:-1]) - 1e-15).all()
            assert (found <= expected + 3e-9).all()


def test_a_household_lies_below_a_member_just_where_its_leakage_does():
    rng, losses = np.random.default_rng(2), LOSS_GRID[:-1:12]
    family = DEFAULT_FAMILY.distances(EVERY_AGE, steps_per_day=2)
    for _ in range(12):
        kernel = rng.dirichlet(np.full(3, rng.choice([0.2, 1.0, 5.0])), size=3) + np.eye(3) * rng.choice(
            [0.0, 1.0, 20.0]
        )
        kernel /= kernel.sum(axis=1, keepdims=True)
        [member] = smallest_members(total_variation_forward(kernel, EVERY_AGE)[None], family)
        above = [
            all(
                (leakage(np.linalg.matrix_power(kernel, step), losses) <= np.log1p(d * np.expm1(losses)) + 1e-12).all()
                for step, d in zip(EVERY_AGE.tolist(), distances.tolist(), strict=True)
            )
            for distances in family
        ]
        assert above.index(True) + 1 == member


def test_a_table_holds_from_each_of_its_ages_on():
    family = table("0.5,0.2,0.6,1 2,0.1,0.5,1")
    found = family.distances(np.array([1, 24, 95, 96]), steps_per_day=48)
    assert found.tolist() == [[1, 0.2, 0.2, 0.1], [1, 0.6, 0.6, 0.5], [1, 1, 1, 1]]
    assert family.to_json() == table("0.50,0.20,0.6,1.0 2.0,.1,.5,1").to_json()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1,0.5", "a column age_days"),
        ("1,0.5,1 2,0.5", "a column age_days"),
        ("2,0.5,1 1,0.4,1", "ascending ages"),
        ("1,0.5,1 2,0.6,1", "not increase with age"),
        ("1,0.5,0.4,1", "nested members"),
        ("1,0.5,0.9", "last member of total variation 1"),
        ("1,0.5,2", "between 0 and 1"),
    ],
)
def test_a_table_that_is_no_nested_family_is_refused(text, problem):
    with pytest.raises(ChainError, match=problem):
        table(text)


# What holds of every leakage function: of kernels in floats, of tables and pieces in whole billionths.

NANO = 10**9
CASES = {
    "slow": np.array([[0.9, 0.08, 0.02], [0.05, 0.9, 0.05], [0.02, 0.18, 0.8]]),
    "drift": np.array([[0.8, 0.2], [0.0, 1.0]]),
    "turning": np.eye(2)[::-1],
    "uniform": np.full((3, 3), 1 / 3),
    "dense": np.random.default_rng(3).dirichlet(np.full(5, 0.7), size=5),
}


@dataclass(frozen=True)
class Tried:
    """A leakage function in floats, and by how much it may exceed that of the kernel: a part, and billionths."""

    chain: np.ndarray
    leakage: Callable[[float], float]
    supremum: Callable[[float], float]
    part: float
    billionths: float = 4


def in_floats(chain, bound, part, method="tight"):
    keys = {"direction": "forward", "method": method}
    return Tried(chain, lambda a: float(bound(1, a, **keys)), lambda a: float(bound.supremum(1, a, **keys)), part)


def in_billionths(chain, bound, part):
    function = bound.exact_leakage(1, direction="forward")

    def limit(loss):
        whole = function.supremum(round(loss * NANO))
        return np.inf if whole is None else whole / NANO

    return Tried(chain, lambda loss: function(round(loss * NANO)) / NANO, limit, part)


def tries(name):
    chain = CASES[name]
    keys = {"reliable": [True], "forward": chain[None], "steps_per_day": 1}
    table, pieces = (leakage_bound(chain[None], [1], LOSS_GRID, pieces=pieces, **keys) for pieces in (False, True))
    distance = max(np.abs(x - y).sum() / 2 for x in chain for y in chain)
    curve = LeakageBound([1], LOSS_GRID, bounds={"total_variation": [distance]}, steps_per_day=1, assume="markov")
    yield "kernel", Tried(chain, lambda a: float(KernelLeakage(chain)(a)), lambda a: float(supremum(chain, a)), 0, 0)
    batched = BatchedLeakage(chain)
    yield "batched", Tried(chain, lambda a: float(batched(a)), lambda a: float(batched.supremum(a)), 0, 0)
    yield "table", in_floats(chain, table, 0.07)
    yield "table in billionths", in_billionths(chain, table, 0.07)
    yield "total variation", in_floats(chain, curve, 1e6, "total_variation")
    yield "pieces", in_floats(chain, pieces, 1e-9)
    yield "pieces in billionths", in_billionths(chain, pieces, 1e-9)


FUNCTIONS = {f"{function} of {chain}": tried for chain in CASES for function, tried in tries(chain)}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=20)
@given(loss=st.integers(0, 20 * NANO) | st.integers(0, 10_000), more=st.integers(0, 2 * NANO))
def test_it_is_never_below_the_kernel_nor_above_the_loss_and_rises_no_faster(name, loss, more):
    tried = FUNCTIONS[name]
    low, high = tried.leakage(loss / NANO), tried.leakage((loss + more) / NANO)
    exact = float(leakage(tried.chain, loss / NANO))
    assert exact - 1e-12 <= low <= loss / NANO + 1e-15
    assert low <= exact * (1 + tried.part) + tried.billionths / NANO + 1e-12 or loss < 1_000_000
    assert low - 1e-12 <= high <= low + (more + tried.billionths) / NANO + 1e-12


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_recursion_rises_to_the_supremum_and_never_passes_it(name):
    tried = FUNCTIONS[name]
    assert tried.leakage(0.0) == tried.supremum(0.0) == 0.0
    for loss in (1e-6, 0.1, 0.5, 3.0):
        limit, exact, composed = tried.supremum(loss), float(supremum(tried.chain, loss)), 0.0
        assert limit >= exact * (1 - 1e-9) - 1e-9
        for _ in range(150):
            composed = loss + tried.leakage(composed)
            assert composed <= limit * (1 + 1e-12)
        if np.isfinite(limit):
            assert loss + tried.leakage(limit) <= limit * (1 + 1e-9) + tried.billionths / NANO
            assert composed == pytest.approx(limit, rel=max(1e-3, min(tried.part, 0.2)), abs=1e-8)

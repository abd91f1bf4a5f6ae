"""Members of a nested family: exact bounds that lie above a household's leakage where its total variation does."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID
from agedp_data.leakage.function import leakage
from agedp_data.leakage.nested_family import DEFAULT_FAMILY, NestedFamily, smallest_members
from agedp_data.markov.mixing import total_variation_forward

STEPS = np.array([1, 2, 5, 20])


def table(text: str) -> NestedFamily:
    return NestedFamily.of_table([[Decimal(cell) for cell in line.split(",")] for line in text.split()])


def test_the_default_family_decays_with_its_time_constants():
    found = DEFAULT_FAMILY.distances(np.array([1, 48, 480]), steps_per_day=48)
    ages, tau = np.array([1 / 48, 1, 10]), np.array([0.25, 0.5, 1, 2, 4, 8, 16, 32, 64])
    expected = np.vstack([np.exp(-ages / tau[:, None]), np.ones(3)])
    assert ((found >= expected) & (found <= expected + 2e-12)).all()


@pytest.mark.parametrize("member", [1, 3, 10])
def test_a_member_is_the_bound_of_its_total_variation(member):
    bound = DEFAULT_FAMILY.member_bound(member, STEPS, steps_per_day=1, assume="markov", forward=True)
    distances = DEFAULT_FAMILY.distances(STEPS, steps_per_day=1)[member - 1]
    for age, distance in zip(STEPS.tolist(), distances.tolist(), strict=True):
        expected = np.log1p(distance * np.expm1(LOSS_GRID[:-1]))
        for direction in ("backward", "forward"):
            found = bound(age, LOSS_GRID[:-1], direction=direction, method="tight")
            assert (found >= np.minimum(expected, LOSS_GRID[:-1]) - 1e-15).all()
            assert (found <= expected + 3e-9).all()


def test_a_household_lies_below_a_member_just_where_its_leakage_does():
    rng, losses = np.random.default_rng(2), LOSS_GRID[:-1:12]
    family = DEFAULT_FAMILY.distances(STEPS, steps_per_day=2)
    for _ in range(12):
        kernel = rng.dirichlet(np.full(3, rng.choice([0.2, 1.0, 5.0])), size=3) + np.eye(3) * rng.choice(
            [0.0, 1.0, 20.0]
        )
        kernel /= kernel.sum(axis=1, keepdims=True)
        [member] = smallest_members(total_variation_forward(kernel, STEPS)[None], family)
        above = [
            all(
                (leakage(np.linalg.matrix_power(kernel, step), losses) <= np.log1p(d * np.expm1(losses)) + 1e-12).all()
                for step, d in zip(STEPS.tolist(), distances.tolist(), strict=True)
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

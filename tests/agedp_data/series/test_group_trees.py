"""Estimates of levels: dense generalised least squares over all groups, with small groups left out."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.series.consistency import DrawnGroups, NoisyValue, consistent_groups, next_coarser, totals_with_groups
from agedp_data.series.series import series_of

LEVELS = ("feeder", "substation", "area")
HIERARCHY = [LEVELS[i:] for i in range(len(LEVELS))]


class World:
    """Random households in a hierarchy and in tariffs, and noisy sums of all groups with enough of them."""

    def __init__(self, seed, *, by, least):
        rng = np.random.default_rng(seed)
        number = 60
        area, tariff = rng.integers(0, 3, number), rng.integers(0, 2, number)
        substation, feeder = rng.integers(0, 3, number), rng.integers(0, 3, number)
        labels = {"area": area, "substation": substation, "feeder": feeder, "tariff": tariff}
        self.drawn, self.cells, rows = {}, [], []
        self.values, self.variances = [], []
        for columns in by:
            paths = ["/".join(str(labels[name][home]) for name in reversed(columns)) or "all" for home in range(number)]
            groups = [path for path in sorted(set(paths)) if paths.count(path) >= least or not columns]
            noisy = tuple(NoisyValue(float(rng.normal(0, 9)), float(rng.uniform(0.1, 9))) for _ in groups)
            self.drawn[columns] = DrawnGroups(tuple(groups), tuple(map(paths.count, groups)), noisy)
            for i, group in enumerate(groups):
                self.cells.append((columns, i))
                rows.append([float(path == group) for path in paths])
                self.values.append(noisy[i].value)
                self.variances.append(noisy[i].variance)
        self.design = np.array(rows)  # of each cell, the households in it

    def dense_estimates(self):
        """Values and variances of all cells, by least squares over the use of every single household."""
        weight = 1 / np.array(self.variances)
        covariance = self.design @ np.linalg.pinv(self.design.T @ (weight[:, None] * self.design)) @ self.design.T
        return covariance @ (weight * self.values), np.diag(covariance)


CASES = {
    "a total": [(), *HIERARCHY[::-1]],
    "no total": HIERARCHY,
    "a total and another column": [(), ("tariff",), *HIERARCHY],
    "a level left out": [(), LEVELS, ("area",)],
}


@pytest.mark.parametrize("least", [1, 3, 6])
@pytest.mark.parametrize("by", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_those_of_least_squares_over_households(seed, by, least):
    world = World(seed, by=by, least=least)
    values, variances = world.dense_estimates()
    estimates = consistent_groups(world.drawn)
    noisy = [
        estimates[cell].noisy if cell in estimates else world.drawn[cell[0]].noisy[cell[1]] for cell in world.cells
    ]
    assert [of.value for of in noisy] == pytest.approx(values, rel=1e-9, abs=1e-9)
    assert [of.variance for of in noisy] == pytest.approx(variances, rel=1e-9)
    assert estimates or least > 1


@pytest.mark.parametrize("by", CASES.values(), ids=CASES)
def test_finer_groups_add_up_to_each_coarser_one(by):
    world = World(7, by=by, least=1)
    estimates = consistent_groups(world.drawn)
    for columns in by:
        coarser = next_coarser(columns, by)
        for i, group in enumerate(world.drawn[coarser].groups if coarser is not None else ()):
            inside = [
                estimates[columns, j].noisy.value
                for j, finer in enumerate(world.drawn[columns].groups)
                if group == "all" or finer.startswith(f"{group}/") or len(columns) == 1
            ]
            assert sum(inside) == pytest.approx(estimates[coarser, i].noisy.value, rel=1e-12, abs=1e-12)


def test_an_estimate_names_the_groups_that_it_rests_on():
    world = World(1, by=[("tariff",), *HIERARCHY], least=1)
    estimates = consistent_groups(world.drawn)
    assert {columns for columns, _ in estimates} == set(HIERARCHY)  # nothing adds up to tariffs
    assert {estimate.based_on for estimate in estimates.values()} == {frozenset(HIERARCHY)}


def test_levels_are_sums_of_each_other_and_a_label_alone_is_none():
    mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.2"}
    levels = {f"use/{of[0]}": {**mean, "by": list(of) if len(of) > 1 else of[0]} for of in HIERARCHY}
    assert totals_with_groups(series_of({"series": levels | {"tariffs": {**mean, "by": "tariff"}}})) == [
        ("use/area", "use/substation", "use/feeder")
    ]
    alone = {"feeders": {**mean, "by": "feeder"}, "areas": {**mean, "by": "area"}}
    assert totals_with_groups(series_of({"series": alone})) == []  # feeder 1 may lie in several areas
    slash = DrawnGroups(("n/1",), (5,), (NoisyValue(1.0, 1.0),))
    total = DrawnGroups(("all",), (5,), (NoisyValue(3.0, 1.0),))
    estimates = consistent_groups({(): total, ("zone",): slash})
    assert [estimate.noisy.value for estimate in estimates.values()] == [2.0, 2.0]


@pytest.mark.parametrize("every", ["day", "month"])
def test_a_mean_of_months_adds_up_to_no_mean_of_days(every):
    mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.5"}
    terms = {"total": mean, "tariffs": {**mean, "by": "tariff", "every": every}}
    assert totals_with_groups(series_of({"series": terms})) == ([("total", "tariffs")] if every == "day" else [])

"""Consistent estimates: dense generalised least squares of the same tree, and the law of simulated noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

from agedp_data.errors import ChainError
from agedp_data.mechanisms import standard_deviation
from agedp_data.series.consistency import HierarchyNode, NoisyValue, consistent_estimates


def nodes(tree):
    return [tree, *(node for parts in tree.partitions for part in parts for node in nodes(part))]


def tree(rng, shape, *, measured=True):
    """A random tree; a shape is the list of a node's partitions, each the list of its parts' shapes."""
    variance = rng.uniform(0.1, 10) if measured else np.inf
    return HierarchyNode(
        NoisyValue(rng.normal(0, 10), variance),
        tuple(tuple(tree(rng, part, measured=not part or rng.random() < 0.5) for part in parts) for parts in shape),
    )


def dense_estimates(root):
    """Values and variances of all nodes: least squares over the null space of the constraints."""
    every = nodes(root)
    place = {id(node): i for i, node in enumerate(every)}
    constraints = [
        [(node is parent) - float(any(node is part for part in parts)) for node in every]
        for parent in every
        for parts in parent.partitions
    ]
    assert len(place) == len(every)
    basis = null_space(np.array(constraints))
    weight = np.array([1 / node.noisy.variance for node in every])
    covariance = basis @ np.linalg.inv(basis.T @ (weight[:, None] * basis)) @ basis.T
    return covariance @ (weight * [node.noisy.value for node in every]), np.diag(covariance)


LEAF = []
SHAPES = {
    "total and groups": [[LEAF] * 4],
    "two group columns": [[LEAF] * 3, [LEAF] * 5],
    "substations and feeders": [[[[LEAF] * 3], [[LEAF] * 2, [LEAF] * 4], LEAF], [LEAF] * 2],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_those_of_dense_least_squares(shape, seed):
    root = tree(np.random.default_rng(seed), shape, measured=seed > 0)
    values, variances = dense_estimates(root)
    estimates = [node.noisy for node in nodes(consistent_estimates(root))]
    assert [estimate.value for estimate in estimates] == pytest.approx(values, rel=1e-9, abs=1e-9)
    assert [estimate.variance for estimate in estimates] == pytest.approx(variances, rel=1e-9)


def test_estimates_of_noise_have_mean_zero_and_their_variance():
    rng, draws, scales = np.random.default_rng(5), 40_000, (3.0, 7.0, 2.0, 9.0)
    ends = [np.exp(-1 / scale) for scale in scales]
    total, *groups = (
        HierarchyNode(NoisyValue(rng.geometric(1 - q, draws) - rng.geometric(1 - q, draws), standard_deviation(b) ** 2))
        for q, b in zip(ends, scales, strict=True)
    )
    root = consistent_estimates(HierarchyNode(total.noisy, (tuple(groups),)))
    for node in nodes(root):
        z = node.noisy.value / np.sqrt(node.noisy.variance)
        assert abs(z.mean()) < 5 / draws**0.5
        assert z.var() == pytest.approx(1, rel=0.08)  # 5 standard errors of a variance with kurtosis 6


def test_a_hierarchy_without_noise_or_measurement_is_refused():
    certain, unknown = NoisyValue(1.0, 0.0), NoisyValue(1.0, np.inf)
    for parts in ((certain, certain), (unknown, NoisyValue(1.0, 1.0))):
        with pytest.raises(ChainError, match=r"variance above 0|no estimate"):
            consistent_estimates(HierarchyNode(NoisyValue(2.0, 1.0), (tuple(map(HierarchyNode, parts)),)))

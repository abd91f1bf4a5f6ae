"""The recursion over several days at a time, built from a chain itself; a model builds it from its leakage bound."""

from __future__ import annotations

from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion, temporal_kernels
from agedp_data.leakage.function import BatchedLeakage, kernel_set
from agedp_data.markov.transitions import power


def recursion_by_leaps(transition, *, max_days):
    """Daily releases under a chain of days, of which up to `max_days` may be taken at a time."""
    sides = []
    for chains in temporal_kernels(tuple(kernel_set(transition))):
        leakages = {j: BatchedLeakage(tuple(power(chain, j) for chain in chains)) for j in range(1, max_days + 1)}
        sides.append(OneSidedRecursion(leakages.__getitem__, orders=leakages.keys()))
    return Recursion(*sides)

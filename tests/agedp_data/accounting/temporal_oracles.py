"""Temporal leakage by other ways: the printed algorithms, plain recursions, programmes, and all outcomes."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
from scipy.optimize import linprog

from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion, temporal_kernels
from agedp_data.leakage.function import BatchedLeakage, kernel_set
from agedp_data.markov.transitions import power

# What temporal leakage is checked against: [T]'s own Algorithm 1, linear programmes, and enumeration of mechanisms.

LONG = np.longdouble


def algorithm_1(kernel, loss):
    """L_K(a) of one kernel without NaN, by dropping columns pair by pair (all pairs side by side)."""
    p = np.asarray(kernel, dtype=LONG)
    p = p / p.sum(axis=1, keepdims=True)
    if len(p) < 2 or loss == 0:
        return 0.0
    x, y = np.array(list(permutations(range(len(p)), 2))).T
    q, d = p[x], p[y]
    inside, best = q > d, 0.0
    rest, used = np.exp(-LONG(loss)), -np.expm1(-LONG(loss))
    while True:
        whole, part = (q * inside).sum(axis=1), (d * inside).sum(axis=1)
        over, under = whole * used + rest, part * used + rest
        with np.errstate(divide="ignore"):
            log_under = np.where(part > 0, np.log(under), -LONG(loss))
        best = max(best, float((np.log(over) - log_under).max()))
        drop = inside & (q * under[:, None] < d * over[:, None])
        if not drop.any():
            return best
        inside &= ~drop


def by_recursion(kernel, losses, leak=algorithm_1):
    """BPL of a list of losses."""
    course = []
    for e in losses:
        course.append(e + (leak(kernel, course[-1]) if course else 0.0))
    return np.array(course)


def total_by_recursion(kernel_b, kernel_f, losses, leak=algorithm_1):
    """TPL of a list of losses."""
    losses = np.asarray(losses, dtype=float)
    return by_recursion(kernel_b, losses, leak) + by_recursion(kernel_f, losses[::-1], leak)[::-1] - losses


def by_programme(kernel, loss):
    """L_K(a) by one programme of HiGHS for each pair (Charnes and Cooper: d.y = 1, m <= y_j <= e^a m)."""
    p = np.asarray(kernel, dtype=float)
    k, n = p.shape
    box = np.block([[-np.eye(n), np.ones((n, 1))], [np.eye(n), -np.exp(loss) * np.ones((n, 1))]])
    keys = {"A_ub": box, "b_ub": np.zeros(2 * n), "b_eq": [1.0]}
    keys["options"] = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    pairs = permutations(range(k), 2)
    solved = [linprog(np.append(-p[x], 0.0), A_eq=np.append(p[y], 0.0)[None], **keys).fun for x, y in pairs]
    return float(np.log(max(1.0, -min(solved))))


def mechanisms(values, loss):
    """All extreme likelihoods of an output of a mechanism of this loss: (2^values, values) of 1 and e^loss."""
    return np.array(list(product((1.0, np.exp(loss)), repeat=values)))


def enumerated(joint, losses):
    """The exact loss about each variable of a joint law (n_1, ..., n_T) that each release reads one of.

    Every output of every release has likelihoods between 1 and e^loss up to scale; the ratio is a ratio of linear
    forms in each of them, so an extreme one attains the maximum.
    """
    outputs = [mechanisms(n, e) for n, e in zip(joint.shape, losses, strict=True)]
    return [loss_about(joint, (t,), outputs) for t in range(joint.ndim)]


def loss_about(joint, secret, outputs):
    """The exact loss about some variables together, their values told apart only where the law allows them."""
    letters, marks = "abcdefgh"[: joint.ndim], "ABCDEFGH"[: joint.ndim]
    inputs = ",".join(m + x for m, x in zip(marks, letters, strict=True))
    kept = "".join(letters[t] for t in secret)
    given = np.einsum(f"{letters},{inputs}->{marks}{kept}", joint, *outputs, optimize=True)
    weight = np.einsum(f"{letters}->{kept}", joint).ravel()
    flat = given.reshape(-1, weight.size)[:, weight > 0] / weight[weight > 0]
    return float(np.log((flat.max(axis=-1) / flat.min(axis=-1)).max()))


def joint_of_days(transition, law, days, steps):
    """The joint law of whole days (k^steps values each) of a chain that starts at the first of `days` from `law`."""
    p = np.asarray(transition, dtype=float)
    k, starts = len(p), [(day - days[0]) * steps for day in days]
    joint = np.zeros([k**steps] * len(days))
    for path in product(range(k), repeat=starts[-1] + steps):
        weight = law[path[0]] * np.prod([p[a, b] for a, b in pairwise(path)])
        joint[tuple(int("".join(map(str, path[at : at + steps])), k) for at in starts)] += weight
    return joint


def stationary(transition):
    """The stationary law by least squares."""
    p = np.asarray(transition, dtype=float)
    k = len(p)
    return np.linalg.lstsq(np.vstack((p.T - np.eye(k), np.ones(k))), np.append(np.zeros(k), 1.0), rcond=None)[0]


def reversed_chain(transition):
    """P_B(x, y) = pi(y) P(y, x) / pi(x)."""
    law = stationary(transition)
    return np.asarray(transition).T * law / law[:, None]


def normalised(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


def dense(n, seed, *, weight=0.5):
    """A random chain without zeros, rows from far apart to alike as `weight` grows."""
    return normalised(np.random.default_rng(seed).gamma(weight, size=(n, n)) + 1e-3)


def kernels_of_every_kind(n, seed):
    rng = np.random.default_rng(seed)
    plain = dense(n, seed)
    return {
        "plain": plain,
        "zeros": normalised(np.where(rng.random((n, n)) < 0.5, 0.0, plain) + np.eye(n) * 1e-2),
        "ties": normalised(rng.integers(1, 4, size=(n, n)).astype(float)),
        "identity": np.eye(n),
        "periodic": np.roll(np.eye(n), 1, axis=1),
        "uniform": np.full((n, n), 1 / n),
        "nearly singular": normalised(np.tile(plain[:1], (n, 1)) + 1e-11 * rng.random((n, n))),
        "nearly identity": np.eye(n) * (1 - 1e-6) + 1e-6 / n,
    }


# The recursion over several days at a time, built from a chain itself; a model builds it from its leakage bound.


def recursion_by_leaps(transition, *, max_days):
    """Daily releases under a chain of days, of which up to `max_days` may be taken at a time."""
    sides = []
    for chains in temporal_kernels(tuple(kernel_set(transition))):
        leakages = {j: BatchedLeakage(tuple(power(chain, j) for chain in chains)) for j in range(1, max_days + 1)}
        sides.append(OneSidedRecursion(leakages.__getitem__, orders=leakages.keys()))
    return Recursion(*sides)

"""(epsilon, delta) bounds straight from ledger rows: all outcomes of each draw added up by numpy (docs/notions.md).

Nothing of the product is used. Its curves are of the same 64 orders, which are a part of the definition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import logsumexp

ORDERS = 1 + np.exp(np.linspace(np.log(0.01), np.log(1999), 64))


@lru_cache
def renyi(shift: int, scale: float) -> np.ndarray:
    """Return the Rényi losses of an integer that moves by `shift`: a sum over all outcomes, geometric at both ends."""
    tail = -1 / scale - math.log(-math.expm1(-1 / scale))  # ln(q + q^2 + ...), q = e^(-1/scale)
    between = (ORDERS - 1) * shift / scale + np.log(powers(np.exp(-(2 * ORDERS - 1) / scale), shift + 1))
    below, above = (ORDERS - 1) * shift / scale + tail, -ORDERS * shift / scale + tail
    return (logsumexp([between, below, above], axis=0) + math.log(math.tanh(0.5 / scale))) / (ORDERS - 1)


def powers(ratio: np.ndarray, terms: int) -> np.ndarray:
    """Return 1 + x + x^2 + ..., so many terms, by doubling."""
    total, power = np.zeros_like(ratio), np.ones_like(ratio)
    for bit in f"{terms:b}":
        total, power = total * (1 + power), power * power
        if bit == "1":
            total, power = total + power, power * ratio
    return total


def of_rows(rows: Iterable[Mapping[str, Any]], counts: Iterable[str] = ()) -> np.ndarray:
    """Return the Rényi losses of released rows together; of a series of counts, each moves by one."""
    losses = [
        row["sensitivity"] * renyi(1, float(row["scale"]))
        if row["series"] in counts
        else renyi(row["sensitivity"], float(row["scale"]))
        for row in rows
    ]
    return np.sum(losses, axis=0) if losses else np.zeros(64)


def epsilon(losses: np.ndarray, delta: float, pure: float) -> float:
    """Return the epsilon at a delta, at most the sum of the pure losses."""
    converted = losses + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    return max(0.0, min(pure, float(converted.min())))


def totals(rows: Sequence[Mapping[str, Any]], *, always: bool = True) -> dict[str, float]:
    """Return the total at both deltas by name [1e-9]; unless `always`, only if one is below the sum of the losses."""
    losses, pure = of_rows(rows), sum(row["loss"] for row in rows)
    values = {f"total (delta {delta})": epsilon(losses, float(delta), pure / 1e9) * 1e9 for delta in ("1e-6", "1e-9")}
    return values if always or min(values.values()) < pure - 1 else {}

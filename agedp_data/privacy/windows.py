"""Sustained release: in any window of time the losses come to at most epsilon ([D], "Dynamic Dataset"; MATHS 6).

Who stays for at most a window sees at most epsilon. A window is half-open, so that `window` = 7 on days is any seven
consecutive days; requests at the same instant add. Known checkpoints are planned together ("offline"); requests that
arrive unannounced spend a fraction of what is left, which never runs out, or a fixed part of it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.checkpoints import checkpoint_optimum
from agedp_data.privacy.exact import Number, on_one_scale
from agedp_data.privacy.kernel import Floats, checked_loss

METHODS = ("offline", "fraction", "per-request")


def window_budgets(
    times: ArrayLike,
    *,
    window: Number,
    epsilon: float,
    method: str,
    weights: ArrayLike | None = None,
    fraction: float = 0.2,
    requests: int | None = None,
) -> Floats:
    """Return losses of releases at these times that come to at most `epsilon` in every window [s, s + window).

    ==============  ====================================================================================================
    method          loss of release k
    ==============  ====================================================================================================
    "offline"       the least sum of weight_k/r_k under all windows, to 1e-8 of it or better (`checkpoints`)
    "fraction"      `fraction` of what (t_k - window, t_k] leaves: online, a time does not matter to those before it
    "per-request"   epsilon/`requests`: online
    ==============  ====================================================================================================

    The bound holds exactly, in the floats returned. No argument but `window` and `epsilon` changes what is promised.
    Shapes: (T,) -> (T,). Units: [any], window [the same] -> [-].

    Args:
        times: instants of release, not decreasing.
        window: how long somebody stays.
        epsilon: bound of a window's sum.
        method: see above.
        weights: for "offline", how much the noise scale of each release matters; None: all alike.
        fraction: for "fraction", between 0 and 1.
        requests: for "per-request", the most that a window can have; None: the most that one of `times` has.

    Raises:
        ChainError: an unknown method, times that decrease, a window or epsilon that is not a positive number, a
            fraction outside (0, 1), weights that are not positive or for another method than "offline", or a window
            with more than `requests`.

    >>> window_budgets([0, 1, 2, 9], window=7, epsilon=1, method="fraction", fraction=0.5).tolist()
    [0.5, 0.25, 0.125, 0.5]
    """
    if method not in METHODS:
        raise ChainError(f"method = {method!r}: known are {', '.join(METHODS)}")
    if weights is not None and method != "offline":
        raise ChainError(f'weights are used by method = "offline" only, not by "{method}"')
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ChainError(f"epsilon = {epsilon}: the bound of a window is a positive number")
    ends = window_ends(times, window=window)
    if method == "offline":
        return _offline_budgets(ends, epsilon, weights)
    if method == "fraction":
        return _fraction_budgets(ends, epsilon, fraction)
    return _per_request_budgets(ends, epsilon, requests)


def window_losses(times: ArrayLike, losses: ArrayLike, *, window: Number) -> Floats:
    """Return what the window (t - window, t] that ends at each time comes to, rounded up.

    The largest of them is the largest of all windows. Requests at one instant count each other.
    Shapes: (T,), (T,) -> (T,). Units: [any], [-] -> [-].

    Raises:
        ChainError: times that decrease, losses that are negative or infinite, or lengths that differ.

    >>> window_losses([0, 6, 7, 13], [1, 2, 4, 8], window=7).tolist()
    [1.0, 3.0, 6.0, 12.0]
    """
    loss, ends = checked_loss(losses), window_ends(times, window=window)
    if loss.shape != ends.shape or not np.isfinite(loss).all():
        raise ChainError(f"{ends.size} times have a finite loss each, not losses of shape {loss.shape}")
    (scaled_times,) = on_one_scale(times)
    instant_end = np.searchsorted(scaled_times, scaled_times, side="right")  # all requests of one instant
    return np.array([upper_sum(loss[start:end]) for start, end in zip(_window_starts(ends), instant_end, strict=True)])


def window_ends(times: ArrayLike, *, window: Number) -> NDArray[np.int64]:
    """Return up to which position the window [t_i, t_i + window) of each time reaches.

    Compared exactly. Shapes: (T,) -> (T,).

    Raises:
        ChainError: times that decrease, or a window that is not a positive number.

    >>> window_ends([0, 6, 7, 13], window=7).tolist()
    [2, 3, 4, 4]
    """
    scaled_times, scaled_window = on_one_scale(times, window)
    if scaled_times.ndim != 1 or bool((scaled_times[1:] < scaled_times[:-1]).any()):
        raise ChainError("times of release are a list that does not decrease")
    if scaled_window <= 0:
        raise ChainError(f"window = {window}: must be above 0")
    return np.searchsorted(scaled_times, scaled_times + scaled_window, side="left").astype(np.int64)


def upper_sum(losses: Floats) -> float:
    """Return a sum as the smallest float that is not below it.

    >>> upper_sum(np.array([1.0, 1e-30]))
    1.0000000000000002
    """
    terms: list[float] = losses.tolist()
    total = math.fsum(terms)
    return math.nextafter(total, math.inf) if math.fsum([*terms, -total]) > 0 else total


def _window_starts(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return from which position on the windows that end with each release have begun: the first that reaches it."""
    return np.searchsorted(ends, np.arange(ends.size), side="right")


def _offline_budgets(ends: NDArray[np.int64], epsilon: float, weights: ArrayLike | None) -> Floats:
    values = np.ones(ends.size) if weights is None else np.array(weights, dtype=np.float64)
    if values.shape != ends.shape or not np.isfinite(values).all() or not (values > 0).all():
        raise ChainError(f"{ends.size} checkpoints have a weight above 0 each, not weights of shape {values.shape}")
    return _scaled_to_windows(checkpoint_optimum(ends, values), ends, epsilon)


def _scaled_to_windows(shares: Floats, ends: NDArray[np.int64], epsilon: float) -> Floats:
    """Return shares as losses of which no window exceeds epsilon, by a few roundings down at most."""
    largest_sum = max((upper_sum(shares[start:end]) for start, end in enumerate(ends)), default=1.0)
    return np.asarray(shares / largest_sum * epsilon * (1 - 4 * np.finfo(np.float64).eps))


def _fraction_budgets(ends: NDArray[np.int64], epsilon: float, fraction: float) -> Floats:
    if not 0 < fraction < 1:
        raise ChainError(f"fraction = {fraction}: lies between 0 and 1, both excluded")
    losses: list[float] = []
    for start in _window_starts(ends).tolist():
        remaining = math.fsum([epsilon, *(-loss for loss in losses[start:])])
        losses.append(fraction * remaining)  # at most what is left: both roundings come to less than one ulp of it
    return np.array(losses)


def _per_request_budgets(ends: NDArray[np.int64], epsilon: float, requests: int | None) -> Floats:
    largest_count = int((ends - np.arange(ends.size)).max(initial=1))
    max_requests = largest_count if requests is None else requests
    if max_requests < 1:
        raise ChainError(f"requests = {requests}: a window has at least one")
    if largest_count > max_requests:
        raise ChainError(
            f"a window has {largest_count} requests and at most {max_requests} are provided for; allow more"
        )
    share = epsilon / max_requests
    if Fraction(share) * max_requests > Fraction(epsilon):
        share = math.nextafter(share, 0.0)
    return np.full(ends.size, share)

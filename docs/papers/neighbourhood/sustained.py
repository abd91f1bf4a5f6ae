"""Sustained release: losses within every window of time, for known checkpoints and for requests as they come.

The slides' online mechanism has a budget that is best on average for sampled inputs; here that is the fraction of what
a window has left, chosen on sampled requests and tried on others.
"""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.windows import window_budgets
from docs.papers.households import PaperReadings
from docs.papers.results import Floats, Panel, PaperFigure, curve

WINDOW, DAYS, EPSILON = 7.0, 364, 1.0
_RATES = (1, 2, 3, 5, 7, 10, 14)
_FRACTIONS = (0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.45, 0.6)
_SHOWN = 3


def requests(rate: float, seed: int, *, days: int = DAYS) -> Floats:
    """Return instants of requests at random, `rate` a window on average."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, days, max(1, rng.poisson(rate * days / WINDOW))))


def noise(times: Floats, method: str, **parameters: float) -> float:
    """Return the mean noise scale, mean of 1/loss, of a way to spend each window."""
    losses = window_budgets(times, window=WINDOW, epsilon=EPSILON, method=method, **parameters)  # type: ignore[arg-type]
    return float((1 / losses).mean())


def chosen_fraction(rate: float, samples: int, *, days: int = DAYS) -> float:
    """Return the fraction of least mean noise on sampled requests."""
    tried = [requests(rate, seed, days=days) for seed in range(samples)]
    cost = [np.mean([noise(times, "fraction", fraction=part) for times in tried]) for part in _FRACTIONS]
    return _FRACTIONS[int(np.argmin(cost))]


def sustained_release(data: PaperReadings) -> PaperFigure:
    """Return the losses of one series of requests, and the noise by how often they come."""
    days, samples = (56, 2) if data.small else (DAYS, 8)
    rates = _RATES[1:4] if data.small else _RATES
    tried = {rate: [requests(rate, 1000 + seed, days=days) for seed in range(samples)] for rate in rates}
    fractions = {rate: chosen_fraction(rate, samples, days=days) for rate in rates}
    most = {rate: max(_fullest(times) for times in series) for rate, series in tried.items()}
    ways = {
        "whole series under one ε": [float(np.mean([t.size for t in tried[rate]])) / EPSILON for rate in rates],
        "offline": [float(np.mean([noise(t, "offline") for t in tried[rate]])) for rate in rates],
        "online, fraction chosen on samples": [
            float(np.mean([noise(t, "fraction", fraction=fractions[rate]) for t in tried[rate]])) for rate in rates
        ],
        "online, at most m requests": [
            float(np.mean([noise(t, "per-request", requests=most[rate]) for t in tried[rate]])) for rate in rates
        ],
    }
    looks = ("reference", "ours", "paper", "paper")
    lines = [
        curve(name, rates, values, look, shade=shade)  # type: ignore[arg-type]
        for (name, values), look, shade in zip(ways.items(), looks, (0, 0, 0, 1), strict=True)
    ]
    times = tried[_SHOWN][0]
    shown = times < 8 * WINDOW
    spent = {
        "offline": window_budgets(times, window=WINDOW, epsilon=EPSILON, method="offline"),
        "online, fraction": window_budgets(
            times, window=WINDOW, epsilon=EPSILON, method="fraction", fraction=fractions[_SHOWN]
        ),
    }
    at = rates.index(_SHOWN)
    online = min(ways[name][at] for name in list(ways)[2:])
    return PaperFigure(
        "sustained_release",
        "Dynamic datasets, offline and online",
        f"A bound by window sustains release; to know the checkpoints spares {1 - ways['offline'][at] / online:.0%} of"
        " the noise",
        f"With {_SHOWN} requests in a window of {WINDOW:g} days on average, and ε = {EPSILON:g} for every window, the"
        f" mean noise scale is {ways['offline'][at]:.2f} if all checkpoints are known. Online it is {online:.2f}"
        f" ({online / ways['offline'][at]:.2f} times that), and {ways['whole series under one ε'][at]:.0f} if one ε"
        f" has to do for the whole series of {days} days.",
        "requests at random times, made up; no data",
        (
            Panel("By how often requests come", "requests in a window on average [-]", "mean noise scale, 1/ε [-]",
                  tuple(lines), log="y"),
            Panel(f"Losses of one series, {_SHOWN} requests a window", "time [days]", "loss ε [-]",
                  (curve("offline", times[shown], spent["offline"][shown], kind="points"),
                   curve("online, fraction", times[shown], spent["online, fraction"][shown], "paper", kind="points")),
                  bottom=0),
        ),
    )  # fmt: skip


def _fullest(times: Floats) -> int:
    return int((np.searchsorted(times, times + WINDOW, side="left") - np.arange(times.size)).max())

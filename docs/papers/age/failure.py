"""Figure 5: how often "is the mean at least 0 now?" is answered wrongly from an aged, noisy mean.

The paper's failure rate is conditional on where the agents were; averaged over that ageing gains nothing. The
answer is the likelier one given the output, which is yes from a threshold on.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, laplace

from agedp_data.accounting.ageing import risk
from docs.papers.age.two_state import AGENTS, CHAIN, LOSSES, MOVE, RISK, STEPS, unaged
from docs.papers.age.two_state_model import failure_rate, noise_scale
from docs.papers.results import PUBLISHED, Floats, Panel, PaperFigure, curve

RATE = "failure rate [-]"
_AGES = np.arange(26)
_TARGETS = np.geomspace(0.05, 2.0, 16)
_TRIED = (0, 1, 2, 3, 4, 6, 8, 10, 14, 20)
_LOSSES = np.geomspace(0.1, 6.0, 14)
_PAIRED = (0, 2, 6)
_START = 14
"""Agents at 1 for which the gain is the paper's third; the paper does not report its start."""


def by_start(age: int, loss: float) -> Floats:
    """Return the failure rate given how many agents were at 1, for every number of them: (I + 1,).

    P(answer yes | start) P(mean < 0 now | start) + P(answer no | start) P(mean >= 0 now | start), the answer the
    likelier one if nothing is known of the start but its law ([A] eqs. 50, 51).
    """
    count, scale = np.arange(AGENTS + 1), noise_scale(loss, agents=AGENTS)
    spot, weight = (2.0 * count - AGENTS) / AGENTS, binom.pmf(count, AGENTS, 0.5)
    yes = _yes(age)

    def leans(output: float) -> float:
        # Scaled by the largest density, or far outputs would leave nothing.
        near = -np.abs(output - spot) / scale
        density = weight * np.exp(near - near.max())
        return float(density @ yes / density.sum() - 0.5)

    reach = 1 + 40 * scale
    low, high = (leans(end) for end in (-reach, reach))
    answered = laplace.sf(brentq(leans, -reach, reach), spot, scale) if low < 0 < high else np.full(spot.size, high > 0)
    return np.asarray(answered * (1 - yes) + (1 - answered) * yes)


def _yes(age: int) -> Floats:
    """Return the probability that at least half the agents are at 1 now, by how many were."""
    stays = (1 + (1 - 2 * MOVE) ** age) / 2
    laws = [
        np.convolve(
            binom.pmf(np.arange(start + 1), start, stays),
            binom.pmf(np.arange(AGENTS - start + 1), AGENTS - start, 1 - stays),
        )
        for start in range(AGENTS + 1)
    ]
    return np.array([law[(AGENTS + 1) // 2 :].sum() for law in laws])


def gains() -> Floats:
    """Return the relative gain of ageing over noise alone, by target and start: (targets, I + 1); 0 without one."""
    gain = np.empty((_TARGETS.size, AGENTS + 1))
    for i, target in enumerate(_TARGETS):
        rates = np.array([by_start(t, unaged(target, t, tight=False)) for t in _TRIED])
        gain[i] = 1 - rates.min(axis=0) / np.where(rates[0] > 0, rates[0], np.inf)
        gain[i, rates[0] == 0] = 0
    return gain


def averaged() -> tuple[Floats, Floats]:
    """Return the failure rates averaged over the start at each target: of noise alone, and the least of all ages."""
    rates = np.full((_TARGETS.size, len(_TRIED)), np.inf)
    for i, target in enumerate(_TARGETS):
        for j, t in enumerate(_TRIED):
            loss = unaged(target, t, tight=True)
            if np.isfinite(loss):
                rates[i, j] = failure_rate(t, loss, agents=AGENTS, move=MOVE)
    return rates[:, 0], rates.min(axis=1)


def figure_5() -> PaperFigure:
    """Return failure rates by age, pairs of loss and rate, and the best of each loss."""
    rates = [[failure_rate(int(t), e, agents=AGENTS, move=MOVE) for t in _AGES] for e in LOSSES]
    limit = float(binom.cdf(AGENTS // 2 - 1, AGENTS, 0.5))
    gain = gains().max(axis=0)
    alone, aged = averaged()
    target_losses = np.array([[by_start(t, unaged(x, t, tight=False))[_START] for t in _TRIED] for x in _TARGETS])
    conditional = (
        f"given that {_START} of {AGENTS} agents were at 1 (picked to match: the paper gives no start), ageing fails up"
        f" to {gain[_START]:.0%} less often at the same loss; given 10 up to {gain[10]:.0%}, given 17 up to"
        f" {gain[17]:.0%}"
    )
    mean = f"averaged over all starts the largest gain is {float((1 - aged / alone).max()):.1%}"
    return PaperFigure(
        "figure_5",
        "Figure 5",
        "Ageing lowers the failure rate for lucky starts only; averaged, noise alone is as good",
        f"Without information the rate is {limit:.5f}. {conditional[0].upper()}{conditional[1:]}."
        f" {mean[0].upper()}{mean[1:]}.",
        f"{PUBLISHED} (p = q = .1, I = 20)",
        (
            Panel(
                "(a) By age, averaged over the start and given it",
                STEPS,
                RATE,
                tuple(
                    curve(f"loss {e:g}", _AGES, y, shade=i) for i, (e, y) in enumerate(zip(LOSSES, rates, strict=True))
                )
                + tuple(
                    curve(
                        f"{_START} at 1, loss {e:g}",
                        _AGES,
                        [by_start(int(t), e)[_START] for t in _AGES],
                        "paper",
                        shade=i,
                    )
                    for i, e in enumerate(LOSSES)
                ),
                levels=((0.5, "limit in the paper"), (limit, "limit: ties count as ≥ 0")),
                bottom=0,
                top=0.55,
            ),
            Panel(
                "(b) Pairs by age",
                RISK,
                RATE,
                tuple(
                    curve(
                        f"age {t}",
                        [float(risk(CHAIN, e, [t], method="tight")[0]) for e in _LOSSES],
                        [failure_rate(t, e, agents=AGENTS, move=MOVE) for e in _LOSSES],
                        shade=i,
                    )
                    for i, t in enumerate(_PAIRED)
                )
                + tuple(
                    curve(
                        f"age {t}, {_START} at 1, Theorem 1",
                        [float(risk(CHAIN, e, [t], method="total_variation")[0]) for e in _LOSSES],
                        [by_start(t, e)[_START] for e in _LOSSES],
                        "paper",
                        shade=i,
                    )
                    for i, t in enumerate(_PAIRED)
                ),
                log="x",
                bottom=0,
            ),
            Panel(
                "(c) Least rate for each loss",
                RISK,
                RATE,
                (
                    curve(f"noise alone, {_START} of {AGENTS} at 1", _TARGETS, target_losses[:, 0], "reference"),
                    curve(f"aged, {_START} of {AGENTS} at 1", _TARGETS, target_losses.min(axis=1), "paper"),
                    curve("noise alone, averaged", _TARGETS, alone, "reference", shade=1),
                    curve("aged, averaged", _TARGETS, aged),
                ),
                log="x",
                bottom=0,
            ),
        ),
        f"the limit of (a) is {limit:.5f}, not .5, and the gain of (c) holds for a favourable start only ([errata]).",
        parts={"conditional": conditional, "averaged": mean},
    )

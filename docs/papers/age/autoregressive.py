"""Figure 8: a continuous state, AR(1), by total variation as it is and by the paper's bound."""

from __future__ import annotations

import numpy as np

from agedp_data.leakage.function import leakage_from_total_variation
from docs.papers.age.ar1_model import mean_square_error, noise_scale, risk
from docs.papers.results import OURS, Curve, Floats, Panel, PaperFigure, curve

RATE, NOISE, AGENTS = 0.8, 1.0, 20
WIDTH = 6.0
"""Range the state is clipped to, about 3.6 standard deviations; the paper's state has none, and no sensitivity."""

_AGES = np.arange(31.0)
_LOSSES = (0.5, 1.0, 2.0)
_RISK = "loss about the present, ε [-]"


def printed_risk(ages: Floats, loss: float) -> Floats:
    """Return [A] eq. 89 for states that are `WIDTH` apart; not clipped, it may exceed the loss itself."""
    return np.asarray(np.log1p(RATE**ages * WIDTH / (2 * NOISE) * np.expm1(loss)))


def printed_error(ages: Floats, loss: float) -> Floats:
    """Return [A] eq. 92: drift 1 - rho^(2t) given the start, and b^2 for the variance of Laplace noise."""
    return np.asarray((1 - RATE ** (2 * ages)) * NOISE**2 / (AGENTS * (1 - RATE**2)) + 1 / (loss * AGENTS) ** 2)


def drifts(age: float) -> tuple[float, float]:
    """Return how far the mean drifts, mean square, unconditionally and in [A] eq. 92."""
    unit = NOISE**2 / (AGENTS * (1 - RATE**2))
    return 2 * (1 - RATE**age) * unit, (1 - RATE ** (2 * age)) * unit


def error(age: float, loss: float) -> float:
    """Return the error of the aged mean of clipped states, with the noise that its sensitivity asks for."""
    scale = noise_scale(loss, width=WIDTH, agents=AGENTS)
    return mean_square_error(age, scale, agents=AGENTS, rate=RATE, noise=NOISE)


def figure_8() -> PaperFigure:
    """Return error, loss and the trade between them of an aged mean of autoregressive states."""
    errors: list[Curve] = []
    risks: list[Curve] = []
    for i, loss in enumerate(_LOSSES):
        errors += [
            curve(f"eq. 92, loss {loss:g}", _AGES, printed_error(_AGES, loss), "paper", shade=i),
            curve(f"corrected, loss {loss:g}", _AGES, [error(t, loss) for t in _AGES.tolist()], shade=i),
        ]
        risks += [
            curve(f"eq. 89, loss {loss:g}", _AGES, printed_risk(_AGES, loss), "paper", shade=i),
            curve(f"exact, loss {loss:g}", _AGES, risk(_AGES, loss, width=WIDTH, rate=RATE, noise=NOISE), shade=i),
        ]
    fresh = float(printed_risk(np.array([0.0]), 1.0)[0])
    ours, printed = drifts(3.0)
    drifting = (
        f"the mean drifts by 2(1 - ρ^t)σ²/((1 - ρ²)I), {ours:.4f} at t = 3, of which eq. 92 has (1 - ρ^2t),"
        f" {printed:.4f}, and half the limit. The variance of Laplace noise is 2b², not b²"
    )
    return PaperFigure(
        "figure_8",
        "Figure 8",
        "A continuous state ages like a chain, once it is clipped and its distance is exact",
        f"For states {WIDTH:g} apart eq. 89 gives a fresh output of loss 1 a loss of {fresh:.2f}, more than the"
        " mechanism has; the exact total variation starts at 1 and reaches"
        f" {float(risk(10, 1.0, width=WIDTH, rate=RATE, noise=NOISE)):.3f} after ten steps, eq. 89"
        f" {float(printed_risk(np.array([10.0]), 1.0)[0]):.3f}.",
        f"{OURS} (ρ = {RATE:g}, σ = {NOISE:g}, I = {AGENTS}, range {WIDTH:g})",
        (
            Panel("(a) Error", "age [steps]", "mean square error [state²]", tuple(errors), log="y"),
            Panel("Risk", "age [steps]", _RISK, tuple(risks), bottom=0),
            _trade(),
        ),
        "eqs. 88 and 89 are not clipped at the loss itself. Eq. 90 adds noise to a mean without sensitivity. Then"
        f" {drifting} ([errata]). So drift alone tends to twice the paper's limit in (a).",
        parts={"drift": drifting},
    )


def _trade() -> Panel:
    targets, losses = np.geomspace(0.05, 2.0, 40), np.geomspace(0.05, 60.0, 400)
    exact = np.stack([risk(t, losses, width=WIDTH, rate=RATE, noise=NOISE) for t in _AGES], axis=-1)
    printed = np.stack([through(t, losses) for t in _AGES.tolist()], axis=-1)
    cost = np.array([[error(t, loss) for t in _AGES.tolist()] for loss in losses])
    least = [
        np.array([np.where(table <= target, cost, np.inf).min() for target in targets]) for table in (exact, printed)
    ]
    alone = [error(0, target) for target in targets]
    return Panel(
        "(b) Trade-off",
        _RISK,
        "least mean square error [state²]",
        (
            curve("noise alone", targets, alone, "reference"),
            curve("aged, eq. 89", targets, least[1], "paper"),
            curve("aged, exact", targets, least[0]),
        ),
        log="xy",
    )


def through(age: float, losses: Floats) -> Floats:
    """Return [A] eq. 89 for many losses, its distance clipped at 1 so that it can be used at all."""
    return leakage_from_total_variation(min(1.0, RATE**age * WIDTH / (2 * NOISE)), losses)

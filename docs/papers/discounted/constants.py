"""Where Corollary 16 breaks its promise: its constant beside the certified one, and what the sums come to."""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.discount_schedules import Hyperbolic, certified_constant, discounted_loss, schedule
from docs.papers.discounted.reports import printed
from docs.papers.results import PUBLISHED, Panel, PaperFigure, curve

TURNS = 3.65384757680581916
"""The rate from which on the constant of Corollary 16 is below 1, too small for the very first release."""

_RATES = np.geomspace(1e-6, 30.0, 60)
_SHOWN = 8.0


def printed_constant(beta: float) -> float:
    """Return the constant of [F] Corollary 16 as printed."""
    return float(1 / printed(Hyperbolic(beta), 1)[0])


def broken(beta: float) -> float:
    """Return what the discounted sums come to at most under Corollary 16 as printed, for epsilon = 1."""
    return certified_constant(beta) / printed_constant(beta)


def corollary_16() -> PaperFigure:
    """Return both constants by rate, and the sums of a series that breaks its promise."""
    at = np.arange(1, 61)
    fast, losses = Hyperbolic(_SHOWN), printed(Hyperbolic(_SHOWN), at.size)
    renewal_losses = schedule(fast, epsilon=1.0, horizon=at.size, method="renewal")
    return PaperFigure(
        "constants",
        "Corollary 16",
        "Corollary 16's constant is too large for usual rates, and too small for high and tiny ones",
        f"The discounted loss of an ε of 1 comes to {broken(_SHOWN):.3f} at β = {_SHOWN:g}, already at the first"
        f" release; from β = {TURNS:.6f} on the constant is below 1. At β = 1 it is {printed_constant(1.0):.3f} where"
        f" {certified_constant(1.0):.4f} is enough, at β = .01 {printed_constant(0.01):.2f} for"
        f" {certified_constant(0.01):.3f}.",
        PUBLISHED,
        (
            Panel(
                "Noise of the first release",
                "discounting coefficient β [-]",
                "constant C(β), noise scale at t = 1 [-]",
                (
                    curve("Corollary 16 as printed", _RATES, [printed_constant(b) for b in _RATES.tolist()], "paper"),
                    curve("certified", _RATES, [certified_constant(b) for b in _RATES.tolist()]),
                ),
                levels=((1.0, "below 1 the first release exceeds ε"),),
                levels_named="left",
                log="xy",
            ),
            Panel(
                f"Discounted loss, β = {_SHOWN:g}, ε = 1",
                "release [-]",
                "discounted loss [-]",
                (
                    curve("Corollary 16 as printed", at, discounted_loss(losses, fast), "paper"),
                    curve("renewal", at, discounted_loss(renewal_losses, fast)),
                ),
                levels=((1.0, "promised"),),
                bottom=0,
            ),
        ),
        "a run with the printed constant breaks its promise for β > 3.6538 and β < 1.2203e-5; the run file refuses it"
        " there ([discounting], [errata]).",
    )

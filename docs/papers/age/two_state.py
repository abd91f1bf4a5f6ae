"""The motivating example and Figures 2, 3 and 4: two places, a move with probability .1 a step."""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.ageing import age_of_information, compose, peak, risk
from docs.papers.age.two_state_model import mean_square_error, shrunk_error
from docs.papers.results import OURS, PUBLISHED, Curve, Floats, Panel, PaperFigure, curve

MOVE, AGENTS = 0.1, 20
CHAIN = ((1 - MOVE, MOVE), (MOVE, 1 - MOVE))
LOSSES = (0.5, 1.0, 2.0)
AGES = range(31)
AGE, INTERVAL, LOSS = 2, 4, 0.5
RISK = "loss about the present, ε [-]"
STEPS = "age of the output [steps]"
ERROR = "mean square error [states²]"


def success(loss: Floats) -> Floats:
    """Return how often a guess between two values is right after an output of this loss ([A] eq. 7)."""
    return np.asarray(1 / (1 + np.exp(-loss)))


def motivating() -> PaperFigure:
    """Return the attack on the billionaire who changes town with probability .1 a day ([A] eqs. 7 and 8)."""
    ages = np.arange(16)
    exact = 0.5 + (success(np.array(2.0)) - 0.5) * (1 - 2 * MOVE) ** ages
    tight = success(risk(CHAIN, 2.0, ages, method="tight"))
    classic = success(risk(CHAIN, 2.0, ages, method="total_variation"))
    return PaperFigure(
        "motivating_example",
        "Motivating example, eqs. 7 and 8",
        "An attack on an old output is soon no better than a guess",
        f"After 3, 6 and 10 days the attack is right in {exact[3]:.1%}, {exact[6]:.1%} and {exact[10]:.1%} of all"
        f" cases; the tight loss gives these very numbers, Theorem 1 only {classic[3]:.1%}, {classic[6]:.1%} and"
        f" {classic[10]:.1%}.",
        PUBLISHED,
        (
            Panel(
                "Success of the attack, loss 2",
                "age of the output [days]",
                "probability of a right guess [-]",
                (
                    curve("Theorem 1", ages, classic, "paper", shade=2),
                    curve("tight loss, and exact (eq. 8)", ages, tight),
                    curve("printed in the paper", [3, 6, 10], [0.65, 0.58, 0.53], "paper", kind="points"),
                ),
                levels=((float(success(np.array(2.0))), "classical bound"), (0.5, "guess")),
                levels_named="below",
                bottom=0.45,
            ),
            Panel(
                "The same as a loss",
                "age of the output [days]",
                RISK,
                (
                    curve("Theorem 1", ages, risk(CHAIN, 2.0, ages, method="total_variation"), "paper"),
                    curve("tight", ages, risk(CHAIN, 2.0, ages, method="tight")),
                    curve("ε = .3, equal to six days in the paper", [6], [0.3], "paper", kind="points", shade=1),
                ),
                bottom=0,
            ),
        ),
        "by eq. 8 the printed 65, 58 and 53 % belong to 4, 7 and 11 days, and six days of age to .405, not .3"
        " ([errata]).",
    )


def figure_2() -> PaperFigure:
    """Return loss and age of information of three publications at irregular times."""
    published, ages, at = [4, 7, 13], [1, 3, 2], np.arange(21)
    tight = compose(CHAIN, published, ages, [1.0] * 3, at, method="tight")
    classic = compose(CHAIN, published, ages, [1.0] * 3, at, method="total_variation")
    old = age_of_information(published, ages, 20)
    return PaperFigure(
        "figure_2",
        "Figure 2",
        "Every publication makes the loss spike and the information fresh",
        f"Three outputs of loss 1: the loss about the present jumps to {tight[4]:.2f}, {tight[7]:.2f} and"
        f" {tight[13]:.2f} (total variation alone: {classic[4]:.2f}, {classic[7]:.2f} and {classic[13]:.2f}).",
        f"{OURS} (its drawing has no numbers)",
        (
            Panel(
                "(a) Privacy risk",
                "time [steps]",
                RISK,
                (curve("total variation", at, classic, "paper"), curve("tight", at, tight)),
                bottom=0,
            ),
            Panel(
                "(b) Age of information",
                "time [steps]",
                "age of information [steps]",
                (curve("eq. 24", at, old, kind="steps"),),
                bottom=0,
            ),
        ),
    )


def figure_3() -> PaperFigure:
    """Return how a periodic schedule reaches its peak ([A] eq. 30)."""
    published, at = INTERVAL * np.arange(1, 41), np.arange(4 * 41)
    history = [AGE] * published.size, [LOSS] * published.size
    course = {method: compose(CHAIN, published, *history, at, method=method) for method in ("tight", "total_variation")}
    top = {method: float(peak(CHAIN, LOSS, age=AGE, interval=INTERVAL, method=method)) for method in course}
    at, shown = at[:44], {method: values[:44] for method, values in course.items()}
    return PaperFigure(
        "figure_3",
        "Figure 3, eq. 30",
        "Repeated outputs reach a peak, and the tight one is much lower",
        f"Age 2, interval 4, loss .5: eq. 30 gives a peak of {top['total_variation']:.4f}, the tight recursion"
        f" {top['tight']:.4f}.",
        "the paper's A, S and loss; Δ(t) = .8^t is ours, for the paper prints none; no data",
        (
            Panel(
                "A = 2, S = 4, loss .5",
                "time [steps]",
                RISK,
                (curve("total variation", at, shown["total_variation"], "paper"), curve("tight", at, shown["tight"])),
                levels=((top["total_variation"], "peak, eq. 30"), (top["tight"], "peak, tight")),
                bottom=0,
            ),
        ),
    )


def figure_4() -> PaperFigure:
    """Return error and loss of one aged mean, and the trade between them."""
    error = [[mean_square_error(t, loss, agents=AGENTS, move=MOVE) for t in AGES] for loss in LOSSES]
    classic = [risk(CHAIN, loss, AGES, method="total_variation") for loss in LOSSES]
    tight = [risk(CHAIN, loss, AGES, method="tight") for loss in LOSSES]
    drift = [curve(f"loss {e:g}", AGES, y, shade=i) for i, (e, y) in enumerate(zip(LOSSES, error, strict=True))]
    printed = [2 * (1 - (1 - 2 * MOVE) ** np.arange(31.0)) / AGENTS + 2 / (e * AGENTS) ** 2 for e in LOSSES]
    drift = [curve(f"as printed, {e:g}", AGES, printed[i], "paper", shade=i) for i, e in enumerate(LOSSES)] + drift
    losses: list[Curve] = []
    for i, e in enumerate(LOSSES):
        losses += [curve(f"Theorem 1, loss {e:g}", AGES, classic[i], "paper", shade=i)]
        losses += [curve(f"tight, loss {e:g}", AGES, tight[i], shade=i)]
    even = (8 / AGENTS) ** 0.5
    return PaperFigure(
        "figure_4",
        "Figure 4",
        f"Ageing bounds the error where noise alone does not; publishing 0 beats both at losses below {even:.2f}",
        f"With noise alone the error is 8/(ε²I²), {8 / (0.1 * AGENTS) ** 2:.1f} at a loss of .1; an aged mean of loss 2"
        f" never exceeds {error[2][-1]:.3f}. But always publishing 0 has an error of {1 / AGENTS:g}, less than"
        f" both up to a loss of {even:.3f} about the present.",
        f"{PUBLISHED} (p = q = .1, I = 20)",
        (
            Panel(
                "(a) Error",
                STEPS,
                ERROR,
                tuple(drift),
                levels=((0.1, "limit without noise, 2/I"),),
                levels_named="below",
                bottom=0,
            ),
            Panel("(b) Privacy risk", STEPS, RISK, tuple(losses), bottom=0),
            _trade(),
        ),
        "eq. 48 has the sensitivity of states 0 and 1; for -1 and 1 the scale is 2/(εI) and the benchmark 8/(ε²I²),"
        " drawn here. The paper's benchmark 2/(ε²I²) keeps 2ε ([errata]).",
    )


def _trade() -> Panel:
    """Return the least error over all ages for each loss about the present."""
    targets = np.geomspace(0.05, 2.0, 40)
    best = {
        (by, error): [
            min(error(t, unaged(target, t, tight=by), agents=AGENTS, move=MOVE) for t in AGES)
            for target in targets.tolist()
        ]
        for by in (False, True)
        for error in (mean_square_error, shrunk_error)
    }
    return Panel(
        "(c) Trade-off",
        RISK,
        ERROR,
        (
            curve("noise alone, as printed: 2/(ε²I²)", targets, 2 / (targets * AGENTS) ** 2, "paper", shade=1),
            curve("noise alone: 8/(ε²I²)", targets, 8 / (targets * AGENTS) ** 2, "reference"),
            curve("aged, Theorem 1", targets, best[False, mean_square_error], "paper"),
            curve("aged, tight", targets, best[True, mean_square_error]),
            curve("aged and shrunk, tight", targets, best[True, shrunk_error], shade=1),
        ),
        levels=((1 / AGENTS, "always 0: 1/I"),),
        log="xy",
    )


def unaged(target: float, age: int, *, tight: bool) -> float:
    """Return the loss of a mechanism whose output ages to `target`, infinite if any does.

    By total variation ln(1 + (e^eps - 1)/r), r = (1 - 2p)^t; tight, of two even states, the solution of
    e^eps = (1 + u q)/(1 + u d) with q, d = (1 + r)/2, (1 - r)/2, for u = e^loss - 1.
    """
    distance, gain = (1 - 2 * MOVE) ** age, float(np.expm1(target))
    if not tight:
        return float(np.log1p(gain / distance))
    room = (1 + distance) / 2 - (1 + gain) * (1 - distance) / 2
    return float(np.log1p(gain / room)) if room > 0 else float("inf")

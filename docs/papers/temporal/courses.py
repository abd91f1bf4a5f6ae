"""Figures 3, 4 and 5: leakage release by release, as a function of the loss before, and in the limit."""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.temporal_leakage import backward, forward, pairwise, temporal, temporal_supremum
from agedp_data.accounting.temporal_recursion import temporal_kernels
from agedp_data.leakage.function import KernelLeakage, leakage
from docs.papers.results import PUBLISHED, Curve, Panel, PaperFigure, curve

DRIFT = ((0.8, 0.2), (0.0, 1.0))
EXAMPLE_4 = ((0.1, 0.2, 0.7), (0.3, 0.3, 0.4), (0.5, 0.3, 0.2))
TRAP = ((0.12, 0.5, 0.38), (0.65, 0.35, 0.0), (0.3, 0.43, 0.27))
"""A kernel whose pair of rows that is the worst for one release is not the worst in the long run (reference value)."""

TURNING = ((0.6, 0.4, 0.0), (0.0, 0.5, 0.5), (0.7, 0.0, 0.3))
"""A forward chain of which no pair of states is the worst both ways."""

LEAKAGE = "leakage [-]"
_CASES = (
    ("(a) q = 1, d = 0", ((1.0, 0.0), (0.0, 1.0)), 0.1),
    ("(b) q = .8, d = 0, loss .3", DRIFT, 0.3),
    ("(c) q = .8, d = 0, loss .1", DRIFT, 0.1),
    ("(d) q = .8, d = .1, loss .1", ((0.8, 0.2), (0.1, 0.9)), 0.1),
)


def figure_3() -> PaperFigure:
    """Return leakage of ten releases of loss .1 under the strongest, a moderate and no correlation."""
    at, losses = np.arange(1, 11), [0.1] * 10
    correlations = (("strongest", np.eye(2), "reference"), ("moderate", DRIFT, "ours"), ("none", None, "reference"))
    panels = []
    for i, (title, of) in enumerate((("(a) Backward", backward), ("(b) Forward", forward))):
        lines = [
            curve(name, at, of(kernel, losses), look, shade=shade)  # type: ignore[arg-type]
            for shade, (name, kernel, look) in enumerate(correlations)
        ]
        panels.append(Panel(title, "release [-]", f"{('BPL', 'FPL')[i]}, {LEAKAGE}", tuple(lines), bottom=0))
    total = temporal(DRIFT, DRIFT, losses)
    lines = [
        curve("strongest", at, temporal(np.eye(2), np.eye(2), losses), "reference"),
        curve("moderate", at, total, shade=1),
        curve("none", at, losses, "reference", shade=2),
    ]
    panels.append(Panel("(c) All releases", "release [-]", f"TPL, {LEAKAGE}", tuple(lines), bottom=0, top=1.3))
    (backward_kernel,), (forward_kernel,) = temporal_kernels(TURNING)
    turning_losses = [0.5] * 10
    added = temporal(backward_kernel, forward_kernel, turning_losses)
    sharper = pairwise(backward_kernel, forward_kernel, turning_losses)
    lines = [
        curve("eq. 10: each side's worst pair", at, added, "paper"),
        curve("both sides about one pair", at, sharper),
    ]
    title = "A chain of three states, loss .5"
    panels.append(Panel(title, "release [-]", f"TPL, {LEAKAGE}", tuple(lines), bottom=0, top=3.5))
    return PaperFigure(
        "figure_3",
        "Figure 3",
        "The total leakage of a release grows with time in both directions",
        "Ten releases of loss .1 under moderate correlation: backward leakage ends at"
        f" {backward(DRIFT, losses)[-1]:.7f}, the total leakage is at most {total.max():.7f}."
        f" About the same two values the chain of three states leaks {sharper.max():.3f}, by eq. 10 {added.max():.3f}.",
        "(a) to (c), the paper's published parameters; the chain of three states is ours; no data",
        tuple(panels),
        "eqs. 5, 10 and 11 are bounds and no equalities; the moderate chain leaves its first place for good, so no"
        " backward kernel belongs to it: the same matrix serves both ways, as in the paper ([errata]).",
    )


def figure_4() -> PaperFigure:
    """Return L of Example 4 and of each pair of its rows."""
    kernel, losses = np.array(EXAMPLE_4), np.linspace(0.0, 6.0, 121)
    function = KernelLeakage(kernel)
    lines = [
        curve(f"rows {x + 1} and {y + 1}", losses, leakage(kernel[[x, y]], losses), "reference", shade=i)
        for i, (x, y) in enumerate(((0, 1), (0, 2), (1, 2)))
    ]
    full_curve = curve("L, the largest of all", losses, function(losses))
    turns = function.breakpoints[(function.breakpoints > 1e-9) & np.isfinite(function.breakpoints)]
    lines.append(curve("one piece takes over from another", turns, function(turns), "paper", kind="points"))
    values = function(np.array([0.1, 0.5, 1.0, 2.0, 5.0]))
    return PaperFigure(
        "figure_4",
        "Figure 4, Example 4",
        "What passes through a kernel is the largest of a few smooth pieces",
        f"L is {', '.join(f'{value:.4f}' for value in values)} at .1, .5, 1, 2 and 5. One sort for each pair of rows"
        " finds the pieces that are ever the largest.",
        PUBLISHED,
        (
            Panel("Example 4", "loss before, α [-]", "L(α) [-]", (*lines, full_curve), bottom=0),
            Panel(
                "Neither convex nor concave",
                "loss before, α [-]",
                "L(α)/α [-]",
                (curve("L(α)/α", losses[1:], function(losses[1:]) / losses[1:]),),
                bottom=0,
            ),
        ),
        "Algorithm 4 started at α = 0, where all pieces tie, keeps one that is never the largest ([errata]).",
    )


def figure_5() -> PaperFigure:
    """Return BPL over many releases beside its supremum, and where Theorem 11 as printed misses it."""
    at = np.arange(1, 101)
    lines: list[Curve] = [
        curve(f"{name}: {_limit_told(kernel, loss)}", at, backward(kernel, [loss] * at.size), shade=i)
        for i, (name, kernel, loss) in enumerate(_CASES)
    ]
    grown, printed = backward(TRAP, [1.0] * at.size), frozen(TRAP, 1.0)
    return PaperFigure(
        "figure_5",
        "Figure 5, Theorem 11",
        "Whether leakage has a limit is decided by all pairs and sets, not by the worst of today",
        f"Releases without end come to "
        f"{temporal_supremum(DRIFT, None, 0.1):.10f} for q = .8, d = 0 and loss .1, and grow for ever"
        f" at loss .3. For the kernel on the right Theorem 11 gives {printed:.4f}; a hundred"
        f" releases have come to {grown[-1]:.2f}, and there is no limit.",
        "left, the paper's published parameters; right, a kernel of ours; no data",
        (
            Panel("Backward leakage and its supremum", "release [-]", f"BPL, {LEAKAGE}", tuple(lines), log="y"),
            Panel(
                "A supremum missed",
                "release [-]",
                f"BPL, {LEAKAGE}",
                (
                    curve("BPL, no limit", at, grown),
                    curve("Theorem 11, worst pair frozen", at, [printed] * at.size, "paper"),
                ),
                bottom=0,
            ),
        ),
        "Theorem 11 must search all pairs of rows and all sets of columns; its second case needs a strict inequality"
        " ([errata]).",
    )


def _limit_told(kernel: tuple[tuple[float, ...], ...], loss: float) -> str:
    top = float(temporal_supremum(kernel, None, loss))
    return f"at most {top:.4f}" if np.isfinite(top) else "no limit"


def frozen(kernel: tuple[tuple[float, ...], ...], loss: float) -> float:
    """Return [T] Theorem 11, first case, with the pair and set that are the worst at `loss`, as printed."""
    function = KernelLeakage(kernel)
    index = int(np.searchsorted(function.breakpoints, loss))
    return theorem_11(float(function.over[index]), float(function.under[index]), loss)


def theorem_11(q: float, d: float, loss: float) -> float:
    """Return the supremum of [T] Theorem 11 as printed, its first two cases."""
    if d == 0:
        return float(np.log((1 - q) * np.exp(loss) / (1 - q * np.exp(loss))))
    b = d + q * np.exp(loss) - 1
    return float(np.log((b + np.sqrt(b * b + 4 * d * (1 - q) * np.exp(loss))) / (2 * d)))

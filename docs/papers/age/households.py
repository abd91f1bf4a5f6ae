"""Figure 7: what an aged mean of half-hourly readings costs and protects, by the paper, by the chain and as counted.

Each household is a chain of 12 equal intervals of [0, its largest reading], as in the paper. The kernels counted
directly are empirical transition matrices at the lag (states with fewer than 200 visits are merged into their
neighbours): indicative, no bound. The comparison shows whether households mix as their chains do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agedp_data.leakage.function import leakage, leakage_from_total_variation
from agedp_data.markov.lagged_counts import lag_kernel
from agedp_data.markov.mixing import spectral_gap, total_variation
from agedp_data.markov.states import edges_equal_width, merge_rare, states
from agedp_data.markov.transitions import ascending_powers, count_transitions, reverse, stationary, transition_matrix
from docs.papers.households import MIN_DAYS, MIN_HOUSEHOLDS, PaperHouseholds, PaperReadings
from docs.papers.results import Curve, Floats, Panel, PaperFigure, Verdict, curve

STATES, MIN_VISITS = 12, 200
CLAMP_WH = 2_000
"""Public bound of a half-hour's reading; the paper has none, so its noise has no scale that protects anybody."""

SHOWN = (0.5, 1.0, 2.0)
LOSSES = np.concatenate([np.geomspace(0.05, 8.0, 36), SHOWN])
HOURS = np.concatenate([np.arange(49), [72, 96, 120, 144, 168]])
_SHOWN_TO, _WEEK = 49, 336
_LITTLE = 0.05
_LEVEL = 0.2
_ASKED = ("level", "from 18 hours", "mixing", "finite", "eq. 55")
_RISK = "loss about the present, ε [-]"


@dataclass(frozen=True, slots=True, eq=False)
class HouseholdRisk:
    """Aged loss by initial loss and age: tables (losses, ages), maximum over households unless noted.

    Attributes:
        printed: by [A] eq. 55 as printed, whether or not a chain is reversible.
        theorem: by Theorem 1 with the exact total variation of the reversed chains.
        tight: through the powers of the reversed chains.
        counted: through the kernels counted directly.
        median: the median household of those.
        floor: the median household against a shifted copy of itself, which has no memory.
        distance: (ages,) exact total variation of the chains.
        helps_from: the first age at which eq. 55 is below 1 [h], None if that is more than a week.
        bound_met: households whose own eq. 55 is at least their own distance at every half-hour of a week.
        households: their number.
    """

    printed: Floats
    theorem: Floats
    tight: Floats
    counted: Floats
    median: Floats
    floor: Floats
    distance: Floats
    helps_from: float | None
    bound_met: int
    households: int


def own_states(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each household's states, 12 equal intervals of [0, its largest reading]; -1 where a reading is missing."""
    return np.stack([states(household, edges_equal_width(float(household.max()), STATES)) for household in steps])


def household_risk(households: PaperHouseholds) -> HouseholdRisk:
    """Return the aged loss of every initial loss at every age, by each method."""
    series, lags = own_states(households.steps), 2 * HOURS
    follows = np.ones(series.shape[1] - 1, dtype=np.bool_)
    chains = np.stack(
        [transition_matrix(count_transitions(household, follows, STATES), smoothing=0) for household in series]
    )
    distance = total_variation(chains, lags).max(axis=0)
    week = np.arange(1, _WEEK + 1)
    bounds = bound_by_household(chains, week)
    spectral, below = bound_by_household(chains, lags).max(axis=0), np.flatnonzero(bounds.max(axis=0) < 1)
    is_bound_met = (total_variation(chains, week) <= bounds * (1 + 1e-9) + 1e-12).all(axis=1)
    backward = reverse(chains)
    tight = np.stack([_each(kernel).max(axis=0) for _, kernel in ascending_powers(backward, lags)], axis=-1)
    merged = merge_rare(series, n_states=STATES, min_visits=MIN_VISITS)
    state_counts = {"n_secret": STATES, "n_read": STATES}
    counted = np.stack([_each(lag_kernel(merged, merged, int(lag), **state_counts)) for lag in lags], axis=-1)
    moved = np.roll(merged, merged.shape[1] // 2, axis=1)
    floor = np.nanmedian(_each(lag_kernel(merged, moved, 0, **state_counts)), axis=0)
    return HouseholdRisk(
        leakage_from_total_variation(spectral, LOSSES[:, None]),
        leakage_from_total_variation(distance, LOSSES[:, None]),
        tight,
        np.nanmax(counted, axis=0),
        np.nanmedian(counted, axis=0),
        np.repeat(floor[:, None], HOURS.size, axis=1),
        distance,
        int(week[below[0]]) / 2 if below.size else None,
        int(is_bound_met.sum()),
        len(series),
    )


def bound_by_household(chains: Floats, steps: NDArray[np.int64]) -> Floats:
    """Return [A] eq. 55 as printed by household: min(1, max over states of sqrt((1 - pi)/pi) lambda_*^t), (n, T)."""
    law = stationary(chains)
    least = np.where(law > 0, law, 1.0).min(axis=-1)
    bounds = np.sqrt((1 - least) / least)[:, None] * (1 - spectral_gap(chains))[:, None] ** steps
    return np.asarray(np.minimum(1.0, bounds))


def error(households: PaperHouseholds, clamp_wh: int = CLAMP_WH) -> tuple[Floats, int]:
    """Return the mean square difference of the clipped mean to itself `HOURS` later, and its number of households.

    Instants count if nine households of ten have a reading; the mean is over those households. Units: [kWh^2].
    """
    is_measured = households.steps >= 0
    enough = is_measured.sum(axis=0) >= 0.9 * is_measured.sum(axis=0).max()
    number = np.where(enough, is_measured.sum(axis=0), 1)
    clipped = np.where(is_measured, np.minimum(households.steps, clamp_wh), 0)
    mean = np.where(enough, clipped.sum(axis=0) / number / 1000, np.nan)
    drift = [np.nanmean((mean[lag:] - mean[: mean.size - lag]) ** 2) for lag in (2 * HOURS).tolist()]
    return np.array(drift), int(number[enough].min())


def figure_7(data: PaperReadings) -> PaperFigure:
    """Return error, loss and the trade between them for half-hourly means of households."""
    households = data.london_households
    risk, (drift, number) = household_risk(households), error(households)
    noise = _noise(LOSSES, number)
    two, hour = int(np.flatnonzero(LOSSES == 2.0)[-1]), {h: HOURS.tolist().index(h) for h in (12, 18, 24)}
    begins = f"from {risk.helps_from:g} hours on" if risk.helps_from else "at no age up to a week"
    judged = households.judge
    returns = drift[hour[24]] < (1 - _LEVEL) * drift[hour[12]]
    gaps = ["eq. 55 is proved for reversible chains only and is drawn as printed", "The paper gives no clamp, so its"
            " error has no scale"]  # fmt: skip
    if judged and lasting(risk):
        gaps.append("By lagged counts the households mix more slowly than their chains (MATHS 2b)")
    if judged and returns:
        gaps.append("The error does not stay level after its first rise: it falls again towards 24 hours")
    return PaperFigure(
        "figure_7",
        "Figure 7",
        title(risk) if judged else "Memory of chains and of households; these households do not decide it",
        f"A loss of 2 that is 18 hours old is {risk.tight[two, hour[18]]:.2f} by the chains,"
        f" {risk.printed[two, hour[18]]:.2f} by eq. 55 (which helps {begins}), and {risk.counted[two, hour[18]]:.2f}"
        f" counted directly; after 24 hours {risk.tight[two, hour[24]]:.3f}, {risk.printed[two, hour[24]]:.2f} and"
        f" {risk.counted[two, hour[24]]:.2f}. The error is {drift[hour[12]]:.4f} kWh² from drift at 12 hours and"
        f" {drift[hour[24]]:.4f} at 24{', for the same hour of the next day is alike' if returns else ''}."
        + ("" if judged else f" A verdict takes {MIN_HOUSEHOLDS} measured households and {MIN_DAYS} days."),
        f"{households.name}; half-hours clipped to {CLAMP_WH / 1000:g} kWh",
        (
            _error_panel(households, drift, noise),
            _risk_panel(risk, two),
            _trade_panel(risk, drift, number),
        ),
        f"{'. '.join(gaps)}.",
        parts={"eq. 55 held": f"for {risk.bound_met} of {risk.households} households at each of {_WEEK} lags"},
        verdicts=_verdicts(risk, drift) if judged else dict.fromkeys(_ASKED, "not judged"),
    )


def lasting(risk: HouseholdRisk) -> bool:
    """Return whether the median household's memory after a day exceeds twice its noise floor and its chain's."""
    two, day = int(np.flatnonzero(LOSSES == 2.0)[-1]), HOURS.tolist().index(24)
    return bool(risk.median[two, day] > 2 * max(risk.tight[two, day], risk.floor[two, day]))


def title(risk: HouseholdRisk) -> str:
    """Return the memory of these households, and of their chains, after a day."""
    remaining_share = risk.tight[int(np.flatnonzero(LOSSES == 2.0)[-1]), HOURS.tolist().index(24)] / 2.0
    chains_mix, households_mix = remaining_share < _LITTLE, not lasting(risk)
    households = "whatever the households do"
    if chains_mix:
        households = "as the households do" if households_mix else "the households do not"
    return f"The chains {'mix within' if chains_mix else 'have a memory of more than'} a day, {households}"


def _verdicts(risk: HouseholdRisk, drift: Floats) -> dict[str, Verdict]:
    """Return the verdicts on claims about households, from data that may judge."""
    two, at = int(np.flatnonzero(LOSSES == 2.0)[-1]), HOURS.tolist().index
    later = drift[at(12) : at(48) + 1]
    level = bool(later.max() - later.min() <= _LEVEL * later.max())
    falls = bool(risk.printed[two, at(18)] >= 2.0 > risk.printed[two, at(19)])
    return {
        "level": "reproduced" if level else "refuted",
        "from 18 hours": "reproduced" if falls else "refuted",
        "mixing": "refuted" if lasting(risk) else "reproduced",
        "finite": "reproduced" if risk.printed.min() < LOSSES.min() else "refuted",
        "eq. 55": "sharpened" if risk.bound_met == risk.households else "refuted",
    }


def _error_panel(households: PaperHouseholds, drift: Floats, noise: Floats) -> Panel:
    # The paper clips nothing: then noise has to hide the largest reading there is.
    largest = int(households.steps.max())
    raw, number = error(households, largest)
    unclipped = [
        curve(f"as the paper, unclipped, {loss:g}", HOURS[:_SHOWN_TO],
              raw[:_SHOWN_TO] + 2 * (largest / 1000 / (number * loss)) ** 2, "paper", shade=i)
        for i, loss in enumerate(SHOWN)
    ]  # fmt: skip
    lines = [
        curve(f"loss {loss:g}", HOURS[:_SHOWN_TO], drift[:_SHOWN_TO] + noise[len(LOSSES) - len(SHOWN) + i], shade=i)
        for i, loss in enumerate(SHOWN)
    ]
    exact = curve("no noise", HOURS[:_SHOWN_TO], drift[:_SHOWN_TO], "reference")
    return Panel(
        "(a) Error of the aged mean", "age [h]", "mean square error [kWh²]", (*unclipped, *lines, exact), log="y"
    )


def _risk_panel(risk: HouseholdRisk, position: int) -> Panel:
    curves: tuple[tuple[str, Floats, str, int], ...] = (
        ("eq. 55 as printed", risk.printed, "paper", 0),
        ("Theorem 1, exact chain", risk.theorem, "ours", 1),
        ("tight, exact chain", risk.tight, "ours", 0),
        ("counted directly, largest", risk.counted, "measured", 0),
        ("counted directly, median", risk.median, "measured", 1),
        ("noise floor of the median", risk.floor, "reference", 0),
    )
    lines: tuple[Curve, ...] = tuple(
        curve(name, HOURS[:_SHOWN_TO], table[position, :_SHOWN_TO], look, shade=shade)  # type: ignore[arg-type]
        for name, table, look, shade in curves
    )
    return Panel("(b) Risk of an output of loss 2", "age [h]", _RISK, lines, bottom=0, top=2.1)


def _trade_panel(risk: HouseholdRisk, drift: Floats, number: int) -> Panel:
    targets = np.sort(LOSSES[LOSSES <= 4])
    total = drift + _noise(LOSSES, number)[:, None]
    # An output stays public: what is counted at an age is the largest of all later ages.
    later = np.maximum.accumulate(risk.counted[:, ::-1], axis=1)[:, ::-1]
    lines = [
        curve("noise alone", targets, _noise(targets, number), "reference"),
        curve("aged, eq. 55", targets, _least(total, risk.printed, targets), "paper"),
        curve("aged, exact chain (tight)", targets, _least(total, risk.tight, targets)),
        curve("aged, counted directly", targets, _least(total, later, targets), "measured"),
    ]
    return Panel("(c) Trade-off", _RISK, "least mean square error [kWh²]", tuple(lines), log="xy")


def _noise(losses: Floats, households: int) -> Floats:
    """Return the variance of the Laplace noise of a mean of clipped half-hours [kWh^2]."""
    return np.asarray(2 * (CLAMP_WH / 1000 / (households * losses)) ** 2)


def _least(error_of: Floats, risk_of: Floats, targets: Floats) -> Floats:
    """Return the least error of the losses and ages whose risk is at most each target, infinite if there is none."""
    return np.array([np.where(risk_of <= target, error_of, np.inf).min() for target in targets])


def _each(kernels: Floats) -> Floats:
    """Return the aged losses of each household, NaN without a row: (households, k, k) -> (households, losses)."""
    has_data = ~np.isnan(kernels).all(axis=(1, 2))
    aged_losses = np.full((len(kernels), LOSSES.size), np.nan)
    aged_losses[has_data] = leakage(kernels[has_data][:, None], LOSSES[None, :])
    return aged_losses

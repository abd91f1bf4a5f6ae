"""Figure 7: what an aged mean of half-hourly readings costs and protects, by the paper, by the chain and as counted.

Each household is a chain of 12 equal intervals, as in the paper. The paper does not say of what: drawn are those of
[0, the household's largest reading]; with common ones of 0 to 1 kWh and chains fitted in detailed balance, eq. 55
begins to help where the paper says. The kernels counted directly are empirical transition matrices at the lag (states
with fewer than 200 visits are merged into their neighbours): indicative, no bound. The comparison shows whether
households mix as their chains do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agedp_data.leakage.function import leakage, leakage_from_total_variation
from agedp_data.markov.mixing import reversible_transition_matrix, spectral_gap, total_variation
from agedp_data.markov.states import edges_equal_width, merge_rare, states
from agedp_data.markov.transitions import (
    ascending_powers,
    count_transitions,
    lag_kernel,
    reverse,
    stationary,
    transition_matrix,
)
from docs.papers.households import (
    HALVES,
    MIN_DAYS,
    MIN_HOUSEHOLDS,
    PaperHouseholds,
    PaperReadings,
    random_halves,
)
from docs.papers.results import Curve, Floats, Panel, PaperFigure, Verdict, curve

STATES, MIN_VISITS, COMMON_WH = 12, 200, 1_000
CLAMP_WH = 2_000
"""Public bound of a half-hour's reading; the paper has none, so its noise has no scale that protects anybody."""

SHOWN = (0.5, 1.0, 2.0)
LOSSES = np.concatenate([np.geomspace(0.05, 8.0, 36), SHOWN])
HOURS = np.concatenate([np.arange(49), [72, 96, 120, 144, 168]])
_SHOWN_TO, _WEEK = 49, 336
_LITTLE, _TARGET = 0.05, 0.05
_LEVEL = 0.2
_PAPER_HOURS = 18.0
_ASKED = ("level", "from 18 hours", "mixing", "finite", "eq. 55")
_RISK = "loss about the present, ε [-]"


@dataclass(frozen=True, slots=True, eq=False)
class HouseholdRisk:
    """Aged loss by initial loss and age: tables (losses, ages), maximum over households unless noted.

    Attributes:
        printed: by [A] eq. 55 as printed, whether or not a chain is reversible.
        balanced: by [A] eq. 55 for the reversible fit over common intervals.
        theorem: by Theorem 1 with the exact total variation of the reversed chains.
        tight: through the powers of the reversed chains.
        counted: through the kernels counted directly.
        median: the median household of those.
        floor: the median household against a shifted copy of itself, which has no memory.
        distance: (ages,) exact total variation of the chains.
        helps_from: by reading of the paper (`_chains`), the first age at which each household's eq. 55 is below 1,
            (households,) [h]; infinite if that is more than a week.
        memory: the aged loss of 2 after a day of each household: by its chain, counted, and against a shifted copy.
        common_memory: the same for common intervals.
        of_household: of loss 2, "printed" (eq. 55 as a distance), "tight" and "counted", (households, ages).
        bound_met: whether each household's own eq. 55 is at least its own distance at every half-hour of a week.
    """

    printed: Floats
    balanced: Floats
    theorem: Floats
    tight: Floats
    counted: Floats
    median: Floats
    floor: Floats
    distance: Floats
    helps_from: Mapping[str, Floats]
    memory: Memory
    common_memory: Memory
    of_household: Mapping[str, Floats]
    bound_met: NDArray[np.bool_]


Memory = tuple[Floats, Floats, Floats]
OWN_RANGE, COMMON_RANGE = "intervals up to each household's largest reading", "common intervals of 0 to 1 kWh"
AS_COUNTED, IN_BALANCE = "the chain as counted", "the reversible fit"


def own_states(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each household's states, 12 equal intervals of [0, its largest reading]; -1 where a reading is missing."""
    return np.stack([states(household, edges_equal_width(float(household.max()), STATES)) for household in steps])


def household_risk(households: PaperHouseholds) -> HouseholdRisk:
    """Return the aged loss of every initial loss at every age, by each method."""
    series, lags = own_states(households.steps), 2 * HOURS
    common = states(households.steps, edges_equal_width(COMMON_WH, STATES))
    counts, common_counts = _counts(series), _counts(common)
    chains = transition_matrix(counts, smoothing=0)
    readings = {
        f"{OWN_RANGE}, {AS_COUNTED}": chains,
        f"{OWN_RANGE}, {IN_BALANCE}": reversible_transition_matrix(counts),
        f"{COMMON_RANGE}, {AS_COUNTED}": transition_matrix(common_counts, smoothing=0),
        f"{COMMON_RANGE}, {IN_BALANCE}": reversible_transition_matrix(common_counts),
    }
    distance, spectral = total_variation(chains, lags).max(axis=0), bound_by_household(chains, lags)
    balanced = bound_by_household(readings[f"{COMMON_RANGE}, {IN_BALANCE}"], lags)
    week = np.arange(1, _WEEK + 1)
    bounds = {name: bound_by_household(of_reading, week) for name, of_reading in readings.items()}
    printed = bounds[f"{OWN_RANGE}, {AS_COUNTED}"]
    tight = np.stack([_each(kernel) for _, kernel in ascending_powers(reverse(chains), lags)], axis=-1)
    merged = merge_rare(series, n_states=STATES, min_visits=MIN_VISITS)
    counted = np.stack([_each(_lagged(merged, merged, int(lag))) for lag in lags], axis=-1)
    floor = _each(_lagged(merged, np.roll(merged, merged.shape[1] // 2, axis=1), 0))
    two, day = _two(), HOURS.tolist().index(24)
    return HouseholdRisk(
        leakage_from_total_variation(spectral.max(axis=0), LOSSES[:, None]),
        leakage_from_total_variation(balanced.max(axis=0), LOSSES[:, None]),
        leakage_from_total_variation(distance, LOSSES[:, None]),
        tight.max(axis=0),
        np.nanmax(counted, axis=0),
        np.nanmedian(counted, axis=0),
        np.repeat(np.nanmedian(floor, axis=0)[:, None], HOURS.size, axis=1),
        distance,
        {name: _first_below(bound) / 2 for name, bound in bounds.items()},
        (tight[:, two, day], counted[:, two, day], floor[:, two]),
        _memory(common, readings[f"{COMMON_RANGE}, {AS_COUNTED}"]),
        {"printed": spectral, "tight": tight[:, two], "counted": counted[:, two]},
        np.asarray((total_variation(chains, week) <= printed * (1 + 1e-9) + 1e-12).all(axis=1)),
    )


def _counts(series: NDArray[np.int64]) -> NDArray[np.int64]:
    follows = np.ones(series.shape[1] - 1, dtype=np.bool_)
    return np.stack([count_transitions(household, follows, STATES) for household in series])


def _lagged(secret: NDArray[np.int64], read: NDArray[np.int64], lag: int) -> Floats:
    return lag_kernel(secret, read, lag, n_secret=STATES, n_read=STATES)


def _memory(series: NDArray[np.int64], chains: Floats) -> Memory:
    """Return the aged loss of 2 after a day of each household: by its chain, counted, and against a shifted copy."""
    merged = merge_rare(series, n_states=STATES, min_visits=MIN_VISITS)
    (_, kernel), two = next(iter(ascending_powers(reverse(chains), np.array([48])))), _two()
    moved = np.roll(merged, merged.shape[1] // 2, axis=1)
    kernels = kernel, _lagged(merged, merged, 48), _lagged(merged, moved, 0)
    tight, counted, floor = (_each(of)[:, two] for of in kernels)
    return tight, counted, floor


def _two() -> int:
    return int(np.flatnonzero(LOSSES == 2.0)[-1])


def _first_below(bounds: Floats) -> Floats:
    """Return the first step at which each household's bound is below 1, infinite if none is: (n, steps) -> (n,)."""
    is_below = bounds < 1
    return np.asarray(np.where(is_below.any(axis=1), is_below.argmax(axis=1) + 1.0, np.inf))


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
    judged = households.judge
    half = of_halves(households, risk) if judged else None
    noise = _noise(LOSSES, number)
    two, hour = _two(), {h: HOURS.tolist().index(h) for h in (12, 18, 24)}
    returns = drift[hour[24]] < (1 - _LEVEL) * drift[hour[12]]
    those = households.these
    gaps = ["eq. 55 is proved for reversible chains only and is drawn as printed", "The paper gives no clamp, so its"
            " error has no scale"]  # fmt: skip
    if judged and lasting(risk.memory):
        gaps.append(f"By lagged counts {those} mix more slowly than their chains ([goodness of fit])")
    if judged and returns:
        gaps.append(f"The error of {those} does not stay level after its first rise: it falls again towards 24 hours")
    return PaperFigure(
        "figure_7",
        "Figure 7",
        title(risk, those) if judged else "Memory of chains and of households; these households do not decide it",
        f"Of {those} a loss of 2 that is 18 hours old is {risk.tight[two, hour[18]]:.2f} by the chains,"
        f" {risk.printed[two, hour[18]]:.2f} by eq. 55, and {risk.counted[two, hour[18]]:.2f} counted directly, with"
        f" {OWN_RANGE}; the error from drift is {drift[hour[12]]:.4f} kWh² at 12 hours and {drift[hour[24]]:.4f} at 24."
        + (
            " The table below has the spread over random halves."
            if judged
            else f" A verdict takes {MIN_HOUSEHOLDS} measured households and {MIN_DAYS} days."
        ),
        f"{households.name}; half-hours clipped to {CLAMP_WH / 1000:g} kWh",
        (
            _error_panel(households, drift, noise),
            _risk_panel(risk, two),
            _trade_panel(risk, drift, number),
        ),
        f"{'. '.join(gaps)}.",
        parts={**_numbers(risk, drift, number, those, half), "reading": _paper_reading(risk)},
        verdicts=_verdicts(households, risk, drift) if judged else dict.fromkeys(_ASKED, "not judged"),
    )


def _paper_reading(risk: HouseholdRisk) -> str:
    """Return under which readings of the paper eq. 55 helps from its 18 hours on; "" if under none."""
    return "; ".join(name for name, first in risk.helps_from.items() if first.max() == _PAPER_HOURS)


def lasting(memory: Memory) -> bool:
    """Return whether the median household's memory after a day exceeds twice its noise floor and its chain's."""
    tight, counted, floor = memory
    return bool(np.nanmedian(counted) > 2 * max(tight.max(), np.nanmedian(floor)))


def title(risk: HouseholdRisk, those: str) -> str:
    """Return the memory of these households, and of their chains, after a day."""
    remaining_share = risk.memory[0].max() / 2.0
    chains_mix, households_mix = remaining_share < _LITTLE, not lasting(risk.memory)
    households = "whatever the households do"
    if chains_mix:
        households = "as the households do" if households_mix else "the households do not"
    memory = "mix within" if chains_mix else "have a memory of more than"
    return f"The chains of {those} {memory} a day, {households}"


@dataclass(frozen=True, slots=True, eq=False)
class HalfResults:
    """The same numbers for random halves of the households: a row for each half.

    Attributes:
        chosen: the households of a half, (halves, households / 2).
        drift: error without noise, (halves, ages) [kWh^2].
        number: households in a mean, (halves,).
    """

    chosen: NDArray[np.int64]
    drift: Floats
    number: NDArray[np.int64]

    def largest(self, of_household: Floats) -> Floats:
        """Return the largest value of each half."""
        return np.asarray(np.nanmax(of_household[self.chosen], axis=1))

    def largest_of_rest(self, of_household: Floats) -> Floats:
        """Return the largest value of the households that each half leaves out."""
        is_rest = np.ones((len(self.chosen), len(of_household)), dtype=np.bool_)
        np.put_along_axis(is_rest, self.chosen, values=False, axis=1)
        return np.asarray(np.nanmax(np.where(is_rest, of_household, np.nan), axis=1))


def of_halves(households: PaperHouseholds, risk: HouseholdRisk) -> HalfResults:
    """Return the results of random halves of the households."""
    chosen = random_halves(len(risk.bound_met))
    errors = [error(replace(households, energy_wh=households.energy_wh[rows])) for rows in chosen]
    return HalfResults(chosen, np.stack([drift for drift, _ in errors]), np.array([number for _, number in errors]))


def _numbers(risk: HouseholdRisk, drift: Floats, number: int, those: str, half: HalfResults | None) -> dict[str, str]:
    """Return the numbers of the claims about households, in brackets their spread over random halves of these."""
    twelve, eighteen, day = (HOURS.tolist().index(hour) for hour in (12, 18, 24))

    def spread(values: Callable[[HalfResults], Floats], form: str) -> str:
        return "" if half is None else f" ({values(half).min():{form}} to {values(half).max():{form}})"

    def largest(values: Floats, form: str) -> str:
        return f"{np.nanmax(values):{form}}{spread(lambda of: of.largest(values), form)}"

    over, lasts, apart = "", "", ""
    if half is not None:
        over, tight = f"; in brackets over {HALVES} random halves", risk.of_household["tight"][:, eighteen]
        of_chains, counted, floor = risk.memory
        same = sum(lasting((of_chains[rows], counted[rows], floor[rows])) for rows in half.chosen)
        ratio = np.exp(np.abs(np.log(half.largest(tight) / half.largest_of_rest(tight))).max())
        apart = f", up to {ratio:.0f} times that of the other half"
        lasts = f", of which {same} have a lasting memory"
    of_chain, of_counts = risk.of_household["tight"], risk.of_household["counted"]
    least = _least_at_target(risk, np.arange(len(risk.bound_met)), drift, number)
    starts = (f"from {largest(first, 'g')} h on with {name}" for name, first in [*risk.helps_from.items()][::-1])
    met = "each" if risk.bound_met.all() else f"{risk.bound_met.sum()}"
    return {
        "level": f"drift alone of {those}: {drift[twelve]:.4f} kWh² at 12 h, {drift[day]:.4f} at 24 h, a share of"
        f" {drift[day] / drift[twelve]:.2f}{spread(lambda of: of.drift[:, day] / of.drift[:, twelve], '.2f')}{over}",
        "from 18 hours": f"of {those} {'; '.join(starts)}{over}",
        "mixing": f"loss 2 of {those} at 18 h: tight {largest(of_chain[:, eighteen], '.3f')}{apart}, counted"
        f" {largest(of_counts[:, eighteen], '.2f')}; at 24 h: {largest(of_chain[:, day], '.3f')},"
        f" {largest(of_counts[:, day], '.2f')}{over}{lasts}",
        "finite": f"of {those}, at a risk of {_TARGET:g}: {least:.3g} kWh²"
        f"{spread(lambda of: _least_of_halves(risk, of), '.2g')} by eq. 55",
        "over": over,
        "eq. 55 held": f"for {met} of {those} at each of {_WEEK} lags"
        + (", and so over random halves" if risk.bound_met.all() else ""),
    }


def _least_at_target(risk: HouseholdRisk, rows: NDArray[np.int64], drift: Floats, number: int) -> float:
    """Return the least error of an aged mean of some households at a risk of `_TARGET` by eq. 55 [kWh^2]."""
    printed = leakage_from_total_variation(risk.of_household["printed"][rows].max(axis=0), LOSSES[:, None])
    return float(_least(drift + _noise(LOSSES, number)[:, None], printed, np.array([_TARGET]))[0])


def _least_of_halves(risk: HouseholdRisk, half: HalfResults) -> Floats:
    cases = zip(half.chosen, half.drift, half.number.tolist(), strict=True)
    return np.array([_least_at_target(risk, rows, drift, number) for rows, drift, number in cases])


def _verdicts(households: PaperHouseholds, risk: HouseholdRisk, drift: Floats) -> dict[str, Verdict]:
    """Return the verdicts on claims about households, over all values tried of what the paper leaves open.

    These are the clamp (and the noise, which drops out), the intervals and the fit.
    """
    unclipped, _ = error(households, int(households.steps.max()))
    return {
        "level": _verdict([_is_level(of) for of in (drift, unclipped)], "reproduced"),
        "from 18 hours": "reproduced" if _paper_reading(risk) else "refuted",
        "mixing": _verdict([not lasting(of) for of in (risk.memory, risk.common_memory)], "reproduced"),
        "finite": _verdict([bool(risk.printed.min() < LOSSES.min())], "reproduced"),
        "eq. 55": _verdict(risk.bound_met.tolist(), "sharpened"),
    }


def _verdict(holds: Sequence[bool], verdict: Verdict) -> Verdict:
    """Return a verdict on a claim that holds in every case, that it is refuted if it holds in none.

    >>> _verdict([True, True], "sharpened"), _verdict([False, False], "sharpened"), _verdict([True, False], "sharpened")
    ('sharpened', 'refuted', 'not judged')
    """
    return verdict if all(holds) else "not judged" if any(holds) else "refuted"


def _is_level(drift: Floats) -> bool:
    """Return whether an error hardly differs between 12 and 48 hours, beside its rise; equal noise drops out."""
    at = HOURS.tolist().index
    later = drift[at(12) : at(48) + 1]
    return bool(later.max() - later.min() <= _LEVEL * later.max())


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
        ("eq. 55, common intervals, reversible fit", risk.balanced, "paper", 1),
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

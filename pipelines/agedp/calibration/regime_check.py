"""Daily totals -> check of the model's memory: direct counts, a chain of visible states, and hidden regimes.

Everything is about the residual of a day (`agedp_data.markov.daily_residuals`): what an adversary who knows season,
weather, weekday and the published mean does not know. All of it is confidential and indicative.

The verdict on the model has three values, by fixed rules:

    rejected              the Markov property is rejected (`GoodnessOfFit`); or at some lag the direct counts exceed the
                          chain by more than 0.05 and by more than three standard errors, on average over households
    cannot be judged      a lag of 7, 14 or 28 days has fewer than 20 households, or a standard error above 0.025
    not rejected          else; one dataset can contradict a model, never verify it

A lag counts for a household if either half of the present (high, low) has 20 pairs. A household counts from 90 days on.
The rules depend on confidential counts only, so the verdict decides nothing that is published.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from agedp.calibration.quantize import Floats
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.internal_records.model_verdict import ModelVerdict
from agedp_data.datasets.validation import Ints
from agedp_data.markov.daily_residuals import SYMBOLS, daily_residuals, quartile_symbols
from agedp_data.markov.hidden_regimes import chain_pairs, fit_hidden_regimes, predicted_pairs
from agedp_data.markov.lagged_memory import counted_pairs, signed_memory

LAGS_DAYS: Final = (1, 2, 3, 7, 14, 28, 60)
YEAR_WARNING: Final = (
    "Less than two years cannot separate season from habit, so these counts are lower bounds: simulated households "
    "that remember 0.16 at 28 days show 0.11 in one year. More figures: docs/goodness-of-fit.md."
)

_DECISIVE_DAYS = (7, 14, 28)
_TOLERANCE, _STANDARD_ERRORS, _MAX_ERROR = 0.05, 3.0, 0.025
_MIN_HOUSEHOLDS, _MIN_DAYS, _MIN_PAIRS = 20, 90, 20
_TWO_YEARS = 730
_GROUP = 128
_WEEK = 7


@dataclass(frozen=True, slots=True)
class RegimeCheck:
    """Signed memory of the households' residual days, by lag. Confidential.

    Attributes:
        direct: counted, shape (h, L), NaN where it cannot be.
        chain: predicted by the chain of visible states, NaN where `direct` is.
        regimes: predicted by hidden regimes, NaN where `direct` is.
        days: number of days of the period.
    """

    direct: Floats
    chain: Floats
    regimes: Floats
    days: int

    @property
    def warning(self) -> str:
        """Return what a period below two years cannot show, "" for a longer one."""
        return YEAR_WARNING if self.days < _TWO_YEARS else ""

    def mean(self, name: Literal["direct", "chain", "regimes"]) -> Floats:
        """Return the mean of a figure over the households that have it, NaN without any: (L,)."""
        return np.array([column.mean() if len(column) else np.nan for column in _columns(getattr(self, name))])

    @property
    def households(self) -> Ints:
        """Return the number of households that have a figure at each lag."""
        return np.array([len(column) for column in _columns(self.direct)])

    @property
    def excess(self) -> tuple[Floats, Floats]:
        """Return the mean of the direct counts less the chain, and its standard error over households: (L,) each."""
        columns = _columns(self.direct - self.chain)
        error = [column.std(ddof=1) / np.sqrt(len(column)) if len(column) > 1 else np.nan for column in columns]
        return self.mean("direct") - self.mean("chain"), np.array(error)


def check_regimes(totals_wh: Ints, day: Ints, *, engine: Engine) -> RegimeCheck:
    """Compare direct counts, chain and hidden regimes of all households that have enough days.

    Args:
        totals_wh: daily totals of consecutive days, shape (h, T) [Wh], -1 where missing.
        day: the days since 1970, shape (T,).
        engine: runs a task for each group of households.
    """
    symbols = quartile_symbols(daily_residuals(totals_wh, day % _WEEK))
    symbols = symbols[(symbols >= 0).sum(axis=1) >= _MIN_DAYS]
    groups = [symbols[first : first + _GROUP] for first in range(0, len(symbols), _GROUP)]
    parts = map_items("model-check", groups, function=_memories, engine=engine)
    direct, chain, regimes = np.concatenate([np.zeros((3, 0, len(LAGS_DAYS))), *parts], axis=1)
    return RegimeCheck(direct, chain, regimes, len(day))


def judge_model(check: RegimeCheck, *, is_rejected: bool) -> ModelVerdict:
    """Return the verdict by the rules of the module; `is_rejected` says whether the Markov property is rejected."""
    (excess, error), households = check.excess, check.households
    is_judged = (households >= _MIN_HOUSEHOLDS) & (error <= _MAX_ERROR)
    is_exceeded = (households >= _MIN_HOUSEHOLDS) & (excess > np.maximum(_TOLERANCE, _STANDARD_ERRORS * error))
    if is_exceeded.any():
        worst = int(np.argmax(np.where(is_exceeded, excess, -np.inf)))
        direct, chain = check.mean("direct")[worst], check.mean("chain")[worst]
        return ModelVerdict(
            "rejected",
            f"Its memory decays too fast: at {LAGS_DAYS[worst]} days {direct:.2f} is counted and {chain:.2f} predicted "
            f"(mean of {households[worst]:,} households, standard error of the difference {error[worst]:.2f}).",
        )
    if is_rejected:
        return ModelVerdict("rejected", "The Markov property is rejected for too many households.")
    missing = [lag for lag, judged in zip(LAGS_DAYS, is_judged, strict=True) if lag in _DECISIVE_DAYS and not judged]
    if missing:
        return ModelVerdict("cannot be judged", f"Too few readings at a lag of {_listed(missing)} days.")
    largest = max(lag for lag, judged in zip(LAGS_DAYS, is_judged, strict=True) if judged)
    reason = f"At lags of 1 to {largest} days. One dataset can contradict a model, never verify it."
    return ModelVerdict("not rejected", reason)


def _listed(lags: Iterable[int]) -> str:
    return ", ".join(map(str, lags))


def _columns(values: Floats) -> list[Floats]:
    return [column[~np.isnan(column)] for column in values.T]


def _memories(symbols: Ints) -> Floats:
    """Return direct counts, chain and hidden regimes of a group of households, shape (3, h, L)."""
    direct = signed_memory(counted_pairs(symbols, LAGS_DAYS, n_symbols=SYMBOLS), min_pairs=_MIN_PAIRS)
    chain = signed_memory(chain_pairs(symbols, LAGS_DAYS, shown=np.eye(SYMBOLS)))
    regimes = signed_memory(predicted_pairs(fit_hidden_regimes(symbols, n_symbols=SYMBOLS), LAGS_DAYS))
    return np.where(np.isnan(direct), np.nan, np.stack([direct, chain, regimes]))

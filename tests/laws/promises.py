"""Promises to try, one entry for each notion: how to draw its parameters, and what its figures may come to.

A new notion is one more entry of `TRIED`; the laws in `test_every_notion.py` know none by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from pydantic import ValidationError

from agedp_data.errors import Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.exact import PROBABILITY_UNIT, PiecewiseLeakage
from agedp_data.notions import NOTIONS, Promise
from agedp_data.notions.publication import Event, Publication
from agedp_data.series.mean import Mean

Keys = dict[str, Any]
NANO = Decimal("0.000000001")
_GRID = np.concatenate([np.linspace(0.001, 5, 60), [20.0, 64.0]])
_DAYS = np.arange(1, 41)


def leakage_bound(assume: str, forgets: float) -> LeakageBound:
    """A household forgets as forgets^days, either way; the tight table bounds it by the total variation on a grid."""
    curve = forgets ** _DAYS.astype(float)
    tight = np.log1p(curve[:, None] * np.expm1(_GRID))
    return LeakageBound(_DAYS * 48, _GRID, tight, tight, {"total_variation": curve}, 48, assume)


def exact_bound(assume: str, forgets: float) -> LeakageBound:
    """The same household without the grid: L = ln(1 + forgets^days (e^a - 1)), which is one piece at each age."""
    daily = Fraction(str(forgets))
    pieces = tuple(PiecewiseLeakage([ceil(daily ** int(days) * PROBABILITY_UNIT)], [0]) for days in _DAYS)
    return replace(leakage_bound(assume, forgets), hulls={"backward": pieces, "forward": pieces})


_BY_CLOCK = {"data-day": "", "publication-day": " by publication"}
_KINDS = [(assume, forgets) for assume in ("markov", "curve") for forgets in (0.2, 0.9, 1.0)]
_EXACT = {leakage_bound(*kind): exact_bound(*kind) for kind in _KINDS}


def models(notion: type[Promise]) -> st.SearchStrategy[LeakageBound]:
    """Models that a promise of this notion can be made under."""
    return st.sampled_from([each for each in _EXACT if each.has_both_directions or not notion.composes_ahead])


def exact(model: LeakageBound) -> LeakageBound:
    """Return one of `models` without the interpolation of its table."""
    return _EXACT[model]


@dataclass(frozen=True, slots=True)
class Line:
    """A release, as far as a notion reads it."""

    day: str
    loss: int
    published_on: str
    series: str = "daily_mean"
    state: str = "released"
    population: str = "homes"
    contract: str = ""
    sensitivity: int = 0
    scale: float = 0.0
    mechanism: str = ""

    @property
    def input_ended_at(self) -> str:
        return f"{date.fromisoformat(self.day) + timedelta(days=1)}T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Tried:
    """The keys of a promise, to be completed by the caps, and the bound of each figure that it bounds."""

    keys: st.SearchStrategy[Keys]
    bounds: Callable[[Any], dict[str, Decimal | None]]


def amounts(most: int = 2) -> st.SearchStrategy[Decimal]:
    """Epsilon, some with more decimals than are kept, so that rounding matters."""
    coarse = st.integers(1, most * 1000).map(lambda each: Decimal(each) / 1000)
    return coarse | st.decimals(NANO, most, places=9) | st.decimals(Decimal("0.001"), most, places=15)


def _one_of(*choices: Keys) -> st.SearchStrategy[Keys]:
    return st.sampled_from(choices)


def _drawn(notion: str, *parts: st.SearchStrategy[Keys], **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Keys]:
    """Keys of a notion: some drawn one by one, some together."""
    drawn = st.tuples(st.fixed_dictionaries(keys), *parts)
    return drawn.map(lambda pieces: {"notion": notion} | {key: value for part in pieces for key, value in part.items()})


TRIED: dict[str, Tried] = {
    "classical": Tried(
        _drawn("classical", epsilon_per_day=amounts()), lambda promise: {"day": promise.epsilon_per_day}
    ),
    "w-event": Tried(
        _drawn("w-event", window_days=st.integers(1, 9), epsilon_per_window=amounts(),
               spend=st.sampled_from(["even", "remaining"])),
        lambda promise: {f"window of {promise.window_days} days": promise.epsilon_per_window},
    ),
    "age-dependent": Tried(
        _drawn("age-dependent", st.dictionaries(
            st.sampled_from(["epsilon_per_day", "risk"]), amounts(), min_size=1, max_size=1),
               age_days=st.integers(0, 3), method=st.sampled_from(["tight", "total_variation"]),
               secret=st.sampled_from(["day", "half-hour"])),
        lambda promise: {"day": promise.epsilon_per_day, "risk": promise.risk},
    ),
    "temporal": Tried(
        _drawn("temporal", _one_of(
            {"horizon_days": "unlimited", "budget": "supremum"}, {"horizon_days": "unlimited", "budget": "best"},
            {"horizon_days": 1, "budget": "best"}, {"horizon_days": 5, "budget": "exact"},
            {"horizon_days": 6, "budget": "even"}, {"horizon_days": 40, "budget": "exact"},
            {"horizon_days": 7, "budget": "supremum"},
        ), alpha=amounts()),
        lambda promise: {"temporal leakage": promise.alpha},
    ),
    "discounted": Tried(
        _drawn("discounted", _one_of(
            {"discount": "exponential", "rate": Decimal("0.5")}, {"discount": "exponential", "rate": Decimal("0.95")},
            {"discount": "hyperbolic", "rate": Decimal("0.01")}, {"discount": "hyperbolic", "rate": Decimal("3")},
        ), _one_of(
            {"schedule": "renewal"}, {"schedule": "paper"}, {"schedule": "classical"},
            {"schedule": "classical", "horizon_days": 5}, {"schedule": "constant", "horizon_days": 6},
            {"schedule": "optimal", "horizon_days": 5}, {"schedule": "optimal", "horizon_days": 40},
        ), clock=st.sampled_from(["data-day", "publication-day"]), epsilon=amounts()),
        lambda promise: {
            f"discounted sum ({promise.discount} {promise.rate}{_BY_CLOCK[promise.clock]})": promise.epsilon,
        },
    ),
    "neighbourhood": Tried(
        _drawn("neighbourhood", _one_of(
            {"spend": "fraction", "fraction": Decimal("0.2")}, {"spend": "fraction", "fraction": Decimal("0.7")},
            {"spend": "per-request"}, {"spend": "offline"},
        ), epsilon_per_window=amounts(), window_days=st.integers(1, 9),
            delta_kwh=st.sampled_from([Decimal("0.7"), Decimal(2), Decimal("6.999")])),
        lambda promise: {
            f"change of {promise.delta_kwh} kWh": promise.epsilon_per_window,
            f"change of {promise.delta_kwh} kWh, window of {promise.window_days} days": promise.epsilon_per_window,
        },
    ),
}  # fmt: skip


class Alike(dict[str, Mean]):
    """One series by whatever name it is asked for."""

    def get(self, name: str, default: object = None) -> Mean:  # type: ignore[override]
        return self["any"]


CLAMPS = st.sampled_from([None, Decimal(7), Decimal(50)])


CHARGES = st.lists(
    st.builds(
        lambda first, days, loss: Event(
            (date(2013, 3, 1) + timedelta(days=first)).isoformat(),
            (date(2013, 3, 1) + timedelta(days=first + days)).isoformat(),
            loss,
        ),
        st.integers(-15, 12),
        st.integers(0, 20),
        st.integers(1, 500).map(lambda each: 10**6 * each) | st.integers(1, 5),
    ),
    max_size=2,
)
"""Calibration draws about periods before, around and after the days of the stories."""


def over(promise: Promise, clamp: Decimal | None, charges: Sequence[Event] = ()) -> Promise:
    """Return a promise over a mean with this clamp, whatever its series is called; without one, over no series.

    Events that the promise has no room for are left out.
    """
    series = {} if clamp is None else Alike(any=Mean(statistic="mean", clamp_kwh=clamp))
    days = () if clamp is None else (date(2013, 2, 27), date(2013, 3, 20))
    with_draws = promise.for_publication(Publication(series, {}, *days, charges=tuple(charges)))
    try:
        with_draws.check_charges([], None)
    except Refused:
        return promise.for_publication(Publication(series, {}, *days))
    return with_draws


def bounds(promise: Promise) -> dict[str, Decimal]:
    """Return the bound of each figure that a promise bounds, the caps among them."""
    own = TRIED[promise.name].bounds(promise)
    caps = {"total": promise.epsilon_total if promise.epsilon_total != "unlimited" else None}
    day = min(filter(None, [promise.max_day_epsilon, own.get("day")]))
    return {name: bound for name, bound in {**own, **caps, "day": day}.items() if bound is not None}


def kept() -> list[type[Promise]]:
    """Return the notions that can be promised: those that say what a day may spend."""
    return [notion for notion in NOTIONS if hasattr(notion, "loss")]


def anew(promise: Promise) -> Any:
    """Return the same promise, which has seen no history."""
    again = type(promise).model_validate(promise.model_dump(exclude_none=True))
    return again.for_publication(getattr(promise, "_publication", Publication()))


@st.composite
def promises(draw: st.DrawFn, notion: type[Promise]) -> Any:
    """A promise of a notion with caps that now and then bind, and are wider where they are too small for one day."""
    keys, cap, total = draw(TRIED[notion.name].keys), draw(amounts()), draw(amounts(6) | st.just("unlimited"))
    wider = total if total == "unlimited" else 2 + total
    for caps in ((cap, total), (Decimal(2), wider)):
        try:
            promise = notion.model_validate({**keys, "max_day_epsilon": caps[0], "epsilon_total": caps[1]})
        except ValidationError:
            continue
        return over(promise, draw(CLAMPS), draw(CHARGES))
    return reject()  # no caps help: for example a window's amount that rounds to nothing a day

"""The six promises as values, with the keys of [promise] as keywords; `agedp.release` and `agedp.plan` take them.

Nothing has a default that decides privacy: every promise states its epsilon and its two caps. Numbers are taken as
they are written: 0.1 is one tenth.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np

from agedp_data.parameters import Acceptance, Method

Number = int | float | Decimal | str
"""A number of a promise; a float stands for its shortest decimal text."""


def exact_number(value: Any) -> Any:  # noqa: ANN401  (any value of a run file)
    """Return a float as its decimal text says it, a number of NumPy as Python's, any other value unchanged.

    >>> exact_number(0.1), exact_number(2), exact_number(np.float32(0.1)), exact_number(np.int64(10))
    (Decimal('0.1'), 2, Decimal('0.1'), 10)
    """
    if isinstance(value, float | np.floating):
        return Decimal(str(value))
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, kw_only=True)
class PromiseKeys:
    """What every promise states: the cap on the epsilon of a day, and that on the sum over all days.

    With `delta`, such as "1e-6", `epsilon_total` and the bounds of windows and of temporal leakage are (epsilon, delta)
    bounds; the epsilon of a day stays pure.

    Attributes:
        max_day_epsilon: cap on the loss of a day, which no model relaxes [epsilon].
        epsilon_total: cap on the composed loss of all days [epsilon], or "unlimited".
        delta: probability of the (epsilon, delta) bounds, below 1 [-]; None for pure bounds.
        accept: causes for which a first release is refused, accepted knowingly: "no-credit", "useless", "total".
    """

    notion: ClassVar[str]

    max_day_epsilon: Number
    epsilon_total: Number | Literal["unlimited"]
    delta: Number | None = None
    accept: Sequence[Acceptance] | None = None

    def __init_subclass__(cls) -> None:
        """Describe what every promise states beside the keywords of this one."""
        super().__init_subclass__()
        shared = inspect.cleandoc(PromiseKeys.__doc__ or "").partition("Attributes:\n")[2]
        text, mark, own = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")
        cls.__doc__ = f"{text}{mark}{shared}\n{own}" if mark else text

    def keys(self) -> dict[str, Any]:
        """Return the table [promise] of a run file."""
        written = {field.name: exact_number(getattr(self, field.name)) for field in fields(self)}
        return {"notion": self.notion, **{key: value for key, value in written.items() if value is not None}}


@dataclass(frozen=True, kw_only=True)
class Classical(PromiseKeys):
    r"""Epsilon-differential privacy of each day (event level: one household's day), adding up over days.

    Use it if the loss of a day must hold without any assumption about households.

    .. math:: \varepsilon_t \le \varepsilon_{\mathrm{day}}, \qquad \sum_t \varepsilon_t \le \varepsilon_{\mathrm{total}}

    Source: Dwork, McSherry, Nissim, Smith (2006), Definition 1.

    Attributes:
        epsilon_per_day: loss of each day [epsilon].

    >>> year = Classical(epsilon_per_day=0.1, max_day_epsilon=0.1, epsilon_total=36.5)
    >>> year.keys()["epsilon_total"]
    Decimal('36.5')
    """

    notion: ClassVar[str] = "classical"

    epsilon_per_day: Number


@dataclass(frozen=True, kw_only=True)
class WEvent(PromiseKeys):
    r"""W-event privacy: epsilon of any `window_days` consecutive days, spent evenly or half of what remains.

    Use it for an endless series. With w = `window_days` and the bound of the window:

    .. math:: \sum_{k=t-w+1}^{t} \varepsilon_k \le \varepsilon_w \quad \text{for every day } t

    Source: Kellaris, Papadopoulos, Xiao, Papadias (2014), Definition 3.

    Attributes:
        window_days: number of consecutive days w [days].
        epsilon_per_window: bound on the composed loss of the window [epsilon]; with `delta` an (epsilon, delta) bound.
        spend: "even", a w-th each day; "remaining", half of what the window has left; or "per-row", of rows about
            several days: an equal part for each row that a window touches.

    >>> rolling = WEvent(window_days=365, epsilon_per_window=10, delta="1e-6", spend="even", max_day_epsilon=0.1,
    ...                  epsilon_total="unlimited")
    >>> rolling.notion, rolling.keys()["delta"]
    ('w-event', '1e-6')
    """

    notion: ClassVar[str] = "w-event"

    window_days: int
    epsilon_per_window: Number
    spend: Literal["even", "remaining", "per-row"]


@dataclass(frozen=True, kw_only=True)
class AgeDependent(PromiseKeys):
    r"""Age-dependent privacy: what a release of a day reveals about today, `age_days` later, under a model.

    Use it if days are published late and the present is what must be protected. Give `epsilon_per_day`, or `risk` to
    have the largest loss of a day solved whose risk stays below it. For one release at age t:

    .. math:: \varepsilon(t) \le \ln\left(1 + \Delta(t)\,(e^{\varepsilon} - 1)\right)

    Source: [A] Theorem 1, with the errata of docs/papers.md.

    Attributes:
        age_days: days between the end of a day and its publication [days].
        method: how the bound is computed, "tight", "total_variation", "spectral" or "reversibilised".
        secret: "day", the total of the present day, or "half-hour".
        epsilon_per_day: loss of each day [epsilon]; this or `risk`.
        risk: bound on the loss about the present [epsilon], from which the loss of a day is solved.

    >>> late = AgeDependent(age_days=7, method="total_variation", secret="day", risk=0.1, max_day_epsilon=1,
    ...                     epsilon_total="unlimited")
    >>> late.keys()["risk"]
    Decimal('0.1')
    """

    notion: ClassVar[str] = "age-dependent"

    age_days: int
    method: Method
    secret: Literal["day", "half-hour"]
    epsilon_per_day: Number | None = None
    risk: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Temporal(PromiseKeys):
    r"""Bound `alpha` on the temporal privacy leakage of all releases about any one day, under a Markov chain.

    Use it if neighbouring days are correlated and a single day must be protected from all releases. With the leakage
    functions of the model, backward and forward from one day to the next:

    .. math:: B_t = \varepsilon_t + L_B(B_{t-1}), \quad F_t = \varepsilon_t + L_F(F_{t+1}), \quad
       B_t + F_t - \varepsilon_t \le \alpha

    Source: [T] Cao, Yoshikawa, Xiao, Xiong (2019), Definition 8.

    Attributes:
        alpha: bound on the total temporal leakage about any one day [epsilon].
        horizon_days: number of releases after which the series closes [days], or "unlimited".
        budget: allocation of alpha to the days: "best", "exact", "even" or "supremum".

    >>> Temporal(alpha=1, horizon_days=30, budget="best", max_day_epsilon=0.5, epsilon_total=15).notion
    'temporal'
    """

    notion: ClassVar[str] = "temporal"

    alpha: Number
    horizon_days: int | Literal["unlimited"]
    budget: Literal["best", "exact", "even", "supremum"]


@dataclass(frozen=True, kw_only=True)
class Discounted(PromiseKeys):
    r"""Bound on the sum of the losses, each weighted down with its age, on every day. It bounds no odds.

    Use it to pace a series whose old releases matter less; beside it, the caps bound odds. With rate r:

    .. math:: \sum_{k \le t} a(t-k)\,\varepsilon_k \le \varepsilon \text{ for every day } t, \qquad
       a(j) = r^j \text{ or } \frac{1}{1 + r j}

    Source: [F] Definitions 10 and 14, with the errata of docs/papers.md.

    Attributes:
        discount: "exponential" or "hyperbolic".
        rate: r, per day; below 1 if exponential [-].
        epsilon: bound on the discounted loss [epsilon].
        schedule: allocation to the days: "renewal", "optimal", "constant", "classical" or "paper".
        clock: whether a loss ages from its "data-day" or its "publication-day".
        horizon_days: number of releases after which the series closes [days]; required for "optimal".

    >>> Discounted(discount="exponential", rate=0.99, epsilon=1, schedule="renewal", clock="data-day",
    ...            max_day_epsilon=1, epsilon_total=10).keys()["rate"]
    Decimal('0.99')
    """

    notion: ClassVar[str] = "discounted"

    discount: Literal["exponential", "hyperbolic"]
    rate: Number
    epsilon: Number
    schedule: Literal["renewal", "optimal", "constant", "classical", "paper"]
    clock: Literal["data-day", "publication-day"]
    horizon_days: int | None = None


@dataclass(frozen=True, kw_only=True)
class Neighbourhood(PromiseKeys):
    r"""Epsilon of a window about changes of at most `delta_kwh` a day; larger changes lose more.

    Use it if small changes of use are what must be protected: its noise follows delta, not the clamp U. The loss
    of a mean about a change of a day by x grows with x, and the caps limit that of the whole clamp:

    .. math:: \varepsilon(x) = \varepsilon\, x / \delta, \qquad \delta \le x \le U

    Source: [D] "Proposed formulation", with the errata of docs/papers.md.

    Attributes:
        delta_kwh: change of a household's day that is protected [kWh].
        window_days: number of consecutive days [days].
        epsilon_per_window: bound on the composed loss of the window about such changes [epsilon].
        spend: "fraction" of what the window has left, an equal part "per-request", or "offline", a plan for known days.
        fraction: the fraction, for `spend="fraction"` only [-].

    >>> small = Neighbourhood(delta_kwh=2, window_days=7, epsilon_per_window=0.7, spend="per-request",
    ...                       max_day_epsilon=2.5, epsilon_total=100)
    >>> small.keys()["epsilon_per_window"]
    Decimal('0.7')
    """

    notion: ClassVar[str] = "neighbourhood"

    delta_kwh: Number
    window_days: int
    epsilon_per_window: Number
    spend: Literal["fraction", "per-request", "offline"]
    fraction: Number | None = None


@dataclass(frozen=True)
class DeclaredCurve:
    """A model without readings: the total variation between days `ages_days` apart, and where it comes from.

    Use it if open data say how fast households mix: nothing computed from your readings is published then.

    Attributes:
        ages_days: ages, ascending [days].
        total_variation: total variation at each age, between 0 and 1 and not increasing [-].
        basis: where the curve comes from; the statement has it.
        assume: "curve" for the total variation alone, "markov" for a chain, which bounds several releases too.

    >>> DeclaredCurve([1, 7], [0.6, 0.1], basis="national travel survey 2019").total_variation
    [0.6, 0.1]
    """

    ages_days: list[int]
    total_variation: list[float]
    basis: str
    assume: Literal["curve", "markov"] = "curve"

    def csv(self) -> str:
        """Return the curve as the file that [model] curve names."""
        rows = zip(self.ages_days, self.total_variation, strict=True)
        return "".join(["age_days,total_variation\n", *(f"{age},{exact_number(d)}\n" for age, d in rows)])

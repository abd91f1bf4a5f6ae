"""The six promises as values, with the keys of [promise] as keywords; `agedp.release` and `agedp.plan` take them.

Nothing has a default that decides privacy: every promise states its epsilon and its two caps. Numbers are taken as
they are written: 0.1 is one tenth.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, ClassVar, Literal

from agedp_data.parameters import Method

Number = int | float | Decimal | str
"""A number of a promise; a float stands for its shortest decimal text."""


def exact_number(value: Any) -> Any:  # noqa: ANN401  (any value of a run file)
    """Return a float as its decimal text says it, any other value unchanged.

    >>> exact_number(0.1), exact_number(2)
    (Decimal('0.1'), 2)
    """
    if isinstance(value, bool) or not isinstance(value, float):
        return value.item() if hasattr(value, "item") and not isinstance(value, Decimal) else value
    return Decimal(repr(float(value)))


@dataclass(frozen=True, kw_only=True)
class PromiseKeys:
    """What every promise states: the cap on the epsilon of a day, and that on the sum over all days.

    With `delta`, such as "1e-6", `epsilon_total` and the bounds of windows and of temporal leakage are (epsilon, delta)
    bounds; the epsilon of a day stays pure.
    """

    notion: ClassVar[str]

    max_day_epsilon: Number
    epsilon_total: Number | Literal["unlimited"]
    delta: Number | None = None

    def keys(self) -> dict[str, Any]:
        """Return the table [promise] of a run file."""
        written = {field.name: exact_number(getattr(self, field.name)) for field in fields(self)}
        return {"notion": self.notion, **{key: value for key, value in written.items() if value is not None}}


@dataclass(frozen=True, kw_only=True)
class Classical(PromiseKeys):
    """Epsilon-differential privacy of each day (event level: one household's day), adding up over days.

    Use it if a day's loss must hold whatever the model. Source: Dwork, McSherry, Nissim, Smith (2006), Definition 1.
    """

    notion: ClassVar[str] = "classical"

    epsilon_per_day: Number


@dataclass(frozen=True, kw_only=True)
class WEvent(PromiseKeys):
    """W-event privacy: epsilon of any `window_days` consecutive days, spent evenly or half of what remains.

    Use it for an endless series. Source: Kellaris, Papadopoulos, Xiao, Papadias (2014), Definition 3.
    """

    notion: ClassVar[str] = "w-event"

    window_days: int
    epsilon_per_window: Number
    spend: Literal["even", "remaining"]


@dataclass(frozen=True, kw_only=True)
class AgeDependent(PromiseKeys):
    """Age-dependent privacy: what a release of a day says about today, `age_days` later, under a model.

    Give `epsilon_per_day`, or `risk` to have the largest loss of a day solved whose risk stays below it.
    Source: [A] of the documentation, Theorem 1, with the errata listed there.
    """

    notion: ClassVar[str] = "age-dependent"

    age_days: int
    method: Method
    secret: Literal["day", "half-hour"]
    epsilon_per_day: Number | None = None
    risk: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Temporal(PromiseKeys):
    """Bound `alpha` on the temporal privacy leakage of all releases about any one day, under a Markov chain.

    Source: Cao, Yoshikawa, Xiao, Xiong (2017), Definition 5.
    """

    notion: ClassVar[str] = "temporal"

    alpha: Number
    horizon_days: int | Literal["unlimited"]
    budget: Literal["best", "exact", "even", "supremum"]


@dataclass(frozen=True, kw_only=True)
class Discounted(PromiseKeys):
    """Bound on the sum of the losses, each weighted down with its age, on every day. It bounds no odds.

    Source: [D] of the documentation, Definition 1, with the errata listed there.
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
    """Epsilon of a window about changes of at most `delta_kwh` a day; larger changes lose more.

    Source: [N] of the documentation, Definition 4, with the errata listed there.
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

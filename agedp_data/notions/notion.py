"""What a notion of privacy is: parameters of a promise, the budget of a day, and bounds of released rows.

Losses are integers in nano-epsilon (`epsilon`). A day's loss is the sum over its released rows, whatever their series:
all releases of a population enter every bound. Days are ISO text, as in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Protocol, Self, SupportsFloat

from agedp_data.epsilon import floor_nano
from agedp_data.notions.alternatives import Alternative, Comparison
from agedp_data.notions.notion_text import NotionText
from agedp_data.notions.publication import Publication
from agedp_data.parameters import AgeDays, Epsilon, Method, Section, Total

Kind = Literal["assumption-free", "conditional"]
TighteningRule = Literal["lower", "raise"]
"""Direction in which an amendment may change a parameter: the one that tightens the promise."""

ASSUMPTION_FREE: Final = "assumption-free"
DAY_BOUND: Final = "day"
TOTAL_BOUND: Final = "total"


class HistoryRow(Protocol):
    """What a notion reads of a release: of the ledger, or of one that is only planned."""

    @property
    def population(self) -> str:
        """The people."""

    @property
    def series(self) -> str:
        """The statistic."""

    @property
    def contract(self) -> str:
        """The contract that it was charged under, its hash; "" for one that is only planned."""

    @property
    def day(self) -> str:
        """Day of the data, ISO text."""

    @property
    def state(self) -> str:
        """Either "released" or "skipped"."""

    @property
    def loss(self) -> int:
        """Whole 1e-9 epsilon."""

    @property
    def input_ended_at(self) -> str:
        """UTC instant at which the day of the data ended, such as 2013-03-05T00:00:00Z."""

    @property
    def published_on(self) -> str:
        """UTC date of publication, ISO text."""


class LossAtAge(Protocol):
    """Leakage function L at one age in nano-epsilon; `TabulatedLeakage` and `PiecewiseLeakage` implement it."""

    @property
    def sample_points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return the tabulated losses and what is left of each."""

    def __call__(self, loss: int) -> int:
        """Return what is left of a loss."""

    def supremum(self, loss: int) -> int | None:
        """Return the supremum of x -> loss + L(x), None if there is none."""


class LeakageBoundLike(Protocol):
    """What a notion needs of a model's leakage bound (`LeakageBound`)."""

    @property
    def steps_per_day(self) -> int:
        """Steps of the chain in a day."""

    @property
    def assume(self) -> str:
        """Either "markov" or "curve"."""

    @property
    def methods(self) -> tuple[str, ...]:
        """By which methods there are backward figures; every model has "total_variation"."""

    @property
    def has_both_directions(self) -> bool:
        """Whether there are tight losses in both directions that compose."""

    @property
    def ages(self) -> Iterable[int]:
        """Ages in steps that are tabulated, ascending."""

    def __hash__(self) -> int:
        """Tell equal models apart from others: what was solved for one is kept."""

    def exact_leakage(self, age: int, *, direction: str) -> LossAtAge:
        """Return the tight L at an age in steps in whole 1e-9."""

    def __call__(self, age: int, loss: float, *, direction: str, method: Method) -> SupportsFloat:
        """Return L(loss) at an age in steps, rounded up."""

    def supremum(self, gap: int, loss: float, *, direction: str, method: Method) -> float:
        """Return the supremum of x -> loss + L(x) at a gap in steps."""


@dataclass(frozen=True, slots=True)
class LossBound:
    """One row of a statement: an upper bound on a loss, `value` in nano-epsilon, None if infinite or not available.

    `kind` is its class, assumption-free or conditional on `assumption`; `about` is its scope; `odds` tells whether
    e^value bounds a change of odds, which a sum of discounted losses does not.
    """

    name: str
    value: int | None
    kind: Kind
    about: str
    assumption: str = ""
    odds: bool = True


class Accountant(Protocol):
    """What says how much rows come to under one notion, whether or not that notion was promised."""

    @property
    def name(self) -> str:
        """The notion."""

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the figures of all released rows, rounded up; `at` (ISO date) is the first instant."""


class Notion(Accountant, Protocol):
    """A promise that can be kept: what each day may spend, and a veto on every single release."""

    def obstacle(self, leakage_bound: LeakageBoundLike | None) -> str:
        """Return why no loss at all keeps the promise under a model, and what would help."""

    @property
    def slides(self) -> bool:
        """Whether its bound is on days near each other, so that a day may be left nothing and later ones something."""

    @property
    def limits(self) -> dict[str, int | None]:
        """What each figure that it bounds may become by further releases, by the figure's name; None if unlimited."""

    @property
    def remark(self) -> str:
        """What a plan must say of it and its caps."""

    def part_of_day(self, series: str, share: Fraction) -> Fraction:
        """Return which part of a day's loss a series is granted that has this share."""

    def loss(
        self,
        history: Sequence[HistoryRow],
        day: str,
        leakage_bound: LeakageBoundLike | None,
        published_on: str | None = None,
    ) -> int:
        """Return what the day may still spend, beyond what its rows in `history` have spent, rounded down.

        `published_on` (ISO date) matters to promises that count days of publication; without it, the newest so far.
        """

    def admit(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused, with the day, the bound and the excess, if `new_row` would break the promise."""

    def review(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if what is released already breaks the promise under this envelope (a newer model's)."""

    def broken(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> Mapping[str, str]:
        """Return the parameters that what is released breaks for ever, with what is the case; a series ends by them."""


class Promise(Section):
    """The parameters common to all notions: which one, and the caps, which hold whatever a model says."""

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    composes_ahead: ClassVar[bool] = False
    slides: ClassVar[bool] = False
    TIGHTENING: ClassVar[Mapping[str, TighteningRule]] = {}
    """Keys of the notion that an amendment may change, each in one direction; any other key of it never changes."""
    TEXT: ClassVar[NotionText]
    """Its words and example values."""

    notion: str
    """Which promise is made; one of six."""
    age_days: AgeDays | None = None
    """Age of a day at its release, in days; required for "live", "rehearsal" and "age-dependent"."""
    max_day_epsilon: Epsilon
    """Cap on the epsilon of a day. No model, age or discount raises it."""
    epsilon_total: Total
    """Cap on the sum of epsilon over all days, at which the series ends."""

    @property
    def day_cap(self) -> int:
        """Return the cap of any one day, whole 1e-9 epsilon."""
        return floor_nano(self.max_day_epsilon)

    @property
    def total_cap(self) -> int | None:
        """Return the sum at which the series ends, whole 1e-9 epsilon; None if unlimited."""
        return None if self.epsilon_total == "unlimited" else floor_nano(self.epsilon_total)

    @property
    def limits(self) -> dict[str, int | None]:
        """Return what each figure that is bounded may become by further releases; None if unlimited."""
        return {DAY_BOUND: self.day_cap, TOTAL_BOUND: self.total_cap}

    @property
    def remark(self) -> str:
        """Return what a plan must say of this promise and its caps; nothing for most."""
        return ""

    @property
    def needs_period(self) -> bool:
        """Tell whether days can only be planned where the last one is known."""
        return False

    def over(self, publication: Publication) -> Self:
        """Return this promise over what is published, of which most notions need to know nothing."""
        del publication
        return self

    def part_of_day(self, series: str, share: Fraction) -> Fraction:
        """Return which part of a day's loss a series is granted that has this share: for most notions just that."""
        del series
        return share

    @classmethod
    def shared(cls, terms: Mapping[str, Any]) -> str:
        """Return what several series have shares of, in words, by a promise as a contract tells of it."""
        del terms
        return "each day's epsilon"

    @property
    def opening(self) -> str:
        """Return what a statement must say of this promise in its first line; nothing for most."""
        return ""

    def obstacle(self, leakage_bound: LeakageBoundLike | None) -> str:
        """Return why no loss at all keeps this promise under a model, and what would help; nothing where one does."""
        del leakage_bound
        return ""

    @classmethod
    def compared(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the accounts of this notion that the run file asks to see beside its promise."""
        del comparison
        return ()

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return the ways in which this notion could keep an amount for this run file, its own first if it is this one.

        Parameters that the run file's promise does not imply are those of [compare].
        """
        del comparison
        return ()

    def alternatives(self, days: int) -> dict[str, float]:
        """Return by schedule the mean noise scale over so many days, as a multiple of the clamp, its own first."""
        del days
        return {}


def day_losses(history: Iterable[HistoryRow]) -> dict[str, int]:
    r"""Return the loss of each day of the data [nano-epsilon]: the sum over its released rows.

    .. math:: \varepsilon_d = \sum_{k :\, day_k = d} \varepsilon_k

    Source: sequential composition, [A] Proposition 2.

    Args:
        history: rows of the ledger; rows that were not released spend nothing.

    Returns:
        Loss by ISO date [nano-epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """
    losses: dict[str, int] = {}
    for row in history:
        if row.state == "released":
            losses[row.day] = losses.get(row.day, 0) + row.loss
    return losses


class ReleaseHistory:
    """The losses of each day of a history that grows: rows that were seen before are not looked at again.

    Days of the data, or of publication.
    """

    def __init__(self, by: Literal["day", "published_on"] = "day") -> None:
        self._by = by
        self._last: tuple[tuple[HistoryRow, ...], dict[str, int]] = ((), {})

    def __eq__(self, other: object) -> bool:
        """Tell that two are alike, whatever they have seen: equal promises stay equal."""
        return isinstance(other, ReleaseHistory)

    __hash__ = None  # type: ignore[assignment]

    def of(self, history: Sequence[HistoryRow]) -> dict[str, int]:
        """Return `day_losses(history)`, for the caller to change."""
        rows, losses = self._last
        if tuple(history[: len(rows)]) != rows:
            rows, losses = (), {}
        losses = dict(losses)
        for row in history[len(rows) :]:
            if row.state == "released":
                day = row.day if self._by == "day" else row.published_on
                losses[day] = losses.get(day, 0) + row.loss
        self._last = (tuple(history), losses)
        return dict(losses)


def spent_bounds(losses: dict[str, int]) -> list[LossBound]:
    r"""Return the two assumption-free bounds of every notion: the largest loss of a day, and the sum over all days.

    .. math:: \max_d \varepsilon_d, \qquad \sum_d \varepsilon_d

    Source: sequential composition, [A] Proposition 2, as `day_losses`.

    Args:
        losses: loss of each day [nano-epsilon].

    >>> [bound.value for bound in spent_figures({"2013-01-01": 5, "2013-01-02": 7})]
    [7, 12]
    """
    day = LossBound(DAY_BOUND, max(losses.values(), default=0), "assumption-free", "any one day of one household")
    total = LossBound(TOTAL_BOUND, sum(losses.values()), "assumption-free", "all published days of one household")
    return [day, total]

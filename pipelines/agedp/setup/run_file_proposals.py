"""Proposals for the undecided keys of a run file, and the comments on all keys.

A proposal follows what is given, so that the proposals of one run file go together. A notion proposes values for its
own keys (`NotionText.proposals`); any other key is proposed by its type: its first choice, or 1. A proposal is never
taken without a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final, Literal, get_args, get_origin

from agedp.setup.run_file_options import SERIES, Key, OptionValues, number_of, quoted
from agedp_data.accounting.renyi import Curve, approximate_epsilon, laplace_curve, largest_equal_loss, multiply
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.epsilon import NANO, ceil_nano, floor_nano
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Promise
from agedp_data.parameters import Section, exact_text, watt_hours

CLASSICAL: Final = "classical"
_DAY_EPSILON: Final = Decimal("0.5")
_CLAMP_KWH: Final = Decimal(50)
_FOUR_DIGITS_UP: Final = Context(prec=4, rounding=ROUND_CEILING)
_FOUR_DIGITS_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)
_TOTAL: Final = ("promise", "epsilon_total")


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One line of a run file.

    Attributes:
        key: the key within its table.
        toml: its value as TOML text.
        comment: a comment at the end of the line, "" for none.
        decided: whether the line counts; a proposal without a decision is written as a comment.
        read_off: whether its value was read off readings.
    """

    key: str
    toml: str
    comment: str = ""
    decided: bool = True
    read_off: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts of the input files on which proposals are based.

    Attributes:
        dataset: the layout, as in [input].
        files: patterns or addresses of the files.
        first: the first day with a reading.
        last: the last day with a reading.
        households: number of households.
        columns: the lines of [input.columns] of a long table.
        interval_minutes: the interval of the readings [minutes].
    """

    dataset: str
    files: tuple[str, ...]
    first: date
    last: date
    households: int
    columns: tuple[KeyLine, ...] = ()
    interval_minutes: int = INTERVAL_MINUTES

    @property
    def days(self) -> int:
        """Return the number of days that the files cover."""
        return (self.last - self.first).days + 1


def notion_of(options: OptionValues) -> type[Promise] | None:
    """Return the notion that the options name, classical without one, None for an unknown name.

    >>> notion_of({}).name, notion_of({("promise", "notion"): '"none"'})
    ('classical', None)
    """
    name = options.get(("promise", "notion"), quoted(CLASSICAL))
    return next((notion for notion in NOTIONS if quoted(notion.name) == name), None)


def model_block(options: OptionValues) -> type[Section]:
    """Return which [model] it is: declared where an option names a curve or kernel, else estimated."""
    return DeclaredModel if {("model", "curve"), ("model", "kernel")} & set(options) else EstimatedModel


class Proposals:
    """A proposal and a comment for every key; proposals depend on the options, so that they are consistent."""

    def __init__(self, facts: FileFacts, options: OptionValues) -> None:
        self._facts, self._options = facts, options

    def toml(self, table: str, key: str) -> str:
        """Return the proposal for a key as TOML text.

        The first that exists: the option, the notion's proposal, a computed one, a fixed one, the key's first choice.
        """
        if (table, key) in self._options:
            return self._options[table, key]
        if (table, key) == _TOTAL and self._has_rolling_delta:
            return quoted("unlimited")
        notion = notion_of(self._options) if table == "promise" else None
        if notion is not None and key in notion.TEXT.proposals:
            return notion.TEXT.proposals[key]
        if key in _COMPUTED:
            return str(getattr(self, f"_{key}")())
        return _PROPOSED.get((table, key)) or self._default_choice(table, key)

    def comment(self, table: str, key: str) -> str:
        """Return the comment on a key."""
        if (table, key) == _TOTAL and ("promise", "delta") in self._options:
            return _NO_TOTAL if self.toml(table, key) == quoted("unlimited") else _TOTAL_AT_DELTA
        return _COMMENTS.get((table, key), "")

    @property
    def _has_rolling_delta(self) -> bool:
        """Return whether a delta is about a rolling window, and needs no total to apply to."""
        notion = notion_of(self._options)
        is_rolling = notion is not None and notion.TEXT.takes_delta and "window_days" in notion.model_fields
        return is_rolling and ("promise", "delta") in self._options

    @property
    def _delta(self) -> Decimal | None:
        """Return the delta of the options, None without a valid one."""
        delta = number_of({key: toml.strip('"') for key, toml in self._options.items()}, ("promise", "delta"))
        return delta if delta is not None and 0 < delta < 1 else None

    def _curve(self, loss: int) -> Curve:
        """Return the Rényi curve of a day with this loss [nano-epsilon]."""
        clamp = watt_hours(self._number(SERIES, "clamp_kwh") or Decimal(self._clamp_kwh())) or 1
        return laplace_curve(clamp, clamp * NANO / loss)

    def _default_choice(self, table: str, key: str) -> str:
        """Return a value of a key without a proposal: its first choice, or 1."""
        block = notion_of(self._options) if table == "promise" else model_block(self._options)
        kind: Any = block.model_fields[key].annotation if block is not None and key in block.model_fields else None
        return quoted(str(get_args(kind)[0])) if get_origin(kind) is Literal else "1"

    def _number(self, table: str, key: str) -> Decimal | None:
        return number_of(self._options, (table, key))

    def _min_households(self) -> int:
        return min(
            100, max(1, (self._facts.households + 1) // 2)
        )  # not all: every day after the first that leaves would go

    def _epsilon_per_day(self) -> str:
        """Return half an epsilon within the caps, or the equal loss that fills a total at delta over the period."""
        caps = [self._number("promise", key) for key in ("max_day_epsilon", "epsilon_total")]
        (day_cap, total), delta = caps, self._delta
        if total is None or total <= 0 or delta is None or not self._has_last_day:
            return f"{min([_DAY_EPSILON, *(cap for cap in caps if cap is not None)]):f}"
        limit = floor_nano(total)
        cap = limit if day_cap is None else min(limit, floor_nano(day_cap))
        loss = largest_equal_loss(self._curve, self._days, epsilon=limit, delta=delta, cap=cap)
        return exact_text(_FOUR_DIGITS_DOWN.divide(Decimal(loss), NANO))

    def _max_day_epsilon(self) -> str:
        return f"{self._number('promise', 'epsilon_per_day') or Decimal(self._epsilon_per_day()):f}"

    def _epsilon_total(self) -> str:
        """Return the total of all days at the cap, with a delta that of so many equal sums, in four digits."""
        cap = self._number("promise", "max_day_epsilon") or Decimal(self._max_day_epsilon())
        if self._delta is None or cap <= 0:
            return f"{cap * self._days:f}"
        days = multiply(self._curve(ceil_nano(cap)), self._days)
        total = approximate_epsilon(days, self._delta, pure=ceil_nano(cap * self._days))
        return exact_text(_FOUR_DIGITS_UP.divide(Decimal(total), NANO))

    def _clamp_kwh(self) -> str:
        return f"{max(_CLAMP_KWH, self._number('promise', 'delta_kwh') or _CLAMP_KWH):f}"

    def _half_hour_clamp_kwh(self) -> str:
        """Return the clamp of a half-hour: a twelfth of the day's, so that a day may have its energy in six hours."""
        clamp = self._number(SERIES, "clamp_kwh") or Decimal(self._clamp_kwh())
        return exact_text(max(Decimal("0.001"), round(clamp / 12, 1)))

    def _bins_kwh(self) -> str:
        clamp = self._number(SERIES, "clamp_kwh") or Decimal(self._clamp_kwh())
        return f"[0, {clamp / 2:f}, {clamp:f}]"

    @property
    def _days(self) -> int:
        """Return the number of days to release, as far as the options determine it."""
        try:
            first, last = (
                date.fromisoformat(self._options.get(("schedule", key), f"{day}"))
                for key, day in (("first_day", self._facts.first), ("last_day", self._facts.last))
            )
        except ValueError:
            return self._facts.days
        return max(1, (last - first).days + 1)

    @property
    def _has_last_day(self) -> bool:
        """Return whether the period is known: that of the files, or a live one with both ends."""
        is_live = self._options.get(("schedule", "mode")) == quoted("live")
        return not is_live or {("schedule", "first_day"), ("schedule", "last_day")} <= set(self._options)

    def _horizon_days(self) -> int:
        return self._days

    def _budget(self) -> str:
        is_endless = self.toml("promise", "horizon_days") == quoted("unlimited")
        return quoted("supremum" if is_endless and ("promise", "delta") not in self._options else "best")

    def _rate(self) -> str:
        return "1" if self._options.get(("promise", "discount")) == quoted("hyperbolic") else "0.99"

    def _spend(self) -> str:
        return quoted("per-request" if ("promise", "delta_kwh") in self._options else "even")

    def _method(self) -> str:
        return quoted("total_variation" if ("model", "curve") in self._options else "tight")

    def _assume(self) -> str:
        return quoted("curve" if ("model", "curve") in self._options else "markov")

    def _step(self) -> str:
        return quoted("half-hour" if self._options.get(("model", "chain")) == quoted("cyclic") else "day")

    def _period(self) -> str:
        return f"[{self._facts.first}, {self._facts.last}]"


_COMPUTED: Final[frozenset[str]] = frozenset(
    (
        "min_households", "epsilon_per_day", "max_day_epsilon", "epsilon_total", "clamp_kwh", "bins_kwh",
        "half_hour_clamp_kwh", "horizon_days", "budget", "rate", "spend", "method", "assume", "step", "period",
    )
)  # fmt: skip
"""Keys whose proposal follows from other keys or from the files."""

_PROPOSED: Final[Mapping[Key, str]] = {
    ("schedule", "rehearsal_on"): quoted("synthetic"),
    ("promise", "age_days"): "2",
    ("model", "states"): "12",
    ("model", "edges"): quoted("quantile"),
    ("model", "chain"): quoted("homogeneous"),
    ("model", "min_visits"): "10",
    ("model", "confidence"): quoted("plug-in"),
    ("model", "level"): "0.95",
    ("model", "publish"): quoted("envelope"),
    ("model", "accept_unverified_model"): "true",
    ("model", "selection_epsilon"): "1",
    ("model", "coverage"): "0.95",
    ("model", "failure_probability"): "0.000001",
    ("model", "basis"): quoted("name the source of the curve or kernel"),
}

_TOTAL_AT_DELTA: Final = "composed loss of all days, at delta; the series ends there"
_NO_TOTAL: Final = "no bound on all days; each window keeps its own bound, at delta"

_COMMENTS: Final[Mapping[Key, str]] = {
    ("input", "corrections"): "conflicting readings: keeps those of the later file by name | set-aside: keeps neither",
    ("input", "read_off"): "keys that were chosen by looking at readings: the statement lists them",
    ("population", "meters"): "the meters of each household on its days, which are added up",
    ("population", "min_households"): "a day with fewer households is never released; can be raised later",
    ("schedule", "rehearsal_on"): "synthetic: no file is read | readings: charged like a release; never changes",
    (SERIES, "clamp_kwh"): "upper bound on a household's daily total; public, never read off the data",
    (SERIES, "half_hour_clamp_kwh"): "upper bound on a household's half-hour; public, never read off the data",
    (SERIES, "bins_kwh"): "edges of the bins, from 0 to clamp_kwh; public, never read off the data",
    ("promise", "age_days"): "a day is released when it is this old",
    ("promise", "epsilon_per_day"): "epsilon of one day",
    ("promise", "max_day_epsilon"): "cap on the epsilon of a day",
    ("promise", "epsilon_total"): "cap on the sum of epsilon over all days; the series ends there",
    ("promise", "delta"): "bounds over many days become (epsilon, delta) bounds; a day's epsilon stays pure",
    ("promise", "method"): "tight | total_variation | spectral | reversibilised",
    ("promise", "secret"): "what the bound is about: day | half-hour",
    ("promise", "alpha"): "bound on the temporal leakage about any one day",
    ("promise", "horizon_days"): "number of releases after which the series closes",
    ("promise", "budget"): "best | supremum | exact | even",
    ("promise", "discount"): "exponential | hyperbolic",
    ("promise", "rate"): "a loss j days old counts rate^j, or 1 / (1 + rate j)",
    ("promise", "epsilon"): "bound on the discounted sum, on every day",
    ("promise", "schedule"): "renewal | optimal | constant | classical | paper",
    ("promise", "clock"): "data-day | publication-day",
    ("promise", "window_days"): "length of the window",
    ("promise", "epsilon_per_window"): "epsilon of any window",
    ("promise", "spend"): "w-event: even | remaining; neighbourhood: fraction | per-request | offline",
    ("promise", "delta_kwh"): "size of the change that is protected",
    ("output", "witness"): "confirms the ledger's head in another place; keep it out of the ledger's backups",
    ("model", "assume"): "markov | curve",
    ("model", "period"): "the days that it is estimated from",
    ("model", "step"): "half-hour | day",
    ("model", "edges"): "quantile | equal-width | a list of public kWh values",
    ("model", "chain"): "homogeneous | cyclic",
    ("model", "min_visits"): "a state with fewer visits is credited no decay",
    ("model", "confidence"): "plug-in | sampling-bound",
    ("model", "publish"): "acknowledges that it comes from the readings and has no noise | private: chosen with noise",
    ("model", "accept_unverified_model"): "risk rests on chains that one dataset can contradict but never verify",
    ("model", "selection_epsilon"): "epsilon of the private choice, about all readings of its period",
    ("model", "coverage"): "share of the households whose chains lie below the chosen bound",
    ("model", "failure_probability"): "probability that fewer households do",
    ("input.columns", "time_format"): "a strptime pattern, iso, epoch or epoch-ms",
    ("input.columns", "stamp"): "a timestamp is the start or the end of its interval",
    ("input.columns", "zone"): 'time zone of the timestamps, such as "Europe/London"',
    ("input.columns", "day_zone"): "time zone whose midnight ends a day",
    ("input.columns", "unit"): "kWh | Wh | kW | W",
}

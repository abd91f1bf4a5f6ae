"""[series.NAME] with statistic = "profile": the mean use of each half-hour of a day, one vector a day and group.

A household's day counts as its half-hours under two public clamps (`profile`). The published mean of a half-hour
is its noisy sum, divided by the number of households on the roster, which is public.

Decisions:

* A cell is named by the clock at which it begins, "18:30", or "Std 18:30" for a group.
* A day has the cells that its clock shows: 46 on the day on which the clock goes forward by an hour, 48 on any other.
  Hourly readings have 24 cells, or 23.
* The sensitivity is that of the days with most half-hours. All days of a series have the same noise.
* With `every = "weekday-month"` a row covers a month (`profile`). It has cells for weekdays and for weekends,
  "weekday 18:30" or "Std weekend 18:30", each kind with its own household-days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from pydantic import model_validator

from agedp_data import table_schemas
from agedp_data.amendment_rules import EITHER
from agedp_data.arrays import Floats
from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Flags, Ints
from agedp_data.errors import ChainError
from agedp_data.parameters import LATER, PositiveKwh, watt_hours, wrong
from agedp_data.series import result_table as tables
from agedp_data.series.sensitivity import Change
from agedp_data.series.series_terms import (
    DAY_KINDS,
    Cell,
    Counted,
    DayKind,
    EnergySeries,
    Every,
    HouseholdDays,
    Kind,
    Place,
    Series,
    Wh,
    day_kind,
    days_of,
    period_of,
)
from agedp_data.table_schemas import NOISE_COLUMNS, TEXT, released_schema, schema_of

# --------------------------------------------------------------------------------------------------
# Load profiles: how the half-hours of a household's day count in a sum by half-hour, and the sensitivity of that sum.
#
# The idea: a profile is one vector a day with a cell for each half-hour. Two public clamps bound what a household adds
# to it: one for a half-hour, one for the day. A half-hour above its clamp counts as the clamp. A day above its clamp
# is then reduced in proportion, so that it keeps its shape.
#
# Example: the clamps are 4 kWh for a half-hour and 6 kWh for the day. Half-hours of 5, 2 and 4 kWh count as 4, 2 and
# 4. Their sum of 10 kWh is above 6, so they are reduced to 2.4, 1.2 and 2.4 kWh.
#
# Decisions:
#
# * A household can move its energy from some half-hours to others, and then both the cells that lose and the cells
#   that gain change. The sensitivity is therefore twice the day's clamp, not once. It is not more than all half-hours
#   at their clamp.
# * The proportional reduction rounds each half-hour down to whole watt-hours. The day may then count a few watt-hours
#   less than its clamp, never more.
# * The cells of a day are the half-hours that its clock shows: 48, and 46 on a day when the clock goes forward by an
#   hour. When the clock goes back, the readings have both passes of an hour in the same two half-hours: the day has 48
#   cells, and two of them contain an hour each. Their clamp is that of any half-hour, so that no day has a larger
#   sensitivity.
# * A missing household-day counts as the same public vector everywhere. The vector obeys both clamps, so that the
#   change from it to any day is bounded like the change between two days.
# --------------------------------------------------------------------------------------------------

_INT64_MAX: Final = 2**63 - 1
MISSING_HALF_HOUR: Final = -1
"""Energy of a half-hour without a reading; it counts as 0."""


def reduced_profile(half_hours_wh: ArrayLike, *, half_hour_clamp_wh: int, day_clamp_wh: int) -> Wh:
    r"""Return the half-hours of each household-day as they count in a profile; use it before any sum over households.

    .. math:: y_s = \min(\max(x_s, 0), U_h), \quad
       z_s = \begin{cases} y_s & \sum_r y_r \le U_d \\ \lfloor y_s U_d / \sum_r y_r \rfloor & \text{otherwise}
       \end{cases}

    so that each counted half-hour is at most U_h and their sum at most U_d. Source: elementary (clamping; scaling to a
    bounded sum). All numbers are exact integers: the largest product is U_h U_d.

    Args:
        half_hours_wh: energies x, shape (..., S), any integer type [Wh]; negative: missing, counts as 0.
        half_hour_clamp_wh: largest energy U_h of a half-hour, public, >= 1 [Wh].
        day_clamp_wh: largest energy U_d of a day, public, >= 1 [Wh].

    Returns:
        Counted energies z, shape (..., S), int64 [Wh].

    Raises:
        ChainError: energies that are not integers; a clamp below 1; clamps whose product exceeds 64 bits.

    >>> reduced_profile([5000, 2000, 4000], half_hour_clamp_wh=4000, day_clamp_wh=6000).tolist()
    [2400, 1200, 2400]
    """
    half_hours = np.asarray(half_hours_wh)
    if not np.issubdtype(half_hours.dtype, np.integer):
        raise ChainError("the half-hours of a profile are whole watt-hours")
    _check_clamps(half_hours.shape[-1], half_hour_clamp_wh, day_clamp_wh)
    counted: Wh = np.clip(half_hours.astype(np.int64, copy=False), 0, half_hour_clamp_wh)
    day_wh = counted.sum(axis=-1, keepdims=True)
    is_above = day_wh[..., 0] > day_clamp_wh
    if is_above.any():
        counted[is_above] = counted[is_above] * day_clamp_wh // day_wh[is_above]
    return counted


def day_slots(layout: Layout, day: date) -> tuple[int, ...]:
    """Return the half-hours of a day: slot s begins s x 30 minutes after midnight by the day's clock.

    Slots that the clock skips do not exist. Of hourly readings a slot begins an hour. `layout` is the dataset's.

    >>> from agedp_data.datasets.ausgrid import Ausgrid
    >>> len(day_slots(Ausgrid(), date(2012, 10, 6))), day_slots(Ausgrid(), date(2012, 10, 7))[:6]
    (48, (0, 1, 2, 3, 6, 7))
    """
    absent = layout.absent_slots(day)
    return tuple(slot for slot in range(0, SLOTS, slot_step(layout.interval_minutes)) if slot not in absent)


def period_slots(layout: Layout, first_day: date, last_day: date) -> tuple[int, ...]:
    """Return the half-hours that any day of a period has, ascending; see `day_slots`.

    >>> from agedp_data.datasets.ausgrid import Ausgrid
    >>> len(period_slots(Ausgrid(), date(2012, 10, 7), date(2012, 10, 8)))
    48
    """
    return tuple(sorted({slot for day in days_of(first_day, last_day) for slot in day_slots(layout, day)}))


def default_profile(missing_wh: int, *, slots: int, half_hour_clamp_wh: int, day_clamp_wh: int) -> Wh:
    r"""Return the public vector that counts for a missing household-day: its energy, spread evenly in whole watt-hours.

    .. math:: m_s = \lfloor (s + 1) M / S \rfloor - \lfloor s M / S \rfloor, \quad s = 0, ..., S - 1

    Source: elementary (differences of rounded running sums). The half-hours differ by at most 1 Wh and add up to M, as
    far as the clamps permit: the vector is reduced like any other (`reduced_profile`).

    Args:
        missing_wh: public energy M of a missing household-day, >= 0 [Wh].
        slots: number S of the day's half-hours, >= 0.
        half_hour_clamp_wh: largest energy of a half-hour, >= 1 [Wh].
        day_clamp_wh: largest energy of a day, >= 1 [Wh].

    Returns:
        Counted energies, shape (S,), int64 [Wh].

    Raises:
        ChainError: a negative energy; or as `reduced_profile`.

    >>> default_profile(7, slots=4, half_hour_clamp_wh=100, day_clamp_wh=100).tolist()
    [1, 2, 2, 2]
    """
    if missing_wh < 0:
        raise ChainError(f"a missing household-day counts as {missing_wh} Wh: must be at least 0")
    running = [step * missing_wh // max(slots, 1) for step in range(slots + 1)]
    spread = np.diff(np.array(running, np.int64))
    return reduced_profile(spread, half_hour_clamp_wh=half_hour_clamp_wh, day_clamp_wh=day_clamp_wh)


def profile_sensitivity(change: Change, *, slots: int, half_hour_clamp: int, day_clamp: int) -> int:
    r"""Return the L1 sensitivity of a profile to a change of one household's day.

    .. math:: \Delta_1 = \min(U_d, \lfloor S/2 \rfloor U_h) + \min(U_d, \lceil S/2 \rceil U_h)
       = \min(2 U_d, S U_h) \text{ for even } S, \quad
       \Delta_1 = \min(U_d, S U_h) \text{ for an arrival or departure}

    Proof. Let z and z' be counted vectors, and A the a slots with z > z'. The difference on A is at most the sum of z
    on A, hence at most f(a) = min(U_d, a U_h); on the S - a other slots it is at most f(S - a). Since f is concave, the
    sum is largest for a = floor(S/2). Two days attain it: U_h in each slot of the first half of the day, up to the sum
    U_d, and the same in the second half. The vector of a missing day obeys both clamps and is covered.

    A bounded change (`Move`) is of the day's total. These two days can have the same total, because energy above a
    clamp does not count: the bound is attained by a change of size 0, and no smaller one holds.

    Days with fewer slots have at most the sensitivity of days with more. Of hours in place of half-hours, with twice
    the clamp, it is at most the same. Source: L1 sensitivity of [DMNS].

    Args:
        change: "replacement", "arrival", "departure" or a `Move` of any size, which counts as a replacement.
        slots: number S of a day's half-hours, the largest of all days, >= 1.
        half_hour_clamp: largest energy U_h of a half-hour, integer >= 1 [any integer unit, e.g. Wh].
        day_clamp: largest energy U_d of a day, integer >= 1 [unit of `half_hour_clamp`].

    Returns:
        Sensitivity, integer [unit of `half_hour_clamp`].

    Raises:
        ChainError: a clamp or a number of slots below 1; clamps whose product exceeds 64 bits.

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> clamps = {"slots": 48, "half_hour_clamp": 4_000}
    >>> [profile_sensitivity("replacement", day_clamp=clamp, **clamps) for clamp in (50_000, 150_000)]
    [100000, 192000]
    """
    if slots < 1:
        raise ChainError(f"a profile of {slots} half-hours: must be at least 1")
    _check_clamps(0, half_hour_clamp, day_clamp)
    if change in ("arrival", "departure"):
        return min(day_clamp, slots * half_hour_clamp)
    half = slots // 2
    return min(day_clamp, half * half_hour_clamp) + min(day_clamp, (slots - half) * half_hour_clamp)


def _check_clamps(slots: int, half_hour_clamp: int, day_clamp: int) -> None:
    """Check that clamps are positive, and that a product of both, and a sum of all half-hours, fit into 64 bits."""
    for clamp in (half_hour_clamp, day_clamp):
        if clamp < 1:
            raise ChainError(f"a clamp of {clamp} Wh: must be at least 1")
    if half_hour_clamp * max(day_clamp, slots) > _INT64_MAX:
        raise ChainError("the clamps of a profile exceed 64-bit integers: take smaller ones")


# --------------------------------------------------------------------------------------------------
# Profiles of a month's weekdays and weekends released on their own: their exact vector, and its sensitivity.
#
# The idea: one row a month has a cell for each kind of day and half-hour. It is a sum over all household-days of that
# kind, without a sum of its own for each household, so that days are added one after another and nothing is kept of a
# household. Dividing by household-days, which are public, gives the mean day of each kind.
#
# Example: with days that count 100,000 Wh of change at most, January 2013 with 23 weekdays and 8 days of weekends has
# a sensitivity of (2 x 23 + 5 x 8) x 100,000 = 8,600,000 Wh. With noise of scale 8,600,000 Wh and 5,000 households,
# the mean of a half-hour of weekdays has noise of scale 8,600,000 / (2 x 23 x 5,000) = 37.4 Wh, of weekends 43 Wh.
#
# Decisions:
#
# * A half-hour of a weekday counts twice, one of a weekend five times: a week has five of the former and two of the
#   latter. Both means then have nearly the same noise. Counted once each, the noise would be 3.9 day sensitivities for
#   weekends and 1.3 for weekdays in this example, in place of 2.2 and 1.9. Published means divide the weights out.
# * Sums are not divided per household before they are added. The mean day of each household, rounded down, has the
#   sensitivity of a day for each kind, so 2 of them for both. That is the noise of the weights above, with errors of
#   rounding, and a sum to be kept for each household of a month.
# * A month without all its days is not released: `covered_days` are those of the calendar.
# * A half-hour that the clock skips on a day adds nothing there. One that occurs twice is in its cell twice, as in a
#   daily profile. Published means divide by how often the half-hour occurs.
# --------------------------------------------------------------------------------------------------

WEIGHTS: Final[Mapping[DayKind, int]] = {"weekday": 2, "weekend": 5}
"""How often a half-hour counts in the vector, by the kind of its day."""


def month_sensitivity(first_day: date, last_day: date, *, day_sensitivity: int) -> int:
    r"""Return the L1 sensitivity of the vector of a period to a change of all its days of one household.

    .. math:: \Delta_1 = S \sum_k w_k |\{d : d \in k\}|

    Proof. Let z_d and z'_d be what a household's day d counts under two accounts of its use, vectors over half-hours
    with L1 distance at most S (`profile.profile_sensitivity`). The household is in one group on each day, in any
    on different days, because the roster is fixed. It adds w_k z_d to the cells of that group and the kind k of the
    day. The distance of the vector of all groups is at most the sum over days of w_k times the distance of z_d and
    z'_d, by the triangle inequality. Days of one kind that all move from the same half-hours to the same others attain
    it, because nothing is rounded after the days are counted. Days with fewer half-hours have at most distance S.

    A smaller change of all days, or a change of one day only, is at most this. Source: L1 sensitivity of [DMNS].

    Args:
        first_day: first day that the row covers.
        last_day: last day that it covers.
        day_sensitivity: sensitivity S of one day's profile [Wh].

    Returns:
        Sensitivity, integer [weighted Wh].

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> month_sensitivity(date(2013, 1, 1), date(2013, 1, 31), day_sensitivity=100_000)
    8600000
    """
    return day_sensitivity * sum(WEIGHTS[day_kind(day)] for day in days_of(first_day, last_day))


# --------------------------------------------------------------------------------------------------
# Published tables of load profiles: half-hours of days, drawn profiles of months, and mean profiles by month.
#
# Example: the cell "Std weekday 18:30" of January 2013, drawn as 2 x 92,000 Wh over 230 household-days of 23 weekdays,
# becomes the line (day 2013-01-31, Std, weekday, 1110, household_days 230, weight 2, noisy_weighted_wh 184000,
# mean_kwh 0.4, ...). Its mean is of the household-days of the kind, and of half-hours of equal length: it is divided
# by how long the half-hour is on the days of the kind, in parts of what it would be if all their clocks had it once. A
# ledger row does not contain households by day, so this factor is of the calendar.
#
# *Mean profiles of weekdays and weekends by month* are derived: the released half-hours of the days of one kind are
# added and divided by their household-days. The result is a function of the released rows alone, so it adds no privacy
# loss, and verification computes it again. Its noise is known exactly: it is the sum of the days' noises
# (`consistency`).
#
# .. math:: \bar x_{g,k,s} = \frac{m \sum_{d \in k} Y_{d,g,s}}{\sum_{d \in k} n_{d,g} m_{d,s}}
#
# with the noisy sum Y of group g in half-hour s of day d, n households on the roster, and m minutes of a half-hour, of
# which day d has m_{d,s}.
#
# Example: 21 weekdays of 5,000 households have 105,000 household-days. Noise of scale 100,000 Wh a day has a standard
# deviation of sqrt(2 x 21) x 100,000 = 648,074 Wh in each of their half-hours, which is 0.0062 kWh per household.
#
# Decisions:
#
# * Weekdays are Monday to Friday by the calendar of the layout's days, weekends Saturday and Sunday. Public holidays
#   are not treated specially: calendars of holidays differ by region and change.
# * A mean is energy per household and half-hour: days with more households weigh more, so that groups add up.
# * The divisors are of each half-hour. A day that the clock gives no such half-hour does not enter it; a day that has
#   it twice, when the clock goes back, counts twice. The means are therefore all of half-hours of equal length.
# * As for averages by month (`mean`), missing days are not estimated, `is_complete` marks rows of which all
#   days were released, days that count differently have rows of their own, and a month is in the table once none of
#   its days is still to be released.
# --------------------------------------------------------------------------------------------------

_WH_PER_KWH: Final = 1000.0
_INT64_LIMIT: Final = 2.0**62

_Integers = np.ndarray[Any, np.dtype[Any]]

_KIND = ("day_kind", TEXT, "weekday: Monday to Friday, public holidays among them; or weekend: Saturday and Sunday")
_START = (
    "start_minute",
    pa.int32(),
    "when the half-hour begins: minutes after midnight by the clock of the day's zone",
)
_MINUTES = ("minutes", pa.int32(), "how long it is: 30, or 60 for hourly readings")

_DAILY_PROFILE = released_schema(
    ("households", pa.int64(), "households on the roster that day, of the group"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped half-hours plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / households / 1000, kWh"),
    *NOISE_COLUMNS,
    places=(
        _START,
        (
            "minutes",
            pa.int32(),
            "how long it is: 30, or 60 for hourly readings; twice as long where the clock goes back",
        ),
    ),
    loss="loss of the release, all its half-hours together, about one household's day",
)

_PROFILE_RELEASES = released_schema(
    ("first_day", pa.date32(), "first day that the row covers"),
    ("days_of_kind", pa.int32(), "days of this kind in the month"),
    ("minutes_in_period", pa.int32(), "how long the half-hour is on all these days together"),
    ("household_days", pa.int64(), "households on the roster, added over the days of this kind"),
    ("weight", pa.int32(), "how often a half-hour counts: 2 on weekdays, 5 on weekends"),
    ("noisy_weighted_wh", pa.int64(), "what was drawn: weight x sum of the clamped half-hours, plus noise, Wh"),
    (
        "mean_kwh",
        pa.float64(),
        "noisy_weighted_wh / weight / household_days / 1000 x days_of_kind x minutes / minutes_in_period, kWh",
    ),
    *NOISE_COLUMNS,
    places=(
        _KIND,
        _START,
        _MINUTES,
    ),
    day="last day of the month that the row covers",
    unit="months",
    loss="loss of the release about all days of one household that it covers",
)

_PROFILE_BY_MONTH = schema_of(
    ("first_day", pa.date32(), "first day of the month"),
    ("last_day", pa.date32(), "last day of the month"),
    ("series", TEXT, "series of the run file that the value is of"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
    ("version", pa.int32(), "first of the contracts that the days were released under; they count a day alike"),
    ("half_hour_clamp_kwh", pa.float64(), "a household's half-hour counted up to this, kWh"),
    ("clamp_kwh", pa.float64(), "a household's day counted up to this, kWh"),
    _KIND,
    _START,
    _MINUTES,
    ("days_released", pa.int32(), "days of this kind with this half-hour whose values enter; others are not estimated"),
    ("days_in_period", pa.int32(), "days of this kind in the month that have this half-hour"),
    ("is_complete", pa.int32(), "1 if all these days enter, otherwise 0"),
    ("fewest_households", pa.int64(), "smallest number of households on the roster on a day that enters"),
    ("most_households", pa.int64(), "largest number of households on the roster on a day that enters"),
    ("household_minutes", pa.int64(), "sum over the days that enter of households x minutes of the half-hour"),
    ("mean_kwh", pa.float64(), "sum of noisy_sum_wh / household_minutes x minutes / 1000: per household, kWh"),
    *NOISE_COLUMNS,
    ("published_on", pa.date32(), "UTC date of first publication of the latest day that enters"),
)


@dataclass(frozen=True, slots=True)
class _Places:
    """The cells (n) of a release: the distinct parts, and the part (an index into these) and slot of each cell."""

    parts: tuple[Cell, ...]
    part: Ints
    slot: Ints

    def of_parts(self, values: Sequence[str]) -> pa.Array:
        """Return a text of each cell, given those of the parts; text is made once for each part."""
        return pa.array(values, pa.string()).take(pa.array(self.part))

    @property
    def groups(self) -> pa.Array:
        """Return the group of each cell."""
        return self.of_parts([part.group for part in self.parts])


@lru_cache(maxsize=8)
def _places(cells: tuple[str, ...], profile: Series) -> _Places:
    parts: dict[Cell, int] = {}
    read = profile.read_cells(cells)
    part = [parts.setdefault(cell._replace(place=None), len(parts)) for cell in read]
    return _Places(tuple(parts), np.array(part, np.int64), np.array([cell.place for cell in read], np.int64))


def cell_minutes(layout: Layout, day: date) -> Ints:
    """Return how long the cell of each slot is, shape (48,) [minutes]; 0 where the day has no such cell.

    A repeated half-hour is in its cell twice. Of hourly readings every second slot has a cell.
    """
    step, cells = slot_step(layout.interval_minutes), list(day_slots(layout, day))
    passes = np.ones(SLOTS, np.int64)
    passes[list(layout.repeated_slots(day))] = 2
    minutes = np.zeros(SLOTS, np.int64)
    minutes[cells] = np.repeat(passes.reshape(-1, step).sum(axis=1), step)[cells] * INTERVAL_MINUTES
    return minutes


def _means(row: tables.PublishedRow, wh_per_kwh_mean: np.ndarray[Any, Any], noise: tables.Noise) -> dict[str, Any]:
    """Return mean, noise and interval of the cells of a row [kWh per household]."""
    values = np.array(row.values, np.int64)
    deviation, half_width = noise.deviation(row.scale), noise.half_width(row.scale)
    return {
        "mean_kwh": values / wh_per_kwh_mean,
        "noise_sd_kwh": deviation / wh_per_kwh_mean,
        "low_kwh": (values - half_width) / wh_per_kwh_mean,
        "high_kwh": (values + half_width) / wh_per_kwh_mean,
    }


def _day_lines(row: tables.PublishedRow, terms: tables.ContractTerms, noise: tables.Noise) -> tables.Columns:
    """Return the half-hours of a day."""
    places, households = _places(row.cells, terms.series[row.series]), np.array(row.households, np.int64)
    return {
        "group": places.groups,
        "start_minute": places.slot * INTERVAL_MINUTES,
        "minutes": cell_minutes(terms.layout, date.fromisoformat(row.day))[places.slot],
        "households": households,
        "noisy_sum_wh": np.array(row.values, np.int64),
        **_means(row, _WH_PER_KWH * households, noise),
    }


def _month_lines(row: tables.PublishedRow, terms: tables.ContractTerms, noise: tables.Noise) -> tables.Columns:
    """Return the half-hours of each kind of day of a month."""
    profile: Any = terms.series[row.series]
    first, last = profile.covered_days(date.fromisoformat(row.day))
    places = _places(row.cells, profile)
    kinds = [part.kind for part in places.parts]
    kind = np.array([DAY_KINDS.index(of) for of in kinds], np.int64)[places.part]
    length = slot_step(terms.layout.interval_minutes) * INTERVAL_MINUTES
    days, minutes = (np.array(of_kind) for of_kind in zip(*_calendar(terms.layout, first, last), strict=True))
    weight, household_days = np.array([WEIGHTS[of] for of in DAY_KINDS])[kind], np.array(row.households, np.int64)
    of_slot = minutes[kind, places.slot]
    wh_per_kwh_mean = _WH_PER_KWH * weight * household_days * of_slot / (days[kind] * length)
    return {
        "group": places.groups,
        "day_kind": places.of_parts(kinds),
        "first_day": first,
        "start_minute": places.slot * INTERVAL_MINUTES,
        "minutes": length,
        "days_of_kind": days[kind],
        "minutes_in_period": of_slot,
        "household_days": household_days,
        "weight": weight,
        "noisy_weighted_wh": np.array(row.values, np.int64),
        **_means(row, wh_per_kwh_mean, noise),
    }


def _calendar(layout: Layout, first: date, last: date) -> list[tuple[int, Ints]]:
    """Return the number of days of each kind, and how long each half-hour is on all of them, shape (48,) [minutes]."""
    by_kind: dict[DayKind, list[Ints]] = {kind: [] for kind in DAY_KINDS}
    for day in days_of(first, last):
        by_kind[day_kind(day)].append(cell_minutes(layout, day))
    return [(len(of_kind), np.sum(of_kind, axis=0)) for of_kind in by_kind.values()]


_CHART: Final = tables.Chart(
    "mean_kwh", ("low_kwh", "high_kwh"), x="start_minute", title="Mean use by time of day", colour="day_kind"
)
_CLAMPS: Final = ("clamp_kwh", "half_hour_clamp_kwh")
PROFILES: Final = tables.ResultTable(
    "daily_profile",
    _DAILY_PROFILE,
    "day, group and time of day",
    f"averages over households by day and time of day (load profiles), {tables.NOISE_TEXT}",
    _day_lines,
    "noisy_sum_wh",
    None,
    _CLAMPS,
)
PROFILE_RELEASES: Final = tables.ResultTable(
    "profile_releases",
    _PROFILE_RELEASES,
    "month, group, kind of day and time of day",
    "averages over households and the weekdays or weekends of a month by time of day, each drawn once for all days "
    f"from first_day to day, {tables.NOISE_TEXT}",
    _month_lines,
    "noisy_sum_wh",
    _CHART,
    _CLAMPS,
)


@dataclass(frozen=True, slots=True)
class _KindSums:
    """The days (d) of one kind of a month: groups (g), and what each has in each half-hour.

    Attributes:
        groups: names of the groups.
        sum_wh: sums of the noisy values, shape (g, 48) [Wh]; Python integers where int64 might overflow.
        households: on the roster, shape (d, g); 0 where a day lacks the group.
        minutes: length of each half-hour, shape (d, 48) [minutes]; 0 where the clock of a day has none.
        rows: the ledger rows of the days.
    """

    groups: tuple[str, ...]
    sum_wh: _Integers
    households: Ints
    minutes: Ints
    rows: tuple[tables.PublishedRow, ...]


def _month_units(rows: Sequence[tables.PublishedRow], terms: tables.Terms) -> list[tables.Unit]:
    """Return the released days of each series in each month that count a household's day alike."""
    parts = []
    for row, profile in tables.released(rows, terms, PROFILE_BY_MONTH):
        first, last = period_of(date.fromisoformat(row.day), "month")
        parts.append((tables.Unit(first, last, row.series, (profile.by, profile.quantity)), (row,)))
    units = tables.units_of(parts)
    return sorted(units, key=lambda unit: (unit.first_day, unit.series, terms[unit.rows[0].contract].version))


def _profile_by_month(units: Sequence[tables.Unit], terms: tables.Terms, noise: tables.Noise) -> pa.Table:
    """Return the lines of months: weekdays first, then by group and half-hour."""
    parts = [
        _kind_table(unit, terms[unit.rows[0].contract], kind, sums, noise)
        for unit in units
        for kind in DAY_KINDS
        for sums in _kind_sums(terms, [row for row in unit.rows if day_kind(date.fromisoformat(row.day)) == kind])
    ]
    return pa.concat_tables([_PROFILE_BY_MONTH.empty_table(), *parts])


def _kind_sums(terms: tables.Terms, rows: Sequence[tables.PublishedRow]) -> Iterator[_KindSums]:
    """Yield the sums of days of one kind; nothing without a day."""
    if not rows:
        return
    of_first = terms[rows[0].contract]
    places = {
        cells: _places(cells, of_first.series[rows[0].series]) for cells in dict.fromkeys(row.cells for row in rows)
    }
    groups = dict.fromkeys(part.group for of in places.values() for part in of.parts)
    number = {group: i for i, group in enumerate(groups)}
    largest = max(max(map(abs, row.values)) for row in rows)
    kind = np.int64 if largest < _INT64_LIMIT / len(rows) else object
    sum_wh, households = np.zeros((len(number), SLOTS), kind), np.zeros((len(rows), len(number)), np.int64)
    minutes = np.zeros((len(rows), SLOTS), np.int64)
    index = {
        cells: (np.array([number[part.group] for part in of.parts])[of.part], of.slot) for cells, of in places.items()
    }
    for i, row in enumerate(rows):
        group, slot = index[row.cells]
        sum_wh[group, slot] += np.array(row.values, kind)
        households[i, group] = row.households
        minutes[i, slot] = cell_minutes(of_first.layout, date.fromisoformat(row.day))[slot]
    yield _KindSums(tuple(number), sum_wh, households, minutes, tuple(rows))


def _kind_table(
    unit: tables.Unit, terms: tables.ContractTerms, kind: DayKind, sums: _KindSums, noise: tables.Noise
) -> pa.Table:
    """Return the lines of one kind of day: half-hours that have the same minutes on each day are computed together."""
    profile: Any = terms.series[unit.series]
    length = slot_step(terms.layout.interval_minutes) * INTERVAL_MINUTES
    days = [day for day in days_of(unit.first_day, unit.last_day) if day_kind(day) == kind]
    days_in_period = np.array([cell_minutes(terms.layout, day) > 0 for day in days]).sum(axis=0)
    columns: dict[str, _Integers] = {}
    patterns, pattern_of_slot = np.unique(sums.minutes, axis=1, return_inverse=True)
    for pattern, minutes in enumerate(patterns.T):
        slots = np.flatnonzero(pattern_of_slot.ravel() == pattern)
        for name, values in _group_columns(sums, minutes, length, noise).items():
            shape = len(sums.groups), SLOTS
            columns.setdefault(name, np.zeros(shape, values.dtype))[:, slots] = values[:, None]
    group, slot = np.nonzero(columns["days_released"])
    chosen = {name: values[group, slot] for name, values in columns.items()}
    energy_wh, wh_per_kwh_mean = sums.sum_wh[group, slot], chosen.pop("wh_per_kwh_mean")
    half_width, deviation = chosen.pop("half_width"), chosen.pop("deviation")
    constants = {
        "first_day": unit.first_day,
        "last_day": unit.last_day,
        "series": unit.series,
        "group_column": profile.level,
        "version": terms.version,
        "half_hour_clamp_kwh": profile.half_hour_clamp_wh / 1000,
        "clamp_kwh": profile.clamp_wh / 1000,
        "day_kind": kind,
        "minutes": length,
    }
    return table_schemas.table_from_columns(
        _PROFILE_BY_MONTH,
        **{name: pa.repeat(pa.scalar(value), len(group)) for name, value in constants.items()},
        **chosen,
        group=pa.array(sums.groups, pa.string()).take(pa.array(group)),
        start_minute=slot * INTERVAL_MINUTES,
        days_in_period=days_in_period[slot],
        is_complete=(chosen["days_released"] == days_in_period[slot]).astype(np.int64),
        mean_kwh=_floats(energy_wh / wh_per_kwh_mean),
        noise_sd_kwh=deviation / wh_per_kwh_mean,
        low_kwh=_floats((energy_wh - half_width) / wh_per_kwh_mean),
        high_kwh=_floats((energy_wh + half_width) / wh_per_kwh_mean),
    )


def _group_columns(sums: _KindSums, minutes: Ints, length: int, noise: tables.Noise) -> dict[str, _Integers]:
    """Return columns of each group in half-hours that have these minutes on each day, and the noise of their sum."""
    enters: Flags = (sums.households > 0) & (minutes > 0)[:, None]
    households = np.where(enters, sums.households, 0)
    household_minutes = minutes @ households
    published_on = np.array([day_number(date.fromisoformat(row.published_on)) for row in sums.rows])
    deviation, half_width = tables.sum_noise([(row,) for row in sums.rows], enters, noise)
    return {
        "days_released": enters.sum(axis=0),
        "fewest_households": np.where(enters, households, households.max(initial=0)).min(axis=0),
        "most_households": households.max(axis=0),
        "household_minutes": household_minutes,
        "published_on": np.where(enters, published_on[:, None], 0).max(axis=0),
        "wh_per_kwh_mean": _WH_PER_KWH * household_minutes / length,
        "deviation": deviation,
        "half_width": half_width,
    }


def _floats(values: _Integers) -> _Integers:
    return values.astype(np.float64)


def _kwh_of_half_hour(table: pa.Table) -> Floats:
    return table["minutes"].to_numpy() / (_WH_PER_KWH * table["household_minutes"].to_numpy())  # type: ignore[no-any-return]


PROFILE_BY_MONTH: Final = tables.DerivedTable(
    "profile_by_month",
    _PROFILE_BY_MONTH,
    of="released days of each month, weekdays and weekends",
    about="mean profiles of weekdays and weekends by month",
    description="mean half-hours over households and the weekdays or weekends of a month, with their noise: sums of "
    "the released days and nothing else; a row for each way of counting a household's day, and a month once none of "
    "its days is still to be released",
    source="profile",
    span="month",
    units=_month_units,
    lines=_profile_by_month,
    line=("first_day", "series", "group_column", "group", "version", "day_kind", "start_minute"),
    order=("first_day", "series", "version"),
    chart=_CHART,
    rounded=("noise_sd_kwh",),
    kwh_of_wh=_kwh_of_half_hour,
)


# --------------------------------------------------------------------------------------------------
# The statistic.
# --------------------------------------------------------------------------------------------------

_LEAST_SLOTS: Final = 46
"""Half-hours of a day on which the clock goes forward by an hour."""


class Profile(EnergySeries):
    """Mean use of each half-hour: an exact vector per group and day, to which noise is added in each cell."""

    KIND = "profile"
    PLURAL = "load profiles"
    CONTENT = "load profiles"
    TABLES = (PROFILES, PROFILE_RELEASES)
    DERIVED = (PROFILE_BY_MONTH,)
    unit = "kWh"
    reads_half_hours = True
    stated = (
        "the use of each {reading} of the day counts, up to its clamp. Where the {reading}s of a household's day then"
        " add up to more than the clamp of the day, each is reduced in proportion and rounded down to whole "
        "watt-hours. One without a reading counts 0 kWh; what counts for a whole missing day is spread evenly. Noise "
        "is added to the sum of each {reading}, in whole watt-hours. The sensitivity is that of all {reading}s of a "
        "day together, twice the clamp of the day, or all clamps of its {reading}s if these are less: a household "
        "that moves its use to another time lowers some sums and raises others. Published are the sums by household on"
        " the roster. A day on which the clock goes forward by an hour lacks the {reading}s "
        "that it skips. Where the clock goes back, those that occur twice are counted together, under the same clamp."
    )
    stated_of_periods = (
        "A row of a month has two profiles: of weekdays, Monday to Friday, and of weekends, Saturday and Sunday; "
        "public holidays count by their day of the week. Each {reading} is added up over all days of its kind, times "
        f"{WEIGHTS['weekday']} on weekdays and times {WEIGHTS['weekend']} on weekends, so that both have nearly the "
        f"same noise: the scale is ({WEIGHTS['weekday']} x weekdays + {WEIGHTS['weekend']} x days of weekends) x "
        "sensitivity / epsilon. Each noisy sum is divided by the same number and by how often the {reading} occurs on"
        " a day of its kind: less than once where a clock skips it, more than once where it occurs twice."
    )
    cell_words = ("half-hours", "clamps")

    statistic: Literal["profile"]
    half_hour_clamp_kwh: Annotated[PositiveKwh, EITHER]
    """Upper bound on a household's half-hour; a larger one counts as this, then the day is reduced in proportion to
    `clamp_kwh`. Public, never derived from the data. An hourly reading has twice this bound.
    """
    every: Annotated[Literal["day", "weekday-month"], LATER] = "day"
    """Days of a row: each day, or the weekdays and the weekends of a calendar month, each with a profile of its own. A
    month costs what one of its days has for this series, counts in every one of them, and has the noise of all of them.
    Holidays count by their day of the week.
    """

    @property
    def period(self) -> Every:
        """Return what a row covers: a day or month."""
        return self.every

    def row_sensitivity(self, day: date) -> int:
        """Return the L1 sensitivity of the row named by a day to any change of all days of a household in it [Wh].

        A row of a month is weighted by kind of day, see `profile`.
        """
        sensitivity = self.sensitivity("replacement")
        return (
            month_sensitivity(*self.covered_days(day), day_sensitivity=sensitivity)
            if self.covers_periods
            else sensitivity
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of day that a row of a month keeps apart."""
        return DAY_KINDS if self.covers_periods else ("",)

    def kind_of(self, day: date) -> Kind:
        """Return the kind of a day of a month."""
        return day_kind(day) if self.covers_periods else ""

    def weight(self, kind: Kind) -> int:
        """Return how often a day of a kind counts in the row of a month; see `profile`."""
        return WEIGHTS[kind] if kind else 1

    @property
    def half_hour_clamp_wh(self) -> int:
        """Return the public upper bound on a household's half-hour, in whole watt-hours."""
        return watt_hours(self.half_hour_clamp_kwh)

    @property
    def quantity(self) -> tuple[int, int, int, int, str]:
        """Return what counts as a household's day; profiles of one quantity add up over days."""
        return self.half_hour_clamp_wh, self.clamp_wh, self.missing_wh, self.max_missing, self.values

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of all cells together to a change of one household's day [Wh].

        Energy may move between half-hours, so it is twice the day's clamp, or 48 half-hours at theirs if that is less.
        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        return profile_sensitivity(
            self.counted_change(change),
            slots=SLOTS,
            half_hour_clamp=self.half_hour_clamp_wh,
            day_clamp=self.clamp_wh,
        )

    def most(self, minutes: int) -> int:
        """Return the most that a household's day adds to one cell [Wh]: a half-hour at its clamp, an hour at twice."""
        return self.half_hour_clamp_wh * slot_step(minutes)

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes [Wh]; any change of a day may move a cell from 0 to its clamp."""
        return min(self.clamp_wh, super().largest_move(change, minutes=minutes))

    def counted(self, days: HouseholdDays) -> Counted:
        """Return the half-hours of each day under both clamps [Wh]; one without a reading counts as 0."""
        counted_wh = reduced_profile(
            days.energy_wh, half_hour_clamp_wh=self.most(days.minutes), day_clamp_wh=self.clamp_wh
        )
        return Counted(counted_wh, np.asarray((counted_wh < days.energy_wh).any(axis=1)))

    def missing(self, slots: Sequence[int], *, minutes: int) -> Wh:
        """Return the vector that counts for a household-day without enough readings [Wh]: `missing_wh`, spread evenly.

        >>> terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4, "missing_kwh": 1}
        >>> Profile.model_validate(terms).missing([0, 1, 2], minutes=30).tolist()
        [333, 333, 334]
        """
        return default_profile(
            self.missing_wh, slots=len(slots), half_hour_clamp_wh=self.most(minutes), day_clamp_wh=self.clamp_wh
        )

    @property
    def names(self) -> Mapping[str, Place]:
        """Return the half-hours of a day, slots 0 to 47, by the clock at which they begin.

        >>> terms = {"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": 4, "by": "tariff"}
        >>> from agedp_data.series.series_terms import Cell
        >>> profile = Profile.model_validate(terms)
        >>> profile.write_cells(profile.cells([Cell("Std")], slots=[0, 37]))
        ('Std 00:00', 'Std 18:30')
        """
        return _SLOTS

    def places(self, slots: Sequence[int] = ()) -> tuple[Place, ...]:
        """Return the half-hours of a row's days."""
        return tuple(slots)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have these sums of half-hours: all are within both clamps.

        Of months it is the number of household-days of one kind, and the sums are weighted.
        """
        step = 2 if exact.size <= SLOTS // 2 else 1  # of hourly readings a cell is an hour
        times = households * (max(WEIGHTS.values()) if self.covers_periods else 1)
        is_each_possible = bool((exact >= 0).all() and (exact <= times * step * self.half_hour_clamp_wh).all())
        return is_each_possible and int(exact.sum()) <= times * self.clamp_wh

    @model_validator(mode="after")
    def _clamps_agree(self) -> Self:
        if self.half_hour_clamp_kwh > self.clamp_kwh:
            raise wrong("must not exceed clamp_kwh", "half_hour_clamp_kwh")
        if self.missing_kwh > _LEAST_SLOTS * self.half_hour_clamp_kwh:
            raise wrong(f"must not exceed {_LEAST_SLOTS} times half_hour_clamp_kwh: it is spread evenly", "missing_kwh")
        return self


def clock_of(slot: int) -> str:
    """Return the time of day at which a half-hour begins.

    >>> clock_of(0), clock_of(37)
    ('00:00', '18:30')
    """
    return f"{slot // 2:02d}:{slot % 2 * 3}0"


_SLOTS: Final[Mapping[str, int]] = {clock_of(slot): slot for slot in range(SLOTS)}

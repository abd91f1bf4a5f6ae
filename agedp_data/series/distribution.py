"""[series.NAME] with statistic = "distribution": how many households used how much on a day.

Decisions:

* A cell of counts is named by its range of use, "0-2", or "Std 0-2" for a group.
* Cumulative counts are of the ranges from 0 on. The last one contains all households; it is known and not drawn.
* A distribution with one bin is refused: it would contain all households.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from pydantic import PlainValidator, model_validator

from agedp_data import table_schemas
from agedp_data.amendment_rules import EITHER
from agedp_data.arrays import Floats, Number, as_written
from agedp_data.epsilon import EpsilonLike, exact_text
from agedp_data.errors import ChainError
from agedp_data.parameters import NUMBERS, ascending, kwh, watt_hours, wrong
from agedp_data.series import result_table
from agedp_data.series.consistency import sum_interval
from agedp_data.series.sensitivity import Change, cumulative_sensitivity, histogram_sensitivity
from agedp_data.series.series_terms import Counted, EnergySeries, HouseholdDays, Place, Wh
from agedp_data.table_schemas import TEXT, released_schema, schema_of

# --------------------------------------------------------------------------------------------------
# Quantiles and peak of the households' daily use, with an interval, from released noisy counts by range of use.
#
# The idea: the quantile of a share p of n households is the use of the household of rank r = ceil(p n). It lies in the
# bin with C_(b-1) < r <= C_b, where C_b counts the households below the upper edge of bin b. Released counts give each
# C_b with noise of a known law, so every bin can be tested. Released values go in and nothing else, so no privacy loss
# is added.
#
# Example: 100 households, counts 60, 30, 10 in bins 0-5, 5-10, 10-20 kWh without noise. The median is household 50, in
# the first bin: 50/60 of it, 4.17 kWh. The quantile of the share .95 is in the middle of the last bin, 15 kWh.
#
# Decisions:
#
# * The estimate is interpolated in the bin of a least-squares fit: counts >= 0 that add up to the number of
#   households, which is public; or cumulative counts that do not decrease from 0 to it. Both are unique.
# * The interval consists of whole bins, those that the released counts do not contradict: a bin is left out if its
#   lower edge certainly has r households below it, or its upper edge certainly has fewer. It contains the bin of the
#   estimate.
# * A cumulative count of a histogram is added up from the nearer end, so its noise is a sum of at most half as many
#   terms as there are bins. The law of that sum is exact (`consistency`), not normal.
# * The peak is the share 1, the largest use of a household. Counts with noise never show that no household used more,
#   so only the lower end of its interval says something. The share .99 is the peak that can be published.
# * A use above the clamp counts as the clamp, and a missing household-day as `missing_kwh`. So the last bin means "at
#   least its lower edge".
#
# [BBBB] Barlow, Bartholomew, Bremner, Brunk: Statistical Inference under Order Restrictions. Wiley, 1972.
# --------------------------------------------------------------------------------------------------

Integers = NDArray[np.int64]
Form = Literal["histogram", "cumulative"]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Released counts of households by range of use, of one or more groups, with noise of one scale.

    Attributes:
        values: shape (..., bins), or (..., bins - 1) for cumulative counts, of which the last is known [households].
        households: number of households on the roster, shape (...), >= 1.
        edges_kwh: edges of the bins, shape (bins + 1,), increasing [kWh].
        scale: noise scale, > 0 [households].
        form: "histogram", or "cumulative": households below each inner edge.
    """

    values: Integers
    households: Integers
    edges_kwh: Floats
    scale: float
    form: Form

    @property
    def bins(self) -> int:
        """Return the number of bins."""
        return self.edges_kwh.size - 1

    @property
    def below_inner_edges(self) -> Integers:
        """Return the noisy number of households below each inner edge, shape (..., bins - 1) [households]."""
        if self.form == "cumulative":
            return self.values
        upwards = self.values.cumsum(axis=-1)[..., :-1]
        downwards = self.households[..., None] - self.values[..., ::-1].cumsum(axis=-1)[..., -2::-1]
        return np.where(_bins_added(self.bins) == np.arange(1, self.bins), upwards, downwards)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileRanges:
    """Estimated quantiles and the ends of their intervals, each of shape (..., shares) [kWh]."""

    value_kwh: Floats
    low_kwh: Floats
    high_kwh: Floats


def noisy_counts(
    values: ArrayLike, *, households: ArrayLike, edges_kwh: ArrayLike, scale: float, form: Form
) -> NoisyCounts:
    """Return released counts after a check of their shapes; use it for one release, or for all groups of it.

    Args:
        values: shape (..., bins), or (..., bins - 1) if cumulative, integers [households].
        households: shape (...), integers >= 1.
        edges_kwh: shape (bins + 1,), increasing [kWh].
        scale: noise scale, > 0 [households].
        form: "histogram" or "cumulative".

    Raises:
        ChainError: shapes that do not fit together, edges that do not increase, or a group without households.
    """
    counts, members = np.asarray(values, np.int64), np.asarray(households, np.int64)
    edges = np.asarray(edges_kwh, np.float64)
    if edges.ndim != 1 or edges.size < 3 or not (np.diff(edges) > 0).all():
        raise ChainError("counts by range of use have two bins or more, with edges that increase")
    cells = edges.size - 1 - (form == "cumulative")
    if counts.shape != (*members.shape, cells) or not (members >= 1).all():
        raise ChainError(f"{cells} counts for each group of 1 household or more are needed, not shape {counts.shape}")
    return NoisyCounts(counts, members, edges, scale, form)


def quantile_ranges(noisy: NoisyCounts, shares: Sequence[Number], *, coverage: EpsilonLike) -> QuantileRanges:
    r"""Return quantiles of the households' use with intervals that hold; share 1 is the largest use, the peak.

    With N_b the noisy number of households below edge b and w_b the half-width of its noise, the interval is the range
    of the bins b that are not contradicted:

    .. math:: \{ b : N_{b-1} - w_{b-1} < r \le N_b + w_b \}, \quad r = \lceil p n \rceil

    The true bin has at most r - 1 households below its lower edge and at least r below its upper one. So it is left out
    only if noise is above w_(b-1) or below -w_b, each with probability at most (1 - coverage)/2.

    Source: inversion of a family of tests; the point estimate is interpolated in `fitted_below_edges`.

    Args:
        noisy: released counts.
        shares: shares p of the households, in (0, 1] [-]; 0.5 is the median.
        coverage: probability with which each interval holds, in (0, 1) [-]; several intervals hold together with less.

    Returns:
        Estimate and interval of each share, shape (..., shares) [kWh].

    Raises:
        ChainError: a share outside (0, 1], or a coverage outside (0, 1).

    References:
        Neyman: Outline of a Theory of Statistical Estimation Based on the Classical Theory of Probability. Phil. Trans.
        R. Soc. A 236, 1937.

    >>> counts = noisy_counts([60, 30, 10], households=100, edges_kwh=[0, 5, 10, 20], scale=0.01, form="histogram")
    >>> ranges = quantile_ranges(counts, [0.5, 0.95], coverage=0.95)  # 5 * 50/60, and 10 + 10 * 5/10
    >>> ranges.value_kwh.round(2).tolist(), ranges.low_kwh.tolist(), ranges.high_kwh.tolist()
    ([4.17, 15.0], [0.0, 10.0], [5.0, 20.0])
    """
    exact_shares = [as_written(share) for share in shares]
    if not all(0 < share <= 1 for share in exact_shares):
        raise ChainError("the quantile of a share of the households is for a share above 0 and at most 1")
    widths = _half_widths(noisy, coverage)
    fitted, below = fitted_below_edges(noisy), noisy.below_inner_edges
    columns = [_quantile(noisy, fitted, (below - widths, below + widths), share) for share in exact_shares]
    value, low, high = (np.stack(parts, axis=-1) for parts in zip(*columns, strict=True))
    return QuantileRanges(value, low, high)


def fitted_below_edges(noisy: NoisyCounts) -> Floats:
    r"""Return the least-squares estimate of the households below each edge: 0 at the first, all at the last.

    .. math:: \min_h \sum_b (h_b - \tilde h_b)^2, \; h_b \ge 0, \; \sum_b h_b = n \quad\text{or}\quad
              \min_C \sum_b (C_b - \tilde C_b)^2, \; 0 \le C_1 \le ... \le C_{B-1} \le n

    Source: projection on the simplex [HWC] for a histogram; isotonic regression, by its min-max formula, cut off at 0
    and n, for cumulative counts [BBBB]. The noises of the released counts have equal variances.

    Args:
        noisy: released counts.

    Returns:
        Shape (..., bins + 1), not decreasing [households].

    References:
        [HWC] Held, Wolfe, Crowder: Validation of Subgradient Optimization. Math. Programming 6, 1974.
        [BBBB] Barlow, Bartholomew, Bremner, Brunk: Statistical Inference under Order Restrictions. Wiley, 1972.

    >>> counts = noisy_counts([62, 33, -4], households=100, edges_kwh=[0, 5, 10, 20], scale=2.0, form="histogram")
    >>> fitted_below_edges(counts).tolist()  # 5 more than 62 + 33 + 0 in the first two
    [0.0, 64.5, 100.0, 100.0]
    """
    total = noisy.households[..., None].astype(np.float64)
    if noisy.form == "histogram":
        inner = _simplex_projection(noisy.values.astype(np.float64), total).cumsum(axis=-1)[..., :-1]
    else:
        inner = _isotonic(noisy.values.astype(np.float64))
    return np.concatenate([np.zeros_like(total), np.clip(inner, 0, total), total], axis=-1)


def _bins_added(bins: int) -> Integers:
    """Return how many bins are added up for each inner edge: those on its nearer side."""
    number = np.arange(1, bins)
    return np.minimum(number, bins - number)


def _half_widths(noisy: NoisyCounts, coverage: EpsilonLike) -> Integers:
    """Return the half-width of the noise of the number below each inner edge."""
    added = np.ones(noisy.bins - 1, np.int64) if noisy.form == "cumulative" else _bins_added(noisy.bins)
    return np.array([_sum_width(noisy.scale, number, coverage) for number in added.tolist()], np.int64)


@lru_cache(maxsize=1024)
def _sum_width(scale: float, number: int, coverage: EpsilonLike) -> int:
    """Return the half-width of a sum of noises of one scale; most days of a series have the same."""
    return sum_interval([scale] * number, coverage)


def _quantile(
    noisy: NoisyCounts, fitted: Floats, bounds: tuple[Integers, Integers], share: Fraction
) -> tuple[Floats, Floats, Floats]:
    """Return estimate and interval of one quantile, each of shape (...)."""
    scaled = share.numerator * noisy.households
    rank, target = -(-scaled // share.denominator), scaled / share.denominator
    at = (fitted[..., 1:-1] < target[..., None] * (1 - 1e-12)).sum(axis=-1)
    before, after = (np.take_along_axis(fitted, (at + end)[..., None], axis=-1)[..., 0] for end in (0, 1))
    part = np.clip((target - before) / np.where(after > before, after - before, 1.0), 0.0, 1.0)
    edges = noisy.edges_kwh
    value = edges[at] + part * (edges[at + 1] - edges[at])
    is_possible = np.ones((*noisy.households.shape, noisy.bins), np.bool_)
    fewest, most = bounds
    is_possible[..., 1:] &= fewest < rank[..., None]
    is_possible[..., :-1] &= most >= rank[..., None]
    np.put_along_axis(is_possible, at[..., None], values=True, axis=-1)
    lowest = is_possible.argmax(axis=-1)
    highest = noisy.bins - 1 - is_possible[..., ::-1].argmax(axis=-1)
    return value, edges[lowest], edges[highest + 1]


def _simplex_projection(values: Floats, total: Floats) -> Floats:
    """Return the nearest vectors >= 0 with these sums along the last axis."""
    descending = -np.sort(-values, axis=-1)
    surplus = descending.cumsum(axis=-1) - total
    number = np.arange(1, values.shape[-1] + 1)
    positive = (descending * number > surplus).sum(axis=-1, keepdims=True)
    excess = np.take_along_axis(surplus, positive - 1, axis=-1) / positive
    return np.asarray(np.maximum(values - excess, 0.0))


def _isotonic(values: Floats) -> Floats:
    r"""Return the nearest vectors that do not decrease along the last axis.

    .. math:: \hat y_i = \max_{a \le i} \min_{b \ge i} \frac{y_a + ... + y_b}{b - a + 1}
    """
    sums = np.concatenate([np.zeros_like(values[..., :1]), values.cumsum(axis=-1)], axis=-1)
    number = np.arange(values.shape[-1])
    length = number - number[:, None] + 1
    is_range = length > 0
    means = (sums[..., None, 1:] - sums[..., :-1, None]) / np.where(is_range, length, 1)
    smallest = np.minimum.accumulate(np.where(is_range, means, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.where(is_range, smallest, -np.inf).max(axis=-2))


# --------------------------------------------------------------------------------------------------
# Published tables of distributions: households by range of use, and the quantiles that follow from the counts.
#
# *Quantiles* and the peak of the households' daily use are functions of the released counts alone, so they add no
# privacy loss, and verification computes them again. The mathematics is in `distribution`: a least-squares fit,
# and ranges that the counts do not contradict. Example: with 5,000 households, 10 ranges of use and noise of scale 20
# the intervals of the median and of the shares .9 and .99 are one or two ranges each.
#
# Decisions:
#
# * The shares are those of a box plot with the usual upper tail, .1 .25 .5 .75 .9 .95 .99, and 1: the largest use. Of
#   the largest use only the lower end says something: so much was used by some household.
# * The interval of each quantile has the coverage of the daily averages; all together hold less often.
# * A row is a share, so that a plot or a query takes one column for all of them.
# --------------------------------------------------------------------------------------------------

SHARES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)

_DAILY_DISTRIBUTION = released_schema(
    ("bin_low_kwh", pa.float64(), "a household's use that day was at least this, kWh"),
    ("bin_high_kwh", pa.float64(), "and less than this, or just this where it is the clamp, kWh"),
    ("households_noisy", pa.int64(), "what was drawn: how many households, plus noise"),
    ("noise_sd", pa.float64(), "standard deviation of the noise of households_noisy, households"),
    loss="loss of the release, all its cells together, about one household's day",
)

_DAILY_QUANTILES = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file whose counts the value follows from"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
    ("share", pa.float64(), "share of the households that used this or less; 1: the largest use [-]"),
    ("households", pa.int64(), "households on the roster that day"),
    ("value_kwh", pa.float64(), "estimate, interpolated in a range of use, kWh"),
    ("low_kwh", pa.float64(), "lower end of the interval, the edge of a range of use, kWh"),
    ("high_kwh", pa.float64(), "upper end of the interval, the edge of a range of use, kWh; the clamp: this or more"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)


def _lines(
    row: result_table.PublishedRow, terms: result_table.ContractTerms, noise: result_table.Noise
) -> result_table.Columns:
    cells: Any = terms.series[row.series].read_cells(row.cells)
    return {
        "group": [cell.group for cell in cells],
        "bin_low_kwh": [float(cell.place[0]) for cell in cells],
        "bin_high_kwh": [float(cell.place[1]) for cell in cells],
        "households_noisy": row.values,
        "noise_sd": [noise.deviation(row.scale)] * len(cells),
    }


DISTRIBUTIONS: Final = result_table.ResultTable(
    "daily_distribution",
    _DAILY_DISTRIBUTION,
    "day, group and range of use",
    f"number of households by day and range of use, {result_table.NOISE_TEXT}",
    _lines,
    "households_noisy",
    result_table.Chart(
        "households_noisy",
        unit="households",
        x=("bin_low_kwh", "bin_high_kwh"),
        title="Households by use of the day, kWh",
    ),
)


def _units(rows: Sequence[result_table.PublishedRow], terms: result_table.Terms) -> list[result_table.Unit]:
    """Return each released row of counts, by day and series."""
    of_day = [(date.fromisoformat(row.day), row) for row, _ in result_table.released(rows, terms, QUANTILES)]
    units = [result_table.Unit(day, day, row.series, (), (row,)) for day, row in of_day]
    return sorted(units, key=lambda unit: (unit.first_day, unit.series))


def _quantiles(units: Sequence[result_table.Unit], terms: result_table.Terms, noise: result_table.Noise) -> pa.Table:
    """Return the quantiles of all releases: groups one after the other, each with its shares."""
    rows = [row for unit in units for row in unit.rows]
    series: list[Any] = [terms[row.contract].series[row.series] for row in rows]
    groups = [tuple(of.by_group(row.cells, row.households)) for row, of in zip(rows, series, strict=True)]
    ranges = [_ranges(*of, noise) for of in zip(rows, series, groups, strict=True)]
    lines = np.array([len(names) * len(SHARES) for names in groups], np.int64)
    names = [name for of_row in groups for name in of_row]
    return table_schemas.table_from_columns(
        _DAILY_QUANTILES,
        day=np.array([row.day for row in rows], "datetime64[D]").astype(np.int32).repeat(lines),
        series=_repeated([row.series for row in rows], lines),
        group_column=_repeated([of.level for of in series], lines),
        group=_repeated(names, np.full(len(names), len(SHARES))),
        share=np.tile(SHARES, len(names)),
        households=_joined([members for members, _ in ranges]).astype(np.int64).repeat(len(SHARES)),
        value_kwh=_joined([of.value_kwh for _, of in ranges]),
        low_kwh=_joined([of.low_kwh for _, of in ranges]),
        high_kwh=_joined([of.high_kwh for _, of in ranges]),
        version=np.array([terms[row.contract].version for row in rows], np.int32).repeat(lines),
    )


def _ranges(
    row: result_table.PublishedRow,
    distribution: Any,  # noqa: ANN401
    groups: Sequence[str],
    noise: result_table.Noise,
) -> tuple[Integers, QuantileRanges]:
    """Return the households of each group, shape (groups,), and the quantiles, shape (groups, shares)."""
    shape = len(groups), -1
    households = np.array(row.households, np.int64).reshape(shape)[:, 0]
    noisy = noisy_counts(
        np.array(row.values, np.int64).reshape(shape),
        households=households,
        edges_kwh=[float(edge) for edge in distribution.bins_kwh],
        scale=row.scale,
        form=distribution.form,
    )
    return households, quantile_ranges(noisy, SHARES, coverage=noise.coverage)


def _repeated(texts: Sequence[str], times: Integers) -> pa.Array:
    """Return texts, each repeated so many times."""
    codes = pa.array(texts, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array(codes.indices.to_numpy().repeat(times)), codes.dictionary)


def _joined(arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)


QUANTILES: Final = result_table.DerivedTable(
    "daily_quantiles",
    _DAILY_QUANTILES,
    of="quantiles of the released counts",
    about="quantiles of the households' daily use",
    description="quantiles of the households' daily use with an interval for the noise: computed from the released "
    "counts and nothing else; the share 1 is the largest use, of which only the lower end says something",
    source="distribution",
    span="day",
    units=_units,
    lines=_quantiles,
    order=("day", "series"),
    rounded=("value_kwh",),
)


# --------------------------------------------------------------------------------------------------
# The statistic.
# --------------------------------------------------------------------------------------------------


def _bins(values: object) -> tuple[Decimal, ...]:
    edges = ascending(values, kwh)
    if len(edges) < 3 or edges[0] != 0:
        raise wrong("must begin with 0 and have three edges or more: one bin would contain all households")
    return edges


class Distribution(EnergySeries):
    """Counts of households by daily use: one cell per range, half-open; the clamp closes the last range.

    The cells of a histogram are the bins. The cells of cumulative counts are the ranges from 0 to each inner edge; the
    count of the last range is the number of households on the roster, which is public.
    """

    KIND = "distribution"
    PLURAL = "counts by range of use"
    CONTENT = "distributions"
    TITLE = "distributions of use"
    TABLES = (DISTRIBUTIONS,)
    DERIVED = (QUANTILES,)
    true_values = "counts"
    stated = (
        "the households in each range of daily use; ranges go from one number to below the next, the last one "
        "including its end. Noise is added to each count. In a histogram a household whose use changes leaves one "
        "range for another. Cumulative counts are of the households below an end, and may all change by one; the "
        "last, of all households, is known and not drawn. Counts are whole numbers that may be negative and need not "
        "add up or increase."
    )
    cell_words = ("bins", "form or bins")

    statistic: Literal["distribution"]
    form: Literal["histogram", "cumulative"] = "histogram"
    """Number of households in each bin, or below each edge."""
    bins_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_bins), NUMBERS, EITHER]
    """Edges of the bins, from 0 to `clamp_kwh`; public."""

    @property
    def bins_wh(self) -> tuple[int, ...]:
        """Return the edges of the bins in whole watt-hours."""
        return tuple(watt_hours(edge) for edge in self.bins_kwh)

    @property
    def ranges_kwh(self) -> tuple[tuple[Decimal, Decimal], ...]:
        """Return the range of use of each cell of a group [kWh]."""
        if self.form == "cumulative":
            return tuple((self.bins_kwh[0], edge) for edge in self.bins_kwh[1:-1])
        return tuple(pairwise(self.bins_kwh))

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of all counts together to a change of one household's day [households].

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        if self.form == "cumulative":
            return cumulative_sensitivity(self.counted_change(change), edges=self.bins_wh)
        return histogram_sensitivity(self.counted_change(change), edges=self.bins_wh)

    @property
    def names(self) -> Mapping[str, Place]:
        """Return the ranges of use of a group [kWh] by their names, such as "0-2".

        >>> from agedp_data.series.series import series_in
        >>> from agedp_data.series.series_terms import Cell
        >>> terms = {"statistic": "distribution", "clamp_kwh": "9", "bins_kwh": ["0", "2", "9"], "by": "tariff"}
        >>> (series := series_in(terms)).write_cells(series.cells([Cell("Std")]))
        ('Std 0-2', 'Std 2-9')
        """
        return {f"{exact_text(low)}-{exact_text(high)}": (low, high) for low, high in self.ranges_kwh}

    def counted(self, days: HouseholdDays) -> Counted:
        """Return in which ranges each day lies: 1 or 0 for each [households].

        Raises:
            ChainError: an energy is outside the range of a counted day.
        """
        days_wh, clamped = self.clamped_days(days, self.clamp_wh)
        number = np.searchsorted(self.bins_wh[1:-1], days_wh, side="right")
        ranges = np.arange(len(self.ranges_kwh))
        is_in = number <= ranges if self.form == "cumulative" else number == ranges
        return Counted(is_in.astype(np.int64), clamped)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have these exact counts.

        The counts of a histogram add up to the number of households; cumulative counts do not decrease and do not
        exceed it.
        """
        steps = np.diff(exact, prepend=0, append=households) if self.form == "cumulative" else exact
        return bool((steps >= 0).all() and steps.sum() == households)

    @model_validator(mode="after")
    def _end_at_the_clamp(self) -> Self:
        if self.bins_kwh[-1] != self.clamp_kwh:
            raise wrong(f"must end with clamp_kwh = {self.clamp_kwh:f}: every day lies in a bin", "bins_kwh")
        return self

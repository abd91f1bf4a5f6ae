"""A layered clamp: a list of clamps in the run file <-> one series per layer below it.

A high clamp costs noise, a low one cuts large households off. A layered clamp cuts a household's day at public clamps
U_1 < .. < U_m into layers, each of which is a series with its own share of the day's epsilon:

    clamp_kwh = [30, 75]        daily_mean/1   the mean up to 30 kWh, share 0.77
    share     = [0.77, 0.23]    daily_mean/2   the mean of what lies above 30 and up to 75 kWh, share 0.23

The layers of a day add up to min(x, U_m) exactly. Their sensitivities are their widths, and one household's replaced
day can change all of them by their widths at once, so their losses add.

`series.series` expands the tables of a run file.

Decisions:

* Everything below the run file sees ordinary series: budgets, accounting, ledger and tables know no layers. Layer 1 is
  the mean with a clamp of U_1, so that it continues the file of a mean that had one clamp.
* `missing_kwh` is cut like a day, so that a missing day counts as `missing_kwh` in the sum of the layers.
* A change of at most x kWh is charged as min(x, width) in every layer. One household cannot attain this in all layers
  at once, so the sum is an upper bound of the joint loss about such a change.
* Differences of contracts are shown in the keys of the run file (`series.series.written_contracts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import PlainValidator, model_validator

from agedp_data.amendment_rules import EITHER
from agedp_data.epsilon import exact_text
from agedp_data.parameters import (
    LATER,
    NUMBERS,
    Kwh,
    PositiveKwh,
    Section,
    Text,
    ascending,
    exact,
    positive_kwh,
    share,
    watt_hours,
    wrong,
)
from agedp_data.series import series_terms
from agedp_data.series.mean import LAYERS, Mean
from agedp_data.series.result_table import ResultTable

MOST_LAYERS: Final = 4
_EXAMPLES: Final[Mapping[int, str]] = {2: "[0.77, 0.23]", 3: "[0.7, 0.2, 0.1]", 4: "[0.7, 0.15, 0.1, 0.05]"}


def _clamps(values: object) -> tuple[Decimal, ...]:
    clamps = ascending(values, positive_kwh) if isinstance(values, list | tuple) and values else ()
    if not 2 <= len(clamps) <= MOST_LAYERS:
        raise wrong(f"must be one number, or a list of 2 to {MOST_LAYERS} clamps such as [30, 75]")
    return clamps


def _shares(values: object) -> tuple[Decimal, ...]:
    if not isinstance(values, list | tuple):
        raise wrong("must be a list of one share per clamp, because clamp_kwh is a list")
    numbers = [value for value in values if isinstance(value, int | Decimal) and Decimal(value).is_finite()]
    if any(not 0 < value <= 1 for value in numbers):
        raise wrong("each share must be above 0 and at most 1")
    return tuple(map(share, values))


class Layer(Mean):
    r"""Mean of the part of the households' days above one public clamp and up to the next: an upper layer.

    .. math:: y_j = \min(\max(x - U_{j-1}, 0), U_j - U_{j-1})

    A change of one household's day changes the sum by at most the width U_j - U_(j-1). Written by `LayeredMean.layers`,
    never by users; layer 1 is a `Mean`.
    """

    TABLES: ClassVar[tuple[ResultTable, ...]] = (LAYERS,)

    above_kwh: Annotated[PositiveKwh, LATER, EITHER]
    """Clamp of the layer below; the day counts as its energy above this, at most `clamp_kwh` less this."""

    @property
    def above_wh(self) -> int:
        """Return the clamp of the layer below, in whole watt-hours."""
        return watt_hours(self.above_kwh)

    def clamp_energy(self, energy_wh: series_terms.Wh) -> series_terms.Wh:
        """Return the part of each day's energy in this layer [Wh]; see `EnergySeries`."""
        return np.clip(energy_wh - self.above_wh, 0, self.width_wh)

    def missing(self, slots: Sequence[int], *, minutes: int) -> series_terms.Wh:
        """Return what a household-day without enough readings adds: `missing_wh`, which is cut already [Wh]."""
        del slots, minutes
        return np.array([self.missing_wh])

    @model_validator(mode="after")
    def _has_a_width(self) -> Self:
        if self.missing_wh > self.width_wh or self.width_wh <= 0:
            raise wrong("must exceed above_kwh, by missing_kwh or more", "clamp_kwh")
        return self


class LayeredMean(Section):
    """A mean with a list of clamps, as the run file has it; `layers` are its series."""

    statistic: Literal["mean"]
    """Published statistic of a day."""
    clamp_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_clamps), NUMBERS]
    """Ascending upper bounds of the layers of a household's daily total. Public, never derived from the data."""
    share: Annotated[tuple[Decimal, ...] | None, PlainValidator(_shares), NUMBERS] = None
    """Share of each day's epsilon for each layer; the shares of all series and layers add up to 1."""
    by: Text | None = None
    """Group column of the roster; the series then has one value per group and day."""
    max_missing: series_terms.Missing = 2
    """A household-day that lacks more readings than this counts as missing."""
    missing_kwh: Kwh = exact(0)
    """Value of a missing household-day, cut into layers like any day."""
    values: Literal["readings", "states"] = "readings"
    """Readings as they are, or the representative values of their states under public `[model]` edges."""

    @property
    def layers(self) -> Iterator[Mean]:
        """Yield the series of the layers, the lowest first."""
        shared = self.model_dump(include={"statistic", "by", "max_missing", "values"})
        for above, clamp, part in zip((Decimal(0), *self.clamp_kwh), self.clamp_kwh, self.share or (), strict=False):
            missing = min(max(self.missing_kwh - above, Decimal(0)), clamp - above)
            keys = {**shared, "clamp_kwh": clamp, "share": part, "missing_kwh": missing}
            yield Layer(**keys, above_kwh=above) if above else Mean(**keys)

    @model_validator(mode="after")
    def _tables_agree(self) -> Self:
        number = len(self.clamp_kwh)
        if self.share is None:
            raise wrong(f"is missing; write one share per clamp, such as share = {_EXAMPLES[number]}", "share")
        if len(self.share) != number:
            raise wrong(f"must have {number} numbers, one per clamp, such as {_EXAMPLES[number]}", "share")
        if self.missing_kwh > self.clamp_kwh[-1]:
            raise wrong("must not exceed the last clamp_kwh", "missing_kwh")
        series_terms.check_group_columns(self.by)
        return self


def layer_text(series: str, clamp_kwh: Decimal | str) -> str:
    """Return the name of a mean for people, with the layer that it is and the clamp of that.

    >>> layer_text("use", "8"), layer_text("use/1", "8")
    ('use', 'use, layer 1, up to 8 kWh')
    """
    number = series_terms.layer_number(series)
    return f"{series_terms.mean_name(series)}, layer {number}, up to {Decimal(clamp_kwh):f} kWh" if number else series


def layer_range(series: series_terms.Series) -> str:
    """Return which part of a household's day a mean counts [kWh].

    >>> from agedp_data.series.series import series_in
    >>> layer_range(series_in({"statistic": "mean", "clamp_kwh": "75", "above_kwh": "30", "share": "0.23"}))
    'above 30 and up to 75'
    """
    clamp = f"up to {exact_text(series.clamp_kwh)}" if isinstance(series, Mean) else ""
    return f"above {exact_text(series.above_kwh)} and {clamp}" if isinstance(series, Layer) else clamp


def layer_quantities(means: Mapping[str, Mean]) -> dict[str, tuple[object, ...]]:
    """Return what each layer of one mean counts as a household's day, the lowest first: an upper one beside that."""
    order = sorted(means, key=lambda name: means[name].clamp_wh)
    first = means[order[0]].quantity
    return {name: (*means[name].quantity, *first) if name != order[0] else first for name in order}


def series_text(name: str, series: series_terms.Series) -> str:
    """Return the name of a series for people; of a layer as `layer_text`."""
    return layer_text(name, series.clamp_kwh) if isinstance(series, Mean) else name


def is_upper(series: str) -> bool:
    """Return whether a series is a layer above the first: a part of a mean, which is none by itself."""
    return series_terms.layer_number(series) > 1

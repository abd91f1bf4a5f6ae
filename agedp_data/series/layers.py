"""A layered clamp: a list of clamps in the run file <-> one series per layer below it.

A high clamp costs noise, a low one cuts large households off. A layered clamp cuts a household's day at public clamps
U_1 < .. < U_m into layers, each of which is a series with its own share of the day's epsilon:

    clamp_kwh = [30, 75]        daily_mean/1   the mean up to 30 kWh, share 0.77
    share     = [0.77, 0.23]    daily_mean/2   the mean of what lies above 30 and up to 75 kWh, share 0.23

The layers of a day add up to min(x, U_m) exactly. Their sensitivities are their widths, and one household's replaced
day can change all of them by their widths at once, so their losses add.

`series_tables` expands the tables of a run file.

Decisions:

* Everything below the run file sees ordinary series: budgets, accounting, ledger and tables know no layers. Layer 1 is
  the mean with a clamp of U_1, so that it continues the file of a mean that had one clamp.
* `missing_kwh` is cut like a day, so that a missing day counts as `missing_kwh` in the sum of the layers.
* A change of at most x kWh is charged as min(x, width) in every layer. One household cannot attain this in all layers
  at once, so the sum is an upper bound of the joint loss about such a change.
* Differences of contracts are shown in the keys of the run file (`series_tables.written_contracts`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from pydantic import PlainValidator, model_validator

from agedp_data.parameters import (
    NUMBERS,
    Kwh,
    Section,
    Text,
    ascending,
    exact,
    exact_text,
    positive_kwh,
    share,
    wrong,
)
from agedp_data.series.series import AnySeries, Layer, Mean, series_in
from agedp_data.series.series_terms import Missing, check_group_columns

MOST_LAYERS: Final = 4
SEPARATOR: Final = "/"
_EXAMPLES: Final[Mapping[int, str]] = {2: "[0.77, 0.23]", 3: "[0.7, 0.2, 0.1]", 4: "[0.7, 0.15, 0.1, 0.05]"}
_PER_LAYER: Final = ("clamp_kwh", "above_kwh", "share", "missing_kwh")
"""Keys in which the layers of a mean differ."""


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
    max_missing: Missing = 2
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
        check_group_columns(self.by)
        return self


def mean_name(series: str) -> str:
    """Return the name of the mean that a series is, or is a layer of: layers share it, levels do not.

    >>> mean_name("daily_mean/2"), mean_name("daily_mean"), mean_name("daily_mean/feeder")
    ('daily_mean', 'daily_mean', 'daily_mean/feeder')
    """
    return series.partition(SEPARATOR)[0] if layer_number(series) else series


def layer_number(series: str) -> int:
    """Return which layer of its mean a series is, from 1; 0 for a series that is no layer.

    >>> layer_number("daily_mean/2"), layer_number("daily_mean")
    (2, 0)
    """
    number = series.partition(SEPARATOR)[2]
    return int(number) if number.isdecimal() else 0


def layer_text(series: str, clamp_kwh: Decimal | str) -> str:
    """Return the name of a mean for people, with the layer that it is and the clamp of that.

    >>> layer_text("use", "8"), layer_text("use/1", "8")
    ('use', 'use, layer 1, up to 8 kWh')
    """
    number = layer_number(series)
    return f"{mean_name(series)}, layer {number}, up to {Decimal(clamp_kwh):f} kWh" if number else series


def series_text(name: str, series: AnySeries) -> str:
    """Return the name of a series for people; of a layer as `layer_text`."""
    return layer_text(name, series.clamp_kwh) if isinstance(series, Mean) else name


def layers_of(series: str, names: Iterable[str]) -> list[str]:
    """Return the layers of the mean that a series is a layer of, or the series alone.

    >>> layers_of("use/1", ["use/1", "use/2", "night"]), layers_of("night", ["use/1", "use/2", "night"])
    (['use/1', 'use/2'], ['night'])
    """
    return [name for name in names if mean_name(name) == mean_name(series)]


def layer_width_kwh(clamp_kwh: str, above_kwh: str | None) -> Decimal:
    """Return the most that a household's day counts in a layer, or in a mean, from its keys in a contract.

    >>> layer_width_kwh("75", "30"), layer_width_kwh("50", None)
    (Decimal('45'), Decimal('50'))
    """
    return Decimal(clamp_kwh) - Decimal(above_kwh or "0")


def is_upper(series: str) -> bool:
    """Return whether a series is a layer above the first: a part of a mean, which is none by itself."""
    return layer_number(series) > 1


def joined_layers(name: str, tables: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of lists of these layers, the lowest first; None if they are not those of one table.

    Args:
        name: the table.
        tables: terms of its layers in a contract.
    """
    terms = list(tables.values())
    try:
        layers = [series_in(of_layer) for of_layer in terms]
        shared = {key: getattr(layers[0], key) for key in ("statistic", "by", "max_missing", "values")}
        lists = {key: [getattr(layer, key) for layer in layers] for key in ("clamp_kwh", "share")}
        missing_kwh = sum((layer.missing_kwh for layer in layers if isinstance(layer, Mean)), Decimal())
        written = LayeredMean.model_validate({**shared, **lists, "missing_kwh": missing_kwh})
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    others = common_keys(terms, without=_PER_LAYER)
    names = [f"{name}{SEPARATOR}{number}" for number in range(1, len(layers) + 1)]
    if [*tables] != names or [*written.layers] != layers or others is None:
        return None
    of_layers = {key: [of[key] for of in terms] for key in ("clamp_kwh", "share")}
    return {**others, **of_layers, "missing_kwh": exact_text(missing_kwh)}


def common_keys(terms: Sequence[Mapping[str, Any]], *, without: Collection[str]) -> dict[str, Any] | None:
    """Return the keys of several tables that are not `without`; None if the tables differ in one of them.

    >>> common_keys([{"by": "area", "share": 1}, {"by": "area", "share": 2}], without=("share",))
    {'by': 'area'}
    """
    first, *others = ({key: value for key, value in of.items() if key not in without} for of in terms)
    return first if all(keys == first for keys in others) else None

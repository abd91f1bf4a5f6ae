"""A layered clamp: a list of clamps in the run file <-> one series per layer below it.

A high clamp costs noise, a low one cuts large households off. A layered clamp cuts a household's day at public clamps
U_1 < .. < U_m into layers, each of which is a series with its own share of the day's epsilon:

    clamp_kwh = [30, 75]        daily_mean/1   the mean up to 30 kWh, share 0.77
    share     = [0.77, 0.23]    daily_mean/2   the mean of what lies above 30 and up to 75 kWh, share 0.23

The layers of a day add up to min(x, U_m) exactly. Their sensitivities are their widths, and one household's replaced
day can change all of them by their widths at once, so their losses add.

Decisions:

* Everything below the run file sees ordinary series: budgets, accounting, ledger and tables know no layers. Layer 1 is
  the mean with a clamp of U_1, so that it continues the file of a mean that had one clamp.
* `missing_kwh` is cut like a day, so that a missing day counts as `missing_kwh` in the sum of the layers.
* A change of at most x kWh is charged as min(x, width) in every layer. One household cannot attain this in all layers
  at once, so the sum is an upper bound of the joint loss about such a change.
* Differences of contracts are shown in the keys of the run file (`written_contracts`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Annotated, Any, Final, Literal, Self

from pydantic import PlainValidator, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator, model_validator

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
from agedp_data.series.series_terms import Missing, check_group_column

MOST_LAYERS: Final = 4
_SEPARATOR: Final = "/"
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
        check_group_column(self.by)
        return self


_LAYERED: Final = TypeAdapter(dict[str, LayeredMean])


def _read_table(table: object, read_series: ValidatorFunctionWrapHandler) -> object:
    """Return the series of one table of the run file, a `LayeredMean` for a list of clamps."""
    is_mean = isinstance(table, Mapping) and table.get("statistic") == "mean"
    if not isinstance(table, Mapping) or not isinstance(table.get("clamp_kwh"), list | tuple):
        if is_mean and isinstance(table, Mapping) and isinstance(table.get("share"), list | tuple):
            raise wrong("must be one number, because clamp_kwh is one number", "share")
        return read_series(table)
    if not is_mean and table.get("statistic") in ("distribution", "profile"):
        raise wrong('must be one number; a list of clamps goes with statistic = "mean"', "clamp_kwh")
    return _LAYERED.validate_python({"mean": dict(table)})["mean"] if is_mean else read_series(table)


SeriesTable = Annotated[AnySeries, WrapValidator(_read_table, json_schema_input_type=AnySeries | LayeredMean)]
"""A table [series.NAME] of the run file."""


def series_by_name(tables: Mapping[str, AnySeries | LayeredMean]) -> dict[str, AnySeries]:
    """Return the series of a run file by name, one per layer where a mean has a list of clamps.

    >>> table = LayeredMean(statistic="mean", clamp_kwh=[30, 75], share=[Decimal("0.77"), Decimal("0.23")])
    >>> [(name, series.clamp_wh, series.width_wh) for name, series in series_by_name({"use": table}).items()]
    [('use/1', 30000, 30000), ('use/2', 75000, 45000)]

    Raises:
        PydanticCustomError: no table, or a name with another character; "/" is kept for layers.
    """
    if not tables:
        raise wrong("names no series; write a table such as [series.daily_mean]")
    series: dict[str, AnySeries] = {}
    for name, table in tables.items():
        if not (name.isascii() and name.replace("_", "").replace("-", "").isalnum() and len(name) <= 64):
            raise wrong("must be named by letters, digits, _ and -, 64 at most", name)
        if isinstance(table, LayeredMean):
            series |= {f"{name}{_SEPARATOR}{number}": layer for number, layer in enumerate(table.layers, 1)}
        else:
            series[name] = table
    return series


def table_name(series: str) -> str:
    """Return the name in the run file of a series, which a layer shares with the others of its mean.

    >>> table_name("daily_mean/2"), table_name("daily_mean")
    ('daily_mean', 'daily_mean')
    """
    return series.partition(_SEPARATOR)[0]


def layer_number(series: str) -> int:
    """Return which layer of its mean a series is, from 1; 0 for a series that is no layer.

    >>> layer_number("daily_mean/2"), layer_number("daily_mean")
    (2, 0)
    """
    number = series.partition(_SEPARATOR)[2]
    return int(number) if number.isdecimal() else 0


def layer_text(series: str, clamp_kwh: Decimal | str) -> str:
    """Return the name of a mean for people, with the layer that it is and the clamp of that.

    >>> layer_text("use", "8"), layer_text("use/1", "8")
    ('use', 'use, layer 1, up to 8 kWh')
    """
    number = layer_number(series)
    return f"{table_name(series)}, layer {number}, up to {Decimal(clamp_kwh):f} kWh" if number else series


def series_text(name: str, series: AnySeries) -> str:
    """Return the name of a series for people; of a layer as `layer_text`."""
    return layer_text(name, series.clamp_kwh) if isinstance(series, Mean) else name


def layers_of(series: str, names: Iterable[str]) -> list[str]:
    """Return the layers of the mean that a series is a layer of, or the series alone.

    >>> layers_of("use/1", ["use/1", "use/2", "night"]), layers_of("night", ["use/1", "use/2", "night"])
    (['use/1', 'use/2'], ['night'])
    """
    return [name for name in names if table_name(name) == table_name(series)]


def layer_width_kwh(clamp_kwh: str, above_kwh: str | None) -> Decimal:
    """Return the most that a household's day counts in a layer, or in a mean, from its keys in a contract.

    >>> layer_width_kwh("75", "30"), layer_width_kwh("50", None)
    (Decimal('45'), Decimal('50'))
    """
    return Decimal(clamp_kwh) - Decimal(above_kwh or "0")


def is_upper(series: str) -> bool:
    """Return whether a series is a layer above the first: a part of a mean, which is none by itself."""
    return layer_number(series) > 1


def written_contracts(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two contracts with the layers of a mean as one table of lists, as the run file has it.

    Use it to compare contracts. Layers are left as they are if one of the contracts has some that no run file writes.

    >>> mean = {"statistic": "mean", "missing_kwh": "0"}
    >>> layers = {"use/1": {**mean, "clamp_kwh": "30", "share": "0.8"}}
    >>> layers["use/2"] = {**mean, "clamp_kwh": "75", "above_kwh": "30", "share": "0.2"}
    >>> _, written = written_contracts({"series": {}}, {"series": layers})
    >>> written["series"]["use"]["clamp_kwh"]
    ['30', '75']
    """
    joined = [_joined_tables(contract) for contract in (old, new)]
    unwritten = {name for tables in joined for name, table in tables.items() if table is None}
    return _with_tables(old, joined[0], unwritten), _with_tables(new, joined[1], unwritten)


def _joined_tables(contract: Mapping[str, Any]) -> dict[str, dict[str, Any] | None]:
    """Return, by name, the tables of lists of a contract's means with layers, None where no run file writes them."""
    tables = contract.get("series")
    if not isinstance(tables, Mapping):
        return {}
    in_order = sorted(filter(layer_number, tables), key=lambda series: (table_name(series), layer_number(series)))
    by_table = {name: list(series) for name, series in groupby(in_order, table_name)}
    return {name: _joined(name, {of: tables[of] for of in series}) for name, series in by_table.items()}


def _with_tables(
    contract: Mapping[str, Any], joined: Mapping[str, dict[str, Any] | None], unwritten: Collection[str]
) -> dict[str, Any]:
    """Return a contract with these tables in place of their layers, except the unwritten ones."""
    used = {name: table for name, table in joined.items() if name not in unwritten}
    if not used:
        return dict(contract)
    kept = {name: terms for name, terms in contract["series"].items() if table_name(name) not in used}
    return {**contract, "series": {**kept, **used}}


def _joined(name: str, tables: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of lists of these layers, None if they are not those of one table."""
    terms = list(tables.values())
    try:
        layers = [series_in(of_layer) for of_layer in terms]
        shared = {key: getattr(layers[0], key) for key in ("statistic", "by", "max_missing", "values")}
        lists = {key: [getattr(layer, key) for layer in layers] for key in ("clamp_kwh", "share")}
        missing_kwh = sum((layer.missing_kwh for layer in layers if isinstance(layer, Mean)), Decimal())
        written = LayeredMean.model_validate({**shared, **lists, "missing_kwh": missing_kwh})
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    others = [{key: value for key, value in of.items() if key not in _PER_LAYER} for of in terms]
    names = [f"{name}{_SEPARATOR}{number}" for number in range(1, len(layers) + 1)]
    if [*tables] != names or [*written.layers] != layers or any(keys != others[0] for keys in others):
        return None
    of_layers = {key: [of[key] for of in terms] for key in ("clamp_kwh", "share")}
    return {**others[0], **of_layers, "missing_kwh": exact_text(missing_kwh)}

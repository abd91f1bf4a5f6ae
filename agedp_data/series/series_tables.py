"""Tables [series.NAME] of the run file <-> the series below it: one, or one per layer or level.

A list of clamps is a mean in layers, "use/1" and "use/2" (`layered_mean`); a list of group columns is a hierarchy of
levels, "use/feeder" and "use/area" (`levels`). Everything below the run file sees ordinary series.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Annotated, Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator

from agedp_data.parameters import exact_text, wrong
from agedp_data.series.layered_mean import LayeredMean
from agedp_data.series.levels import LevelSeries, common_keys, has_levels, joined_levels, level_name, read_levels
from agedp_data.series.mean import Mean
from agedp_data.series.series import AnySeries, series_in
from agedp_data.series.series_terms import SEPARATOR, layer_number

_LAYERED: Final = TypeAdapter(dict[str, LayeredMean], config=ConfigDict(defer_build=True))
_PER_LAYER: Final = ("clamp_kwh", "above_kwh", "share", "missing_kwh")
"""Keys in which the layers of a mean differ."""
_PERIODS_OF_MEANS: Final = ("week", "month", "year")
_NO_PERIOD_OF_PROFILES: Final = (
    'must be "day" or "weekday-month", which has a profile of the weekdays and one of the weekends of a month. From '
    "daily profiles agedp derives those of months at no loss (profile_by_month.parquet)"
)


def _read_table(table: object, read_series: ValidatorFunctionWrapHandler) -> object:
    """Return the series of one table: a `LayeredMean` for a list of clamps, `LevelSeries` for one of columns."""
    if not isinstance(table, Mapping):
        return read_series(table)
    if table.get("statistic") == "profile" and table.get("every") in _PERIODS_OF_MEANS:
        raise wrong(_NO_PERIOD_OF_PROFILES, "every")
    if has_levels(table):
        return read_levels(table, read_series)
    is_mean = table.get("statistic") == "mean"
    if not isinstance(table.get("clamp_kwh"), list | tuple):
        if isinstance(table.get("share"), list | tuple) and (is_mean or "by" in table):
            column = "by is one column" if "by" in table else ""
            clamp = "clamp_kwh is one number" if is_mean else ""
            raise wrong(f"must be one number, because {' and '.join(filter(None, [clamp, column]))}", "share")
        return read_series(table)
    if not is_mean and table.get("statistic") in ("distribution", "profile"):
        raise wrong('must be one number; a list of clamps goes with statistic = "mean"', "clamp_kwh")
    if is_mean and table.get("every", "day") != "day":
        raise wrong('must be one number; a list of clamps goes with every = "day"', "clamp_kwh")
    layers = {key: value for key, value in table.items() if key != "every"}
    return _LAYERED.validate_python({"mean": layers})["mean"] if is_mean else read_series(table)


SeriesTable = Annotated[AnySeries, WrapValidator(_read_table, json_schema_input_type=AnySeries | LayeredMean)]
"""A table [series.NAME] of the run file."""


def series_by_name(tables: Mapping[str, AnySeries | LayeredMean | LevelSeries]) -> dict[str, AnySeries]:
    """Return the series of a run file by name, one per layer of a mean and one per level of a hierarchy.

    >>> from decimal import Decimal
    >>> table = LayeredMean(statistic="mean", clamp_kwh=[30, 75], share=[Decimal("0.77"), Decimal("0.23")])
    >>> [(name, series.clamp_wh, series.width_wh) for name, series in series_by_name({"use": table}).items()]
    [('use/1', 30000, 30000), ('use/2', 75000, 45000)]

    Raises:
        PydanticCustomError: no table, or a name with another character; "/" is kept for layers and levels.
    """
    if not tables:
        raise wrong("names no series; write a table such as [series.daily_mean]")
    series: dict[str, AnySeries] = {}
    for name, table in tables.items():
        if not (name.isascii() and name.replace("_", "").replace("-", "").isalnum() and len(name) <= 64):
            raise wrong("must be named by letters, digits, _ and -, 64 at most", name)
        if isinstance(table, LayeredMean):
            series |= {f"{name}{SEPARATOR}{number}": layer for number, layer in enumerate(table.layers, 1)}
        elif isinstance(table, LevelSeries):
            series |= {level_name(name, column): level for column, level in table.by_column.items()}
        else:
            series[name] = table
    return series


def table_name(series: str) -> str:
    """Return the name in the run file of a series, which layers of a mean and levels of a hierarchy share.

    >>> table_name("daily_mean/2"), table_name("daily_mean/feeder"), table_name("daily_mean")
    ('daily_mean', 'daily_mean', 'daily_mean')
    """
    return series.partition(SEPARATOR)[0]


def written_contracts(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two contracts with layers and levels as one table of lists, as the run file has it.

    Use it to compare contracts. Series are left as they are if one of the contracts has some that no run file writes.

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
    """Return, by name, the tables of lists of a contract, None where no run file writes their series."""
    tables = contract.get("series")
    if not isinstance(tables, Mapping):
        return {}
    parts = sorted((name for name in tables if SEPARATOR in name), key=lambda name: _place(name, tables[name]))
    by_table = {name: list(series) for name, series in groupby(parts, table_name)}
    return {name: _joined(name, {of: tables[of] for of in series}) for name, series in by_table.items()}


def _place(series: str, terms: object) -> tuple[str, int, int, str]:
    """Return the place of a layer, by its number, or of a level, the one with most columns first."""
    by = terms.get("by") if isinstance(terms, Mapping) else None
    columns = len(by) if isinstance(by, list | tuple) else 1
    return table_name(series), layer_number(series), -columns, series


def _joined(name: str, tables: Mapping[str, Any]) -> dict[str, Any] | None:
    return joined_layers(name, tables) if any(map(layer_number, tables)) else joined_levels(name, tables)


def _with_tables(
    contract: Mapping[str, Any], joined: Mapping[str, dict[str, Any] | None], unwritten: Collection[str]
) -> dict[str, Any]:
    """Return a contract with these tables in place of their layers or levels, except the unwritten ones."""
    used = {name: table for name, table in joined.items() if name not in unwritten}
    if not used:
        return dict(contract)
    kept = {name: terms for name, terms in contract["series"].items() if table_name(name) not in used}
    return {**contract, "series": {**kept, **used}}


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

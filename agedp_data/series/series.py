"""The statistics that a series can publish, and the tables [series.NAME] of the run file <-> the series below them.

A statistic is an exact vector of integers over the days of one group's households, its cells, the sensitivity of the
vector of all groups, which is that of one group because a household is in one group, and the tables that are published
of it. A further statistic is one file and its line in `STATISTICS`.

A table of the run file is one series, or several: a list of clamps is a mean in layers, "use/1" and "use/2"
(`layered_mean`), a list of group columns a hierarchy of levels. Feeders lie in substations and these in areas. A table
with such columns in `by`, the finest first, publishes each level with its own share of the day's epsilon:

    by    = ["feeder", "substation", "area"]    use/feeder        by = ["feeder", "substation", "area"], share 0.5
    share = [0.5, 0.3, 0.2]                     use/substation    by = ["substation", "area"],           share 0.3
                                                use/area          by = "area",                           share 0.2

A household is in one group of each level, so one replaced day can change all of them at once: their losses add.

Decisions:

* Everything below the run file sees ordinary series: budgets, accounting and ledger know neither levels nor layers.
* A level has its own column and all coarser ones. Its groups are paths, "north/S1/F12" (`roster`), so levels nest
  whatever the labels are, and a recipient needs no roster to add them up.
* Each level is one exact sum per group, drawn by itself. Values that add up are post-processing (`consistency`).
* Every statistic that has `by` can have levels: the keys of the table are those of the statistic.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final, Union

from pydantic import (
    ConfigDict,
    Discriminator,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from agedp_data.epsilon import exact_text
from agedp_data.errors import LedgerError
from agedp_data.parameters import wrong
from agedp_data.roster import group_columns
from agedp_data.series.coverage import Coverage
from agedp_data.series.distribution import Distribution
from agedp_data.series.layered_mean import Layer, LayeredMean
from agedp_data.series.mean import PERIODS, Mean
from agedp_data.series.profile import Profile
from agedp_data.series.result_table import DerivedTable, ResultTable
from agedp_data.series.series_terms import MOST_LEVELS, SEPARATOR, Series, check_group_columns, layer_number

_AMOUNTS: Final = ("share", "clamp_kwh", "half_hour_clamp_kwh", "above_kwh", "missing_kwh", "bins_kwh")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


STATISTICS: Final[tuple[type[Series], ...]] = (
    Mean,
    Distribution,
    Profile,
    Coverage,
)
"""The classes of all statistics."""
_RELEASED: Final[tuple[type[Series], ...]] = (Mean, Layer, *STATISTICS)
_DERIVED: Final[tuple[type[Series], ...]] = (Mean, Profile, *STATISTICS)
RESULT_TABLES: Final[tuple[ResultTable, ...]] = tuple(
    dict.fromkeys(table for statistic in _RELEASED for table in statistic.TABLES)
)
"""The kinds of table of released values, in the order of a release."""
DERIVED_TABLES: Final[tuple[DerivedTable, ...]] = tuple(
    dict.fromkeys(table for statistic in _DERIVED for table in statistic.DERIVED)
)
"""The kinds of derived table, in the order of a release."""

if TYPE_CHECKING:
    AnySeries = Series
else:
    AnySeries = Annotated[Union[STATISTICS], Discriminator("statistic")]  # noqa: UP007  (a tuple, not two types)
BY_NAME: Final[Mapping[str, type[Series]]] = {kind.KIND: kind for kind in STATISTICS}
"""The class of each statistic by its name in the run file."""


def series_of(terms: Mapping[str, Any]) -> dict[str, AnySeries]:
    """Return the series of a contract by name; keys that this version does not know are ignored.

    Raises:
        LedgerError: a series differs in form from those that agedp writes.
    """
    try:
        return {name: series_in(table) for name, table in terms["series"].items()}
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError):
        raise LedgerError(
            "a contract in the ledger holds a series that this agedp does not know; update agedp"
        ) from None


def series_in(terms: Mapping[str, Any]) -> AnySeries:
    """Return one series from its table in a contract, where amounts are text.

    >>> series_in({"statistic": "mean", "clamp_kwh": "50", "share": "1"}).clamp_wh
    50000

    Raises:
        ValueError: the table is not a series, or one of a statistic that this version does not know.
    """
    if terms["statistic"] not in BY_NAME:
        raise ValueError("unknown statistic")
    kind: type[Any] = BY_NAME[terms["statistic"]]
    kind = Layer if terms.get("above_kwh", "0") != "0" and kind is Mean else kind
    fields = {key: value for key, value in terms.items() if key in kind.model_fields}
    return kind.model_validate({key: _amounts(value) if key in _AMOUNTS else value for key, value in fields.items()})


def _amounts(value: object) -> object:
    return tuple(map(_amount, value)) if isinstance(value, list) else _amount(value)


def _amount(value: object) -> object:
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


_EXAMPLES: Final[Mapping[int, str]] = {
    2: "[0.6, 0.4]",
    3: "[0.5, 0.3, 0.2]",
    4: "[0.4, 0.3, 0.2, 0.1]",
    5: "[0.3, 0.2, 0.2, 0.2, 0.1]",
    6: "[0.2, 0.2, 0.2, 0.2, 0.1, 0.1]",
}
_PER_LEVEL: Final = ("by", "share")
"""Keys in which the levels of a table differ."""


@dataclass(frozen=True, slots=True)
class LevelSeries:
    """The series of a table with a list of columns, by column, the finest first."""

    by_column: Mapping[str, AnySeries]


def has_levels(table: Mapping[str, Any]) -> bool:
    """Return whether a table of the run file, or of a contract, has a list of group columns."""
    return isinstance(table.get("by"), list | tuple)


def read_levels(table: Mapping[str, Any], read_series: ValidatorFunctionWrapHandler) -> LevelSeries:
    """Return the series of a table with a list of columns in `by`.

    Args:
        table: the table of the run file.
        read_series: validator of a series.

    Raises:
        PydanticCustomError: columns or shares that are no levels, or a list of clamps beside them.
        ValidationError: `read_series` refuses the table of a level.
    """
    columns, shares = table["by"], table.get("share")
    if not 2 <= len(columns) <= MOST_LEVELS or not all(isinstance(column, str) for column in columns):
        example = '["feeder", "substation", "area"]'
        raise wrong(f"must be one column, or a list of 2 to {MOST_LEVELS}, the finest first, such as {example}", "by")
    check_group_columns(tuple(columns))
    if isinstance(table.get("clamp_kwh"), list | tuple):
        raise wrong("must be one column, because clamp_kwh is a list: layers have no levels", "by")
    if shares is None:
        raise wrong(f"is missing; write one share per level, such as share = {_EXAMPLES[len(columns)]}", "share")
    if not isinstance(shares, list | tuple):
        raise wrong("must be a list of one share per level, because by is a list", "share")
    if len(shares) != len(columns):
        raise wrong(f"must have {len(columns)} numbers, one per level, such as {_EXAMPLES[len(columns)]}", "share")
    return LevelSeries(
        {
            column: read_series({**table, "by": group_columns(columns[i:]), "share": share})
            for i, (column, share) in enumerate(zip(columns, shares, strict=True))
        }
    )


def level_name(table: str, column: str) -> str:
    """Return the name of the series of a level.

    >>> level_name("use", "feeder")
    'use/feeder'
    """
    return f"{table}{SEPARATOR}{column}"


def level_column(series: str) -> str:
    """Return the column of the level that a series is, by its name; "" for a series that is no level.

    >>> level_column("use/feeder"), level_column("use/1"), level_column("use")
    ('feeder', '', '')
    """
    column = series.partition(SEPARATOR)[2]
    return "" if column.isdecimal() else column


def joined_levels(name: str, tables: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of lists of these levels, the finest first; None if they are not those of one table.

    Args:
        name: the table.
        tables: terms of its levels in a contract.
    """
    terms = list(tables.values())
    try:
        columns = series_in(terms[0]).columns
        by_level = [series_in(of_level).by for of_level in terms]
        shares = [of_level["share"] for of_level in terms]
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    others = common_keys(terms, without=_PER_LEVEL)
    are_levels = by_level == [group_columns(columns[i:]) for i in range(len(columns))]
    if not are_levels or [*tables] != [level_name(name, column) for column in columns] or others is None:
        return None
    return {**others, "by": list(columns), "share": shares}


def common_keys(terms: Sequence[Mapping[str, Any]], *, without: Collection[str]) -> dict[str, Any] | None:
    """Return the keys of several tables that are not `without`; None if the tables differ in one of them.

    >>> common_keys([{"by": "area", "share": 1}, {"by": "area", "share": 2}], without=("share",))
    {'by': 'area'}
    """
    first, *others = ({key: value for key, value in of.items() if key not in without} for of in terms)
    return first if all(keys == first for keys in others) else None


_LAYERED: Final = TypeAdapter(dict[str, LayeredMean], config=ConfigDict(defer_build=True))
_PER_LAYER: Final = ("clamp_kwh", "above_kwh", "share", "missing_kwh")
"""Keys in which the layers of a mean differ."""
_NO_PERIOD_OF_PROFILES: Final = (
    'must be "day" or "weekday-month", which has a profile of the weekdays and one of the weekends of a month. From '
    "daily profiles agedp derives those of months at no loss (profile_by_month.parquet)"
)


def _read_table(table: object, read_series: ValidatorFunctionWrapHandler) -> object:
    """Return the series of one table: a `LayeredMean` for a list of clamps, `LevelSeries` for one of columns."""
    if not isinstance(table, Mapping):
        return read_series(table)
    if table.get("statistic") == "profile" and table.get("every") in PERIODS:
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
    by_table = {name: {of: tables[of] for of in series} for name, series in groupby(parts, table_name)}
    return {
        name: joined_layers(name, of) if any(map(layer_number, of)) else joined_levels(name, of)
        for name, of in by_table.items()
    }


def _place(series: str, terms: object) -> tuple[str, int, int, str]:
    """Return the place of a layer, by its number, or of a level, the one with most columns first."""
    by = terms.get("by") if isinstance(terms, Mapping) else None
    columns = len(by) if isinstance(by, list | tuple) else 1
    return table_name(series), layer_number(series), -columns, series


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

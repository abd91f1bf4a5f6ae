"""Files or a table, and the arguments of a call -> how its rows are read: what `agedp.read` infers.

    agedp.read("meters/*.csv", columns={"zone": "Europe/London", "day_zone": "Europe/London"})

Decisions:

* Columns that are given in full are taken as they are, and nothing is inferred beside them.
* The first rows of files and of tables decide what they decide for `agedp init`. Where `init` asks, the call is
  refused, and the error names the keys to give: they are enough, the others are inferred again.
* The type of a table's column is a declaration. Timestamps of a named zone, such as Europe/London, have its days; UTC
  is how programs store any instant, so it decides no day.
* The inferred arguments are noted in `DataFrame.attrs`; the same call with them returns the same readings. `read_off`
  is one of them: the keys that readings decided, which the statement of a release lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pydantic import ValidationError

from agedp import workspace
from agedp.setup.init_run_file import read_layout
from agedp.setup.long_columns import TABLE, LongTable, read_columns
from agedp.setup.run_file_options import Key, quoted, toml_text, toml_value
from agedp_data.config.input import LongColumns
from agedp_data.datasets import parquet_parsing
from agedp_data.datasets.layout import DECLARABLE, INTERVALS
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.registry import LAYOUTS, layout_of
from agedp_data.datasets.validation import INTERVAL_MINUTES, ReadingRules
from agedp_data.errors import InputError
from agedp_data.messages import format_value

Files = str | Path | Sequence[str | Path]
INFERRED: Final = "inferred"
"""Key of `DataFrame.attrs`: the arguments of `agedp.read` that were inferred."""
_ANY_COLUMNS: Final = {
    **{"household": "household", "time": "time", "energy": "energy"},
    **{"stamp": "end", "zone": "UTC", "day_zone": "UTC", "unit": "kWh"},
}
"""Values of the keys without a default, which are inferred if one is not given."""
_NAMING: Final = ("household", "time", "energy", "ignore", "where", "add")
"""Keys of [input.columns] whose values are the names of columns."""
_OF_TABLES: Final[Mapping[Key, str]] = {(TABLE, "separator"): quoted(","), (TABLE, "skip_lines"): "0"}
"""How the first rows of a table are written as lines."""


@dataclass(frozen=True, slots=True)
class InputLayout:
    """The dataset and the parsing rules of files or of a table, and what was inferred.

    Attributes:
        dataset: its name.
        rules: the parsing rules.
        inferred: the arguments that were inferred, by name; none if they were given in full.
        read_off: keys of the columns that were inferred from readings.
    """

    dataset: str
    rules: ReadingRules
    inferred: Mapping[str, Any] = field(default_factory=dict)
    read_off: tuple[str, ...] = ()

    @property
    def notes(self) -> dict[str, Any]:
        """Return what `DataFrame.attrs` notes of it."""
        noted = {INFERRED: dict(self.inferred), workspace.READ_OFF: list(self.read_off)}
        return {key: value for key, value in noted.items() if value}


def infer_input(
    files: Any,  # noqa: ANN401
    *,
    dataset: str | None,
    columns: Mapping[str, Any] | None,
    interval_minutes: int | None,
    read_off: Sequence[str] = (),
) -> InputLayout:
    """Return how files or a table are read; those of `agedp.read` need no further words.

    Raises:
        InputError: the rows leave a key open; `columns`, `read_off` or an interval that cannot be meant.
        RunFileError: `columns` that are invalid in a run file.
    """
    is_table = workspace.is_table(files)
    given = {} if columns is None else _columns_as_text(columns, is_table=is_table)
    if interval_minutes is not None and not (isinstance(interval_minutes, Real) and interval_minutes in INTERVALS):
        raise InputError(
            f"interval_minutes={interval_minutes!r}: is no interval of readings; give a number, {DECLARABLE}"
        )
    if unknown := [key for key in read_off if key not in LongColumns.model_fields]:
        raise InputError(f"read_off={unknown!r}: is no key of columns. Give keys that readings decided")
    if dataset is None and columns is None and is_table and _has_readings(files):
        notes = workspace.attributes(files)
        minutes = interval_minutes or notes.get(workspace.INTERVAL)
        noted = {*read_off, *notes.get(workspace.READ_OFF, ())}
        rules = _rules(Long.name, workspace.readings_columns(files), minutes)
        return InputLayout(Long.name, rules, read_off=tuple(sorted(noted)))
    if dataset not in (None, Long.name) or given.keys() >= _ANY_COLUMNS.keys():
        dataset = dataset or Long.name
        rules = _rules(dataset, None if columns is None else given, interval_minutes)
        return InputLayout(dataset, rules, read_off=tuple(sorted(read_off)))
    options = {} if dataset is None and columns is None else {("input", "dataset"): quoted(Long.name)}
    _check_values(given)
    options |= {(TABLE, key): toml_text(value) for key, value in given.items()}
    found, long = _layout_of_table(files, options) if is_table else read_layout(patterns(files), options)
    if long is None:
        return InputLayout(found, _rules(found, None, interval_minutes), {"dataset": found})
    known = _decided_columns(long, files) | given
    minutes = int(interval_minutes or long.interval_minutes or INTERVAL_MINUTES)
    of_rows = sorted({*read_off, *(line.key for line in long.lines if line.read_off and line.key not in given)})
    inferred = {"dataset": Long.name, "columns": known, "interval_minutes": minutes}
    inferred |= {"read_off": of_rows} if of_rows else {}
    return InputLayout(Long.name, _rules(Long.name, known, minutes), inferred, tuple(of_rows))


def _rules(dataset: str, columns: Mapping[str, Any] | None, interval_minutes: int | None) -> ReadingRules:
    minutes = int(interval_minutes or INTERVAL_MINUTES)
    rules = workspace.rules_of({"columns": columns, "interval_minutes": minutes})
    layout_of(dataset, rules.columns, minutes)
    return rules


def _columns_as_text(columns: Any, *, is_table: bool) -> dict[str, Any]:  # noqa: ANN401
    """Return [input.columns] with the names of columns as text, as a table that has numbers for names is read.

    >>> _columns_as_text({"household": 0, "energy": [1, 48], "where": {2: "E1"}, "skip_lines": 3}, is_table=False)
    {'household': '0', 'energy': ['1', '48'], 'where': {'2': 'E1'}, 'skip_lines': 3}

    Raises:
        InputError: no mapping, or the name of a file of a table, which has none.
    """
    if not isinstance(columns, Mapping):
        raise InputError(
            f"columns={format_value(columns)}: is no dict; give the meaning of the columns, such as "
            'columns={"household": "meter", "time": "read_at", "energy": "kwh", ...}'
        )
    named = {str(key): _name_as_text(value) if key in _NAMING else value for key, value in columns.items()}
    household = named.get("household")
    if is_table and isinstance(household, str) and household.startswith("file:"):
        raise InputError(
            f"[input.columns] household = {format_value(household)}: a table has no file name. Name the column of the "
            "households, or give the paths of the files"
        )
    return named


def _name_as_text(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {str(name): _name_as_text(texts) for name, texts in value.items()}
    if isinstance(value, list | tuple):
        return [_name_as_text(name) for name in value]
    return str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _check_values(given: Mapping[str, Any]) -> None:
    """Check every given key by itself; whether they go together is known when all are.

    Raises:
        RunFileError: a key that does not exist, or a value that no run file can have.
    """
    columns = {**_ANY_COLUMNS, **given}
    try:
        LongColumns.model_validate(columns)
    except ValidationError as error:
        if any(problem["loc"] for problem in error.errors()):
            workspace.rules_of({"columns": columns})


def _has_readings(table: Any) -> bool:  # noqa: ANN401
    return set(workspace.READINGS_COLUMNS) <= set(workspace.table_schema(table).names)


def _layout_of_table(table: Any, options: Mapping[Key, str]) -> tuple[str, LongTable | None]:  # noqa: ANN401
    """Return the layout of a table as `read_layout` returns that of files.

    Raises:
        InputError: as `read_layout`.
    """
    if not options:
        schema = workspace.table_schema(table)
        for name, layout in LAYOUTS.items():
            if parquet_parsing.recognise_table(schema, "", layout)[0] is not None:
                return name, None
    if isinstance(table, pa.RecordBatchReader):
        raise InputError("readings: a stream is read once, so nothing is inferred from it. Pass reader.read_all()")
    rows: list[str] = []
    for batch in workspace.batches(table):
        header, *further = parquet_parsing.lines_of_rows(batch.slice(0, parquet_parsing.FIRST_ROWS))
        rows += further if rows else [header, *further]
        if len(rows) > parquet_parsing.FIRST_ROWS:
            break
    try:
        long = read_columns(rows, {**options, **_OF_TABLES}, complete=len(rows) <= parquet_parsing.FIRST_ROWS)
        if long is not None:
            long.check_readable()
            return Long.name, long
    except InputError as error:
        raise InputError(f"readings: {error}", private=f"readings: {error.private}") from None
    raise InputError(
        f"readings: the columns are of none of {', '.join(LAYOUTS)}, and there are no rows that show what they mean; "
        "give columns="
    )


def _decided_columns(long: LongTable, files: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the columns of a long table whose keys are all decided.

    Raises:
        InputError: a key that the first rows do not decide; reasons are private, since they quote values.
    """
    is_table = workspace.is_table(files)
    values = {line.key: toml_value(line.toml) for line in long.lines}
    undecided = [line.key for line in long.lines if not line.decided]
    if is_table:
        del values["separator"]
        if "day_zone" in undecided and (zone := _named_zone(workspace.table_schema(files), values["time"])):
            values["day_zone"] = zone
            undecided.remove("day_zone")
    if undecided:
        keys, shown = (", ".join(format_key(key) for key in undecided) for format_key in (str, '"{}": ...'.format))
        problem = f"readings: the first rows do not decide {keys}. Give columns={{{shown}}}; the others are inferred"
        decided = ", ".join(f'"{key}": {format_value(value)}' for key, value in values.items() if key not in undecided)
        doubts = ", ".join(f'"{key}": {format_value(values[key])} ({long.reasons[key]})' for key in undecided)
        raise InputError(problem, private=f"{problem}. They show {{{decided}}}, perhaps {doubts}")
    return values


def _named_zone(schema: pa.Schema, time: Any) -> str | None:  # noqa: ANN401
    """Return the zone of a column of timestamps by its type, None if it is UTC, an offset, or none.

    >>> zones = [None, "UTC", "+01:00", "Europe/London"]
    >>> [_named_zone(pa.schema({"at": pa.timestamp("ns", zone)}), "at") for zone in zones]
    [None, None, None, 'Europe/London']
    """
    kind = schema.field(time).type if time in schema.names else None
    zone = getattr(kind, "tz", None) or ""
    return zone if "/" in zone and not zone.startswith("Etc/") else None


def patterns(files: Files) -> list[str]:
    """Return the paths, globs or URLs of files.

    Raises:
        InputError: neither these nor a table.
    """
    paths = [files] if isinstance(files, str | Path) else files
    if not isinstance(paths, Sequence):
        raise workspace.no_table(files)
    if wrong := [path for path in paths if not isinstance(path, str | Path)]:
        raise workspace.no_table(wrong[0])
    return [str(path) for path in paths]

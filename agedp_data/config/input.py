"""[input]: the input files. One section class per dataset, so that a key of another dataset is refused.

The classes follow from the registered layouts: the common keys, with the keys that a layout adds (`Layout.keys`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, Union, cast

from pydantic import Discriminator, Field, PlainValidator, WithJsonSchema, create_model, model_validator

from agedp_data import parameters
from agedp_data.amendment_rules import EITHER
from agedp_data.config.paths import LOCATION, Pattern
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.registry import LAYOUTS, layout_of
from agedp_data.datasets.timestamps import EPOCHS, ISO, REST
from agedp_data.datasets.validation import ALL_COLUMNS, INTERVAL_MINUTES, NamedColumns

Order = Literal["name", "modified"]


BLANKS: Final = " \t"
Where = Mapping[str, tuple[str, ...]]
_INT32_MAX: Final = 2**31 - 1
MAX_SKIPPED = 1000
"""Lines before a header: more are no header of an export, but a table of their own."""
_PATTERN = '"%d/%m/%Y %H:%M" that has year, month, day'


def _columns(value: object) -> str | tuple[str, ...]:
    """Return one column, or several in their order."""
    if isinstance(value, str):
        return parameters.text(value)
    listed = tuple(value) if isinstance(value, list | tuple) else ()
    if len(listed) != 2 or not all(isinstance(name, str) for name in listed):
        raise parameters.wrong("must be a column in quotes, or a list of two columns")
    return tuple(map(parameters.text, listed))


def _times(value: object) -> str | tuple[str, ...]:
    return "" if value == "" else _columns(value)  # the first header of a wide table may be empty


def _text_or_none(value: object) -> str:
    return "" if value == "" else parameters.text(value)


_ONE_OR_TWO: Final = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}]}
)
ColumnOrTwo = Annotated[str | tuple[str, ...], PlainValidator(_columns), _ONE_OR_TWO]
_WHERE: Final = WithJsonSchema(
    {
        "type": "object",
        "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    }
)


def _where(value: object) -> Where:
    """Return columns with the texts of the rows that are read, both in order."""
    if not isinstance(value, Mapping):
        raise parameters.wrong('must be a table of columns and texts, such as { register = "E1" }')
    found: dict[str, tuple[str, ...]] = {}
    for name, texts in value.items():
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list | tuple) or not listed or not all(isinstance(word, str) for word in listed):
            raise parameters.wrong(f"needs a text, or a list of texts, for the column {name!r}")
        found[str(name)] = tuple(sorted({word.strip(BLANKS) for word in listed}))
    return dict(sorted(found.items()))


def _order(data: dict[str, Any]) -> Order | None:
    return "name" if data.get("corrections") == "later-file" else None


class InputSection(parameters.Section):
    """The keys that all datasets share; `file_order` is None if conflicting readings are rejected."""

    dataset: str
    """Which layout the files have; see the tutorial for the two datasets and own-data for all others."""
    files: Annotated[parameters.ListOf[Pattern], LOCATION, parameters.FREE]
    """Globs, paths or URLs of the input files: `.csv`, `.gz`, `.zip`, `.zst`, `.parquet`, or folders of them, in any
    order.
    """
    corrections: Annotated[Literal["set-aside", "later-file"], EITHER] = "set-aside"
    """Conflicting readings from two files: "set-aside" keeps neither, "later-file" keeps that of the later file. A new
    live population must write it.
    """
    file_order: Annotated[Order | None, EITHER] = Field(default_factory=_order)
    """Order of the files, for "later-file" only: by name, numbers compared as numbers ("-" comes before ".", "_" after
    it), or by modification time. "name" unless written.
    """
    interval_minutes: Annotated[Literal[5, 10, 15, 30, 60], parameters.LATER] = 30
    """Minutes between two readings of a household. Shorter readings are added up to half-hours; hours count for days
    only, not for states or chains of half-hours. The publishers' datasets have 30.
    """
    max_half_hour_kwh: Annotated[parameters.PositiveKwh, EITHER] = parameters.exact(50)
    """A reading above this is rejected and counted; the same power for readings of other intervals."""
    max_rejected_share: Annotated[parameters.Fraction01, parameters.FREE] = Decimal("0.2")
    """A first run that rejects a larger share of the rows is refused. Rows without a reading, duplicates and corrected
    rows are not counted.
    """
    preflight: Annotated[Literal["refuse", "report"], parameters.FREE] = "refuse"
    """What follows if the files make a first release meaningless: the run is refused before anything is registered, or
    only reports it, as every later run does.
    """
    accept: Annotated[parameters.AcceptedFindings, parameters.LATER] = ()
    """Findings about the files, by their names in the preflight's report, that are accepted knowingly at a first
    release.
    """

    @property
    def max_half_hour_wh(self) -> int:
        """The energy above which the reading of a half-hour is rejected [Wh]."""
        return parameters.watt_hours(self.max_half_hour_kwh)

    @property
    def named_columns(self) -> Mapping[str, Any] | None:
        """The keys of [input.columns], None for a dataset with a fixed layout."""
        return None

    @property
    def layout(self) -> Layout:
        """The layout of the input files."""
        return layout_of(self.dataset, self.named_columns, self.interval_minutes)

    @property
    def dataset_keys(self) -> parameters.Section | None:
        """The keys that the dataset's layout adds to this table, None if it adds none."""
        keys = LAYOUTS[self.dataset].keys if self.dataset in LAYOUTS else None
        return None if keys is None else keys.model_construct(**{key: getattr(self, key) for key in keys.model_fields})

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        minutes, fixed = self.interval_minutes, LAYOUTS.get(self.dataset)
        if fixed is not None and minutes != fixed.interval_minutes:
            advice = 'describe other files under dataset = "long" and [input.columns]'
            raise parameters.wrong(
                f'must be {INTERVAL_MINUTES} for dataset = "{self.dataset}"; {advice}', "interval_minutes"
            )
        most_wh = _INT32_MAX // self.layout.units_per_wh * INTERVAL_MINUTES // max(minutes, INTERVAL_MINUTES)
        too_large = f"must be at most {most_wh // 1000}: larger readings are not stored"
        is_unused = self.file_order is not None and self.corrections != "later-file"
        parameters.refuse_first(
            (self.max_half_hour_wh > most_wh, too_large, "max_half_hour_kwh"),
            (is_unused, 'is used by corrections = "later-file" only; remove it', "file_order"),
        )
        return self


def _is_complete(pattern: str, *, is_date: bool) -> bool:
    """Return whether a pattern tells dates, or half-hours, apart."""
    pattern = pattern.removesuffix(REST)
    zone = UTC if "%z" in pattern else None
    example = datetime(2013, 2, 28, *((0, 0) if is_date else (23, 30)), tzinfo=zone)
    try:
        return datetime.strptime(example.strftime(pattern), pattern) == example
    except (ValueError, re.error):  # a directive that occurs twice is a duplicate group name in strptime's pattern
        return False


class LongColumns(parameters.Section):
    """[input.columns]: the columns and units of a table of readings.

    A table has one of these shapes:

    * a row for each household and interval: `household`, `time` and `energy` are columns;
    * a row for each household and day: `energy` names the first and the last of its columns, one for each interval;
    * a row for each interval, with a column for each household: `household` and `energy` are "*".
    """

    household: parameters.Text
    """Column of the household's identifier; "*", with energy = "*", if the table has a column for each;
    "file:meter-*.csv" if the file's name has it in place of the star; "line:2" if it is the first cell of the second
    line. Of several stars the first is the household, the others what a delivery changes: "file:meter_*_2024-*.csv".
    """
    time: Annotated[str | tuple[str, ...], PlainValidator(_times), _ONE_OR_TWO]
    """Column of the timestamp; ["date", "time"] if date and time of day stand apart. With `period_minutes` the last
    column has the number of the interval within its day.
    """
    time_format: parameters.Text = "%Y-%m-%d %H:%M:%S"
    """Format of the timestamp, as for `strptime` (`%z` for an offset or Z, with zone = "UTC"); "iso", with or without
    an offset; "epoch" or "epoch-ms" for seconds or milliseconds since 1970. Columns apart are joined by a blank; rows
    of days and of periods have the format of the date. "%H:%M*" reads the first time of 00:00 - 00:30. 24:00 is the
    midnight that ends a day, a date alone the one that begins it.
    """
    stamp: Literal["end", "start"]
    """Whether the timestamp is the end or the start of its interval; not used for rows of days and for periods."""
    zone: parameters.Zone
    """Time zone of the timestamps."""
    day_zone: parameters.Zone
    """Time zone whose midnight ends a day."""
    energy: ColumnOrTwo
    """Column of the energy of the interval; "*" as for `household`; [first, last] for rows of days: the columns from
    one to the other, in the order of the file.
    """
    unit: Literal["kWh", "Wh", "W", "kW"]
    """Unit of the energy columns; W and kW are mean powers of the interval."""
    missing: Annotated[tuple[str, ...], Field(strict=False)] = ("Null", "")
    """Texts in the energy column that mean a missing reading. A list replaces the default: an empty cell is `""`."""
    separator: Annotated[Literal[",", ";", "\t", "|"], parameters.LATER] = ","
    """Separator of the columns of a CSV file."""
    decimal: Annotated[Literal[".", ","], parameters.LATER] = "."
    """Decimal mark of energies that are text; one that is the separator as well stands in quotes: "0,5"."""
    repeated: Annotated[Literal["passes", "sum"], parameters.LATER] = "passes"
    """A half-hour that the clock shows twice: "passes" is two rows, which are added up, "sum" is one row with the sum
    of both, as always in rows of days.
    """
    ignore: Annotated[tuple[str, ...], Field(strict=False), parameters.LATER] = ()
    """Columns of a wide table that are no household's."""
    period_minutes: Annotated[Literal[5, 10, 15, 30, 60] | None, parameters.LATER] = None
    """Minutes of a period, if the last column of `time` is the number of a period since midnight; those of
    `interval_minutes`.
    """
    first_period: Annotated[int, Field(ge=0, le=1), parameters.LATER] = 1
    """Number of the period that begins at midnight, 0 or 1."""
    thousands: Annotated[Literal["", ",", ".", " ", "'", "\u00a0", "\u202f", "\u2019"], parameters.LATER] = ""
    """Mark between the thousands of an energy that is text, such as a no-break space; "" for none."""
    encoding: Annotated[Literal["utf-8", "latin-1", "cp1252", "utf-16"], parameters.LATER] = "utf-8"
    """Encoding of a CSV file."""
    skip_lines: Annotated[int, Field(ge=0, le=MAX_SKIPPED), parameters.LATER] = 0
    """Lines of a CSV file before its header. A first line `sep=;`, as Excel writes it, is skipped anyway."""
    where: Annotated[Where, PlainValidator(_where), _WHERE, parameters.LATER] = Field(default={})
    """Rows that are read, by a column and its texts, such as { register = "E1" } or { register = ["E1", "E2"] }; all
    others are not asked for.
    """
    add: Annotated[str, PlainValidator(_text_or_none), parameters.TEXT, parameters.LATER] = ""
    """Column that tells the meters or channels of a household apart, whose energies are added up; "" if there is none.
    A half-hour that lacks one of those of that day is missing.
    """
    negative: Annotated[Literal["reject", "zero", "net"], parameters.LATER] = "reject"
    """A negative energy is rejected, counts as 0, or is netted: a day then counts within [0, clamp] after its sum."""

    @model_validator(mode="before")
    @classmethod
    def _stamp_where_it_is_used(cls, keys: Any) -> Any:  # noqa: ANN401  (whatever a run file has)
        is_by_position = isinstance(keys, dict) and (isinstance(keys.get("energy"), list) or "period_minutes" in keys)
        return {"stamp": "start", **keys} if is_by_position else keys

    @property
    def has_dates(self) -> bool:
        """Return whether the timestamp is a date: of a row of a day, or beside the number of a period."""
        return not isinstance(self.energy, str) or self.period_minutes is not None

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        for key, what in itertools.chain(self._problems_of_time(), self._problems_of_shape()):
            raise parameters.wrong(what, key)
        if self.household != ALL_COLUMNS:
            self._check_names()
        return self

    def _problems_of_time(self) -> Iterator[tuple[str, str]]:
        """Yield keys of the timestamp that do not agree with others, each with what is wrong."""
        pattern, is_date = self.time_format, self.has_dates
        if pattern in EPOCHS and (is_date or not isinstance(self.time, str)):
            yield "time_format", "is the format of a timestamp in one column"
        if pattern not in (ISO, *EPOCHS) and not _is_complete(pattern, is_date=is_date):
            example = '"%d/%m/%Y" that has year, month and day' if is_date else f"{_PATTERN} and minute"
            yield "time_format", f'must be "iso", or a pattern such as {example}'
        if "%z" in pattern and self.zone != "UTC":
            yield "zone", 'must be "UTC" where time_format has %z: a timestamp with an offset is an instant'

    def _problems_of_shape(self) -> Iterator[tuple[str, str]]:
        """Yield keys of other columns that do not agree, each with what is wrong."""
        is_wide = self.household == ALL_COLUMNS
        if is_wide != (self.energy == ALL_COLUMNS):
            yield "energy", 'must be "*" for both household and energy (a column for each household), or for none'
        if not isinstance(self.energy, str) and len(self.energy) != 2:
            yield "energy", "must be one column, or the first and the last of a row of a day"
        if self.thousands and self.thousands == self.decimal:
            yield "thousands", "is also the decimal mark; write another one"
        if self.time == "" and not is_wide:
            yield "time", 'must name a column; "" is the first header of a wide table (household = "*")'
        if self.ignore and not is_wide:
            yield "ignore", 'is for a wide table only (household = "*"): other columns are ignored anyway; remove it'
        for key in ("where", "add"):
            if is_wide and getattr(self, key):
                yield key, "is for a table whose rows are of one household each"
        if not isinstance(self.energy, str) and self.period_minutes is not None:
            yield "period_minutes", "is not used where a row is a day"
        if self.first_period != 1 and self.period_minutes is None:
            yield "first_period", "is used with period_minutes only; remove it"
        if self.period_minutes is not None and isinstance(self.time, str):
            yield "time", 'must be the date and the number of the period, such as ["date", "period"]'

    def _check_names(self) -> None:
        columns = NamedColumns.from_keys(self.model_dump())
        kind, place = columns.household_source
        names = [*([place] if kind == "column" else []), *columns.time_columns, *columns.energy_columns]
        if len(set(columns.time_columns)) < len(columns.time_columns):
            raise parameters.wrong("names a column twice", "time")
        if len(set(names)) < len(names):
            raise parameters.wrong("names a column that another key names; household, time and energy differ", "energy")
        if kind == "line" and not re.fullmatch("[1-9][0-9]?", place):
            raise parameters.wrong('must be "line:" and the number of a line, such as "line:2"', "household")
        if kind == "file" and ("*" not in place or "**" in place or "/" in place):
            example = 'such as "file:meter-*.csv"'
            raise parameters.wrong(
                f'must be "file:" and the name of a file with a star for the household, {example}', "household"
            )


def _keys_of_columns(value: object) -> tuple[str, ...]:
    return tuple(sorted(parameters.known_words(value, tuple(LongColumns.model_fields)))) if value != () else ()


_KEYS: Final = parameters.words_schema(LongColumns.model_fields)


class LongInput(InputSection):
    """Any other table of readings of 5 to 60 minutes, whose shape [input.columns] describes."""

    dataset: Literal["long"]
    read_off: Annotated[tuple[str, ...], PlainValidator(_keys_of_columns), _KEYS, parameters.LATER] = ()
    """Keys of [input.columns] whose values were chosen by looking at readings, such as ["negative", "unit"]. No bound
    counts such choices, so the statement lists them. `agedp init` writes those that it read off; remove a key that
    documentation of the files decides.
    """
    columns: LongColumns

    @model_validator(mode="after")
    def _periods_are_intervals(self) -> Self:
        if self.columns.period_minutes not in (None, self.interval_minutes):
            raise parameters.wrong("differs from [input] interval_minutes; write the same", "columns", "period_minutes")
        return self

    @property
    def named_columns(self) -> Mapping[str, Any] | None:
        """The keys of [input.columns]."""
        return self.columns.model_dump()


def _section_of_layout(layout: Layout) -> type[InputSection]:
    """Return the section class of a dataset: the common keys and those of its layout."""
    # pydantic lists the last one's keys first
    bases: Any = (InputSection,) if layout.keys is None else (layout.keys, InputSection)
    dataset: Any = (Literal[layout.name], ...)
    return cast("type[InputSection]", create_model(f"{layout.name.title()}Input", __base__=bases, dataset=dataset))


INPUTS: tuple[type[InputSection], ...] = (*(_section_of_layout(layout) for layout in LAYOUTS.values()), LongInput)

if TYPE_CHECKING:
    AnyInput = InputSection
else:
    AnyInput = Annotated[Union[INPUTS], Discriminator("dataset")]  # noqa: UP007  (as many as there are)

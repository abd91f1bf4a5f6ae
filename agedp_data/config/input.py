"""[input]: the input files. One section class per dataset, so that a key of another dataset is refused.

The classes follow from the registered layouts: the common keys, with the keys that a layout adds (`Layout.keys`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, cast

from pydantic import Discriminator, Field, create_model, field_validator, model_validator

from agedp_data.config.paths import LOCATION, Pattern
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.registry import LAYOUTS, layout_of
from agedp_data.datasets.timestamps import ISO
from agedp_data.datasets.validation import ALL_COLUMNS, INTERVAL_MINUTES
from agedp_data.parameters import (
    FREE,
    LATER,
    Fraction01,
    ListOf,
    PositiveKwh,
    Section,
    Text,
    Zone,
    exact,
    watt_hours,
    wrong,
)

Order = Literal["name", "modified"]


def _order(data: dict[str, Any]) -> Order | None:
    return "name" if data.get("corrections") == "later-file" else None


class InputSection(Section):
    """The keys that all datasets share; `file_order` is None if conflicting readings are rejected."""

    dataset: str
    """Which layout the files have; see the tutorial for the two datasets and own-data for all others."""
    files: Annotated[ListOf[Pattern], LOCATION, FREE]
    """Globs, paths or URLs of the input files: `.csv`, `.gz`, `.zip`, `.zst`, `.parquet`, or folders of them, in any
    order.
    """
    corrections: Literal["set-aside", "later-file"] = "set-aside"
    """Conflicting readings from two files: "set-aside" keeps neither, "later-file" keeps that of the later file. A new
    live population must write it.
    """
    file_order: Order | None = Field(default_factory=_order)
    """Order of the files, for "later-file" only: by name, numbers compared as numbers, or by modification time. "name"
    unless written.
    """
    interval_minutes: Annotated[Literal[15, 30, 60], LATER] = 30
    """Minutes between two readings of a household. Readings of 15 minutes are added up to half-hours; readings of hours
    count for days only, not for states or chains of half-hours. The publishers' datasets have 30.
    """
    max_half_hour_kwh: PositiveKwh = exact(50)
    """A reading above this is rejected and counted; half of it for readings of 15 minutes, twice for those of hours."""
    max_rejected_share: Annotated[Fraction01, FREE] = Decimal("0.2")
    """A first run that rejects a larger share of the rows is refused. Rows without a reading, duplicates and corrected
    rows are not counted.
    """
    preflight: Annotated[Literal["refuse", "report"], FREE] = "refuse"
    """What follows if the files make a first release meaningless: the run is refused before anything is registered, or
    only reports it. After the first release it only reports.
    """

    @property
    def max_half_hour_wh(self) -> int:
        """The energy above which the reading of a half-hour is rejected [Wh]."""
        return watt_hours(self.max_half_hour_kwh)

    @property
    def named_columns(self) -> Mapping[str, Any] | None:
        """The keys of [input.columns], None for a dataset with a fixed layout."""
        return None

    @property
    def layout(self) -> Layout:
        """The layout of the input files."""
        return layout_of(self.dataset, self.named_columns, self.interval_minutes)

    @property
    def dataset_keys(self) -> Section | None:
        """The keys that the dataset's layout adds to this table, None if it adds none."""
        keys = LAYOUTS[self.dataset].keys if self.dataset in LAYOUTS else None
        return None if keys is None else keys.model_construct(**{key: getattr(self, key) for key in keys.model_fields})

    @model_validator(mode="after")
    def _interval_of_the_dataset(self) -> Self:
        if self.dataset in LAYOUTS and self.interval_minutes != LAYOUTS[self.dataset].interval_minutes:
            raise wrong(
                f'must be {INTERVAL_MINUTES} for dataset = "{self.dataset}"; describe other files under dataset = '
                '"long" and [input.columns]',
                "interval_minutes",
            )
        return self

    @model_validator(mode="after")
    def _order_only_where_used(self) -> Self:
        if self.file_order is not None and self.corrections != "later-file":
            raise wrong('is used by corrections = "later-file" only; remove it', "file_order")
        return self


class LongColumns(Section):
    """[input.columns]: the columns and units of a table with one row per household and interval."""

    household: Text
    """Column of the household's identifier; "*", with energy = "*", if the table has a column for each household."""
    time: Text
    """Column of the timestamp."""
    time_format: Text = "%Y-%m-%d %H:%M:%S"
    """Format of the timestamp, as for `strptime` (`%z` for an offset or Z, with zone = "UTC"), or "iso", where an
    offset may be written or not.
    """
    stamp: Literal["end", "start"]
    """Whether the timestamp is the end or the start of its interval."""
    zone: Zone
    """Time zone of the timestamps."""
    day_zone: Zone
    """Time zone whose midnight ends a day."""
    energy: Text
    """Column of the energy of the interval; "*" as for `household`."""
    unit: Literal["kWh", "Wh"]
    """Unit of the energy column."""
    missing: Annotated[tuple[str, ...], Field(strict=False)] = ("Null", "")
    """Texts in the energy column that mean a missing reading."""
    separator: Annotated[Literal[",", ";", "\t", "|"], LATER] = ","
    """Separator of the columns of a CSV file."""
    decimal: Annotated[Literal[".", ","], LATER] = "."
    """Decimal mark of energies that are text."""
    repeated: Annotated[Literal["passes", "sum"], LATER] = "passes"
    """A half-hour that the clock shows twice: "passes" is two rows, which are added up, "sum" is one row with the sum
    of both.
    """
    ignore: Annotated[tuple[str, ...], Field(strict=False), LATER] = ()
    """Columns of a wide table that are no household's."""

    @field_validator("time_format")
    @classmethod
    def _reads_half_hours(cls, pattern: str) -> str:
        zone = UTC if "%z" in pattern else None
        example = datetime(2013, 2, 28, 23, 30, tzinfo=zone)
        try:
            is_complete = pattern == ISO or datetime.strptime(example.strftime(pattern), pattern) == example
        except (ValueError, re.error):  # a directive that occurs twice is a duplicate group name in strptime's pattern
            is_complete = False
        if not is_complete:
            raise wrong('must be "iso", or a pattern such as "%d/%m/%Y %H:%M" that has year, month, day and minute')
        return pattern

    @model_validator(mode="after")
    def _offsets_are_utc(self) -> Self:
        if "%z" in self.time_format and self.zone != "UTC":
            raise wrong('must be "UTC" where time_format has %z: a timestamp with an offset is an instant', "zone")
        return self

    @model_validator(mode="after")
    def _three_columns(self) -> Self:
        if (self.household == ALL_COLUMNS) != (self.energy == ALL_COLUMNS):
            raise wrong(
                'must be "*" for both household and energy (a column for each household), or for none', "energy"
            )
        if self.decimal == self.separator:
            raise wrong("is also the separator of the columns; write another one", "decimal")
        if self.ignore and self.household != ALL_COLUMNS:
            raise wrong('is for a wide table only (household = "*"): other columns are ignored anyway', "ignore")
        if self.household != ALL_COLUMNS and len({self.household, self.time, self.energy}) < 3:
            raise wrong("names a column that another key names; household, time and energy differ", "energy")
        return self


class LongInput(InputSection):
    """Any other table of one row per household and interval of 15, 30 or 60 minutes."""

    dataset: Literal["long"]
    columns: LongColumns

    @property
    def named_columns(self) -> Mapping[str, Any] | None:
        """The keys of [input.columns]."""
        return self.columns.model_dump()


def _section_of_layout(layout: Layout) -> type[InputSection]:
    """Return the section class of a dataset: the common keys and those of its layout."""
    bases: Any = (
        (InputSection,) if layout.keys is None else (layout.keys, InputSection)
    )  # pydantic lists the last one's keys first
    dataset: Any = (Literal[layout.name], ...)
    return cast("type[InputSection]", create_model(f"{layout.name.title()}Input", __base__=bases, dataset=dataset))


INPUTS: tuple[type[InputSection], ...] = (*(_section_of_layout(layout) for layout in LAYOUTS.values()), LongInput)

if TYPE_CHECKING:
    AnyInput = InputSection
else:
    AnyInput = Annotated[Union[INPUTS], Discriminator("dataset")]  # noqa: UP007  (as many as there are)

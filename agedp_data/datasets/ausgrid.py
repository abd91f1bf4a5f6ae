"""Ausgrid solar homes: one row per customer, category and day, 48 columns labelled with the END of the half-hour.

Household use is general consumption GC plus controlled load CL; GG is generation. Days are Sydney civil days:
the two half-hours that do not exist on the spring day are written as 0 and are not readings; the publisher adds the
repeated autumn hour into its two columns, and it remains in the daily total.

Re-cuts are recognised as well: the index of a data frame before the columns, labels such as 00:30 or 0:30:00, and ISO
dates, with midnight after them or not (2012-07-01T00:00:00.000Z).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from agedp_data.datasets import validation
from agedp_data.datasets.csv_lines import column_names, has_index
from agedp_data.datasets.layout import (
    Channels,
    Columns,
    Header,
    PublishedLayout,
    Records,
    fill_nulls,
    household_ids,
    is_null,
)
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import MISSING, SLOTS, Flags, Int32s, Ints, ReadingRules
from agedp_data.errors import InputError
from agedp_data.parameters import ListOf, Section, wrong

_LABELS = tuple(f"{m // 60 % 24}:{m % 60:02d}" for m in range(30, 24 * 60 + 1, 30))
_FIXED = ("Customer", "Generator Capacity", "Postcode", "Consumption Category", "date")
_ROLES = {"Customer": "household", "Consumption Category": "category", "date": "date", "Row Quality": "quality"}
READINGS = tuple(f"energy_{slot}" for slot in range(SLOTS))
_TEXT = pa.dictionary(pa.int32(), pa.binary())
_NOTE = "rows with Row Quality NA (kept)"
_FORMATS = ("%d/%m/%Y", "%d-%b-%y", "%Y-%m-%d")
_LABEL = re.compile(r"^0?(\d{1,2}:\d\d)(:00)?$")
_DATE = re.compile(r"([\w/-]{6,11}?)([ T]0?0:00(:00(\.0+)?)?(Z|[+]00:?00)?)?", re.ASCII)


Category = Literal["GC", "CL", "GG"]
MissingLoad = Literal["zero", "missing"]


def _default_missing_load(data: dict[str, Any]) -> MissingLoad | None:
    return "zero" if {"GC", "CL"} <= set(data.get("categories", ())) else None


class AusgridKeys(Section):
    """The keys of [input] for Ausgrid solar homes: a household's use is the sum of its `categories`."""

    categories: ListOf[Category] = ("GC", "CL")
    """Categories that add up to a household's use: general consumption (GC), controlled load (CL), or generation (GG)
    alone.
    """
    missing_controlled_load: MissingLoad | None = Field(default_factory=_default_missing_load)
    """Controlled load of a household-day that has a GC row and no CL row; "zero" unless written, where both categories
    are read.
    """

    @model_validator(mode="after")
    def _categories_add_up(self) -> Self:
        if len(set(self.categories)) < len(self.categories):
            raise wrong("names a category twice", "categories")
        if "GG" in self.categories and len(self.categories) > 1:
            raise wrong('adds generation "GG" to use; write ["GC", "CL"], or "GG" alone', "categories")
        if self.missing_controlled_load is not None and not {"GC", "CL"} <= set(self.categories):
            raise wrong('is used with "GC" and "CL" only; remove it', "missing_controlled_load")
        return self


class Ausgrid(PublishedLayout):
    """The layout of the Ausgrid solar home data, all three years: a row is one household, category and day.

    The channels of a household are the `categories` of [input]; the readings of all of them add up to its use.
    """

    name = "ausgrid"
    day_zone = "Australia/Sydney"
    width = SLOTS
    channels = 2
    keys = AusgridKeys

    def recognise(self, lines: Sequence[str], location: str = "") -> Header | None:  # noqa: ARG002
        """Return the header if it is in the first or, below the title, in the second line."""
        for skip, line in enumerate(lines[:2]):
            names = [name.strip('"') for name in column_names(line)]
            width = len(names)
            index = int(has_index(names))
            del names[:index]
            while names and not names[-1]:
                names.pop()
            labels = tuple(_LABEL.sub(r"\1", name) for name in names[5 : 5 + SLOTS])
            if names[:5] == list(_FIXED) and labels == _LABELS:
                quality = names[5 + SLOTS :]
                if quality not in ([], ["Row Quality"]):
                    return None
                return _header(skip + 1, bool(quality), width, index)
        return None

    def date_format_error(self, rows: Sequence[str], header: Header) -> InputError:  # noqa: ARG002
        """Return the error about a file whose first rows have no date that is day first."""
        return InputError("no date format fits the first rows; dates must be day first, 1/07/2011 or 1-Jul-10")

    def known_headers(self) -> tuple[str, ...]:
        """Return the known header line, shortened."""
        return (",".join(_FIXED) + ",0:30,1:00,...,23:30,0:00[,Row Quality]",)

    def records(self, columns: Columns, header: Header, rules: ReadingRules) -> Records:
        """Return one record of 48 readings per row.

        Readings of the spring hour that does not exist are missing, although the publisher writes 0. One unusable cell
        rejects the row.
        """
        ids, household, no_household = household_ids(columns.values["household"])
        day = _numbers_of_texts(columns.values["date"], _parse_day)
        no_day = day == MISSING
        categories = [category for category in get_args(Category) if category in _layout_keys(rules).categories]
        order = {category: i for i, category in enumerate(categories)}
        channel = _numbers_of_texts(columns.values["category"], lambda category: order.get(category, MISSING))
        energy, empty, cell_reasons = _parse_energies(columns, rules)
        for index in np.unique(day[~no_day]):
            absent = self.absent_slots(date_of_day(int(index)))
            if absent:
                energy[np.ix_(day == index, absent)] = MISSING
        reason = validation.first_reason(
            HOUSEHOLD=no_household, DATE=no_day, CATEGORY=channel < 0, MISSING=empty, **cell_reasons
        )
        time, notes = (day * SLOTS).astype(np.int32), {}
        if "quality" in header.types:
            cells = columns.values["quality"].cast(pa.binary()).to_pylist()
            notes[_NOTE] = sum(cell is not None and cell.strip() == b"NA" for cell in cells)
        return Records(ids, household, channel.astype(np.uint8), time, energy, reason, notes)

    def complete_channels(self, rules: ReadingRules) -> Channels:
        """Return the sets of channels that add up to a reading: all categories, or without controlled load also GC.

        GC alone is complete unless `missing_controlled_load = "missing"`; a household without a CL row then uses none.
        """
        keys = _layout_keys(rules)
        all_channels = frozenset(range(len(keys.categories)))
        return (all_channels,) if keys.missing_controlled_load == "missing" else (frozenset({0}), all_channels)


def _header(lines: int, quality: bool, width: int, index: int) -> Header:
    names = ["index"] * index + [_ROLES.get(name, f"unused_{i}") for i, name in enumerate(_FIXED)] + list(READINGS)
    names += ["quality"] * quality
    names += [f"unused_{i}" for i in range(len(names), width)]
    types = {"household": _TEXT, "category": _TEXT, "date": _TEXT, **dict.fromkeys(READINGS, pa.float64())}
    if quality:
        types["quality"] = _TEXT
    variant = "with Row Quality" if quality else "without Row Quality"
    return Header(variant, lines, tuple(names), types)


def _numbers_of_texts(column: pa.DictionaryArray, number_of: Callable[[str], int]) -> Ints:
    """Return the number of each cell's text, without surrounding blanks; `MISSING` for no text."""
    texts = [(raw or b"").decode("latin-1").strip(" \t") for raw in column.dictionary.to_pylist()]
    lookup = np.array([*map(number_of, texts), MISSING], np.int64)
    numbers: Ints = lookup[fill_nulls(column.indices, len(texts))]
    return numbers


def _parse_day(text: str) -> int:
    """Return the day of one row, `MISSING` for none; no text fits two formats.

    >>> _parse_day("1/07/2011"), _parse_day("1-Jul-10"), _parse_day("7/31/2011")
    (15156, 14791, -1)
    >>> _parse_day("2011-07-01T00:00:00.000Z"), _parse_day("2011-07-01 10:00")
    (15156, -1)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return MISSING
    for pattern in _FORMATS:
        with suppress(ValueError):
            day = datetime.strptime(match[1], pattern).date()
            return day_number(day) if validation.FIRST_DAY <= day <= validation.LAST_DAY else MISSING
    return MISSING


def _layout_keys(rules: ReadingRules) -> AusgridKeys:
    return rules.layout_keys if isinstance(rules.layout_keys, AusgridKeys) else AusgridKeys()


def _parse_energies(columns: Columns, rules: ReadingRules) -> tuple[Int32s, Flags, dict[str, Flags]]:
    """Return (n, 48) watt-hours, the rows without any reading and, per reason, the rows with such a cell.

    One unusable cell rejects the row: the use of the rest of the day is then unknown.
    """
    is_empty_row = np.ones(columns.rows, bool)
    energy = np.full((columns.rows, SLOTS), MISSING, np.int32)
    flags_by_reason = {"TEXT": np.zeros(columns.rows, bool)}
    for slot, name in enumerate(READINGS):
        column = columns.values[name]
        empty = is_null(column)
        wh, energy_reason = validation.round_to_wh(fill_nulls(column, 0.0), rules)
        energy[:, slot] = np.where(empty, MISSING, wh)
        is_empty_row &= empty & ~columns.unreadable_cells(name)
        flags_by_reason["TEXT"] |= columns.unreadable_cells(name)
        for reason, flags in validation.energy_flags(energy_reason).items():
            flags_by_reason[reason.name] = flags | flags_by_reason.get(reason.name, flags)
    return energy, is_empty_row, flags_by_reason

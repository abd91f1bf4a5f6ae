"""Low Carbon London: one row per household and half-hour; timestamps in GMT at the END of the half-hour.

All headers in the wild are recognised: the publisher's four columns (with its trailing space), the older
six-column release and its 1 MB sample (day-first dates), the Kaggle re-cut and users' extracts. A London day
is a GMT day: 48 slots all year. The 00:00 reading belongs to the day before. A timestamp is ISO or, with slashes, day
first. Each row is parsed by itself, so a timestamp with the month first is an impossible date or one of another day.

Re-cuts are recognised as well: the index of a data frame before the columns; instants (2013-01-01T00:30:00.000Z), since
UTC is GMT; a date alone for its midnight, which ends the day before; and rows of days with columns `hh_0` to `hh_47`,
the half-hours from midnight GMT on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from agedp_data.datasets import layout, validation
from agedp_data.datasets.csv_lines import column_names, has_index
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.timestamps import DAY_FIRST, ISO
from agedp_data.errors import InputError

_HEADERS = {
    "publisher": "LCLid,stdorToU,DateTime,KWH/hh (per half hour)",
    "older": "LCLid,stdorToU,DateTime,KWH/hh (per half hour),Acorn,Acorn_grouped",
    "kaggle": "LCLid,tstp,energy(kWh/hh)",
    "extract": "LCLid,DateTime,KWH/hh (per half hour)",
}
_DAYS = ["LCLid", "day", *(f"hh_{slot}" for slot in range(validation.SLOTS))]
_OF_DAYS = validation.NamedColumns(
    _DAYS[0], _DAYS[1], ISO, "start", "GMT", "GMT", (_DAYS[2], _DAYS[-1]), "kWh", ("Null", "")
)
_NO_SECONDS = DAY_FIRST.removesuffix(":%S")
_ROLES = {"lclid": "household", "datetime": "time", "tstp": "time"}
_TYPES = {"household": pa.dictionary(pa.int32(), pa.binary()), "time": pa.timestamp("ns"), "energy": pa.float64()}


class London(layout.PublishedLayout):
    """The layout of Low Carbon London: a row is one household and half-hour, in GMT all year.

    >>> London().recognise(["LCLid,tstp,energy(kWh/hh)"]).variant
    'kaggle'
    """

    name = "london"
    day_zone = "GMT"

    def __init__(self) -> None:
        super().__init__()
        self._rows_of_days = Long(_OF_DAYS)

    def recognise(self, lines: Sequence[str], location: str = "") -> layout.Header | None:
        """Return the header if the first line is a known one, regardless of blanks, case, and an index before it."""
        if not lines:
            return None
        names = _normalised_columns(lines[0])
        index = names[: has_index(names)]
        columns = names[len(index) :]
        if columns == [name.lower() for name in _DAYS]:
            header = self._rows_of_days.recognise([",".join([*index, *_DAYS])], location)
            return header and replace(header, variant="days")
        for variant, text in _HEADERS.items():
            if columns == _normalised_columns(text):
                roles = tuple(
                    "energy" if name.startswith(("kwh/hh", "energy(kwh/hh)")) else _ROLES.get(name, f"unused_{i}")
                    for i, name in enumerate(names)
                )
                return layout.Header(variant, 1, roles, _TYPES, (ISO, DAY_FIRST, _NO_SECONDS))
        return None

    def date_format_error(self, rows: Sequence[str], header: layout.Header) -> InputError:  # noqa: ARG002
        """Return the error about a file whose first rows have no timestamp that is ISO or day first."""
        return InputError(
            "no date format fits the first rows; timestamps must be ISO (2013-01-31 00:30:00) or day first "
            "(31/01/2013 00:30:00)"
        )

    def known_headers(self) -> tuple[str, ...]:
        """Return the known header lines."""
        return *_HEADERS.values(), f"{','.join(_DAYS[:3])},...,{_DAYS[-1]}"

    def records(self, columns: layout.Columns, header: layout.Header, rules: validation.ReadingRules) -> layout.Records:
        """Return one record per row; the half-hour that ends at 00:00 is the last of the day before.

        A row without a reading is `MISSING` even if its timestamp is off the grid; an impossible date has precedence.
        A row of a day has one record for each half-hour.
        """
        if header.readings_per_row > 1:
            return self._rows_of_days.records(columns, header, rules)
        ids, household, no_household = layout.household_ids(columns.values["household"])
        end, cell = columns.times["time"], columns.values["energy"]
        no_number = columns.unreadable_cells("energy")
        missing = layout.is_null(cell) & ~no_number
        kwh = layout.fill_nulls(cell, 0.0)
        energy, energy_reason = validation.round_to_wh(kwh, rules)
        time = (end.quarter >> 1) - np.int32(1)  # the reading that ends at 00:00 is the last of the day before
        off_grid = ~end.is_exact | ((end.quarter & 1) != 0)
        no_date = end.unreadable | validation.is_impossible_time(time)
        reason = validation.first_reason(
            energy_reason, HOUSEHOLD=no_household, DATE=no_date, MISSING=missing, TEXT=no_number, OFF_GRID=off_grid
        )
        channel = np.zeros(columns.rows, np.uint8)
        return layout.Records(ids, household, channel, time, energy.reshape(-1, 1), reason, {}, off_grid)


def _normalised_columns(line: str) -> list[str]:
    return [name.strip('"').lower() for name in column_names(line)]

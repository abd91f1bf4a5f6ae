"""Synthetic Low Carbon London files: the publisher's layout, all other published headers, and the published defects.

Values are padded (` 0.143 `), timestamps are GMT at the END of the half-hour, rows are sorted by tariff, household
and time. Ids begin at MAC900001, above all real ones.

The defects (`LondonDefects`):

* Exact duplicates, adjacent, at 00:00:00 every 31 days; float noise.
* One off-grid `Null` row per household at 12:3x:xx on 2012-12-19, or in the middle of a period without that day.
* Gaps, and households that stop early. With every seed a day of the second household is missing, the third household
  stops early, and the fourth household reports mostly zeros.
* A household that is split between two files.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets.synthetic import households as made
from agedp_data.datasets.synthetic.households import BATCH, MAX_WH, ChunkFiles, DeliveryAccount, Households
from agedp_data.datasets.validation import SLOTS, Flags, Ints, RejectionReason
from agedp_data.errors import RunFileError

NULL_SLOT = 24  # the half-hour that ends at 12:30
NULL_SECONDS = 540  # 12:31:00 to 12:39:59
_NULL_DAY = date(2012, 12, 19)
_NOISE_SHARE = 1 / 2000
_STOPS_PER_YEAR = 0.09


@dataclass(frozen=True, slots=True, eq=False)
class LondonDefects:
    """The defects of a batch: missing, noisy and duplicated half-hours (batch, steps), `Null` rows by household.

    `null_seconds` (batch) are the seconds of the `Null` row after 12:31:00, -1 for a household without one.
    """

    missing: Flags
    noisy: Flags
    duplicated: Flags
    null_seconds: Ints


def null_day_index(first_day: date, days: int) -> int:
    """Return the index in the period of the day with the `Null` rows.

    >>> null_day_index(date(2012, 12, 1), 31), null_day_index(date(2013, 1, 1), 31)
    (18, 15)
    """
    index = (_NULL_DAY - first_day).days
    return index if 0 <= index < days else days // 2


def no_defects(households: int, steps: int) -> LondonDefects:
    """Return a batch without defects."""
    nothing = np.zeros((households, steps), bool)
    return LondonDefects(nothing, nothing, nothing, np.full(households, -1))


def draw_defects(
    indices: slice, energy_wh: Ints, *, first_day: date, duplicates: bool, seed: int, stops: bool = True
) -> LondonDefects:
    """Return the defects of the households with these indices; only existing readings are noisy or duplicated.

    Without `stops` no household stops early.
    """
    households, steps = energy_wh.shape
    days = steps // SLOTS
    generator = made.random_generator(seed, "defects", indices.start // BATCH)
    missing = made.draw_gaps(households, steps, generator=generator)
    if stops:
        missing |= _draw_early_ends(indices, households, days, generator)
    if indices.start == 0 and days > 2:
        missing[1:2, days // 3 * SLOTS : (days // 3 + 1) * SLOTS] = True
    # as published, only readings of a kilowatt-hour and more carry float noise
    noisy = (generator.random(energy_wh.shape) < _NOISE_SHARE) & (energy_wh >= 1000) & ~missing
    if indices.start == 0:
        largest = int(np.where(missing[0], -1, energy_wh[0]).argmax())
        noisy[0, largest] = not missing[0, largest]
    step = null_day_index(first_day, days) * SLOTS + NULL_SLOT
    seconds = generator.integers(NULL_SECONDS, size=households)
    # half-hours that end 8, 39, 70, ... days into the period
    duplicated = np.zeros(days * SLOTS, bool)
    duplicated[np.arange(min(8, days), days + 1, 31) * SLOTS - 1] = True
    return LondonDefects(missing, noisy, duplicated & ~missing & duplicates, np.where(missing[:, step], -1, seconds))


def _draw_early_ends(indices: slice, households: int, days: int, generator: np.random.Generator) -> Flags:
    """Return (batch, steps), True after a household's early end."""
    stops = generator.random(households) < _STOPS_PER_YEAR * days / 365
    last = np.where(stops, generator.integers(1, days * SLOTS + 1, size=households), days * SLOTS)
    if indices.start == 0:
        last[2:3] = days * SLOTS * 7 // 10
    stopped: Flags = np.arange(days * SLOTS) >= last[:, None]
    return stopped


_FOUR = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) "
_SIX = _FOUR + ",Acorn,Acorn_grouped"
_THREE = "LCLid,DateTime,KWH/hh (per half hour)"
_ACORN = (",ACORN-C,Affluent", ",ACORN-H,Comfortable", ",ACORN-P,Adversity")
_ISO, _SEVEN_DIGITS, _DAY_FIRST = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.0000000", "%d/%m/%Y %H:%M:%S"
_MEAN_KWH, _COLDEST, _STANDARD_TARIFF = 10.0, date(2013, 1, 20), 0.8
_HALF_HOUR = timedelta(minutes=30)
_NOISY_OFFSET, _NULL_TEXT = MAX_WH + 1, 2 * (MAX_WH + 1)  # indices in the array of texts: clean, noisy, Null
_ROWS_A_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class _HeaderForm:
    """The form of the files of one header; without `chunked` all rows are in one file, unless `per_file` is given."""

    header: str
    name: str
    time_pattern: str = _SEVEN_DIGITS
    line_end: str = "\r\n"
    chunked: bool = True
    duplicates: bool = True
    final_line_end: bool = True

    def rows_per_file(self, rows: int, *, quirks: bool) -> int:
        """Return the number of rows of a file: a million as published, fewer if a household is to be split."""
        if not self.chunked:
            return 10 * rows
        return min(_ROWS_A_FILE, rows * 3 // 5 + 7) if quirks else _ROWS_A_FILE

    def around(self, household_id: str, index: int, households: int) -> tuple[str, str]:
        """Return the text before the timestamp and after the reading in every row of a household."""
        tariff = "Std" if index < _STANDARD_TARIFF * households else "ToU"
        before = f"{household_id},{tariff}," if ",stdorToU," in self.header else f"{household_id},"
        return before, (_ACORN[index % 3] if ",Acorn," in self.header else "") + self.line_end


_FORMS = {
    "publisher": _HeaderForm(_FOUR, "LCL-June2015v2_{}.csv"),
    "older": _HeaderForm(_SIX, "Power-Networks-LCL-June2015(withAcornGps)v2_{}.csv"),
    "sample": _HeaderForm(_SIX, "UKPN-LCL-smartmeter-sample_{}.csv", _DAY_FIRST, chunked=False),
    "kaggle": _HeaderForm("LCLid,tstp,energy(kWh/hh)", "block_{}.csv", _ISO, "\n", duplicates=False),
    "extract": _HeaderForm(_THREE, "extract_{}.csv", _ISO, "\n", chunked=False, final_line_end=False),
}


def write_london(  # noqa: PLR0913  (independent properties of the files)
    folder: Path,
    *,
    households: int,
    first_day: date,
    days: int,
    seed: int,
    header: str = "publisher",
    per_file: int | None = None,
    quirks: bool = True,
    plain_chain: bool = False,
    profiles: Households | None = None,
) -> DeliveryAccount:
    """Write synthetic London files into a folder and return their exact contents.

    `header` is one of publisher, older, sample, kaggle, extract. A file has `per_file` rows; by default a million as
    published, fewer if the defects include a household that is split between two files. `plain_chain` omits time of
    day and weather, so that the readings themselves follow the known chains. `profiles` are the caller's households,
    as many as `households`; none of them stops early.

    Raises:
        RunFileError: an unknown header, no households or days, or files of that name in the folder.
    """
    if header not in _FORMS:
        raise RunFileError(f"header {header!r} is not one of {', '.join(_FORMS)}")
    if households < 1 or days < 1 or (per_file is not None and per_file < 1):
        raise RunFileError(f"{households} households, {days} days, {per_file} rows a file: each must be at least 1")
    form, stops = _FORMS[header], profiles is None
    profiles = profiles or made.draw_households(households, mean_kwh=_MEAN_KWH, seed=seed)
    ids = tuple(f"MAC{900_001 + index:06d}" for index in range(households))
    factors = None if plain_chain else np.repeat(made.day_factors(first_day, days, seed=seed, coldest=_COLDEST), SLOTS)
    energies = pa.array([*made.energy_texts(MAX_WH, pad=" "), *made.noisy_texts(MAX_WH, pad=" "), "Null"])
    null_step = null_day_index(first_day, days) * SLOTS + NULL_SLOT
    row_table = _RowTable(form, ids, _timestamp_texts(first_day, days, form), energies, null_step)
    use, readings = np.zeros((2, households, days), np.int64)
    duplicated = nulls = 0
    rows = per_file or form.rows_per_file(households * days * SLOTS, quirks=quirks)
    with ChunkFiles(folder, form.name, header=form.header + form.line_end, rows_per_file=rows) as files:
        for indices, energy in made.draw_energies(
            profiles, slots=tuple(range(SLOTS)) * days, factors=factors, seed=seed
        ):
            defects = no_defects(*energy.shape)
            if quirks:
                of_form = {"duplicates": form.duplicates, "stops": stops}
                defects = draw_defects(indices, energy, first_day=first_day, seed=seed, **of_form)
            _write_batch(files, row_table, indices, energy, defects)
            use[indices] = np.where(defects.missing, 0, energy).reshape(-1, days, SLOTS).sum(axis=2)
            readings[indices] = (~defects.missing).reshape(-1, days, SLOTS).sum(axis=2)
            duplicated += int(defects.duplicated.sum())
            nulls += int((defects.null_seconds >= 0).sum())
        if not form.final_line_end:
            files.drop_last(len(form.line_end))
    rejected = {RejectionReason.MISSING: nulls, RejectionReason.DUPLICATE: duplicated}
    return DeliveryAccount(
        files=tuple(files.files),
        rows_written=files.rows,
        rows_kept=int(readings.sum()),
        rejected={reason: number for reason, number in rejected.items() if number},
        household_ids=ids,
        kind=profiles.kind,
        first_day=first_day,
        energy_wh=use,
        readings=readings,
        notes={},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _RowTable:
    """Texts of all rows: timestamps (steps, then seconds of `Null` rows), energies, and the step of the `Null` rows."""

    form: _HeaderForm
    ids: tuple[str, ...]
    timestamps: pa.StringArray
    texts: pa.StringArray
    null_step: int


def _timestamp_texts(first_day: date, days: int, form: _HeaderForm) -> pa.StringArray:
    start = datetime.combine(first_day, time())
    null = start + timedelta(days=null_day_index(first_day, days), hours=12, minutes=31)
    times = [start + (step + 1) * _HALF_HOUR for step in range(days * SLOTS)]
    times += [null + timedelta(seconds=second) for second in range(NULL_SECONDS)]
    return pa.array([time_of_row.strftime(form.time_pattern) + "," for time_of_row in times])


def _write_batch(
    files: ChunkFiles, row_table: _RowTable, indices: slice, energy_wh: Ints, defects: LondonDefects
) -> None:
    times = np.where(defects.missing, 0, 1 + defects.duplicated)
    for row, index in enumerate(range(indices.start, indices.stop)):
        time_index = np.repeat(np.arange(times.shape[1]), times[row])
        text = energy_wh[row, time_index] + defects.noisy[row, time_index] * _NOISY_OFFSET
        if defects.null_seconds[row] >= 0:
            position = np.searchsorted(time_index, row_table.null_step, side="right")
            time_index = np.insert(time_index, position, times.shape[1] + defects.null_seconds[row])
            text = np.insert(text, position, _NULL_TEXT)
        before, after = row_table.form.around(row_table.ids[index], index, len(row_table.ids))
        times_of_rows, energies = row_table.timestamps.take(time_index), row_table.texts.take(text)
        files.add(pc.binary_join_element_wise(before, times_of_rows, energies, after, ""))

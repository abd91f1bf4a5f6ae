"""Made-up Low Carbon London files: the publisher's layout and the other headers in the wild.

Values are padded (` 0.143 `), stamps are GMT at the END of the half-hour, rows sorted by tariff, household
and time. The flaws are those of `flaws`, and a household cut between two files; the fourth
household reports mostly zeros, whatever the seed. Ids begin at MAC900001, beyond the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.errors import RunFileError
from agedp_data.readers.layout import SLOTS, Ints, RejectionReason
from agedp_data.readers.synthetic.accounting import DeliveryAccount
from agedp_data.readers.synthetic.files import ChunkFiles, energy_texts, noisy_texts
from agedp_data.readers.synthetic.flaws import NULL_SECONDS, NULL_SLOT, LondonDefects, draw_flaws, null_day, sound
from agedp_data.readers.synthetic.households import MAX_WH, Floats, Households, day_factors, draw_homes, energies

_FOUR = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) "
_SIX = _FOUR + ",Acorn,Acorn_grouped"
_THREE = "LCLid,DateTime,KWH/hh (per half hour)"
_ACORN = (",ACORN-C,Affluent", ",ACORN-H,Comfortable", ",ACORN-P,Adversity")
_ISO, _SEVEN_DIGITS, _DAY_FIRST = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.0000000", "%d/%m/%Y %H:%M:%S"
_MEAN_KWH, _COLDEST, _STANDARD_TARIFF = 10.0, date(2013, 1, 20), 0.8
_HALF_HOUR = timedelta(minutes=30)
_NOISY, _NULL = MAX_WH + 1, 2 * (MAX_WH + 1)  # places in the table of texts: clean, noisy, Null
_ROWS_A_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class _HeaderForm:
    """How one header's files look; files that are not `chunked` are one file unless asked otherwise."""

    header: str
    name: str
    stamp: str = _SEVEN_DIGITS
    line_end: str = "\r\n"
    chunked: bool = True
    duplicates: bool = True
    final_line_end: bool = True

    def rows_a_file(self, rows: int, *, quirks: bool) -> int:
        """Return how many rows a file takes: a million as published, fewer where a household is to be cut."""
        if not self.chunked:
            return 10 * rows
        return min(_ROWS_A_FILE, rows * 3 // 5 + 7) if quirks else _ROWS_A_FILE

    def around(self, household_id: str, place: int, households: int) -> tuple[str, str]:
        """Return what stands before the stamp and behind the reading in every row of a household."""
        tariff = "Std" if place < _STANDARD_TARIFF * households else "ToU"
        before = f"{household_id},{tariff}," if ",stdorToU," in self.header else f"{household_id},"
        return before, (_ACORN[place % 3] if ",Acorn," in self.header else "") + self.line_end


_FORMS = {
    "publisher": _HeaderForm(_FOUR, "LCL-June2015v2_{}.csv"),
    "older": _HeaderForm(_SIX, "Power-Networks-LCL-June2015(withAcornGps)v2_{}.csv"),
    "sample": _HeaderForm(_SIX, "UKPN-LCL-smartmeter-sample_{}.csv", stamp=_DAY_FIRST, chunked=False),
    "kaggle": _HeaderForm("LCLid,tstp,energy(kWh/hh)", "block_{}.csv", stamp=_ISO, line_end="\n", duplicates=False),
    "extract": _HeaderForm(_THREE, "extract_{}.csv", stamp=_ISO, line_end="\n", chunked=False, final_line_end=False),
}


def write_london(  # noqa: PLR0913  (each says something else about the files)
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
    """Write made-up London files into a folder and say what is in them.

    `header` is one of publisher, older, sample, kaggle, extract. `per_file` rows go into a file; if not
    given, a million as published, fewer where the flaws ask for a household cut between two files.
    `plain_chain` leaves time of day and weather out, so that the readings themselves follow the known chains.
    `profiles` brings households of the caller's own, as many as `households`, none of which ends early.

    Raises:
        RunFileError: an unknown header, no households or days, or files of that name in the folder.
    """
    form, stops = _form(header, households, days, per_file), profiles is None
    profiles = profiles or draw_homes(households, mean_kwh=_MEAN_KWH, seed=seed)
    ids = tuple(f"MAC{900_001 + place:06d}" for place in range(households))
    factors = None if plain_chain else _factors(first_day, days, seed)
    sheet = _RowTable(
        form, ids, _stamps(first_day, days, form), _texts(), null_day(first_day, days) * SLOTS + NULL_SLOT
    )
    use, there = np.zeros((2, households, days), np.int64)
    doubled = nulls = 0
    rows = per_file or form.rows_a_file(households * days * SLOTS, quirks=quirks)
    with ChunkFiles(folder, form.name, header=form.header + form.line_end, rows_a_file=rows) as files:
        for places, energy in energies(profiles, slots=tuple(range(SLOTS)) * days, factors=factors, seed=seed):
            flaws = sound(*energy.shape)
            if quirks:
                twice = form.duplicates
                flaws = draw_flaws(places, energy, first_day=first_day, duplicates=twice, seed=seed, stops=stops)
            _write_batch(files, sheet, places, energy, flaws)
            use[places] = np.where(flaws.lost, 0, energy).reshape(-1, days, SLOTS).sum(axis=2)
            there[places] = (~flaws.lost).reshape(-1, days, SLOTS).sum(axis=2)
            doubled += int(flaws.doubled.sum())
            nulls += int((flaws.null_seconds >= 0).sum())
        if not form.final_line_end:
            files.drop_last(len(form.line_end))
    return DeliveryAccount(
        dataset="london",
        files=tuple(files.files),
        rows_written=files.rows,
        rows_kept=int(there.sum()),
        set_aside={
            reason: n for reason, n in ((RejectionReason.MISSING, nulls), (RejectionReason.DUPLICATE, doubled)) if n
        },
        household_ids=ids,
        kind=profiles.kind,
        first_day=first_day,
        energy_wh=use,
        readings=there,
        cut=files.cut,
        notes={},
    )


def _form(header: str, households: int, days: int, per_file: int | None) -> _HeaderForm:
    if header not in _FORMS:
        raise RunFileError(f"header {header!r} is not one of {', '.join(_FORMS)}")
    if households < 1 or days < 1 or (per_file is not None and per_file < 1):
        raise RunFileError(f"{households} households, {days} days, {per_file} rows a file: each must be at least 1")
    return _FORMS[header]


@dataclass(frozen=True, slots=True, eq=False)
class _RowTable:
    """What all rows share: stamps (steps, then seconds of `Null` rows), energies as text, the `Null` step."""

    form: _HeaderForm
    ids: tuple[str, ...]
    stamps: pa.StringArray
    texts: pa.StringArray
    null_step: int


def _factors(first_day: date, days: int, seed: int) -> Floats:
    return np.repeat(day_factors(first_day, days, seed=seed, coldest=_COLDEST), SLOTS)


def _texts() -> pa.StringArray:
    return pa.array([*energy_texts(MAX_WH, pad=" "), *noisy_texts(MAX_WH, pad=" "), "Null"])


def _stamps(first_day: date, days: int, form: _HeaderForm) -> pa.StringArray:
    start = datetime.combine(first_day, time())
    null = start + timedelta(days=null_day(first_day, days), hours=12, minutes=31)
    stamps = [start + (step + 1) * _HALF_HOUR for step in range(days * SLOTS)]
    stamps += [null + timedelta(seconds=second) for second in range(NULL_SECONDS)]
    return pa.array([stamp.strftime(form.stamp) + "," for stamp in stamps])


def _write_batch(files: ChunkFiles, sheet: _RowTable, places: slice, energy_wh: Ints, flaws: LondonDefects) -> None:
    times = np.where(flaws.lost, 0, 1 + flaws.doubled)
    for row, place in enumerate(range(places.start, places.stop)):
        stamp = np.repeat(np.arange(times.shape[1]), times[row])
        text = energy_wh[row, stamp] + flaws.noisy[row, stamp] * _NOISY
        if flaws.null_seconds[row] >= 0:
            behind = np.searchsorted(stamp, sheet.null_step, side="right")
            stamp = np.insert(stamp, behind, times.shape[1] + flaws.null_seconds[row])
            text = np.insert(text, behind, _NULL)
        before, after = sheet.form.around(sheet.ids[place], place, len(sheet.ids))
        files.add(pc.binary_join_element_wise(before, sheet.stamps.take(stamp), sheet.texts.take(text), after, ""))

"""Made-up Low Carbon London files: the publisher's layout, the other headers in the wild, and their flaws.

The flaws of the published set (`quirks`): exact duplicates, adjacent, at 00:00:00 every 31 days; one off-grid
`Null` row per household at 12:3x:xx on 2012-12-19, or in the middle of a period without that day; gaps; float
noise; a household cut between two files. The second household lacks a whole day, the third stops early and the
fourth reports mostly zeros, whatever the seed. Ids begin at MAC900001, beyond the real ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.errors import RunFileError
from agedp_data.readers.layout import SLOTS, Flags, Ints, Reason
from agedp_data.readers.synthetic_accounting import Accounting
from agedp_data.readers.synthetic_files import ChunkFiles, energy_texts, noisy_texts
from agedp_data.readers.synthetic_households import MAX_WH, Homes, day_factors, draw_gaps, draw_homes, energies, stream

_FOUR = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) "
_SIX = _FOUR + ",Acorn,Acorn_grouped"
_ACORN = (",ACORN-C,Affluent", ",ACORN-H,Comfortable", ",ACORN-P,Adversity")
_ISO, _SEVEN_DIGITS, _DAY_FIRST = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.0000000", "%d/%m/%Y %H:%M:%S"
_MEAN_KWH, _COLDEST, _STANDARD_TARIFF = 10.0, date(2013, 1, 20), 0.8
_HALF_HOUR = timedelta(minutes=30)
_NULL_DAY, _NULL_SLOT = date(2012, 12, 19), 24
_NULL = 2 * (MAX_WH + 1)  # behind the clean and the noisy texts
_ROWS_A_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class _Form:
    """How one header's files look; `chunked` files are named by number and cut by rows."""

    header: str
    name: str
    stamp: str = _SEVEN_DIGITS
    line_end: str = "\r\n"
    chunked: bool = True
    duplicates: bool = True
    final_line_end: bool = True


_FORMS = {
    "publisher": _Form(_FOUR, "LCL-June2015v2_{}.csv"),
    "older": _Form(_SIX, "Power-Networks-LCL-June2015(withAcornGps)v2_{}.csv"),
    "sample": _Form(_SIX, "UKPN-LCL-smartmeter-sample_{}.csv", stamp=_DAY_FIRST, chunked=False),
    "kaggle": _Form("LCLid,tstp,energy(kWh/hh)", "block_{}.csv", stamp=_ISO, line_end="\n", duplicates=False),
    "extract": _Form(
        "LCLid,DateTime,KWH/hh (per half hour)",
        "extract_{}.csv",
        stamp=_ISO,
        line_end="\n",
        chunked=False,
        final_line_end=False,
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Flaws:
    """What is wrong with a batch: lost and noisy half-hours (batch, steps), doubled ones (steps), `Null` rows."""

    lost: Flags
    noisy: Flags
    doubled: Flags
    null_after: int | None
    null_seconds: Ints


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
) -> Accounting:
    """Write made-up London files, sorted by tariff, household and time, and say what is in them.

    `header` is one of publisher, older, sample, kaggle, extract. `per_file` rows go into a file; if not given,
    a million as published, fewer where the flaws ask for a household cut between two files. `plain_chain`
    leaves time of day and weather out, so that the readings themselves follow the known chains.

    Raises:
        RunFileError: an unknown header, an empty period, or files of that name in the folder.
    """
    form = _form(header, households=households, days=days, per_file=per_file)
    homes = draw_homes(households, mean_kwh=_MEAN_KWH, seed=seed)
    factors = None if plain_chain else np.repeat(day_factors(first_day, days, seed=seed, coldest=_COLDEST), SLOTS)
    stamps = _stamps(first_day, days, form)
    texts = pa.array([*energy_texts(MAX_WH, pad=" "), *noisy_texts(MAX_WH, pad=" "), "Null"])
    use, there = np.zeros((2, households, days), np.int64)
    counts: Counter[Reason] = Counter()
    rows = per_file or _rows_a_file(form, households * days * SLOTS, quirks=quirks)
    with ChunkFiles(folder, form.name, header=form.header + form.line_end, rows_a_file=rows) as files:
        for places, energy in energies(homes, slots=tuple(range(SLOTS)) * days, factors=factors, seed=seed):
            flaws = _flaws(places, energy, first_day=first_day, form=form, seed=seed) if quirks else None
            use[places], there[places] = _days(energy, flaws)
            for place in range(places.start, places.stop):
                picked, codes, null = _rows(energy[place - places.start], place - places.start, flaws)
                line = _line(place, households, form)
                files.add(_lines(line, stamps, picked, null=null and _null_stamp(first_day, days, null, form), texts=texts.take(codes)))
                counts[Reason.MISSING] += null is not None
                counts[Reason.DUPLICATE] += len(picked) - int(there[place].sum()) - (null is not None)
        if not form.final_line_end:
            files.drop_last(len(form.line_end))
    return Accounting(...)

"""Writer of synthetic files: energies as the publishers write them, rows split into numbered files.

An Arrow array of lines contains their bytes contiguously, so a file is written from its buffer without a Python
string per row.

The exact contents of synthetic files, recorded while the files are written: the expected result of a parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
import pyarrow as pa

from agedp_data.datasets.validation import Ints, RejectionReason
from agedp_data.errors import RunFileError


def energy_texts(largest_wh: int, *, pad: str = "") -> list[str]:
    """Return the texts of 0 to `largest_wh` watt-hours in kWh, up to three decimals, without trailing zeros.

    >>> energy_texts(1200, pad=" ")[0], energy_texts(1200)[143], energy_texts(1200)[1200]
    (' 0 ', '0.143', '1.2')
    """
    return [pad + f"{wh / 1000:.3f}".rstrip("0").rstrip(".") + pad for wh in range(largest_wh + 1)]


def noisy_texts(largest_wh: int, *, pad: str = "") -> list[str]:
    """Return the same energies with the float noise of the published files: the seventh decimal is 1 off.

    >>> noisy_texts(1453)[1453], noisy_texts(1452)[1452]
    ('1.4529999', '1.4520001')
    """
    return [f"{pad}{(wh * 10_000 + (-1 if wh % 2 else 1)) / 1e7:.7f}{pad}" for wh in range(largest_wh + 1)]


class ChunkFiles:
    """Files `name.format(0)`, `name.format(1)`, ... of at most `rows_per_file` rows, each with the header.

    `rows` counts the rows written, `cut` the households (calls of `add`) whose rows are in several files.

    Raises:
        RunFileError: the folder contains files of that name; synthetic files never replace any.
    """

    def __init__(self, folder: Path, name: str, *, header: str, rows_per_file: int) -> None:
        if any(folder.glob(name.format("*"))):
            raise RunFileError(
                f"the folder already holds files named {name.format('*')}; name an empty one",
                private=f"{folder} already holds files named {name.format('*')}; name an empty one",
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name, self._header, self._rows_per_file = folder, name, header.encode(), rows_per_file
        self._stream: IO[bytes] | None = None
        self._rows_left = 0
        self.files: list[Path] = []
        self.rows = 0
        self.cut = 0

    def __enter__(self) -> Self:
        self._next()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, lines: pa.StringArray) -> None:
        """Write the lines of one household; begin a new file whenever one is full.

        A household whose lines are in several files is counted in `cut`.
        """
        done, cut = 0, False
        while done < len(lines):
            if self._rows_left == 0:
                cut |= done > 0
                self._next()
            taken = min(self._rows_left, len(lines) - done)
            self._write(lines, done, done + taken)
            done += taken
            self._rows_left -= taken
        self.rows += done
        self.cut += cut

    def drop_last(self, count: int) -> None:
        """Remove the last bytes of the last file: extracts end without a line end."""
        stream = self._open()
        stream.truncate(stream.seek(-count, 2))

    def _next(self) -> None:
        if self._stream is not None:
            self._stream.close()
        path = self._folder / self._name.format(len(self.files))
        self._stream = path.open("xb")
        self._stream.write(self._header)
        self.files.append(path)
        self._rows_left = self._rows_per_file

    def _open(self) -> IO[bytes]:
        if self._stream is None:
            raise RuntimeError("used outside its with block")
        return self._stream

    def _write(self, lines: pa.StringArray, start: int, stop: int) -> None:
        _, offsets, data = lines.buffers()
        edges = np.frombuffer(offsets, np.int32)[lines.offset + start : lines.offset + stop + 1]
        self._open().write(memoryview(data)[edges[0] : edges[-1]])


@dataclass(frozen=True, slots=True, eq=False)
class DeliveryAccount:
    """The contents of synthetic files; of real households they would be confidential.

    `rows_written` counts data rows (without headers and title) = `rows_kept` + all of `rejected`. The arrays
    `energy_wh` and `readings` are (households, days): the exact use of the day [Wh] and the number of its readings,
    0 if there are none. `kind` (households) is the index in `KERNELS` of a household's chain. `cut` counts households
    whose rows are in two files; `notes` counts kept rows with a remark.
    """

    dataset: str
    files: tuple[Path, ...]
    rows_written: int
    rows_kept: int
    rejected: Mapping[RejectionReason, int]
    household_ids: tuple[str, ...]
    kind: Ints
    first_day: date
    energy_wh: Ints
    readings: Ints
    cut: int
    notes: Mapping[str, int]

    def days(self) -> tuple[date, ...]:
        """Return the days of the period, the second axis of the arrays."""
        return tuple(self.first_day + timedelta(days=i) for i in range(self.energy_wh.shape[1]))

    def truth(self) -> dict[tuple[str, date], int]:
        """Return the energy [Wh] of every household-day with a reading."""
        days = self.days()
        return {
            (self.household_ids[household], days[day]): int(self.energy_wh[household, day])
            for household, day in np.argwhere(self.readings > 0)
        }

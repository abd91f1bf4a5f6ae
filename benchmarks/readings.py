"""An LCL-format file of any size, with the publisher's header, stamps, padding, duplicates, `Null` rows and line ends.

All homes have the same clock, each its own readings in whole watt-hours; one exact duplicate every 31 days and one
off-grid `Null` row, as in the real set. Sorted by household and time, as published.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

HEADER = b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) \r\n"
ROWS_PER_HOME = 30_171  # the real set: 167,932,474 rows of 5,566 homes
FIRST = np.datetime64("2012-06-01T00:30", "m")
_MONTH_OF_SLOTS = 31 * 48
ODD_ROW = 9_647
_LARGEST_WH = 9_999
_BLOCK_OF_HOMES = 20_000
_READINGS = np.array([f"{wh // 1000}.{wh % 1000:03d} \r\n" for wh in range(_LARGEST_WH + 1)], "S8")


def write_lcl(path: Path, *, rows: int, rows_per_home: int = ROWS_PER_HOME, seed: int = 1) -> int:
    """Write at least `rows` data rows, whole homes; return how many there are."""
    homes = homes_of(rows, rows_per_home)
    slots = slots_of_rows(rows_per_home)
    between = bytes_between(slots)
    rng = np.random.default_rng(seed)
    with path.open("wb") as stream:
        stream.write(HEADER)
        for home in range(homes):
            stream.write(rows_of_home(name_of(home).encode(), between, energy_of_rows(slots, rng)))
    return homes * rows_per_home


def slots_of_rows(rows: int = ROWS_PER_HOME) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the half-hours of a home's rows, from 0; the last of 31 days is there twice."""
    slot = np.arange(rows)
    return np.repeat(slot, 1 + (slot % _MONTH_OF_SLOTS == _MONTH_OF_SLOTS - 1))[:rows]


def bytes_between(slots: np.ndarray) -> np.ndarray:
    """Return what stands between a row's household and its reading, as bytes (rows, width)."""
    stamps = np.char.replace((FIRST + (30 * slots).astype("timedelta64[m]")).astype("U16"), "T", " ")
    texts = [f",Std,{stamp}:00.0000000, " for stamp in stamps]
    return np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1)


def energy_of_rows(slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the readings of one home in watt-hours, by row; duplicates say the same."""
    mean_wh = rng.gamma(2.0, 120.0)
    of_day = 1 + 0.6 * np.sin(slots / 48 * 2 * np.pi - 2)
    energy = np.minimum(rng.gamma(1.2, mean_wh, len(slots)) * of_day, _LARGEST_WH).astype(np.int64)
    return energy[np.searchsorted(slots, slots)]


def rows_of_home(name: bytes, between: np.ndarray, energy: np.ndarray) -> bytes:
    """Return the lines of a home."""
    rows = np.empty((len(energy), len(name) + between.shape[1] + _READINGS.itemsize), np.uint8)
    rows[:, : len(name)] = np.frombuffer(name, np.uint8)
    rows[:, len(name) : -_READINGS.itemsize] = between
    rows[:, -_READINGS.itemsize :] = _READINGS[energy].view(np.uint8).reshape(len(energy), -1)
    width, odd_row = rows.shape[1], min(ODD_ROW, len(energy) // 3)
    odd = rows[odd_row, : -_READINGS.itemsize].tobytes().replace(b":00.0000000, ", b":37.0000000,") + b"Null\r\n"
    flat = rows.tobytes()
    return flat[: odd_row * width] + odd + flat[(odd_row + 1) * width :]


def homes_of(rows: int, rows_per_home: int = ROWS_PER_HOME) -> int:
    """Return how many homes a file of at least so many rows has."""
    return -(-rows // rows_per_home)


def period(rows_per_home: int = ROWS_PER_HOME) -> tuple[str, str]:
    """Return the first and the last day that a file speaks of."""
    last = FIRST + int(30 * slots_of_rows(rows_per_home)[-1]) - 30  # the reading that ends at 00:00 is the day's before
    return str(FIRST.astype("M8[D]")), str(last.astype("M8[D]"))


def name_of(home: int) -> str:
    """Return the id of a home, counted from 0."""
    return f"MAC{home + 2:06d}"


def write_night(path: Path, *, day: str, homes: int, days: int = 1, first_home: int = 0) -> None:
    """Write one day of all homes, or several days, as a nightly delivery would bring them."""
    stamps, rng = _stamps(day, days), _night_rng(day, first_home)
    texts = [f",Std,{str(stamp).replace('T', ' ')}:00.0000000, " for stamp in stamps]
    between = np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1)
    with path.open("wb") as stream:
        stream.write(HEADER)
        for names in _blocks_of_names(first_home, first_home + homes):
            name = np.frombuffer("".join(names).encode(), np.uint8).reshape(len(names), 1, -1)
            energy = _night_energy(rng, len(names), len(stamps))
            rows = np.empty((len(names), len(stamps), name.shape[2] + between.shape[1] + _READINGS.itemsize), np.uint8)
            rows[:, :, : name.shape[2]] = name
            rows[:, :, name.shape[2] : -_READINGS.itemsize] = between
            rows[:, :, -_READINGS.itemsize :] = _READINGS[energy].view(np.uint8).reshape(*energy.shape, -1)
            stream.write(rows.data)


def night_wh(day: str, *, homes: int, first_home: int = 0) -> int:
    """Return the energy that `write_night` writes for one day, in watt-hours."""
    rng, slots = _night_rng(day, first_home), len(_stamps(day, 1))
    blocks = _blocks_of_names(first_home, first_home + homes)
    return sum(int(_night_energy(rng, len(names), slots).sum()) for names in blocks)


def write_night_table(path: Path, *, day: str, homes: int) -> None:
    """Write one day of all homes as Parquet, in a tenth of the room: for the nights of a long history."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stamps = _stamps(day, 1)
    names = pa.array([name_of(home) for home in range(homes)])
    energy = _night_energy(_night_rng(day, 0), homes, len(stamps))
    household = pa.DictionaryArray.from_arrays(np.repeat(np.arange(homes, dtype=np.int32), len(stamps)), names)
    end = np.tile(stamps.astype("M8[ms]"), homes)
    columns = [household.cast(pa.string()), pa.array(end), pa.array(energy.ravel() / 1000)]
    pq.write_table(pa.table(columns, ["LCLid", "DateTime", "KWH/hh (per half hour) "]), path)


def _stamps(day: str, days: int) -> np.ndarray:
    return np.datetime64(f"{day}T00:30", "m") + np.arange(48 * days) * np.timedelta64(30, "m")


def _night_rng(day: str, first_home: int) -> np.random.Generator:
    return np.random.default_rng([int(np.datetime64(day).astype(int)), first_home])


def _night_energy(rng: np.random.Generator, homes: int, slots: int) -> np.ndarray:
    return np.minimum(rng.gamma(1.2, 200, (homes, slots)), _LARGEST_WH).astype(np.int64)


def _blocks_of_names(first: int, stop: int) -> Iterator[list[str]]:
    """Return the names of homes in blocks of one width."""
    for start in range(first, stop, _BLOCK_OF_HOMES):
        names = [name_of(home) for home in range(start, min(start + _BLOCK_OF_HOMES, stop))]
        for _, block in groupby(names, len):
            yield list(block)

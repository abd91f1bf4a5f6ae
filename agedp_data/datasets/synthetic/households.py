"""Synthetic households: half-hourly use drawn from KNOWN 12-state Markov chains.

    energy = size_h x shape(slot) x factor(day) x levels[kind, state],      state ~ kernels[kind]

The chains are a value (`HouseholdChains`): `SAMPLE_CHAINS` unless the caller passes different ones. The state is the
household's activity and its only memory. Size, time of day and the factor of the day (weather, season, weekend: the
same for all households) hide the chain as in real data. A plain chain omits shape and factor: then the readings
themselves follow the kernel.

numpy's generators are good enough here, and only here: synthetic data are not a release. The random streams are
numbered, so that the energies of a seed do not depend on the defects that are added.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import numpy as np
import pyarrow as pa

from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.validation import SLOTS, Flags, Ints, RejectionReason
from agedp_data.errors import RunFileError

Floats = np.ndarray[Any, np.dtype[np.float64]]

STATES = 12
BATCH = 128
MAX_WH = 8_000
STEADY, BUSY, RESTLESS, MOSTLY_ZERO = range(4)
_SHARES = (0.4, 0.3, 0.27, 0.03)
_STREAMS = {"factor": 0, "households": 1, "states": 2, "defects": 3, "controlled load": 4, "generation": 5}


def random_generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """Return the random generator of one purpose and batch.

    The generators of one seed are independent, so a batch does not depend on the batches before it.

    Args:
        seed: seed of the delivery.
        purpose: "factor", "households", "states", "defects", "controlled load" or "generation".
        number: number of the batch.
    """
    return np.random.default_rng([seed, _STREAMS[purpose], number])


def kernel(*, reach: float, lean: float, stay: float) -> Floats:
    """Return a (12, 12) row-stochastic matrix [-]: stay, or move about `reach` states, rather down than up.

    P = stay I + (1 - stay) M, M(x, y) proportional to exp(-|x - y| / reach - lean y).

    >>> kernel(reach=1.0, lean=0.0, stay=1.0)[3, 3]
    np.float64(1.0)
    """
    state = np.arange(STATES)
    move = np.exp(-np.abs(state[:, None] - state) / reach - lean * state)
    matrix: Floats = stay * np.eye(STATES) + (1 - stay) * move / move.sum(axis=1, keepdims=True)
    return matrix


def stationary(matrix: Floats) -> Floats:
    """Return the (12,) stationary distribution pi with pi P = pi [-]."""
    system = np.vstack([matrix.T - np.eye(len(matrix)), np.ones(len(matrix))])
    target = np.append(np.zeros(len(matrix)), 1.0)
    distribution: Floats = np.linalg.lstsq(system, target, rcond=None)[0]
    return distribution


KERNELS = np.stack(
    [
        kernel(reach=1.5, lean=0.25, stay=0.6),
        kernel(reach=3.0, lean=0.10, stay=0.3),
        kernel(reach=6.0, lean=0.20, stay=0.1),
        kernel(reach=1.0, lean=1.00, stay=0.9),
    ]
)
"""The chains (4, 12, 12) [-]: steady, busy, restless, mostly zero; every entry is positive."""

STATIONARY = np.stack([stationary(matrix) for matrix in KERNELS])
"""The stationary distribution of each chain (4, 12) [-]; a household starts in it."""


def _relative_levels() -> Floats:
    """Return (4, 12) energies relative to the household's mean [-]; the stationary mean of each row is 1."""
    rising = 0.3 + 0.25 * np.arange(STATES) ** 1.4
    levels = np.tile(rising, (len(KERNELS), 1))
    levels[MOSTLY_ZERO, 0] = 0.0
    relative: Floats = levels / (levels * STATIONARY).sum(axis=1, keepdims=True)
    return relative


LEVELS = _relative_levels()


@dataclass(frozen=True, slots=True, eq=False)
class HouseholdChains:
    """The kinds (c) of 12-state chains of households.

    `kernels` (c, 12, 12) are row-stochastic [-]; `stationary` (c, 12) are their stationary distributions [-], in which
    a household starts; `levels` (c, 12) are the energies of the states relative to the household's mean [-].
    """

    kernels: Floats
    stationary: Floats
    levels: Floats


SAMPLE_CHAINS = HouseholdChains(KERNELS, STATIONARY, LEVELS)
"""The chains of `agedp sample`, of the audit and of the tests."""


@dataclass(frozen=True, slots=True, eq=False)
class Households:
    """Households (n): the kind (index of the kernel), the mean of a day [kWh], and the chains."""

    kind: Ints
    mean_kwh: Floats
    chains: HouseholdChains = SAMPLE_CHAINS


def draw_households(households: int, *, mean_kwh: float, seed: int) -> Households:
    """Return households of different sizes around a mean daily use.

    About 3 % of them, and always the fourth, are mostly zero.

    Args:
        households: number n of households.
        mean_kwh: mean daily use per household [kWh].
        seed: the same seed gives the same households.
    """
    generator = random_generator(seed, "households")
    draws = generator.random((households, 2))
    kind = np.searchsorted(np.cumsum(_SHARES), draws[:, 0]).clip(max=MOSTLY_ZERO)
    kind[3:4] = MOSTLY_ZERO
    # bounded below: no household is so small that two of its levels round to the same watt-hour
    size = np.where(draws[:, 1] < 0.3, 0.35 + 1.5 * draws[:, 1], 0.8 + (draws[:, 1] - 0.3) * 1.2)
    return Households(kind.astype(np.int64), mean_kwh * size * np.where(kind == MOSTLY_ZERO, 0.25, 1.0) / 1.005)


def draw_states(
    kind: Ints, *, steps: int, generator: np.random.Generator, chains: HouseholdChains = SAMPLE_CHAINS
) -> Ints:
    """Return states of households: the first from the stationary distribution, each later one from a row of P.

    Args:
        kind: index of each household's chain, shape (n,).
        steps: number of half-hours.
        generator: source of the draws.
        chains: the chains that `kind` refers to.

    Returns:
        States, shape (n, steps), 0 to 11.
    """
    later, first = np.cumsum(chains.kernels, axis=2)[kind], np.cumsum(chains.stationary, axis=1)[kind]
    households = np.arange(len(kind))
    states = np.empty((steps, len(kind)), np.int64)
    edge = first
    for step in range(steps):
        # a cumulative sum that ends just below 1 must not lead to a thirteenth state
        states[step] = (generator.random(len(kind))[:, None] >= edge[:, :-1]).sum(axis=1)
        edge = later[households, states[step]]
    return states.T


def day_factors(first_day: date, days: int, *, seed: int, coldest: date) -> Floats:
    """Return (days,) factors around 1 that all households share [-].

    Season (8 %, highest on the day of the year of `coldest`), weekend (8 %), and weather as two AR(1) series
    of 5 % each, one that decays within days and one that varies over weeks.
    """
    generator = random_generator(seed, "factor")
    dates = [first_day + timedelta(days=i) for i in range(days)]
    since = np.array([(day - coldest).days for day in dates])
    weekend = np.array([day.weekday() >= 5 for day in dates])
    weather = np.zeros(days)
    for memory in (0.5, 0.95):
        level = generator.standard_normal()
        for i, shock in enumerate(generator.standard_normal(days)):
            level = memory * level + np.sqrt(1 - memory**2) * shock
            weather[i] += 0.05 * level
    factors: Floats = 1 + 0.08 * np.cos(2 * np.pi * since / 365.25) + 0.08 * (weekend - 2 / 7) + weather
    return factors


def day_shape() -> Floats:
    """Return (48,) shares of the day around 1 [-]: base load at night, small morning, high evening peak."""
    hour = (np.arange(SLOTS) + 0.5) / 2
    bumps = 0.5 * np.exp(-(((hour - 7.5) / 1.6) ** 2)) + 1.2 * np.exp(-(((hour - 18.8) / 2.6) ** 2))
    shape = 0.55 + 0.35 * (hour > 7) * (hour < 23) + bumps
    shares: Floats = shape / shape.mean()
    return shares


def draw_energies(
    profiles: Households, *, slots: Sequence[int], factors: Floats | None, seed: int
) -> Iterator[tuple[slice, Ints]]:
    """Yield, per batch of households, their indices and (batch, steps) whole watt-hours.

    `slots` (steps) is the half-hour of the day of each step, `factors` (steps) the shared factor. Without `factors`
    the chain is plain: neither shape nor factor.
    """
    scale = np.ones(len(slots)) if factors is None else factors * day_shape()[np.asarray(slots)]
    for number, start in enumerate(range(0, len(profiles.kind), BATCH)):
        indices = slice(start, min(start + BATCH, len(profiles.kind)))
        kind = profiles.kind[indices]
        generator = random_generator(seed, "states", number)
        states = draw_states(kind, steps=len(slots), generator=generator, chains=profiles.chains)
        mean_wh = profiles.mean_kwh[indices, None] * 1000 / SLOTS
        use = np.rint(mean_wh * profiles.chains.levels[kind[:, None], states] * scale)
        yield indices, use.clip(max=MAX_WH).astype(np.int64)


def draw_gaps(households: int, steps: int, *, generator: np.random.Generator) -> Flags:
    """Return missing readings: about two gaps per household-year, each up to two days long.

    Returns:
        Flags, shape (n, steps), True for a missing reading.
    """
    missing = np.zeros((households, steps), bool)
    for household in range(households):
        for _ in range(generator.poisson(2.1 * steps / (365 * SLOTS))):
            start, length = generator.integers(steps), min(int(generator.pareto(0.8)) + 1, 2 * SLOTS)
            missing[household, start : start + length] = True
    return missing


# --------------------------------------------------------------------------------------------------
# Writer of synthetic files: energies as the publishers write them, rows split into numbered files.
#
# An Arrow array of lines contains their bytes contiguously, so a file is written from its buffer without a Python
# string per row.
#
# The exact contents of synthetic files, recorded while the files are written: the expected result of a parser.
# --------------------------------------------------------------------------------------------------


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

    `rows` counts the rows written.

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

    def __enter__(self) -> Self:
        self._next()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, lines: pa.StringArray) -> None:
        """Write the lines of one household; begin a new file whenever one is full."""
        done = 0
        while done < len(lines):
            if self._rows_left == 0:
                self._next()
            taken = min(self._rows_left, len(lines) - done)
            _, offsets, data = lines.buffers()
            edges = np.frombuffer(offsets, np.int32)[lines.offset + done : lines.offset + done + taken + 1]
            self._open().write(memoryview(data)[edges[0] : edges[-1]])
            done += taken
            self._rows_left -= taken
        self.rows += done

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


@dataclass(frozen=True, slots=True, eq=False)
class DeliveryAccount:
    """The contents of synthetic files; of real households they would be confidential.

    `rows_written` counts data rows (without headers and title) = `rows_kept` + all of `rejected`. The arrays
    `energy_wh` and `readings` are (households, days): the exact use of the day [Wh] and the number of its readings,
    0 if there are none. `kind` (households) is the index in `KERNELS` of a household's chain. `notes` counts kept rows
    with a remark.
    """

    files: tuple[Path, ...]
    rows_written: int
    rows_kept: int
    rejected: Mapping[RejectionReason, int]
    household_ids: tuple[str, ...]
    kind: Ints
    first_day: date
    energy_wh: Ints
    readings: Ints
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


# --------------------------------------------------------------------------------------------------
# Months of synthetic households for a rehearsal: half-hours that follow from the month and the household's number.
#
# The households are those of `households.SAMPLE_CHAINS`, 10 kWh a day on average. Household 7 has the same readings of
# January 2013 in every rehearsal: nothing but constants of this package enters.
#
# Decisions:
#
# * Every month is drawn by itself, each chain from its stationary distribution, so that a night computes one month and
#   not the series so far. Size and kind of a household are the same in all months.
# * Households are drawn in whole batches, and only the days up to the last one needed: the readings of household 7 do
#   not depend on how many households there are, nor on how many days of the month.
# --------------------------------------------------------------------------------------------------

_MEAN_KWH: Final = 10.0
_HOUSEHOLDS_SEED: Final = 1
_COLDEST: Final = (1, 20)
"""Month and day."""


def draw_month(
    first: date, *, days: int, households: int, layout: Layout, max_half_hour_wh: int
) -> Iterator[tuple[slice, Ints, Flags]]:
    """Yield the readings of synthetic households in one month, batch by batch.

    Readings follow the rules of a layout: half-hours that a day does not have, when the clock goes forward, and
    readings above the bound are missing; an hourly layout has the sums of two half-hours.

    Args:
        first: first day of the month.
        days: number of days, from the first on.
        households: number n of households.
        layout: the layout of the files that the households stand for.
        max_half_hour_wh: a reading above this, per half-hour, is missing [Wh].

    Returns:
        The numbers of a batch's households (b), their energies [Wh], 0 for a missing reading, and which readings are
        present; both have shape (b, days, readings of a day).
    """
    month, length = 12 * first.year + first.month, monthrange(first.year, first.month)[1]
    profiles = draw_households(-(-households // BATCH) * BATCH, mean_kwh=_MEAN_KWH, seed=_HOUSEHOLDS_SEED)
    factors = day_factors(first, length, seed=month, coldest=date(first.year, *_COLDEST))
    slots, factors = [*range(SLOTS)] * days, np.repeat(factors, SLOTS)
    exists = np.ones((days, SLOTS), bool)
    for i in range(days):
        exists[i, list(layout.absent_slots(first + timedelta(days=i)))] = False
    step = slot_step(layout.interval_minutes)
    for indices, half_hours in draw_energies(profiles, slots=slots, factors=factors[: days * SLOTS], seed=month):
        generator = random_generator(month, "defects", indices.start // BATCH)
        gaps = draw_gaps(BATCH, length * SLOTS, generator=generator)[:, : days * SLOTS]
        present = ~gaps.reshape(BATCH, days, SLOTS)[..., ::step] & exists[:, ::step]
        energy = half_hours.reshape(BATCH, days, SLOTS // step, step).sum(axis=-1)
        present &= energy <= max_half_hour_wh * step
        number = min(BATCH, households - indices.start)
        yield slice(indices.start, indices.start + number), np.where(present, energy, 0)[:number], present[:number]

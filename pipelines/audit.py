"""RUN FILE -> measured loss: the real way from readings to Parquet, on made-up streets of households.

For each street a coin is tossed: tails, and its homes use nothing, heads, and they use the most that a reading may
say. Every street is a group of its own, so that one release holds as many independent draws as there are streets.
Whatever is not clamped, noised too little, drawn afresh or charged to nobody makes the coin easier to guess than the
promise says. What is published is all that is looked at, and it is published twice, as a schedule would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from agedp_data import clock, losses, noise
from agedp_data.config import RunFile, load
from agedp_data.config.input import INPUTS
from agedp_data.config.schedule import Archive, Rehearsal
from agedp_data.config.series import AnySeries, Distribution
from agedp_data.config.surroundings import OutputSection, PopulationSection
from agedp_data.errors import Refused
from agedp_data.model import model_of
from agedp_data.privacy.kernel import Floats, Mask
from agedp_data.privacy.measured import detectable_epsilon, epsilon_lower_bound
from agedp_data.privacy.measured_noise import too_far, too_near
from agedp_data.privacy.shown_faults import AuditDatasets, AuditedRelease, parts_of, streets_for, unseen
from agedp_data.readers.layout import SLOTS, Ints
from agedp_data.roster import read_roster
from pipelines.agenda import last_due_date
from pipelines.blocks import SILENT, ProgressReporter
from pipelines.handover.received import METADATA_KEY, ReleaseFolder
from pipelines.sanitise import STAGES, Stage, run_stages
from pipelines.work import Work, engine_for

CONFIDENCE = 0.999999
"""Of each bound and of each count: an alarm says to release nothing, so it must not be luck."""
_FIRST, _DAYS, _NIGHTS = date(2013, 1, 1), 2, 2
_GROUP = "street"
_PROBED = AuditDatasets(2, 1)
_UNIT = 1e-9


@dataclass(frozen=True, slots=True)
class MeasuredLoss:
    """About what, which loss is promised, which is proven, and the least that would have been noticed [epsilon]."""

    about: str
    promised: float
    proven: float
    noticed: float

    @property
    def kept(self) -> bool:
        """Tell whether nothing beyond the promise was proven."""
        return self.proven <= self.promised


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What so many made-up streets prove, the faults that were found, and those that these losses would not show."""

    measured: tuple[MeasuredLoss, ...]
    streets: AuditDatasets
    faults: tuple[str, ...]
    unseen: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Tell whether nothing beyond the promise was proven, and nothing else was found."""
        return not self.faults and all(one.kept for one in self.measured)


@dataclass(frozen=True, slots=True)
class _AuditDay:
    """A release of one night: what it was charged, its figures by street and cell, and what these truly are.

    `none` and `much` are the figures of a street that uses nothing and of one that uses much.
    """

    charged: AuditedRelease
    figures: Ints
    none: Ints
    much: Ints

    @property
    def ways(self) -> Floats:
        """Return by street how much of the way from nothing to much its figures are: their log likelihood ratio.

        Of each cell it is linear in the figure between the two, and beyond either says no more.
        """
        moved = self.much != self.none
        if not moved.any():  # states may count all that a clamp leaves alike
            return np.full(len(self.figures), 0.5)
        way = (self.figures - self.none)[:, moved] / (self.much - self.none)[moved]
        return np.asarray(np.clip(way, 0.0, 1.0).mean(axis=1))

    def near(self, coins: Mask) -> int:
        """Return how many figures lie within the noise's width of what they truly are."""
        true = np.where(coins[:, None], self.much, self.none)
        return int(np.count_nonzero(np.abs(self.figures - true) <= self.charged.law.width))


def audit(
    run_file: str | Path, *, streets: AuditDatasets | None = None, told: ProgressReporter = SILENT
) -> AuditResult:
    """Return what is measured of one release and of all releases of two days, of households that the run file fits.

    Without a number of streets they are such that the losses of this run file are told best.

    Raises:
        RunFileError: the run file.
        AgedpError: whatever a run of it would refuse.
    """
    run = load(Path(run_file))
    with TemporaryDirectory(prefix="agedp-audit-") as folder:
        if streets is None:
            probe, _ = next(_nights(run, Path(folder) / "probe", _PROBED, noise.fair_bits(_PROBED.number), SILENT))
            streets = streets_for([one.charged for one in probe])
        coins = noise.fair_bits(streets.number)
        nights = list(_nights(run, Path(folder) / "streets", streets, coins, told))
    charged = [one.charged for one in nights[0][0]]
    of_counts = (1 - CONFIDENCE) / (2 * len(charged))  # two counts of each release
    return AuditResult(
        tuple(_measured(nights, streets, coins)),
        streets,
        (*_faults(nights), *_misplaced(nights[0][0], coins, unlikely=of_counts)),
        unseen(charged, streets, unlikely=of_counts),
    )


_Night = tuple[tuple[_AuditDay, ...], int]
"""What was published after a night, and the total that its statement tells [1e-9 epsilon]."""


def _measured(nights: list[_Night], streets: AuditDatasets, coins: Mask) -> Iterator[MeasuredLoss]:
    """Yield what the figures prove of a home; of a figure that was published twice the mean is as good as it is."""
    releases, total = nights[0]
    weights = np.array([max(one.charged.apart, _UNIT) for one in releases])
    ways = np.mean([[one.ways for one in published] for published, _ in nights], axis=0)
    for about, which, promised in (
        ("one release", slice(0, 1), releases[0].charged.epsilon),
        (f"all releases of {_DAYS} days", slice(None), total / losses.NANO),
    ):
        shown = weights[which] @ ways[which] / weights[which].sum()
        proven = epsilon_lower_bound(shown, coins, confidence=CONFIDENCE) / streets.homes
        parts = parts_of([one.charged for one in releases[which]], streets.homes)
        noticed = detectable_epsilon(promised * streets.homes, streets.number, parts=parts, confidence=CONFIDENCE)
        yield MeasuredLoss(about, float(promised), proven, float(noticed) / streets.homes)


def _faults(nights: list[_Night]) -> Iterator[str]:
    """Yield what needs no luck to be seen."""
    (releases, total), *later = nights
    for published, _ in later:
        if any(not np.array_equal(one.figures, other.figures) for one, other in zip(releases, published, strict=True)):
            yield "a second run published other figures of the same days: each draw spends a loss of its own"
    spent = sum(losses.round_nano(one.charged.epsilon) for one in releases)
    if total < spent:
        yield (
            f"the statement tells a total of {losses.format_epsilon(total)}, what was released is charged "
            f"{losses.format_epsilon(spent)}"
        )


def _misplaced(releases: tuple[_AuditDay, ...], coins: Mask, *, unlikely: float) -> Iterator[str]:
    """Yield which releases have figures that lie where their noise does not put them."""
    for one in releases:
        near, draws, law = one.near(coins), one.figures.size, one.charged.law
        told = f"series {one.charged.series}: {near:,} of {draws:,} figures lie within {law.width:,} of the true ones"
        if too_near(near, draws, law, unlikely=unlikely):
            yield f"{told}, too many for the noise that their loss asks for"
        if too_far(near, draws, law, unlikely=unlikely):
            yield f"{told}, too few: they are noised, or summed, otherwise than told"


def _nights(
    run: RunFile, folder: Path, streets: AuditDatasets, coins: Mask, told: ProgressReporter
) -> Iterator[_Night]:
    """Run a made-up world once for each night and yield what it has published."""
    folder.mkdir()
    much_wh = run.input.max_half_hour_wh
    names = [f"street{i:05d}" for i in range(streets.number) for _ in range(streets.homes)]
    ids = [f"home{i:07d}" for i in range(len(names))]
    lines = (f"{home},{_FIRST},,{street}" for home, street in zip(ids, names, strict=True))
    (folder / "roster.csv").write_text("\n".join([f"household_id,from,to,{_GROUP}", *lines]) + "\n")
    _readings(folder / "readings.csv", ids, np.where(np.repeat(coins, streets.homes), much_wh / 1000, 0.0))
    fitted, model, roster = _fitted(run, folder), model_of(run), read_roster(folder / "roster.csv")
    as_of = last_due_date(fitted) if fitted.schedule.mode == "rehearsal" else None
    for night in range(_NIGHTS):
        work = Work(fitted, clock.now(), as_of, engine_for(fitted, None, told), roster, model)
        with suppress(Refused):  # the promise may permit one day only
            _run(work, told, night)
        released = ReleaseFolder(folder / "release")
        told_total = {figure["name"]: figure["epsilon"] for figure in released.statement["figures"]}["total"]
        yield tuple(_published(released, fitted, streets, much_wh)), losses.round_nano(Decimal(told_total))


def _run(work: Work, told: ProgressReporter, night: int) -> None:
    """Run the stages of a night and tell how many of all nights are done."""
    steps = count(night * len(STAGES) + 1)

    def call(_: str, stage: Stage) -> None:
        stage(work)
        if told.progress is not None:
            told.progress("audit", next(steps), _NIGHTS * len(STAGES))

    run_stages(call)


def _fitted(run: RunFile, folder: Path) -> RunFile:
    """Return the run file over a made-up world: its own series, promise and model, each household published alone."""
    london = next(kind for kind in INPUTS if "london" in str(kind.model_fields["dataset"].annotation))
    last = _FIRST + timedelta(days=_DAYS - 1)
    archive = run.schedule.mode == "archive"
    given = {"dataset": "london", "files": [str(folder / "readings.csv")]}
    return run.model_copy(
        update={
            "input": london.model_validate({**given, "max_half_hour_kwh": run.input.max_half_hour_kwh}),
            "output": OutputSection(
                release=str(folder / "release"),
                confidential=str(folder / "confidential"),
                ledger=f"sqlite:///{folder / 'ledger.sqlite'}",
            ),
            "population": PopulationSection(name="made-up", roster=str(folder / "roster.csv"), min_households=1),
            "schedule": Archive(mode="archive", first_day=_FIRST, last_day=last)
            if archive
            else Rehearsal(mode="rehearsal", first_day=_FIRST, last_day=last),
            "series": {name: each.model_copy(update={"by": _GROUP}) for name, each in run.series.items()},
        }
    )


def _readings(path: Path, ids: list[str], energy_kwh: Floats) -> None:
    """Write half-hours, all of a home the same, stamped at their end."""
    first = datetime(_FIRST.year, _FIRST.month, _FIRST.day, tzinfo=UTC)
    stamps = [f"{first + timedelta(minutes=30 * (i + 1)):%Y-%m-%d %H:%M:%S}" for i in range(SLOTS * _DAYS)]
    table = pa.table(
        {
            "LCLid": pa.array(ids).take(pa.array(np.repeat(np.arange(len(ids)), len(stamps)))),
            "tstp": pa.array(stamps).take(pa.array(np.tile(np.arange(len(stamps)), len(ids)))),
            "energy(kWh/hh)": np.repeat(energy_kwh, len(stamps)),
        }
    )
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))


def _published(folder: ReleaseFolder, run: RunFile, streets: AuditDatasets, much_wh: int) -> Iterator[_AuditDay]:
    """Yield the releases of a folder, by series and day."""
    for table in [*folder.averages().values(), *folder.distributions().values()]:
        name = json.loads(table.schema.metadata[METADATA_KEY])["of"]
        series = run.series[name]
        ends = _Ends.of(run, series, much_wh)
        none, much = (streets.homes * counted for counted in ends.exact(series))
        figures = "households_noisy" if isinstance(series, Distribution) else "noisy_sum_wh"
        for day in pc.unique(table["day"]):
            of_day = table.filter(pc.equal(table["day"], day))
            found = of_day[figures].to_numpy().reshape(-1, none.size)
            order = np.argsort(of_day["group"].to_numpy()[:: none.size])
            charged = _charged(name, series, day.as_py(), of_day["epsilon"][0].as_py(), ends)
            yield _AuditDay(charged, found[order], none, much)


@dataclass(frozen=True, slots=True)
class _Ends:
    """What a day counts as on either side of a coin, Wh: of nothing used, of much, of much if nothing were clamped."""

    none_wh: int
    much_wh: int
    unclamped_wh: int

    @classmethod
    def of(cls, run: RunFile, series: AnySeries, much_wh: int) -> _Ends:
        """Return them for a reading of so much in every half-hour."""
        none, much = (_day_wh(run, series, wh) for wh in (0, much_wh))
        return cls(min(none, series.clamp_wh), min(much, series.clamp_wh), much)

    def exact(self, series: AnySeries) -> tuple[Ints, Ints]:
        """Return what a single household adds to each cell, either way."""
        none, much = (np.array(series.exact(np.array([wh])), np.int64) for wh in (self.none_wh, self.much_wh))
        return none, much


def _day_wh(run: RunFile, series: AnySeries, wh: int) -> int:
    """Return what a day of 48 equal readings counts as before the clamp, Wh."""
    states = run.counted_states
    if series.values == "readings" or states is None:
        return SLOTS * wh
    times, of = (SLOTS, wh) if states.step == "half-hour" else (1, SLOTS * wh)
    return times * int(states.represented(np.array([of]))[0])


def _charged(name: str, series: AnySeries, day: date, epsilon: float, ends: _Ends) -> AuditedRelease:
    if not isinstance(series, Distribution):
        beyond, span = ends.unclamped_wh - ends.much_wh, (ends.much_wh - ends.none_wh) / series.clamp_wh
        return AuditedRelease(day.isoformat(), name, epsilon, 1, series.clamp_wh, 1, beyond, span)
    none, much = ends.exact(series)
    return AuditedRelease(day.isoformat(), name, epsilon, max(1, int(np.count_nonzero(none != much))), 1, none.size, 0)

"""RUN FILE -> measured loss: the real way from readings to Parquet, on made-up households of two neighbouring worlds.

Every household is a group of its own, so that one release holds as many independent draws as there are households.
In one world they use nothing, in the other three times the clamp: whatever is not clamped, noised too little, drawn
afresh or charged to nobody makes the two easier to tell apart than the promise says. What is published is all that is
looked at, and each world is run twice, as a schedule would.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from agedp_data import clock
from agedp_data.config import RunFile, load
from agedp_data.config.input import INPUTS
from agedp_data.config.schedule import Archive, Rehearsal
from agedp_data.config.series import AnySeries, Distribution
from agedp_data.config.surroundings import Output, Population
from agedp_data.errors import Refused
from agedp_data.model import model_of
from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.measured import noticed_loss, proven_loss
from agedp_data.privacy.shown_faults import Charged, fewest, parts_of, unseen
from agedp_data.readers.layout import SLOTS
from agedp_data.roster import read_roster
from pipelines.handover.received import METADATA_KEY, ReleaseFolder
from pipelines.plan import last_as_of
from pipelines.sanitise import Stage, run_stages
from pipelines.work import Work, engine_of

CONFIDENCE = 0.999
_FIRST, _DAYS = date(2013, 1, 1), 2
_TIMES_CLAMP = 3
_PROBED = 2
_GROUP = "household"


@dataclass(frozen=True, slots=True)
class Measured:
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
class Audit:
    """What so many made-up households prove, and the faults that they would not show at these losses."""

    measured: tuple[Measured, ...]
    households: int
    unseen: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Tell whether nothing beyond the promise was proven."""
        return all(one.kept for one in self.measured)


@dataclass(frozen=True, slots=True)
class _Published:
    """What a world published, by (run, day and series, household): 0 is as nothing used, 1 as much was used."""

    values: Floats
    releases: tuple[Charged, ...]
    total: float

    @property
    def apart(self) -> Floats:
        """Return how far the two worlds lie apart in each release [epsilon]."""
        return np.array([each.epsilon * each.span for each in self.releases])


def audit(run_file: str | Path, *, households: int | None = None) -> Audit:
    """Return what is measured of one release and of all releases of two days, of households that the run file fits.

    Without a number of them as few as show what can be shown at the losses of this run file.

    Raises:
        RunFileError: the run file.
        AgedpError: whatever a run of it would refuse.
    """
    run = load(Path(run_file))
    with TemporaryDirectory(prefix="agedp-audit-") as folder:
        worlds = _worlds(run)
        most = worlds[1][1]
        if households is None:
            probe = _world(run, Path(folder) / "probe", _PROBED, 0, much_wh=most, nights=1)
            households = fewest(probe.releases, confidence=CONFIDENCE)
        none, much = (_world(run, Path(folder) / name, households, wh, much_wh=most) for name, wh in worlds)
    found = []
    for about, which in (("one release", slice(0, 1)), (f"all releases of {_DAYS} days", slice(None))):
        promised = none.releases[0].epsilon if which.stop == 1 else none.total
        one, other = (_evidence(world, which) for world in (none, much))
        proven = proven_loss(one, other, confidence=CONFIDENCE)
        parts = parts_of(none.releases[which])
        noticed = noticed_loss(promised, households, parts=parts, confidence=CONFIDENCE)
        found.append(Measured(about, promised, proven, noticed))
    return Audit(tuple(found), households, unseen(none.releases, households, confidence=CONFIDENCE))


def _worlds(run: RunFile) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return the two worlds by name and reading [Wh a half-hour]."""
    clamp = max(series.clamp_wh for series in run.series.values())
    most = int(run.input.max_half_hour_kwh * 1000)
    return ("none", 0), ("much", min(most, -(-_TIMES_CLAMP * clamp // SLOTS)))


def _evidence(world: _Published, which: slice) -> Floats:
    """Return the log likelihood ratio of each household's published values, up to a constant.

    Between sums 0 and S it is linear in the value, outside it says no more; of a value that was published twice the
    mean is as good as the value itself, and better than either of two different ones.
    """
    clipped = np.clip(world.values[:, which], 0.0, 1.0).mean(axis=0)
    found: Floats = (world.apart[which, None] * clipped).sum(axis=0)
    return found


def _world(run: RunFile, folder: Path, households: int, wh: int, *, much_wh: int, nights: int = 2) -> _Published:
    """Run a world once for each night and return what it published."""
    folder.mkdir()
    ids = [f"home{i:07d}" for i in range(households)]
    lines = [f"household_id,from,to,{_GROUP}", *(f"{name},{_FIRST},,{name}" for name in ids)]
    (folder / "roster.csv").write_text("\n".join(lines) + "\n")
    _readings(folder / "readings.csv", ids, wh)
    fitted, model, roster = _fitted(run, folder), model_of(run), read_roster(folder / "roster.csv")
    as_of = last_as_of(fitted) if fitted.schedule.mode == "rehearsal" else None
    found = []
    for _ in range(nights):
        work = Work(fitted, clock.now(), as_of, engine_of(fitted, None), roster, model)
        with suppress(Refused):  # the promise may permit one day only
            run_stages(partial(_call, work))
        found.append(_published(ReleaseFolder(folder / "release"), fitted, much_wh))
    _, releases, total = found[0]
    return _Published(np.stack([values for values, _, _ in found]), releases, total)


def _call(work: Work, _: str, stage: Stage) -> None:
    stage(work)


def _fitted(run: RunFile, folder: Path) -> RunFile:
    """Return the run file over a made-up world: its own series, promise and model, each household published alone."""
    london = next(kind for kind in INPUTS if "london" in str(kind.model_fields["dataset"].annotation))
    last = _FIRST + timedelta(days=_DAYS - 1)
    archive = run.schedule.mode == "archive"
    given = {"dataset": "london", "files": [str(folder / "readings.csv")]}
    return run.model_copy(
        update={
            "input": london.model_validate({**given, "max_half_hour_kwh": run.input.max_half_hour_kwh}),
            "output": Output(
                release=str(folder / "release"),
                confidential=str(folder / "confidential"),
                ledger=f"sqlite:///{folder / 'ledger.sqlite'}",
            ),
            "population": Population(name="made-up", roster=str(folder / "roster.csv"), min_households=1),
            "schedule": Archive(mode="archive", first_day=_FIRST, last_day=last)
            if archive
            else Rehearsal(mode="rehearsal", first_day=_FIRST, last_day=last),
            "series": {name: each.model_copy(update={"by": _GROUP}) for name, each in run.series.items()},
        }
    )


def _readings(path: Path, ids: list[str], wh: int) -> None:
    """Write half-hours of the same reading for everybody, stamped at their end."""
    first = datetime(_FIRST.year, _FIRST.month, _FIRST.day, tzinfo=UTC)
    stamps = [f"{first + timedelta(minutes=30 * (i + 1)):%Y-%m-%d %H:%M:%S}" for i in range(SLOTS * _DAYS)]
    table = pa.table(
        {
            "LCLid": pa.array(ids).take(pa.array(np.repeat(np.arange(len(ids)), len(stamps)))),
            "tstp": pa.array(stamps).take(pa.array(np.tile(np.arange(len(stamps)), len(ids)))),
            "energy(kWh/hh)": np.full(len(ids) * len(stamps), wh / 1000),
        }
    )
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))


@dataclass(frozen=True, slots=True)
class _Ends:
    """What a day counts as in the two worlds, Wh: of nothing used, of much, and of much if nothing were clamped."""

    none_wh: int
    much_wh: int
    unclamped_wh: int

    @classmethod
    def of(cls, run: RunFile, series: AnySeries, much_wh: int) -> _Ends:
        """Return them for a reading of so much in every half-hour of the other world."""
        none, much = (_day_wh(run, series, wh) for wh in (0, much_wh))
        return cls(min(none, series.clamp_wh), min(much, series.clamp_wh), much)

    @property
    def way_wh(self) -> int:
        """Return how far a sum lies apart, Wh; 1 if it does not."""
        return max(self.much_wh - self.none_wh, 1)

    def counts(self, series: Distribution) -> tuple[Floats, Floats]:
        """Return the counts of a single household in each world."""
        none, much = (np.array(series.exact(np.array([wh]))) for wh in (self.none_wh, self.much_wh))
        return none, much


def _day_wh(run: RunFile, series: AnySeries, wh: int) -> int:
    """Return what a day of 48 equal readings counts as before the clamp, Wh."""
    states = run.counted_states
    if series.values == "readings" or states is None:
        return SLOTS * wh
    times, of = (SLOTS, wh) if states.step == "half-hour" else (1, SLOTS * wh)
    return times * int(states.represented(np.array([of]))[0])


def _parts(of_day: pa.Table, series: AnySeries, ends: _Ends) -> Floats:
    """Return by household how much of the way from nothing used to much its values are, by what tells the two apart.

    A sum may go beyond either end; of counts, those that differ between the worlds each go a part of the way.
    """
    if not isinstance(series, Distribution):
        return np.asarray((of_day["noisy_sum_wh"].to_numpy() - ends.none_wh) / ends.way_wh)
    none, much = ends.counts(series)
    counts = of_day["households_noisy"].to_numpy().reshape(-1, len(none))
    way = np.clip((counts - none) * (much - none), 0, 1).sum(axis=1)
    return np.asarray(way / series.sensitivity("replacement"))


def _charged(day: date, epsilon: float, series: AnySeries, ends: _Ends) -> Charged:
    if not isinstance(series, Distribution):
        reach = max(ends.unclamped_wh - ends.none_wh, 1) / ends.way_wh
        return Charged(day.isoformat(), epsilon, 1, reach, (ends.much_wh - ends.none_wh) / series.clamp_wh)
    none, much = ends.counts(series)
    return Charged(day.isoformat(), epsilon, int(np.count_nonzero(none != much)), 1.0)


def _published(folder: ReleaseFolder, run: RunFile, much_wh: int) -> tuple[Floats, tuple[Charged, ...], float]:
    """Return by release and household where its values lie between the worlds, what was charged, and the total told."""
    values, charged = [], []
    for table in [*folder.averages().values(), *folder.distributions().values()]:
        series = run.series[json.loads(table.schema.metadata[METADATA_KEY])["of"]]
        ends = _Ends.of(run, series, much_wh)
        for day in pc.unique(table["day"]):
            of_day = table.filter(pc.equal(table["day"], day))
            values.append(_parts(of_day, series, ends))
            charged.append(_charged(day.as_py(), of_day["epsilon"][0].as_py(), series, ends))
    told = {figure["name"]: figure["epsilon"] for figure in folder.statement["figures"]}
    return np.stack(values), tuple(charged), float(told["total"])

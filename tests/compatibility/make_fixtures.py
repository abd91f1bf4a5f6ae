"""Make the fixtures of agedp 0.2. They were made once, with a wheel of commit d07a3d58, and are never made again.

    python -m build --wheel          # in a checkout of that commit; the wheel is installed in an environment of its own
    PYTHONPATH=TESTS python -P -m tests.compatibility.make_fixtures /srv/agedp FOLDER

TESTS is a folder that contains `tests` and no product code, so that the wheel's is imported. The first folder is one to
work in: the confidential store notes where input files were, so it is named like no machine.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

import agedp_data
from agedp.calibration_pipeline import calibrate
from agedp.ledger_transfer import export_ledger, recover
from agedp_data import mechanisms
from tests.compatibility.deliveries import Delivery, household_ids, write
from tests.compatibility.fixtures import RunningPopulation, standing_clock
from tests.nights.keyed import JOURNAL
from tests.postgresql import ROLE, PostgreSQL, binaries

COMMIT = "d07a3d58"
FIRST, LAST = date(2013, 3, 17), date(2013, 4, 15)
HISTORY = (date(2013, 2, 20), date(2013, 3, 15))
BEGUN = (date(2013, 3, 20), date(2013, 3, 26), date(2013, 4, 2), date(2013, 4, 7))
"""The last of these nights releases 5 April, day 20 of 30."""
FOLLOWING = (date(2013, 4, 8), date(2013, 4, 9), date(2013, 4, 11), date(2013, 4, 14), date(2013, 4, 17))
AMENDED_NIGHTS = 2
NEVER = {date(2013, 3, 24), date(2013, 4, 8)}
"""Days whose marker never comes: one is skipped before the fixture is packed, one after."""
LEAVES, COMES = date(2013, 4, 9), date(2013, 4, 11)
NEUTRAL = f"postgresql+psycopg://{ROLE}@witness.example/agedp#london"

MEAN = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 30\n'
KERNEL = '[model]\nsource = "declared"\nkernel = "loose.csv"\nbasis = "made up"\nassume = "markov"\n'
CURVE = '[model]\nsource = "declared"\ncurve = "fast.csv"\nbasis = "made up"\nassume = "curve"\n'
ESTIMATED = f"""[model]
source = "estimated"
assume = "markov"
file = "model"
period = [{HISTORY[0]}, {HISTORY[1]}]
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
states = 2
edges = "quantile"
"""
PAIR = f'{ESTIMATED}step = "day"\nmemory = "pair"\nages_days = [1, 2, 3]\npublish = "envelope"\n'
PRIVATE = f"""{ESTIMATED}step = "day"
ages_days = [1, 2]
publish = "private"
selection_epsilon = 4
coverage = 0.5
failure_probability = 0.1
quantiles = [{{of = "total-variation", age_days = 1, probability = 0.5, epsilon = 1}}]
"""
LEVELS = (
    f'{MEAN}by = ["feeder", "area"]\nshare = [0.5, 0.3]\n'
    '[series.whole]\nstatistic = "mean"\nclamp_kwh = 30\nshare = 0.2\n'
)
TARIFFS = f'{MEAN}share = 0.5\n[series.by_tariff]\nstatistic = "mean"\nclamp_kwh = 30\nby = "tariff"\nshare = 0.5\n'
PROFILE = (
    '[series.shape]\nstatistic = "profile"\nclamp_kwh = 30\nhalf_hour_clamp_kwh = 1\nby = "tariff"\nshare = 0.8\n'
    '[series.usable]\nstatistic = "coverage"\nshare = 0.2\n'
)
LAYERS = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = [15, 30]\nshare = [0.7, 0.3]\n'
WEEKS = f'{MEAN}share = 0.6\n[series.weeks]\nstatistic = "mean"\nevery = "week"\nclamp_kwh = 30\nshare = 0.4\n'
CLASSICAL = 'notion = "classical"\nepsilon_per_day = 0.5\n'
WINDOW = 'notion = "w-event"\nwindow_days = {}\nepsilon_per_window = 1.5\nspend = "{}"\n'
FILES = {"fast.csv": "age_days,total_variation\n1,0.7\n3,0.4\n30,0.1\n", "loose.csv": "0.7,0.3\n0.3,0.7\n"}


@dataclass(frozen=True)
class Scene:
    """One population: what its run file contains, and how it is amended (text of the run file, old to new)."""

    name: str
    mode: str
    dataset: str
    promise: str
    series: str
    amendment: tuple[str, str]
    model: str = ""
    output: str = ""
    marker: bool = False
    second: Scene | None = None

    @property
    def estimated(self) -> bool:
        return "estimated" in self.model


def _caps(day: str, total: str) -> str:
    return f"max_day_epsilon = {day}\nepsilon_total = {total}\n"


REGISTER = 'household_register = "sqlite:///shared/register.sqlite"\n'
SCENES = (
    Scene(
        "classical-levels", "live", "london", CLASSICAL + _caps("0.5", "30"), LEVELS,
        ("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"), marker=True,
    ),
    Scene(
        "w-event-delta-monthly", "live", "long",
        WINDOW.format(9, "even") + 'delta = "0.01"\n' + _caps("0.5", "30"), TARIFFS,
        ("clamp_kwh = 30", "clamp_kwh = 25"), output='layout = "monthly"\n',
    ),
    Scene(
        "age-dependent-private", "live", "london",
        'notion = "age-dependent"\nepsilon_per_day = 0.5\nmethod = "tight"\nsecret = "day"\n' + _caps("12", "60"), MEAN,
        ("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"), model=PRIVATE,
    ),
    Scene(
        "temporal-memory", "rehearsal", "london",
        'notion = "temporal"\nalpha = 3\nhorizon_days = 30\nbudget = "best"\n' + _caps("0.9", "30"), MEAN,
        ("clamp_kwh = 30", "clamp_kwh = 25"), model=PAIR,
    ),
    Scene(
        "discounted-profile", "live", "ausgrid",
        'notion = "discounted"\ndiscount = "exponential"\nrate = 0.9\nepsilon = 1.5\nschedule = "renewal"\n'
        'clock = "data-day"\n' + _caps("0.9", '"unlimited"'), PROFILE,
        ("half_hour_clamp_kwh = 1", "half_hour_clamp_kwh = 0.9"), model=CURVE,
    ),
    Scene(
        "neighbourhood-layers", "archive", "long",
        'notion = "neighbourhood"\ndelta_kwh = 2\nwindow_days = 3\nepsilon_per_window = 0.06\nspend = "fraction"\n'
        "fraction = 0.4\n" + _caps("0.6", "30"), LAYERS,
        ("clamp_kwh = [15, 30]", "clamp_kwh = [15, 25]"),
    ),
    Scene(
        "witness-row", "live", "london", WINDOW.format(3, "remaining") + _caps("0.7", "30"), WEEKS,
        ("max_day_epsilon = 0.7", "max_day_epsilon = 0.6"), output='witness = "{witness}"\n',
    ),
    Scene(
        "shared-households", "live", "london", CLASSICAL + _caps("0.5", "30"), MEAN,
        ("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"), output=REGISTER,
        second=Scene(
            "shared-households-second", "live", "london", WINDOW.format(3, "even") + _caps("0.5", "30"),
            f'{MEAN}by = "tariff"\n', ("clamp_kwh = 30", "clamp_kwh = 25"), output=REGISTER,
        ),
    ),
)  # fmt: skip

_INPUT = {
    "london": 'dataset = "london"\n',
    "ausgrid": 'dataset = "ausgrid"\nmissing_controlled_load = "missing"\n',
    "long": 'dataset = "long"\n',
}
_COLUMNS = """[input.columns]
household = "meter"
time = "read_at"
stamp = "start"
zone = "Europe/London"
day_zone = "Europe/London"
energy = "wh"
unit = "Wh"
missing = ["Null"]
"""


def run_file(scene: Scene, *, part: str = "") -> str:
    """Return the run file of a scene as it was before any amendment."""
    age = "" if scene.mode == "archive" else "age_days = 1\n"
    out = part or "out"
    return f"""version = 1
[input]
{_INPUT[scene.dataset]}files = ["incoming/*.csv"]
corrections = "later-file"
{_COLUMNS if scene.dataset == "long" else ""}[output]
release = "{out}/release"
confidential = "{out}/confidential"
ledger = "sqlite:///{out}/ledger.sqlite"
title = "Made up"
{scene.output}[population]
name = "{scene.name}"
roster = "{part}roster.csv"
min_households = 2
[schedule]
mode = "{scene.mode}"
{'rehearsal_on = "readings"' if scene.mode == "rehearsal" else ""}
first_day = {FIRST}
{"" if scene.mode == "live" else f"last_day = {LAST}"}
{'wait_for = "incoming/{day}.done"' if scene.marker else ""}
{"give_up_days = 2" if scene.marker else ""}
{scene.series}[promise]
{scene.promise.replace(chr(10), chr(10) + age, 1)}{scene.model}[compare]
window_days = 4
exponential = 0.9
"""


def main() -> None:
    """Make every fixture and write it, packed, into the folder that is named."""
    if "site-packages" not in str(Path(agedp_data.__file__)):
        raise SystemExit(f"the fixtures are made by a wheel of commit {COMMIT}, not by {agedp_data.__file__}")
    place, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    programs = binaries()
    if programs is None:
        raise SystemExit("a fixture needs a PostgreSQL server (Debian: apt-get install postgresql)")
    server = PostgreSQL(programs)
    try:
        for scene in SCENES:
            _make(scene, place / scene.name, target, server)
            print(scene.name, flush=True)
    finally:
        server.close()


def _make(scene: Scene, folder: Path, target: Path, server: PostgreSQL) -> None:
    database, witness = server.database(), ""
    if "{witness}" in scene.output:
        witness = f"{server.url(database)}#london"
    populations = [_begin(scene, folder, witness)]
    if scene.second is not None:
        populations.append(_begin(scene.second, folder, "", part="second"))
    for night in BEGUN:
        for population in populations:
            _require_done(population, night)
        shutil.rmtree(folder / "later" / night.isoformat())
    _move(populations[0])
    state = server.admin("SELECT state FROM agedp_witness", database=database)[0][0] if witness else ""
    _record(populations, state, server, database)
    if witness:
        (folder / "witness.json").write_text(state)
        populations[0].edit(witness, NEUTRAL)
    _pack(folder, target / f"{scene.name}.tar.xz")
    shutil.rmtree(folder)


def _begin(scene: Scene, folder: Path, witness: str, *, part: str = "") -> RunningPopulation:
    """Set the scene of a population."""
    population = RunningPopulation(folder, part)
    if not part:
        _write_inputs(folder, scene)
    (folder / f"{part}roster.csv").write_text(_roster(scene.dataset, left_out=2 if part else 0))
    population.run_file.write_text(run_file(scene, part=part).replace("{witness}", witness))
    facts = {
        "made_by": COMMIT,
        "population": scene.name,
        "mode": scene.mode,
        "begun": [str(night) for night in BEGUN],
        "following": [str(night) for night in FOLLOWING],
        "amendment": scene.amendment,
    }
    population.path_of("fixture").write_text(json.dumps(facts, indent=1))
    if scene.estimated:
        with (
            standing_clock(FIRST),
            mock.patch.object(mechanisms, "exponential_mechanism", lambda scores, *, loss: int(np.argmax(scores))),
        ):
            calibrate(population.run_file)
    return population


def _require_done(population: RunningPopulation, night: date) -> None:
    if ending := population.ending(now=night):
        raise SystemExit(f"{population.run_file}: the night of {night} ended with {ending}")


def _move(population: RunningPopulation) -> None:
    """Export the ledger as it is, a copy of it that is closed, and a ledger that is recovered from the folder."""
    export_ledger(population.ledger, population.folder / "export.jsonl")
    with TemporaryDirectory() as folder:
        copy, restored = Path(folder) / "copy.sqlite", f"sqlite:///{folder}/restored.sqlite"
        shutil.copy(population.folder / "out" / "ledger.sqlite", copy)
        export_ledger(f"sqlite:///{copy}", population.folder / "closed.jsonl", closed_at=BEGUN[-1])
        recover(population.release, restored, at=BEGUN[-1])
        export_ledger(restored, population.folder / "recovered.jsonl")


def _write_inputs(folder: Path, scene: Scene) -> None:
    (folder / "incoming").mkdir(parents=True)
    if scene.second is not None:
        (folder / "shared").mkdir()
    for name, text in FILES.items():
        if name in scene.model:
            (folder / name).write_text(text)
    if scene.estimated:
        days = tuple(HISTORY[0] + timedelta(days=i) for i in range((HISTORY[1] - HISTORY[0]).days + 1))
        write(folder / "incoming", scene.dataset, Delivery(days, 1))
    for night in BEGUN:
        (folder / "later" / str(night)).mkdir(parents=True)
    for night, delivery in _deliveries():
        write(folder / "later" / str(night), scene.dataset, delivery)
        arrived = datetime.combine(night, time(1), UTC).timestamp()
        os.utime(folder / "later" / str(night) / delivery.name, (arrived, arrived))
    if scene.marker:
        for number in range((LAST - FIRST).days + 1):
            day = FIRST + timedelta(days=number)
            if day not in NEVER:
                (folder / "later" / str(_night_of(day)) / f"{day}.done").touch()


def _roster(dataset: str, *, left_out: int) -> str:
    """Return a roster from which one household leaves and to which one comes in the nights that follow."""
    spans = {4: (HISTORY[0], LEAVES), 5: (COMES, None)}
    lines = ["household_id,from,to,tariff,feeder,area"]
    for place, name in enumerate(household_ids(dataset)):
        first, last = spans.get(place, (HISTORY[0], None))
        if place >= left_out:
            area = "north" if place < 4 else "south"
            lines.append(f"{name},{first},{last or ''},{'AB'[place % 2]},F{place // 2},{area}")
    return "\n".join(lines) + "\n"


def _night_of(day: date) -> date:
    """Return the first night after a day."""
    return min(night for night in (*BEGUN, *FOLLOWING) if night > day)


def _deliveries() -> Iterator[tuple[date, Delivery]]:
    """Yield what arrives on which night: all days since the night before, and a correction of half of the last day."""
    days = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
    for number, night in enumerate((*BEGUN, *FOLLOWING)):
        arrived = tuple(day for day in days if _night_of(day) == night)
        yield night, Delivery(arrived, 10 * (number + 1))
        if number in {1, 5}:
            yield night, Delivery(arrived[-1:], 10 * (number + 1) + 1, "odd", change_wh=200)


def _record(populations: list[RunningPopulation], state: str, server: PostgreSQL, database: str) -> None:
    """Let the old code itself live through the nights that follow, in copies, and keep what it publishes."""
    for name, nights, amended in (("expected", FOLLOWING, False), ("amended", FOLLOWING[:AMENDED_NIGHTS], True)):
        with TemporaryDirectory() as place:
            folder = Path(shutil.copytree(populations[0].folder, Path(place) / "copy"))
            copies = [RunningPopulation(folder, population.part) for population in populations]
            if amended:
                for copy in copies:
                    copy.amend(now=nights[0])
            endings = [[copy.ending(now=night) for copy in copies] for night in nights]
            for number, (population, copy) in enumerate(zip(populations, copies, strict=True)):
                recorded = {"endings": [by_population[number] for by_population in endings], **_recorded(copy)}
                population.path_of(name).write_text(json.dumps(recorded, indent=1))
        if state:
            server.admin(f"UPDATE agedp_witness SET state = '{state}'", database=database)


def _recorded(population: RunningPopulation) -> dict[str, object]:
    """Return what is published; of the statement what later versions do not word anew."""
    statement = json.loads((population.release / "statement.json").read_text())
    kept = (
        "schema",
        "population",
        "days",
        "published",
        "rehearsal",
        "contract",
        "figures",
        "ending",
        "household_account",
    )
    return {
        "rows": population.rows(),
        "tables": population.tables(),
        "statement": {key: statement[key] for key in (*kept, "household_account") if key in statement},
    }


def _pack(folder: Path, target: Path) -> None:
    """Pack a folder so that the same files make the same bytes."""
    (folder / JOURNAL).unlink()
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path in sorted(folder.rglob("*")):
            packed.add(path, str(path.relative_to(folder)), recursive=False, filter=_plain)
    target.write_bytes(lzma.compress(tarred.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an entry without what differs from run to run; input files have the time at which they arrived."""
    entry.mtime = int(entry.mtime) if entry.name.endswith("-meters.csv") else 0
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()

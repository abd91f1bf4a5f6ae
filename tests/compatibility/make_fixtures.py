"""Make the compatibility fixtures with agedp 0.1. They were made once, by commit a2328a0, and are never made again.

This file says how they were made. What later versions do with them is `test_fixtures.py`'s matter; another version may
get fixtures of its own beside these, made by that version in a folder of its own.

    git worktree add OLD a2328a0
    PYTHONPATH=OLD:. python -P -m tests.compatibility.make_fixtures /srv/agedp FOLDER

in a checkout of commit 612f8f4, which added this file; here its imports have the present names of the packages.

`tests` is a package in both places; `-P` keeps the present product code off the path, and the commit is checked. The
first folder is one to work in: the confidential store notes where input files were, so it is named like no machine.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import agedp
from agedp.ledger_transfer import export_ledger, recover
from agedp.pipeline import calibrate
from tests.compatibility.deliveries import Delivery, household_ids, write
from tests.compatibility.fixtures import AMENDED_NIGHTS, RunningPopulation, standing_clock
from tests.compatibility.scenes import BEGUN, FILES, FIRST, FOLLOWING, HISTORY, LAST, SCENES, Scene, run_file
from tests.nights.keyed import JOURNAL

COMMIT = "a2328a0"
NEVER = {date(2013, 3, 28), date(2013, 4, 3)}
"""Days whose marker never comes: one is skipped before the fixture is packed, one after."""
LATE = date(2013, 4, 5)
"""A day whose marker, and the half of whose readings, come a day later."""
AMENDED_ON = BEGUN[2]


def main() -> None:
    """Make every fixture and write it, packed, into the folder that is named."""
    _require_commit()
    place, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for scene in SCENES:
        population = RunningPopulation(place / scene.name)
        _begin(population, scene)
        _record(population)
        _pack(population.folder, target / f"{scene.name}.tar.xz")
        shutil.rmtree(population.folder)
        print(scene.name, flush=True)


def _require_commit() -> None:
    code = Path(agedp.__file__).parent.parent
    head = subprocess.run(["git", "-C", code, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    if not head.startswith(COMMIT):
        raise SystemExit(f"the fixtures are made by commit {COMMIT}, not by {head.strip()}")


def _begin(population: RunningPopulation, scene: Scene) -> None:
    """Set the scene and live through its first nights."""
    _write_inputs(population.folder, scene)
    population.run_file.write_text(run_file(scene))
    facts = {
        "made_by": COMMIT,
        "population": scene.name,
        "mode": scene.mode,
        "begun": [str(night) for night in BEGUN],
        "following": [str(night) for night in FOLLOWING],
        "amendment": scene.amendment,
    }
    (population.folder / "fixture.json").write_text(json.dumps(facts, indent=1))
    if scene.estimated:
        with standing_clock(FIRST):
            calibrate(population.run_file)
    for night in BEGUN:
        if scene.amended is not None and night == AMENDED_ON:
            population.amend(*scene.amended, now=night)
        population.run(now=night)
    for night in BEGUN:
        shutil.rmtree(population.folder / "later" / night.isoformat())
    _move(population)


def _move(population: RunningPopulation) -> None:
    """Export the ledger as it is, a copy of it that is closed, and a ledger that is recovered from the folder."""
    export_ledger(population.ledger, population.export)
    with TemporaryDirectory() as folder:
        copy, restored = Path(folder) / "copy.sqlite", f"sqlite:///{folder}/restored.sqlite"
        shutil.copy(population.folder / "out" / "ledger.sqlite", copy)
        export_ledger(f"sqlite:///{copy}", population.closed_export, closed_at=BEGUN[-1])
        recover(population.release, restored, at=BEGUN[-1])
        export_ledger(restored, population.recovered_export)


def _write_inputs(folder: Path, scene: Scene) -> None:
    (folder / "incoming").mkdir(parents=True)
    for name, text in FILES.items():
        if name in scene.model or any(name in text for text in (*scene.amendment, *(scene.amended or ()))):
            (folder / name).write_text(text)
    (folder / "roster.csv").write_text(_roster(scene.dataset))
    if scene.estimated:
        days = tuple(HISTORY[0] + timedelta(days=i) for i in range((HISTORY[1] - HISTORY[0]).days + 1))
        write(folder / "incoming", scene.dataset, Delivery(days, 1))
    for night, delivery in _deliveries(scene):
        write(folder / "later" / str(night), scene.dataset, delivery)
        arrived = datetime.combine(night, time(1), UTC).timestamp()
        os.utime(folder / "later" / str(night) / delivery.name, (arrived, arrived))
    if scene.marker:
        for number in range((LAST - FIRST).days + 1):
            day = FIRST + timedelta(days=number)
            night = max(day + timedelta(days=3 if day == LATE else 1), BEGUN[0])
            if day not in NEVER:
                (folder / "later" / str(night) / f"{day}.done").touch()


def _roster(dataset: str) -> str:
    """Return a roster from which one household leaves and to which one comes in the nights that follow."""
    spans = {4: (FIRST, date(2013, 4, 4)), 5: (date(2013, 4, 6), None)}
    lines = ["household_id,from,to,tariff"]
    for place, name in enumerate(household_ids(dataset)):
        first, last = spans.get(place, (FIRST, None))
        lines.append(f"{name},{first},{last or ''},{'AB'[place % 2]}")
    return "\n".join(lines) + "\n"


def _deliveries(scene: Scene) -> Iterator[tuple[date, Delivery]]:
    """Yield what arrives on which night: each day the morning after; one day in halves, two corrected in part."""
    for number in range((LAST - FIRST).days + 1):
        day = FIRST + timedelta(days=number)
        night, place = max(day + timedelta(days=1), BEGUN[0]), 10 * (number + 1)
        if day == LATE:
            yield night, Delivery((day,), place, "even")
            yield night + timedelta(days=2), Delivery((day,), place + 1, "odd")
            continue
        yield night, Delivery((day,), place)
        if scene.corrections and number in {2, 8}:  # in time where a day is released at an age of one day
            yield night, Delivery((day,), place + 1, "odd", change_wh=200)


def _record(population: RunningPopulation) -> None:
    """Let the old code itself live through the nights that follow, in copies, and keep what it publishes."""
    _record_copy(population, "expected.json", FOLLOWING, amended=False)
    _record_copy(population, "amended.json", FOLLOWING[:AMENDED_NIGHTS], amended=True)


def _record_copy(population: RunningPopulation, name: str, nights: tuple[date, ...], *, amended: bool) -> None:
    with TemporaryDirectory() as folder:
        copy = RunningPopulation(shutil.copytree(population.folder, Path(folder) / "copy"))
        if amended:
            copy.amend(*copy.amendment, now=nights[0])
        endings = [copy.ending(now=night) for night in nights]
        (population.folder / name).write_text(json.dumps({"endings": endings, **copy.recorded()}, indent=1))


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

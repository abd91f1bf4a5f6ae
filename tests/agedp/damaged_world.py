"""A live population of a few nights: its confidential and model folders hold every kind of file; ways to spoil one."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from agedp.pipeline import calibrate
from agedp.store import file_identity
from agedp_data import clock
from agedp_data.ledger import Ledger
from agedp_flows.cli.app import main
from tests.nights.keyed import keyed_sampler

HOMES = "ABC"
FIRST, NEXT = date(2013, 2, 28), date(2013, 3, 3)
RUN = """version = 1
[input]
dataset = "london"
files = ["input/*.csv"]
corrections = "set-aside"
preflight = "report"
[output]
release = "release"
confidential = "confidential"
ledger = "sqlite:///ledger.sqlite"
[population]
name = "homes"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "live"
first_day = 2013-02-28
[series.daily_mean]
statistic = "mean"
clamp_kwh = 20
share = 0.5
[series.by_states]
statistic = "mean"
clamp_kwh = 20
values = "states"
share = 0.25
[series.counts]
statistic = "distribution"
clamp_kwh = 20
bins_kwh = [0, 10, 14, 20]
share = 0.25
[alerts]
min_coverage = 0.9
[promise]
notion = "age-dependent"
age_days = 1
epsilon_per_day = 0.3
method = "tight"
secret = "day"
max_day_epsilon = 0.5
epsilon_total = 9
[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2013-02-14, 2013-02-25]
step = "half-hour"
states = 4
edges = [0.1, 0.3, 0.8]
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
[engine]
keep_days = 1
"""

Way = Callable[[bytes], bytes]


def _random(content: bytes) -> bytes:
    return random.Random(len(content)).randbytes(len(content))  # noqa: S311


def _flipped(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0x04]) + content[at + 1 :] if content else b"\x04"


WAYS: dict[str, Way] = {
    "zeroed": lambda content: bytes(len(content)),
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "random": _random,
    "one bit": _flipped,
}


@dataclass(frozen=True)
class End:
    """How a run of the command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class World:
    """A folder with a run file, its inputs, ledger, release, confidential and model folder."""

    folder: Path

    def copied(self, to: Path) -> World:
        shutil.copytree(self.folder, to)
        return World(to)

    def deliver(self, name: str, first: date, days: int, *, homes: str = HOMES, extra: str = "") -> None:
        """Write readings that vary by household, day and slot; touched long ago, so that its digest is remembered."""
        lines = [
            f"{home},{datetime.combine(day, time()) + (slot + 1) * timedelta(minutes=30)},{_wh(home, day, slot) / 1000}"
            for home in homes
            for day in (first + timedelta(days=number) for number in range(days))
            for slot in range(48)
        ]
        path = self.folder / "input" / name
        path.write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n" + extra)
        os.utime(path, (1.4e9, 1.4e9))

    def night(self, today: date, *words: str) -> End:
        """Run the command on a day with noise that only series, day and cell decide."""
        out, err = io.StringIO(), io.StringIO()
        argv = ["agedp", "run", str(self.folder / "run.toml"), "--quiet", *words]
        status = 0
        with (
            keyed_sampler(self.folder / "draws.txt"),
            mock.patch.object(file_identity, "_SETTLING_NS", 0),  # the names of files just written are remembered
            mock.patch.object(clock, "now", return_value=datetime.combine(today, time(6), UTC)),
            mock.patch("sys.argv", argv),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                status = int(ended.code or 0)
        return End(status, out.getvalue(), err.getvalue())

    def next_night(self) -> End:
        return self.night(NEXT + timedelta(days=2))

    def values(self) -> dict[tuple[str, str], tuple[Any, ...]]:
        """Return the released values of the ledger by day and series; with keyed noise they tell the exact sums."""
        with Ledger.open(f"sqlite:///{self.folder / 'ledger.sqlite'}") as ledger:
            rows = ledger.rows()
        assert len({(row.day, row.series) for row in rows}) == len(rows)
        return {(row.day, row.series): (row.state, row.cells, row.values, row.scale) for row in rows}

    def true_figures(self) -> dict[tuple[str, ...], float]:
        """Return the recorded true means and counts by day, series and cell."""
        figures = {}
        for name, column in (("true_means", "true_mean_kwh"), ("true_counts", "true_households")):
            for line in pq.read_table(self.folder / "confidential" / f"{name}.parquet").to_pylist():
                figures[str(line["day"]), line["series"], line["cell"]] = line[column]
        return figures

    def draws(self) -> int:
        return len((self.folder / "draws.txt").read_text().splitlines())


def _wh(home: str, day: date, slot: int) -> int:
    return (40, 170, 420, 900)[(ord(home) * 7 + day.toordinal() * 5 + slot * slot + slot * day.day) % 7 % 4]


def make(folder: Path, *, ready: bool) -> World:
    """Make a world after its calibration and three nights; some deliveries are cleared away, February has been let go.

    `ready`: the readings of the next night are in the store already, so that it reads daily totals, and no part.
    """
    world = World(folder)
    (folder / "input").mkdir(parents=True)
    (folder / "run.toml").write_text(RUN)
    (folder / "roster.csv").write_text("household_id,from,to\n" + "".join(f"{home},2013-02-01,\n" for home in HOMES))
    world.deliver("february.csv", date(2013, 2, 14), 12)
    calibrate(folder / "run.toml")
    if ready:
        world.deliver(f"{NEXT}.csv", NEXT, 1)
    for number in range(3):
        day = FIRST + timedelta(days=number)
        rejected = f"A,{day} 00:30:00,soon\nA\n"
        world.deliver(f"{day}.csv", day, 1, homes=HOMES[: 2 if number == 1 else 3], extra=rejected)
        if number == 2:
            (folder / "input" / "correction.csv").write_text(f"LCLid,tstp,energy(kWh/hh)\nA,{day} 12:00:00,3\n")
            os.utime(folder / "input" / "correction.csv", (1.4e9, 1.4e9))
        end = world.night(day + timedelta(days=2))
        assert end.status == 0, end
    confidential = folder / "confidential"
    shutil.copy(confidential / "alerts.jsonl", confidential / "alerts.1.jsonl")  # as when the record grew too long
    (folder / "cleared").mkdir()
    for name in ("february.csv", f"{FIRST}.csv", f"{FIRST + timedelta(days=1)}.csv"):
        (folder / "input" / name).rename(folder / "cleared" / name)
    if not ready:
        world.deliver(f"{NEXT}.csv", NEXT, 1)
    return world


def files(world: World) -> list[Path]:
    """Return every file of the confidential folder and of the model's folder, relative to the world."""
    return sorted(
        path.relative_to(world.folder)
        for place in ("confidential", "model")
        for path in (world.folder / place).rglob("*")
        if path.is_file()
    )


def kind_of(path: Path) -> str:
    """Return a name without content ids, months and numbers of parts."""
    return re.sub(r"=\d{4}-\d{2}", "=MONTH", re.sub(r"[0-9a-f]{64}(-\d+)?", "ID", path.as_posix()))


def kinds(world: World) -> dict[str, list[Path]]:
    paths: dict[str, list[Path]] = {}
    for path in files(world):
        paths.setdefault(kind_of(path), []).append(path)
    return paths


def spoil(world: World, path: Path, way: str) -> None:
    """Spoil a file; its times stay as they were."""
    place = world.folder / path
    content, times = place.read_bytes(), place.stat()
    place.write_bytes(WAYS[way](content))
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


ADVICE = ("run again", "put back", "put the files back", "remove it", "name another confidential folder")


def advice_of(line: str) -> list[str]:
    """Return what a line advises, in the words that `follow` knows."""
    return [words for words in ADVICE if words in line]


def follow(world: World, path: Path, sound: World, advice: str) -> None:
    """Do what a line advises."""
    place = world.folder / path
    if advice == "put back":
        shutil.copy2(sound.folder / path, place)
    elif advice == "remove it":
        place.unlink()
    elif advice == "name another confidential folder":
        run_file = world.folder / "run.toml"
        run_file.write_text(run_file.read_text().replace('confidential = "confidential"', 'confidential = "anew"'))
    elif advice == "put the files back":
        for cleared in (world.folder / "cleared").iterdir():
            shutil.copy2(cleared, world.folder / "input" / cleared.name)

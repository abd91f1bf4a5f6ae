"""Worlds whose households, files and readings can be recognised wherever they turn up."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from pathlib import Path

from tests.agedp_flows.worlds import AGED, DECLARED, ESTIMATED, MODES, RUN_FILE
from tests.command import CommandFolder, beside_verdict
from tests.exposure.marks import Marks, marks_of

DRIVER = Path(__file__).with_name("driver.py")
FIRST, DAYS, HOMES = date(2013, 2, 1), 5, 6
LOUD = {"PREFECT_LOGGING_LEVEL": "DEBUG", "PREFECT_LOGGING_TO_API_ENABLED": "true"}


@dataclass(frozen=True)
class Seen:
    """What a watched command did and printed."""

    status: int
    stdout: str
    stderr: str
    noted: list[tuple[str, str]]

    def of(self, *what: str) -> list[str]:
        return [value for kind, value in self.noted if kind in what]

    @property
    def written(self) -> list[Path]:
        """Every place that was written to, by whatever means."""
        return [Path(value) for kind, value in self.noted if kind == "open" or kind.startswith(("os.", "tempfile."))]

    def public(self) -> str:
        """Return what it printed, logged and told its children but for the environment they share."""
        inherited = json.dumps(dict(os.environ))
        return "\n".join([self.stdout, *self.of("log", "subprocess.Popen")]).replace(inherited, "")


@dataclass(frozen=True)
class MarkedWorld(CommandFolder):
    """A folder with marked input, roster and run file; everything it makes is in `out` and `model`."""

    @property
    def confidential(self) -> Path:
        return self.folder / "out" / "confidential"

    @property
    def release(self) -> Path:
        return self.folder / "out" / "release"

    @property
    def ledger(self) -> Path:
        return self.folder / "out" / "ledger.sqlite"

    def run(self, *words: str, umask: int = 0o022, **environment: str) -> Seen:
        """Run a command, watched, with a temporary folder of its own that it should leave alone."""
        watched = self.folder / "watched.jsonl"
        watched.unlink(missing_ok=True)
        (self.folder / "tmp").mkdir(exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
        done = subprocess.run(
            [sys.executable, "-B", str(DRIVER), *words], cwd=self.folder, capture_output=True, text=True, timeout=900,
            check=False, umask=umask,
            env={**inherited, "WATCH": str(watched), "TMPDIR": str(self.folder / "tmp"), **environment},
        )  # fmt: skip
        noted = [tuple(json.loads(line)) for line in watched.read_text().splitlines()]
        return Seen(done.returncode, done.stdout, done.stderr, noted)


class Ran:
    """A world, what its two commands did, and the marks that were read before anything else ran."""

    def __init__(self, world: MarkedWorld) -> None:
        self.world = world
        seen = [world.run(verb, "run.toml", "--json", umask=0) for verb in ("calibrate", "run")]
        self.calibrated, self.released = seen
        assert [(run.status, beside_verdict(run.stderr)) for run in seen] == [(0, "")] * 2, seen
        assert self.marks

    @cached_property
    def marks(self) -> Marks:
        return marks_of(self.world.confidential)


def make(folder: Path, *, estimated: bool = False, scheduler: str = "threads") -> MarkedWorld:
    """Make a marked world of six homes and five days, one home using the same amount all the time."""
    chance = random.Random(8)  # noqa: S311
    (folder / "incoming").mkdir(parents=True)
    homes = [f"MARKhome{number}" for number in range(1, HOMES + 1)]
    start = datetime.combine(FIRST, time())
    stamps = [start + timedelta(minutes=30 * (step + 1)) for step in range(DAYS * 48)]
    for number, part in enumerate((homes[:3], homes[3:]), 1):
        rows = ["LCLid,tstp,energy(kWh/hh)", f"MARKhome2,{start},MARKreading"]
        for home in part:
            own = ["7.7391" if home == homes[0] else f"{chance.uniform(0.05, 2):.3f}" for _ in stamps]
            rows += [f"{home},{stamp},{energy}" for stamp, energy in zip(stamps, own, strict=True)]
        (folder / "incoming" / f"MARKfile{number}.csv").write_text("\n".join(rows) + "\n")
    roster = [f"{home},{FIRST}," for home in homes]
    (folder / "roster.csv").write_text("\n".join(["household_id,from,to", *roster]) + "\n")
    (folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.8\n2,0.5\n")
    promise = AGED.format(method="tight" if estimated else "total_variation", total="2.5")
    text = RUN_FILE.format(mode=MODES["rehearsal"], model=ESTIMATED if estimated else DECLARED, promise=promise)
    text = text.replace("last_day = 2013-02-07", "last_day = 2013-02-04").replace("clamp_kwh = 20", "clamp_kwh = 400")
    text = text.replace("[2013-02-01, 2013-02-08]", "[2013-02-01, 2013-02-05]")
    (folder / "run.toml").write_text(f'{text}\n[engine]\nscheduler = "{scheduler}"\n')
    return MarkedWorld(folder)

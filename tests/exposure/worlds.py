"""Worlds whose households, files and readings can be recognised wherever they turn up."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from tests.agedp_flows.worlds import DECLARED, ESTIMATED, RUN_FILE
from tests.exposure.marks import Marks, marks_of

DRIVER = Path(__file__).with_name("driver.py")
FIRST, DAYS, HOMES = date(2013, 2, 1), 5, 6
CONSTANT_KWH = "7.7391"
TOO_MUCH = "MARKreading"


@dataclass(frozen=True)
class Seen:
    """What a watched command did and said."""

    status: int
    stdout: str
    stderr: str
    noted: list[tuple[str, str]]

    def of(self, what: str) -> list[str]:
        return [value for kind, value in self.noted if kind == what]

    @property
    def written(self) -> list[Path]:
        """Every place that was written to, by whatever means."""
        kinds = ("open", "os.mkdir", "os.rename", "os.symlink", "os.link", "tempfile.mkstemp", "tempfile.mkdtemp")
        return [Path(value) for kind in kinds for value in self.of(kind)]


@dataclass(frozen=True)
class MarkedWorld:
    """A folder with marked input, roster and run file; everything it makes lies in `out` and `model`."""

    folder: Path

    @property
    def confidential(self) -> Path:
        return self.folder / "out" / "confidential"

    @property
    def release(self) -> Path:
        return self.folder / "out" / "release"

    @property
    def ledger(self) -> Path:
        return self.folder / "out" / "ledger.sqlite"

    @property
    def marks(self) -> Marks:
        return marks_of(self.confidential)

    def run(self, *words: str, umask: int = 0o022, **environment: str) -> Seen:
        """Run a command, watched, with a temporary folder of its own that it should leave alone."""
        watched = self.folder / "watched.jsonl"
        watched.unlink(missing_ok=True)
        (self.folder / "tmp").mkdir(exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
        done = subprocess.run(
            [sys.executable, "-B", str(DRIVER), *words],
            cwd=self.folder,
            env={**inherited, "WATCH": str(watched), "TMPDIR": str(self.folder / "tmp"), **environment},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            umask=umask,
        )
        noted: list[Any] = [json.loads(each) for each in watched.read_text().splitlines()]
        return Seen(done.returncode, done.stdout, done.stderr, [(kind, value) for kind, value in noted])

    def edit(self, old: str, new: str) -> None:
        run_file = self.folder / "run.toml"
        assert old in run_file.read_text()
        run_file.write_text(run_file.read_text().replace(old, new))


def make(folder: Path, *, estimated: bool = False, scheduler: str = "threads") -> MarkedWorld:
    """Make a marked world of six homes and five days, one home using the same amount all the time."""
    chance = random.Random(8)  # noqa: S311
    (folder / "incoming").mkdir(parents=True)
    homes = [f"MARKhome{number}" for number in range(1, HOMES + 1)]
    for number, part in enumerate((homes[:3], homes[3:]), 1):
        rows = [row for home in part for row in _rows(home, chance)]
        text = "\n".join(["LCLid,tstp,energy(kWh/hh)", *rows]) + "\n"
        (folder / "incoming" / f"MARKfile{number}.csv").write_text(text)
    (folder / "roster.csv").write_text(
        "\n".join(["household_id,from,to", *(f"{home},{FIRST}," for home in homes)]) + "\n"
    )
    (folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.8\n2,0.5\n")
    text = RUN_FILE.format(
        mode="rehearsal", model=ESTIMATED if estimated else DECLARED, method="tight" if estimated else "total_variation"
    )
    text = text.replace("last_day = 2013-02-07", "last_day = 2013-02-04").replace("clamp_kwh = 20", "clamp_kwh = 400")
    text = text.replace("[2013-02-01, 2013-02-08]", "[2013-02-01, 2013-02-05]")
    (folder / "run.toml").write_text(f'{text}\n[engine]\nscheduler = "{scheduler}"\n')
    return MarkedWorld(folder)


def _rows(home: str, chance: random.Random) -> list[str]:
    start = datetime.combine(FIRST, time())
    stamps = [str(start + timedelta(minutes=30 * (step + 1))) for step in range(DAYS * 48)]
    constant = home.endswith("1")
    rows = [f"{home},{stamp},{CONSTANT_KWH if constant else f'{chance.uniform(0.05, 2):.3f}'}" for stamp in stamps]
    return [*rows, f"{home},{start},{TOO_MUCH}"] if home.endswith("2") else rows

"""A house that lives through a course of nights, and what must hold after each of them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from agedp_data.ledger import Ledger, ReleaseRecord
from tests.command import agedp
from tests.nights.course import FILES, NEVER, STAY, Course, Terms
from tests.nights.deliveries import FIRST, Customers, Meters
from tests.nights.keyed import JOURNAL, draws, keyed_noise, keyed_sampler, last_draw
from tests.nights.promises import Kernel, broken

SERIES = "daily_mean"
GIVE_UP_DAYS = 3
_DRIVER = Path(__file__).with_name("driver.py")
_RUN = """version = 1
[input]
dataset = "london"
files = ["{files}/*.csv"]
corrections = "later-file"
[output]
release = "{out}/release"
confidential = "{out}/confidential"
ledger = "sqlite:///{out}/ledger.sqlite"
[population]
name = "homes"
roster = "roster.csv"
min_households = 3
[schedule]
mode = "{mode}"
first_day = {first}
last_day = {last}
{marker}
[series.daily_mean]
statistic = "mean"
clamp_kwh = {clamp_kwh}
[promise]
{promise}
{model}
"""


@dataclass
class House:
    """A folder of its own, the nights so far, and what is known of every release from outside."""

    folder: Path
    course: Course
    seed: int = 5
    rows: tuple[ReleaseRecord, ...] = ()
    table: list[dict[str, Any]] = field(default_factory=list)
    lost_draws: list[tuple[str, str]] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    said_in: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        course, there = self.course, self.course.homes - len(self.course.joins)
        self.meters = Meters(self.folder / "incoming", homes=course.homes, days=course.days, seed=self.seed)
        self.customers = Customers(self.folder / "roster.csv", self.meters.ids, there=there)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        (self.folder / "delivered").mkdir()
        self.write(course.terms_at(0))

    @property
    def run_file(self) -> Path:
        return self.folder / "run.toml"

    @property
    def ledger(self) -> str:
        return f"sqlite:///{self.folder / 'out' / 'ledger.sqlite'}"

    @property
    def journal(self) -> Path:
        return self.folder / JOURNAL

    def write(self, terms: Terms, *, name: str = "run.toml", mode: str = "rehearsal", files: str = "incoming") -> None:
        marker = f'wait_for = "incoming/{{day}}.done"\ngive_up_days = {GIVE_UP_DAYS}' if terms.marker else ""
        text = _RUN.format(
            files=files,
            out="out" if mode == "rehearsal" else name.removesuffix(".toml"),
            mode=mode,
            first=FIRST,
            last=FIRST + timedelta(days=self.course.days - 1),
            marker=marker if mode == "rehearsal" else "",
            clamp_kwh=terms.clamp_kwh,
            promise=terms.promise,
            model=terms.model,
        )
        (self.folder / name).write_text(text)

    def night(self, night: int) -> None:
        """Live through one night: what arrives, who comes and goes, an amendment, the run, a crash before it."""
        self._arrive(night)
        if night in self.course.no_run:
            return
        if night in self.course.terms:
            self.write(self.course.terms_at(night))
            assert agedp("run", self.run_file, "--as-of", _day(night))[0] == 3, "a change was not noticed"
            status, out, err = agedp("ledger", "amend", self.run_file, "--yes")
            assert status == 0, err
            assert "recorded" in out
        if night in self.course.crashes:
            self._crash(night, self.course.crashes[night])
        with keyed_sampler(self.journal):
            status, _, err = agedp("run", self.run_file, "--as-of", _day(night))
        assert (status, err) == (0, ""), (night, status, err)

    def _arrive(self, night: int) -> None:
        if night in self.course.cleared:
            for path in self.meters.folder.glob("*.csv"):
                path.rename(self.folder / "delivered" / path.name)
        for parcel in self.course.arriving(night):
            self.meters.deliver(parcel)
        for day, left in self.course.markers.items():
            if left == night:
                (self.meters.folder / f"{_day(day)}.done").touch()
        if night in self.course.joins:
            self.customers.join(self.course.joins[night])
        if night in self.course.leaves:
            self.customers.leave(self.course.leaves[night])

    def _crash(self, night: int, point: str) -> None:
        words = [str(self.journal), point, "run", str(self.run_file), "--as-of", _day(night)]
        before = draws(self.journal)
        ended = subprocess.run([sys.executable, _DRIVER, *words], capture_output=True, text=True, check=False)
        assert ended.returncode == -signal.SIGKILL, f"not killed at {point}: {ended.stderr}"
        with Ledger.open(self.ledger) as ledger:
            assert not ledger.verify()
            rows = ledger.rows()
        assert rows[: len(self.rows)] == self.rows
        stored = {(row.series, row.day) for row in rows}
        if point == "draw":
            assert last_draw(self.journal) not in stored
        # what the open transaction had drawn nobody saw: it is drawn again
        self.lost_draws += [key for key in draws(self.journal) - before if key not in stored]

    def check(self, night: int) -> None:
        """Check everything that must hold after a night."""
        if not (self.folder / "out" / "ledger.sqlite").exists():
            assert not draws(self.journal), "drawn without a ledger"
            return
        with Ledger.open(self.ledger) as ledger:
            assert not ledger.verify()
            rows, contracts = ledger.rows("homes"), ledger.contracts("homes")
        assert rows[: len(self.rows)] == self.rows, "a stored row changed"
        self._drawn_once(rows)
        dates = [row.published_on for row in rows]
        assert dates == sorted(dates), "published_on ran backwards"
        assert all(day <= _day(night) for day in dates), "published in the future"
        assert not broken(rows, contracts, kernel=_kernel(self.course.terms[0]))
        for row in rows[len(self.rows) :]:
            self._as_delivered(row)
            self.said_in[(date.fromisoformat(row.day) - FIRST).days] = night
        self.rows = rows
        if rows:
            self._folder_is_sound()

    def _drawn_once(self, rows: tuple[ReleaseRecord, ...]) -> None:
        wanted = {(row.series, row.day): 1 for row in rows if row.state == "released"}
        for key in self.lost_draws:
            wanted[key] = wanted.get(key, 0) + 1
        assert draws(self.journal) == wanted

    def _as_delivered(self, row: ReleaseRecord) -> None:
        """Compare a fresh row with what the files that had arrived say, added up by hand."""
        day = (date.fromisoformat(row.day) - FIRST).days
        if row.state == "skipped":
            assert self.course.markers.get(day) == NEVER
            return
        homes = self.customers.on(day)
        assert row.households == (len(homes),)
        noise = keyed_noise(row.series, row.day, 0, sensitivity=row.sensitivity)
        assert row.values == (self.meters.sum_wh(day, homes, clamp_wh=row.sensitivity) + noise,), row.day
        self.expected[row.day] = row.values[0]

    def _folder_is_sound(self) -> None:
        status, _, err = agedp("verify", self.folder / "out" / "release", "--ledger", self.ledger)
        assert (status, err) == (0, ""), (status, err)
        table = published(self.folder / "out" / "release")
        before = {row["day"]: row for row in self.table}
        now = {row["day"]: row for row in table}
        assert {day: now.get(day) for day in before} == before, "a published row changed"
        assert [row["noisy_sum_wh"] for row in table] == [self.expected[str(row["day"])] for row in table]
        self.table = table

    def statements(self) -> list[tuple[str, str]]:
        """Return date and head of every statement that was ever made."""
        with Ledger.open(self.ledger) as ledger:
            return [(one.at, json.loads(one.claim)["ledger"]["head"]) for one in ledger.statements("homes")]

    def archive(self, begin: int) -> list[dict[str, Any]]:
        """Return what an undisturbed archive of all files publishes under the terms of some night."""
        every = self.folder / "every"
        if not every.exists():
            every.mkdir()
            for path in sorted(self.folder.glob("*/*-meters.csv")):
                shutil.copy(path, every)
        name = f"archive-{begin}.toml"
        terms = self.course.terms[begin]
        if "age-dependent" not in terms.promise:
            kept = [line for line in terms.promise.splitlines() if not line.startswith("age_days")]
            terms = Terms("\n".join(kept), clamp_kwh=terms.clamp_kwh, model=terms.model)
        self.write(terms, name=name, mode="archive", files="every")
        with keyed_sampler(self.folder / f"archive-{begin}.txt"):
            status, _, err = agedp("run", self.folder / name)
        assert (status, err) == (0, ""), (status, err)
        return published(self.folder / f"archive-{begin}" / "release")


def published(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / "daily_averages.parquet").to_pylist()
    return found


def _kernel(terms: Terms) -> Kernel | None:
    """Return the slower of the kernels: what was promised under it holds for ever."""
    return next((Kernel(stay) for name, stay in STAY.items() if f'"{name}.csv"' in terms.model), None)


def _day(number: int) -> str:
    return str(FIRST + timedelta(days=number))

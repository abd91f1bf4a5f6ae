"""A simulated year of nights: whatever happens, each day is drawn once, kept for ever, and worth what was delivered."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agedp_data.ledger import Ledger, ReleaseRecord
from tests.command import agedp, beside_verdict
from tests.nights.course import FILES, NEVER, STAY, Course, Terms, sample_course, week_course, year_course
from tests.nights.deliveries import FIRST, Customers, Meters
from tests.nights.keyed import JOURNAL, draws, keyed_noise, keyed_sampler
from tests.nights.promises import Kernel, exceeded

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
accept = ["useless", "no-credit", "total"]
{promise}
{model}
"""
DATES = frozenset({"published_on", "version"})
LOSSES = frozenset({"epsilon", "noise_sd_kwh", "low_kwh", "high_kwh"})


def text_of(number: int) -> str:
    return str(FIRST + timedelta(days=number))


def number_of(day: str) -> int:
    return (date.fromisoformat(day) - FIRST).days


@dataclass
class House:
    """A house that lives through a course of nights, and what is known of every release from outside."""

    folder: Path
    course: Course
    rows: tuple[ReleaseRecord, ...] = ()
    table: list[dict[str, Any]] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    released_in: dict[int, int] = field(default_factory=dict)
    repeated: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Draws of transactions that never ended."""

    def __post_init__(self) -> None:
        course, count = self.course, self.course.homes - len(self.course.joins)
        self.run_file, self.journal = self.folder / "run.toml", self.folder / JOURNAL
        self.release, self.ledger = self.folder / "out" / "release", f"sqlite:///{self.folder / 'out/ledger.sqlite'}"
        self.meters = Meters(self.folder / "incoming", homes=course.homes, days=course.days, seed=5)
        self.customers = Customers(self.folder / "roster.csv", self.meters.ids, count=count)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        (self.folder / "delivered").mkdir()
        self.write(course.terms_at(0))

    def write(self, terms: Terms, *, name: str = "run", mode: str = "rehearsal", files: str = "incoming") -> None:
        marker = 'rehearsal_on = "readings"\n' if mode == "rehearsal" else ""
        if terms.marker and mode == "rehearsal":
            marker += 'wait_for = "incoming/{day}.done"\ngive_up_days = 3'
        text = _RUN.format(
            files=files, out="out" if name == "run" else name, mode=mode, first=FIRST,
            last=text_of(self.course.days - 1), marker=marker, clamp_kwh=terms.clamp_kwh, promise=terms.promise,
            model=terms.model,
        )  # fmt: skip
        (self.folder / f"{name}.toml").write_text(text)

    def night(self, night: int) -> None:
        """Live through one night: what arrives, who comes and goes, an amendment, the run; then check."""
        self._arrive(night)
        if night in self.course.no_run:
            return
        if night in self.course.terms:
            self.write(self.course.terms_at(night))
            assert agedp("run", self.run_file, "--as-of", text_of(night)).status == 3, "a change was not noticed"
            status, out, err = agedp("ledger", "amend", self.run_file, "--yes")
            assert (status, "recorded" in out) == (0, True), err
        self.run(night)

    def run(self, night: int) -> None:
        """Run the night and check what it left."""
        with keyed_sampler(self.journal):
            status, _, err = agedp("run", self.run_file, "--as-of", text_of(night))
        assert (status, beside_verdict(err)) == (0, ""), (night, status, err)
        self.check(night)
        if self.rows:
            self._require_sound_folder()

    def _arrive(self, night: int) -> None:
        if night in self.course.cleared:
            for path in self.meters.folder.glob("*.csv"):
                path.rename(self.folder / "delivered" / path.name)
        arriving = [parcel for parcel in self.course.parcels if parcel.night == night]
        for parcel in sorted(arriving, key=lambda parcel: -parcel.number):  # order never matters
            self.meters.deliver(parcel)
        for day, on in self.course.markers.items():
            if on == night:
                (self.meters.folder / f"{text_of(day)}.done").touch()
        if night in self.course.joins:
            self.customers.join(self.course.joins[night])
        if night in self.course.leaves:
            self.customers.leave(self.course.leaves[night])

    def check(self, night: int) -> None:
        """Check everything that must hold after a night, also one that was killed."""
        if not (self.folder / "out" / "ledger.sqlite").exists():
            assert not draws(self.journal), "drawn without a ledger"
            return
        with Ledger.open(self.ledger) as ledger:
            assert not ledger.verify()
            rows, contracts = ledger.rows("homes"), ledger.contracts("homes")
        assert rows[: len(self.rows)] == self.rows, "a stored row changed"
        assert draws(self.journal) - self.repeated == {
            (row.series, row.day): 1 for row in rows if row.state == "released"
        }
        dates = [row.published_on for row in rows]
        assert dates == sorted(dates), "published_on ran backwards"
        assert all(day <= text_of(night) for day in dates), "published in the future"
        # the slower of the kernels: what was promised under it holds for ever
        kernel = next((Kernel(STAY[name]) for name in STAY if f'"{name}.csv"' in self.course.terms[0].model), None)
        promises = {contract.hash: json.loads(contract.promise)["promise"] for contract in contracts}
        assert not exceeded(rows, promises, kernel=kernel)
        for row in rows[len(self.rows) :]:
            self._require_delivered(row)
            self.released_in[number_of(row.day)] = night
        self.rows = rows

    def _require_delivered(self, row: ReleaseRecord) -> None:
        """Compare a fresh row with the files that had arrived, added up by hand."""
        day = number_of(row.day)
        if row.state == "skipped":
            assert self.course.markers.get(day) == NEVER
            return
        homes = self.customers.on(day)
        noise = keyed_noise(row.series, row.day, 0, sensitivity=row.sensitivity)
        expected = self.meters.sum_wh(day, homes, clamp_wh=row.sensitivity) + noise
        assert (row.households, row.values) == ((len(homes),), (expected,)), row.day
        self.expected[row.day] = expected

    def _require_sound_folder(self) -> None:
        assert agedp("verify", self.release, "--ledger", self.ledger)[::2] == (0, "")
        table = published(self.release)
        days = {row["day"]: row for row in table}
        assert [days.get(row["day"]) for row in self.table] == self.table, "a published row changed"
        assert [row["noisy_sum_wh"] for row in table] == [self.expected[str(row["day"])] for row in table]
        self.table = table

    def archive(self, begin: int) -> list[dict[str, Any]]:
        """Return what an undisturbed archive of all files publishes under the terms of some night."""
        every, name, terms = self.folder / "every", f"archive-{begin}", self.course.terms[begin]
        if not every.exists():
            every.mkdir()
            for path in sorted(self.folder.glob("*/*-meters.csv")):
                shutil.copy(path, every)
        if "age-dependent" not in terms.promise:
            lines = [line for line in terms.promise.splitlines() if not line.startswith("age_days")]
            terms = replace(terms, promise="\n".join(lines))
        self.write(terms, name=name, mode="archive", files="every")
        with keyed_sampler(self.folder / f"{name}.txt"):
            ended = agedp("run", self.folder / f"{name}.toml")
            assert (ended.status, beside_verdict(ended.err)) == (0, "")
        return published(self.folder / name / "release")


def published(folder: Path) -> list[dict[str, Any]]:
    return pq.read_table(folder / "daily_averages.parquet").to_pylist()


def require_as_archived(house: House, *, free: frozenset[str]) -> None:
    """Days whose files all came before they were released are, but for what is `free`, as an archive has them."""
    late = {parcel.day for parcel in house.course.parcels if parcel.night > house.released_in[parcel.day]}
    compared = 0
    for version, begin in enumerate(sorted(house.course.terms), 1):
        ours = {row["day"]: row for row in house.table if row["version"] == version}
        archived = {row["day"]: row for row in house.archive(begin)} if ours else {}
        for day, row in ours.items():
            if (day - FIRST).days in late:
                assert row["noisy_sum_wh"] != archived[day]["noisy_sum_wh"], "the delivered data did not count"
            else:
                assert {**row, **dict.fromkeys(free)} == {**archived[day], **dict.fromkeys(free)}
                compared += 1
    assert compared > len(house.table) / 2
    assert late


def require_every_statement_again(house: House) -> None:
    """The folder of every date on which a statement was made is written again, and at last today's, to the byte."""
    today = {path.name: path.read_bytes() for path in house.release.iterdir()}
    with Ledger.open(house.ledger) as ledger:
        heads = {row.at: json.loads(row.claim)["ledger"]["head"] for row in ledger.statements("homes")}
    for at, head in sorted(heads.items()):
        assert agedp("publish", house.run_file, "--as-of", at).status == 0
        assert agedp("verify", house.release, "--ledger", house.ledger).status == 0
        assert head in (house.release / "statement.json").read_text()
    assert agedp("publish", house.run_file).status == 0
    assert {path.name: path.read_bytes() for path in house.release.iterdir()} == today


@pytest.mark.parametrize(
    ("course", "by_history"),
    [
        (week_course(), frozenset()),
        pytest.param(sample_course("age-dependent"), frozenset(), marks=pytest.mark.long),
        # the budget of a day depends on what was released before it, and under which model
        pytest.param(sample_course("risk"), LOSSES, marks=pytest.mark.long),
        pytest.param(sample_course("w-event"), LOSSES, marks=pytest.mark.long),
        pytest.param(year_course(), frozenset(), marks=pytest.mark.long),
    ],
    ids=["ten days", "three weeks", "three weeks of a risk", "three weeks of windows", "a year"],
)
def test_nights_publish_what_an_archive_does(tmp_path: Path, course: Course, by_history: frozenset[str]) -> None:
    house = House(tmp_path, course)
    for night in range(1, course.days + 10):
        house.night(night)
    # every day of the period was released, or skipped for want of its marker
    assert sorted(row.day for row in house.rows) == [text_of(day) for day in range(course.days)]
    assert len({row.contract for row in house.rows}) >= 5
    assert sum(row.state == "skipped" for row in house.rows) == 1
    require_as_archived(house, free=DATES | by_history)
    require_every_statement_again(house)

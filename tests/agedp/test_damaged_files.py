"""Every file of the confidential and the model folder, spoiled in five ways, and the night after it.

The files are found by listing the folders, so a new kind is covered once a run writes it. Each night ends in silence,
with a warning, or with an error whose advice, once followed, leads to a release. Without noise every wrong sum is a
wrong value in the ledger.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from agedp.calibration_pipeline import calibrate
from agedp.internal_records import roster_history
from agedp.local_files.books import TABLES
from agedp.pipeline import run_stages
from agedp.store import file_identity
from agedp_data import mechanisms
from agedp_data.errors import AgedpError
from tests.agedp.conftest import House
from tests.books import spoil

FEBRUARY, FIRST, NEXT = date(2013, 2, 14), date(2013, 2, 28), date(2013, 3, 3)
PROMISE = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.3\nmethod = "tight"\nsecret = "day"\n'
    "max_day_epsilon = 0.5\nepsilon_total = 9\n"
)
REST = """[series.by_states]
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
[engine]
keep_days = 1
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
"""
STORE, BOOK = "confidential/store", Path("confidential/books.sqlite")
ENDINGS: dict[str, tuple[str, ...]] = {  # how a night ends after damage to a kind of file
    # read by people alone, or written anew by every run before anybody reads it
    "confidential/forgetting/ID.json": ("silent",),
    "confidential/forgetting/model.html": ("silent",),
    "confidential/quality.parquet": ("silent",),
    "confidential/quarantine_settled.parquet": ("silent",),
    "confidential/report.html": ("silent",),
    "confidential/sums.parquet": ("silent",),
    f"{STORE}/quarantine/ID.parquet": ("silent",),
    f"{STORE}/quarantine/month=MONTH/ID.parquet": ("silent",),
    "model/edges.parquet": ("silent",),
    # made anew
    "confidential/preflight.json": ("silent",),
    f"{STORE}/days/month=MONTH/ID.parquet": ("silent",),
    f"{STORE}/days/month=MONTH/ID.aside.parquet": ("silent",),
    # made anew where the input file is still delivered, refused where it is not
    f"{STORE}/files/ID.json": ("silent", "refused"),
    f"{STORE}/month=MONTH/ID.parquet": ("silent", "refused"),
    f"{STORE}/part_days/month=MONTH/ID.parquet": ("silent", "refused"),
    "confidential/alerts.jsonl": ("warning",),
    "confidential/alerts.1.jsonl": ("warning",),
    "confidential/forgetting/model.parquet": ("warning",),
    "model/households.parquet": ("warning",),
    "model/transitions.parquet": ("warning",),
    "confidential/household_register.key": ("refused",),
    "confidential/household_register.sqlite": ("silent", "refused"),  # silent: one bit of a page that is not read
    "confidential/books.sqlite": ("silent", "warning", "refused"),  # silent: one bit of a page that is not in use
    f"{STORE}/forgotten_before": ("refused",),
    "model/public.json": ("refused",),
    "model/public.sha256": ("refused",),
}
ENDS_OF_TABLES = {
    "released_rosters": "refused",  # the others are written anew before the book is checked
    **dict.fromkeys(("ledger_checkpoints", "roster_checks", "manifests", "deduplicated", "buckets"), "silent"),
}
ALWAYS = (
    "confidential/books.sqlite", f"{STORE}/forgotten_before",
    f"{STORE}/files/ID.json", f"{STORE}/month=MONTH/ID.parquet", "model/public.json",
)  # fmt: skip
ADVICE = ("put the files back", "put back", "remove it", "name another confidential folder", "run again")


def flipped(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0x04]) + content[at + 1 :] if content else b"\x04"


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "zeroed": lambda content: bytes(len(content)),
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "random": lambda content: random.Random(len(content)).randbytes(len(content)),  # noqa: S311
    "one bit": flipped,
}


class World(House):
    """A live population of a few nights: its confidential and model folders hold every kind of file."""

    draws = 0

    def copied(self, to: Path) -> World:
        return World(shutil.copytree(self.folder, to))

    def deliver(self, name: str, first: date, days: int, *, homes: str = "ABC", extra: tuple[str, ...] = ()) -> None:
        """Write readings that vary by household, day and slot; touched long ago, so that its digest is remembered."""
        every = [first + timedelta(days=number) for number in range(days)]
        self.london(
            {(home, day, slot): energy(home, day, slot) for home in homes for day in every for slot in range(48)},
            name=name,
            extra=extra,
        )
        os.utime(self.folder / "input" / name, (1.4e9, 1.4e9))

    def night(self, today: date = NEXT + timedelta(days=2)) -> str:
        """Run without noise; return how it ended: silent, warning or the text of the error."""

        def exact(values: object, **_: object) -> np.ndarray:
            self.draws += 1
            return np.asarray(values, np.int64)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mechanisms, "discrete_laplace", exact)
            patch.setattr(file_identity, "SETTLING_NS", 0)  # the names of files just written are remembered
            patch.setattr(roster_history, "SETTLING_NS", 0)
            for limit in ("LEAST_BYTES", "LEAST_ROWS"):
                patch.setattr(roster_history, limit, 0)  # as with a large roster
            try:
                summary = run_stages(self.context(today=today, hour=6))
                summary.check_not_refused()
            except AgedpError as error:
                return f"{error} {error.private}"
        return "warning" if summary.notices or summary.failures else "silent"

    def values(self) -> dict[tuple[str, str], tuple[object, ...]]:
        return {(row.day, row.series): (row.state, row.cells, row.values, row.scale) for row in self.rows()}

    def true_figures(self) -> dict[tuple[str, ...], float]:
        """Return the recorded true means and counts by day, series and cell."""
        return {
            (str(line["day"]), line["series"], line["cell"]): line[column]
            for name, column in (("true_means", "true_mean_kwh"), ("true_counts", "true_households"))
            for line in self.records(name)
        }

    def kinds(self) -> dict[str, list[Path]]:
        """Return every file of the two folders by its name without content ids, months and numbers of parts."""
        paths: dict[str, list[Path]] = {}
        for path in sorted(path for place in ("confidential", "model") for path in (self.folder / place).rglob("*")):
            if path.is_file():
                name = path.relative_to(self.folder)
                kind = re.sub(
                    r"=\d{4}-\d{2}(_\d{4}-\d{2})?",
                    "=MONTH",
                    re.sub(r"[0-9a-f]{64}(-\d+)?|[0-9a-f]{16}", "ID", name.as_posix()),
                )
                paths.setdefault(kind, []).append(name)
        return paths

    def spoil(self, path: Path, way: str) -> None:
        """Spoil a file; its times stay as they were."""
        place = self.folder / path
        times = place.stat()
        place.write_bytes(WAYS[way](place.read_bytes()))
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))

    def follow(self, path: Path, sound: World, advice: str) -> None:
        """Do what a line advises."""
        if advice == "put back":
            shutil.copy2(sound.folder / path, self.folder / path)
        elif advice == "remove it":
            (self.folder / path).unlink()
        elif advice == "name another confidential folder":
            self.edit(('confidential = "confidential"', 'confidential = "anew"'))
        elif advice == "put the files back":
            shutil.copytree(self.folder / "cleared", self.folder / "input", dirs_exist_ok=True)


def energy(home: str, day: date, slot: int) -> int:
    return (40, 170, 420, 900)[(ord(home) * 7 + day.toordinal() * 5 + slot * slot + slot * day.day) % 7 % 4]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world after calibration and three nights; deliveries are cleared away, February has been let go."""
    world = World(tmp_path_factory.mktemp("sound") / "before")
    world.folder.mkdir()
    world.write(FIRST, FIRST, mode="live", clamp="20\nshare = 0.5", promise=PROMISE, rest=REST)
    world.edit((f"last_day = {FIRST}\n", ""))
    world.roster([(home, date(2013, 2, 1), None) for home in "ABC"])
    world.deliver("february.csv", FEBRUARY, 12)
    calibrate(world.run_file)
    for number in range(3):
        day = FIRST + timedelta(days=number)
        rejected = (f"A,{day} 00:30:00,soon", "A")
        world.deliver(f"{day}.csv", day, 1, homes="AB" if number == 1 else "ABC", extra=rejected)
        if number == 2:
            world.london({("A", day, 23): 3000}, name="correction.csv")
            os.utime(world.folder / "input" / "correction.csv", (1.4e9, 1.4e9))
        assert world.night(day + timedelta(days=2)) == "silent"
    confidential = world.folder / "confidential"
    shutil.copy(confidential / "alerts.jsonl", confidential / "alerts.1.jsonl")  # as when the record grew too long
    (world.folder / "cleared").mkdir()
    for name in ("february.csv", f"{FIRST}.csv", f"{FIRST + timedelta(days=1)}.csv"):
        (world.folder / "input" / name).rename(world.folder / "cleared" / name)
    world.deliver(f"{NEXT}.csv", NEXT, 1)
    return world


@pytest.fixture(scope="module")
def after(before: World) -> World:
    world = before.copied(before.folder.with_name("after"))
    assert world.night() == "silent"
    return world


def judge(before: World, after: World, folder: Path, path: Path, way: str) -> str:
    """Spoil one file and run the next night; return how it ended."""
    world = before.copied(folder)
    world.spoil(path, way)
    return end_of_night(before, after, world, path, way)


def end_of_night(before: World, after: World, world: World, path: Path, way: str) -> str:
    """Run the next night of a spoiled world, and once more after following its advice; return how it ended."""
    ending = world.night()
    if ending not in ("silent", "warning"):
        assert world.values() == before.values()
        world.follow(path, before, next(words for words in ADVICE if words in ending))
        assert world.night() == "silent", (path, ending)
        ending = "refused"
    assert (world.values(), world.draws) == (after.values(), after.draws), (path, way)
    figures, true = world.true_figures(), after.true_figures()
    let_go = {key for key in true if key[0].startswith("2013-02")}  # their readings are gone
    assert figures.items() <= true.items(), (path, way)
    assert true.keys() - figures.keys() <= (let_go if path == BOOK else set())
    return ending


def test_every_kind_of_file_is_listed(before):
    assert before.kinds().keys() == ENDINGS.keys()


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in ALWAYS else [pytest.mark.long]) for kind in ENDINGS]
)
def test_a_night_after_damage_is_right_or_says_what_helps(before, after, tmp_path, kind):
    """Each kind once, in ways that take turns."""
    way = [*WAYS][[*ENDINGS].index(kind) % len(WAYS)]
    assert judge(before, after, tmp_path / "world", before.kinds()[kind][-1], way) in ENDINGS[kind]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_every_file_spoiled_in_every_way(before, after, tmp_path, way):
    paths = [path for kind in before.kinds().values() for path in kind]
    for number, path in enumerate(paths):
        judge(before, after, tmp_path / str(number), path, way)


@pytest.mark.parametrize("table", TABLES)
def test_a_night_after_damage_to_one_row_loses_that_row_alone(before, after, tmp_path, table):
    world = before.copied(tmp_path / "world")
    spoil(world.folder / "confidential", table)
    expected = ENDS_OF_TABLES.get(table, "warning")
    assert end_of_night(before, after, world, BOOK, table) == expected
    lost = after.true_figures().keys() - world.true_figures().keys()
    assert len({key[:2] for key in lost}) <= (table in ("true_means", "true_counts"))
    assert (world.folder / "confidential" / "books.sqlite.damaged").exists() == (expected == "warning")


def test_a_row_that_is_gone_is_noticed(before, tmp_path):
    for table, ending in (("coverage", "warning"), ("released_rosters", "put back a copy of it, or remove it")):
        world = before.copied(tmp_path / table)
        with closing(sqlite3.connect(world.folder / BOOK)) as book, book:
            book.execute(
                "DELETE FROM row WHERE name = ? AND key = (SELECT max(key) FROM row WHERE name = ?)", [table] * 2
            )
        assert ending in world.night()


def test_a_foreign_file_is_refused(before, tmp_path):
    world = before.copied(tmp_path / "world")
    (world.folder / BOOK).unlink()
    with closing(sqlite3.connect(world.folder / BOOK)) as book, book:
        book.execute("CREATE TABLE albums (title TEXT)")
    assert "books.sqlite in the confidential folder is damaged; put back a copy of it, or remove it" in world.night()
    (world.folder / BOOK).unlink()
    assert world.night() == "silent"


def test_a_row_whose_key_became_a_text_does_not_count(before, tmp_path):
    world = before.copied(tmp_path / "world")
    with closing(sqlite3.connect(world.folder / BOOK)) as book, book:
        book.execute("UPDATE row SET key = CAST(key AS TEXT) WHERE name = 'coverage'")
    assert world.night() == "warning"

"""Houses at the instant before a command, and what must be the case after it, however often it was killed.

A scene is a folder and a command. The undisturbed command tells what the folder has to hold in the end: every row of
the ledger with its hash, every byte of the release folder, every confidential file. All trials of a scene take
place at the same path, because the store keeps the names of its inputs.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from agedp.ledger_transfer import verify_against
from agedp.release_folder.release_folder import open_release
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import Row
from tests.faults.runs import End, Runs
from tests.faults.shelves import InFiles, OnServer
from tests.minimal import of_three_states
from tests.nights.keyed import draws
from tests.postgresql import PostgreSQL

FIRST = date(2026, 1, 29)
BEFORE, NOW = "2026-01-31T06:00:00+00:00", "2026-02-03T06:00:00+00:00"
HOMES = ("A", "B", "C", "D")
_NOT_BY_BYTES = (
    ".sqlite", "/sums.parquet", "/quality.parquet", "/quarantine_settled.parquet", "confidential/report.html",
)  # fmt: skip
RUN = """version = 1
[input]
dataset = "london"
files = ["incoming/*.csv"]
corrections = "later-file"
[output]
release = "release"
confidential = "confidential"
ledger = "{ledger}"
{witness}[population]
name = "homes"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "live"
first_day = {first}
[series.all]
statistic = "mean"
share = 0.5
clamp_kwh = 30
[series.tariff]
statistic = "distribution"
form = "cumulative"
share = 0.5
clamp_kwh = 30
bins_kwh = [0, 10, 20, 30]
by = "tariff"
[promise]
notion = "age-dependent"
age_days = 1
epsilon_per_day = {epsilon}
method = "total_variation"
secret = "day"
max_day_epsilon = 0.5
epsilon_total = 9
[model]
{model}
[engine]
keep_days = 0
"""
WITNESS = "far/homes.witness"
DECLARED = 'source = "declared"\ncurve = "curve.csv"\nbasis = "made up"\nassume = "curve"'
ESTIMATED = of_three_states("2026-01-29, 2026-02-01")


def deliver(house: Path, name: str, days: range, *, seed: int, homes: tuple[str, ...] = HOMES) -> None:
    """Write a file of whole days since FIRST, readings made up, and a row that is set aside."""
    rng = np.random.default_rng(seed)
    lines = ["LCLid,tstp,energy(kWh/hh)"]
    for day in days:
        for home in homes:
            start = datetime.combine(FIRST + timedelta(days=day), time())
            lines += [
                f"{home},{start + timedelta(minutes=30 * (slot + 1))},{rng.integers(0, 900) / 1000}"
                for slot in range(48)
            ]
    lines.append(f"{homes[0]},{FIRST} soon,0.1")
    (house / "incoming").mkdir(exist_ok=True)
    (house / "incoming" / name).write_text("\n".join(lines) + "\n")


def write_house(scene: Scene, *, epsilon: str = "0.5", model: str = DECLARED, first: date = FIRST) -> None:
    house, ledger = scene.house, scene.shelf.written("book/ledger.sqlite")
    for folder in ("book", "far"):
        (house / folder).mkdir(parents=True, exist_ok=True)
    witness = f'witness = "{WITNESS}"\n' if scene.witnessed else ""
    text = RUN.format(epsilon=epsilon, model=model, first=first, ledger=ledger, witness=witness)
    (house / "run.toml").write_text(text)
    (house / "curve.csv").write_text("age_days,total_variation\n1,0.9\n7,0.5\n")
    rows = [f"{home},2026-01-01,,{'even' if i % 2 else 'odd'}" for i, home in enumerate(HOMES)]
    (house / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")


@dataclass
class Scene:
    """`base` is copied to `house` for each trial; the first, undisturbed one is kept in what is expected."""

    runs: Runs
    folder: Path
    words: tuple[str, ...]
    server: PostgreSQL | None = None
    now: str = NOW
    ledger: str = "book/ledger.sqlite"
    witnessed: bool = False
    again: tuple[tuple[int, str], ...] = ()
    passed: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    drawn: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.shelf = InFiles(self.house) if self.server is None else OnServer(self.server)

    @property
    def house(self) -> Path:
        return self.folder / "house"

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def journal(self) -> Path:
        return self.folder / "draws.txt"

    def order(self, *words: str, **more: Any) -> dict[str, Any]:
        path = self.house / self.ledger
        common = {"house": str(self.house), "journal": str(self.journal), "ledger": str(path), "now": self.now}
        return {**common, "words": list(words or self.words), **more}

    def restore(self) -> None:
        shutil.rmtree(self.house, ignore_errors=True)
        shutil.copytree(self.base, self.house)
        self.shelf.restore()
        self.journal.unlink(missing_ok=True)

    def learn(self) -> None:
        """Run the command undisturbed and keep what it makes."""
        shutil.copytree(self.house, self.base)
        self.shelf.keep()
        self.restore()
        end = self.runs.one(self.order())
        assert (end.status, end.err) == (0, ""), end
        self.passed, self.files = end.passed, self.contents()
        self.rows, self.drawn = self.everything(), draws(self.journal)

    def contents(self) -> dict[str, bytes]:
        """Return every file; without the bytes of the ledger, compared by rows, and of what only the last run says.

        What the store remembers of file names is left out: it depends on how long ago they were touched.
        """
        away = (self.house / "confidential" / "prefect", self.house / "confidential" / "store" / "names.json")
        paths = [path for path in sorted(self.house.rglob("*")) if path.is_file()]
        paths = [path for path in paths if not any(path == one or one in path.parents for one in away)]
        kept = {str(path.relative_to(self.house)): path.read_bytes() for path in paths}
        return {name: b"" if name.endswith(_NOT_BY_BYTES) else content for name, content in kept.items()}

    def everything(self) -> tuple[Row, ...]:
        url = self.shelf.url(self.ledger)
        if not Ledger.exists(url):
            return ()
        with Ledger.open(url) as ledger:
            assert ledger.verify() == ()
            return ledger.all_rows()

    def after_death(self) -> tuple[Row, ...]:
        """Return the rows that a killed run left: the beginning of what an undisturbed one leaves."""
        rows = self.everything()
        assert rows == self.rows[: len(rows)]
        return rows

    def mended(self) -> End:
        """Run the same command again and require what an undisturbed one makes."""
        end = self.runs.one(self.order())
        assert (end.status, end.err) == (0, "") or any(
            end.status == status and said in end.line for status, said in self.again
        ), end
        assert self.everything() == self.rows
        found = self.contents()
        assert sorted(found) == sorted(self.files)
        different = [name for name, content in found.items() if content != self.files[name]]
        assert different == [], different
        return end

    def drawn_once(self, rows: tuple[Row, ...], mended: tuple[Row, ...]) -> None:
        """Require that no day was drawn again once its row was stored: a death repeats what its transaction drew."""
        extra = draws(self.journal) - self.drawn
        assert self.drawn - draws(self.journal) == Counter()
        assert set(extra.values()) <= {1}
        lost = {(row.series, row.day) for row in mended[len(rows) :] if hasattr(row, "series")}
        assert set(extra) <= lost

    def trial(self, **how: Any) -> End:
        """Kill the command as told, then run it again; return how the first ended."""
        self.restore()
        end = self.runs.one(self.order(**how))
        rows = self.after_death()
        self.mended()
        self.drawn_once(rows, self.rows)
        if (self.house / "release").exists() and self.words[0] in ("run", "publish"):
            self.verified()
        return end

    def verified(self) -> None:
        folder = open_release(self.house / "release")
        folder.verify()
        with Ledger.open(self.shelf.url(self.ledger)) as ledger:
            verify_against(folder, ledger)


def first_run(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """Nothing was ever released."""
    scene = Scene(runs, folder, ("run", "run.toml"), server, now=BEFORE)
    write_house(scene)
    deliver(scene.house, "1.csv", range(2), seed=1)
    scene.learn()
    return scene


def lived(scene: Scene) -> None:
    """One day is released; the promise was amended; three days came, and a correction."""
    write_house(scene)
    deliver(scene.house, "1.csv", range(2), seed=1)
    for words, epsilon in ((("run", "run.toml"), "0.5"), (("ledger", "amend", "run.toml", "--yes"), "0.4")):
        write_house(scene, epsilon=epsilon)
        end = scene.runs.one(scene.order(*words) | {"now": BEFORE})
        assert end.status == 0, end
    deliver(scene.house, "2.csv", range(1, 4), seed=2)
    deliver(scene.house, "3.csv", range(2, 3), seed=3, homes=HOMES[:2])


def night(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """Three days of two series are due, under an amended promise; then a month of readings is let go."""
    scene = Scene(runs, folder, ("run", "run.toml"), server)
    lived(scene)
    scene.learn()
    return scene


def witnessed_first_run(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """Nothing was ever released, and a witness is named."""
    scene = Scene(runs, folder, ("run", "run.toml"), server, now=BEFORE, witnessed=True)
    write_house(scene)
    deliver(scene.house, "1.csv", range(2), seed=1)
    scene.learn()
    return scene


def witnessed_night(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """The same night with a witness."""
    scene = Scene(runs, folder, ("run", "run.toml"), server, witnessed=True)
    lived(scene)
    scene.learn()
    return scene


def by_hand(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """The release folder lies there as an older ledger had it."""
    scene = Scene(runs, folder, ("publish", "run.toml"), server)
    lived(scene)
    shutil.copytree(scene.house / "release", scene.folder / "old")
    assert runs.one(scene.order("run", "run.toml")).status == 0
    shutil.rmtree(scene.house / "release")
    shutil.move(scene.folder / "old", scene.house / "release")
    scene.learn()
    return scene


def calibration(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """A model is to be estimated; once it is there it is never estimated anew."""
    scene = Scene(runs, folder, ("calibrate", "run.toml"), server, again=((2, "a model exists already"),))
    write_house(scene, model=ESTIMATED, first=date(2026, 2, 2))
    deliver(scene.house, "1.csv", range(4), seed=1)
    scene.learn()
    return scene


def amendment(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """A smaller epsilon and another model are to be recorded."""
    scene = Scene(runs, folder, ("ledger", "amend", "run.toml", "--yes"), server)
    lived(scene)
    write_house(scene, epsilon="0.3")
    (scene.house / "curve.csv").write_text("age_days,total_variation\n1,0.8\n7,0.4\n")
    scene.learn()
    return scene


def export(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """The ledger is to be closed and to go on elsewhere."""
    scene = Scene(runs, folder, ("ledger", "export", "run.toml", "rows.jsonl", "--close"), server)
    lived(scene)
    scene.learn()
    return scene


def importing(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """An exported file is to become a ledger; when it is one, it is not filled again."""
    scene = Scene(runs, folder, (), server, ledger="new.sqlite", again=((3, "holds rows already"),))
    lived(scene)
    scene.words = ("ledger", "import", "rows.jsonl", "--to", scene.shelf.url(scene.ledger))
    assert runs.one(scene.order("ledger", "export", "run.toml", "rows.jsonl", "--close")).status == 0
    scene.learn()
    return scene


def recovery(runs: Runs, folder: Path, server: PostgreSQL | None = None) -> Scene:
    """The ledger was lost; when it is restored, it is not filled again."""
    scene = Scene(runs, folder, (), server, again=((3, "holds rows already"),))
    lived(scene)
    scene.words = ("ledger", "recover", "release", "--to", scene.shelf.url(scene.ledger))
    scene.shelf.lose(scene.ledger)
    scene.learn()
    return scene


SCENES = {
    "the first run": first_run,
    "a night": night,
    "the first run, with a witness": witnessed_first_run,
    "a night, with a witness": witnessed_night,
    "publish": by_hand,
    "calibrate": calibration,
    "amend": amendment,
    "export": export,
    "import": importing,
    "recover": recovery,
}

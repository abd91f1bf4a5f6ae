"""Houses at the instant before a command, and what must be the case after it, however often it was killed.

A scene is a folder and a command. The undisturbed command tells what the folder has to contain in the end: every row of
the ledger with its hash, every byte of the release folder, every confidential file. All trials of a scene take
place at the same path, because the store keeps the names of its inputs.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from agedp.internal_records.signing_keys import create_key
from agedp.ledger_transfer import verify_against
from agedp.release_verification import open_release
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import Row
from tests.command import beside_verdict
from tests.faults.runs import End, LedgerFiles, LedgerServer, Runs
from tests.minimal import of_three_states
from tests.nights.keyed import draws
from tests.postgresql import PostgreSQL

FIRST = date(2026, 1, 29)
BEFORE, NOW = "2026-01-31T06:00:00+00:00", "2026-02-03T06:00:00+00:00"
HOMES = ("A", "B", "C", "D")
WITNESS = "far/homes.witness"
WAITS = "agedp: another run works in the same folder; waiting until it ends\n"
_NOT_BY_BYTES = (
    ".sqlite", "household_register.key", "/sums.parquet", "/quality.parquet", "/quarantine_settled.parquet",
    "confidential/report.html", "/forgetting/model.html",
)  # fmt: skip
_NOT_AT_ALL = (
    "confidential/prefect/",
)  # fmt: skip
"""What the store remembers of files depends on how long ago they were touched, and on their inodes."""
_RUN = """version = 1
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
accept = ["useless", "no-credit", "total"]
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
_DECLARED = 'source = "declared"\ncurve = "curve.csv"\nbasis = "made up"\nassume = "curve"'
_ESTIMATED = of_three_states("2026-01-29, 2026-02-01")


@dataclass
class Scene:
    """`base` is copied to `house` for each trial; what the first, undisturbed one made is expected."""

    runs: Runs
    folder: Path
    words: tuple[str, ...] = ("run", "run.toml")
    server: PostgreSQL | None = None
    now: str = NOW
    ledger: str = "book/ledger.sqlite"
    witnessed: bool = False
    again: tuple[int, str] = (0, "")
    """How the command ends when it is run again on what it has done."""
    passed: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    drawn: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.house, self.base, self.journal = (self.folder / name for name in ("house", "base", "draws.txt"))
        self.shelf = LedgerFiles(self.house) if self.server is None else LedgerServer(self.server)

    def write(self, *, epsilon: str = "0.5", model: str = _DECLARED, first: date = FIRST) -> None:
        """Write the run file and what it names."""
        for folder in ("book", "far"):
            (self.house / folder).mkdir(parents=True, exist_ok=True)
        witness = f'witness = "{WITNESS}"\nsign = true\n' if self.witnessed else ""
        if self.witnessed and not (self.house / "confidential" / "signing_keys").exists():
            create_key(self.house / "confidential", None, at=first)
        ledger = self.shelf.written("book/ledger.sqlite")
        text = _RUN.format(epsilon=epsilon, model=model, first=first, ledger=ledger, witness=witness)
        (self.house / "run.toml").write_text(text)
        (self.house / "curve.csv").write_text("age_days,total_variation\n1,0.9\n7,0.5\n")
        rows = [f"{home},2026-01-01,,{'even' if i % 2 else 'odd'}" for i, home in enumerate(HOMES)]
        (self.house / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")

    def deliver(self, number: int, days: range, homes: tuple[str, ...] = HOMES) -> None:
        """Write a file of whole days since FIRST, readings made up, and a row that is rejected."""
        rng = np.random.default_rng(number)
        lines = ["LCLid,tstp,energy(kWh/hh)", f"{homes[0]},{FIRST} soon,0.1"]
        for day in days:
            start = datetime.combine(FIRST + timedelta(days=day), time())
            stamps = [start + timedelta(minutes=30 * (slot + 1)) for slot in range(48)]
            lines += [f"{home},{stamp},{rng.integers(0, 900) / 1000}" for home in homes for stamp in stamps]
        (self.house / "incoming").mkdir(exist_ok=True)
        (self.house / "incoming" / f"{number}.csv").write_text("\n".join(lines) + "\n")

    def order(self, *words: str, **more: Any) -> dict[str, Any]:
        common = {"house": str(self.house), "journal": str(self.journal), "now": self.now}
        return {**common, "words": list(words or self.words), **more}

    def run(self, *words: str, **more: Any) -> End:
        return self.runs.one(self.order(*words, **more))

    def at_once(self, number: int) -> None:
        """Run the command many times at once; require that each day is drawn by one and the folder is whole."""
        ends = self.runs.at_once(*[self.order(boundaries=False)] * number)
        assert Counter((end.status, beside_verdict(end.err.replace(WAITS, ""))) for end in ends) == {(0, ""): number}
        assert draws(self.journal) == self.drawn
        self.require_undisturbed()

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
        end = self.run()
        assert (end.status, beside_verdict(end.err)) == (0, ""), end
        self.passed, self.files = end.passed, self.contents()
        self.rows, self.drawn = self.stored(), draws(self.journal)

    def contents(self) -> dict[str, bytes]:
        """Return every file, without the bytes of ledgers (compared by rows) and of what the last run alone writes."""
        paths = {str(path.relative_to(self.house)): path for path in sorted(self.house.rglob("*")) if path.is_file()}
        return {
            name: b"" if name.endswith(_NOT_BY_BYTES) else path.read_bytes()
            for name, path in paths.items()
            if not name.startswith(_NOT_AT_ALL)
        }

    def stored(self) -> tuple[Row, ...]:
        """Return all rows of the ledger, whose hash chain must hold."""
        url = self.shelf.url(self.ledger)
        if not Ledger.exists(url):
            return ()
        with Ledger.open(url) as ledger:
            assert ledger.verify() == ()
            return ledger.all_rows()

    def after_death(self) -> tuple[Row, ...]:
        """Return the rows that a killed run left: the beginning of what an undisturbed one leaves."""
        rows = self.stored()
        assert rows == self.rows[: len(rows)]
        return rows

    def require_undisturbed(self) -> None:
        """Require what an undisturbed command makes."""
        assert self.stored() == self.rows
        files = self.contents()
        assert sorted(files) == sorted(self.files)
        differing = [name for name, content in files.items() if content != self.files[name]]
        assert differing == [], differing
        if (self.house / "release").exists() and self.words[0] in ("run", "publish"):
            self.verify()

    def mend(self) -> End:
        """Run the same command again and require what an undisturbed one makes."""
        end, (status, message) = self.run(), self.again
        assert (end.status, beside_verdict(end.err)) == (0, "") or (end.status == status and message in end.line), end
        self.require_undisturbed()
        return end

    def require_drawn_once(self, rows: tuple[Row, ...]) -> None:
        """Require that no day was drawn again once its row was stored: a death repeats what its transaction drew."""
        extra = draws(self.journal) - self.drawn
        assert self.drawn - draws(self.journal) == Counter()
        assert set(extra.values()) <= {1}
        assert set(extra) <= {(row.series, row.day) for row in self.rows[len(rows) :] if hasattr(row, "series")}

    def trial(self, **how: Any) -> End:
        """Kill the command as told, then run it again; return how the first ended."""
        self.restore()
        end = self.run(**how)
        rows = self.after_death()
        self.mend()
        self.require_drawn_once(rows)
        return end

    def verify(self) -> None:
        folder = open_release(self.house / "release")
        folder.verify()
        with Ledger.open(self.shelf.url(self.ledger)) as ledger:
            verify_against(folder, ledger)


def begin(scene: Scene) -> None:
    """Nothing was ever released."""
    scene.write()
    scene.deliver(1, range(2))


def live(scene: Scene) -> None:
    """One day is released; the promise was amended; three days came, and a correction."""
    begin(scene)
    for words, epsilon in ((("run", "run.toml"), "0.5"), (("ledger", "amend", "run.toml", "--yes"), "0.4")):
        scene.write(epsilon=epsilon)
        assert scene.run(*words, now=BEFORE).status == 0
    scene.deliver(2, range(1, 4))
    scene.deliver(3, range(2, 3), HOMES[:2])


def with_an_old_folder(scene: Scene) -> None:
    """The release folder is there as an older ledger had it."""
    live(scene)
    shutil.copytree(scene.house / "release", scene.folder / "old")
    assert scene.run("run", "run.toml").status == 0
    shutil.rmtree(scene.house / "release")
    shutil.move(scene.folder / "old", scene.house / "release")


def without_a_model(scene: Scene) -> None:
    """A model is to be estimated; once it is there it is never estimated anew."""
    scene.write(model=_ESTIMATED, first=date(2026, 2, 2))
    scene.deliver(1, range(4))


def edited(scene: Scene) -> None:
    """A smaller epsilon and another model are to be recorded."""
    live(scene)
    scene.write(epsilon="0.3")
    (scene.house / "curve.csv").write_text("age_days,total_variation\n1,0.8\n7,0.4\n")


def exported(scene: Scene) -> None:
    """An exported file is to become a ledger."""
    live(scene)
    assert scene.run("ledger", "export", "run.toml", "rows.jsonl", "--close").status == 0
    scene.ledger = "new.sqlite"
    scene.words = ("ledger", "import", "rows.jsonl", "--to", scene.shelf.url(scene.ledger))


def lost(scene: Scene) -> None:
    """The ledger was lost."""
    live(scene)
    scene.words = ("ledger", "recover", "release", "--to", scene.shelf.url(scene.ledger))
    scene.shelf.lose(scene.ledger)


_FILLED = {"again": (3, "holds rows already")}
SCENES: dict[str, tuple[Callable[[Scene], None], dict[str, Any]]] = {
    "the first run": (begin, {"now": BEFORE}),
    "a night": (live, {}),
    "the first run, with a witness": (begin, {"now": BEFORE, "witnessed": True}),
    "a night, with a witness": (live, {"witnessed": True}),
    "publish": (with_an_old_folder, {"words": ("publish", "run.toml")}),
    "calibrate": (without_a_model, {"words": ("calibrate", "run.toml"), "again": (2, "a model exists already")}),
    "amend": (edited, {"words": ("ledger", "amend", "run.toml", "--yes")}),
    "export": (live, {"words": ("ledger", "export", "run.toml", "rows.jsonl", "--close")}),
    "import": (exported, _FILLED),
    "recover": (lost, _FILLED),
}


def make_scene(name: str, runs: Runs, folder: Path, server: PostgreSQL | None) -> Scene:
    prepare, settings = SCENES[name]
    scene = Scene(runs, folder, server=server, **settings)
    prepare(scene)
    scene.learn()
    return scene

"""Pairs of houses that share what is public and differ in everything else, and nights lived in them.

Public: run file, the roster's counts per day and group, markers, model, how many input files there are. Private: ids,
names, readings, gaps, repeats, corrections, late rows, rows that cannot be read, strangers, sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np

from agedp_data import clock, mechanisms
from tests.command import Ended, agedp

FIRST = date(2013, 2, 2)
DAYS, HOMES = 4, 6
NIGHTS = (FIRST + timedelta(days=3), FIRST + timedelta(days=6))

PROMISES = {
    "classical": 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\n',
    "w-event": 'notion = "w-event"\nage_days = 1\nwindow_days = 3\nepsilon_per_window = 1.2\nspend = "remaining"\n',
    "neighbourhood": 'notion = "neighbourhood"\nage_days = 1\ndelta_kwh = 2\nwindow_days = 3\n'
    'epsilon_per_window = 0.2\nspend = "fraction"\nfraction = 0.4\n',
    "discounted": 'notion = "discounted"\nage_days = 1\ndiscount = "exponential"\nrate = 0.5\nepsilon = 1\n'
    'schedule = "renewal"\nclock = "publication-day"\n',
    "age-dependent": 'notion = "age-dependent"\nage_days = 1\nrisk = 0.4\nmethod = "total_variation"\nsecret = "day"\n',
}
_RUN = """version = 1
[input]
{input}
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
{witness}[population]
name = "homes"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "{mode}"
first_day = {first}
{last}{wait}
{series}
[promise]
{promise}max_day_epsilon = 0.6
epsilon_total = {total}
{model}
[alerts]
min_coverage = 0.9
[engine]
keep_days = {keep}
block_mib = 1
"""
_INPUT = {
    "london": 'dataset = "london"\nfiles = ["incoming/*.csv"]\n{corrections}',
    "long": 'dataset = "long"\nfiles = ["incoming/*.csv"]\n{corrections}[input.columns]\nhousehold = "meter"\n'
    'time = "read_at"\ntime_format = "%Y-%m-%d %H:%M:%S"\nstamp = "end"\nzone = "UTC"\nday_zone = "UTC"\n'
    'energy = "wh"\nunit = "Wh"\nmissing = [""]\n',
}
_MEAN = '[series.{name}]\nstatistic = "mean"\nclamp_kwh = {clamp}\n{share}{by}'
_COUNTS = (
    '[series.counts]\nstatistic = "distribution"\nform = "{form}"\nclamp_kwh = 20\nbins_kwh = [0, 1, 2.5, 20]\n'
    "{share}{by}"
)


@dataclass(frozen=True)
class Public:
    """What both houses share."""

    mode: str = "rehearsal"
    dataset: str = "london"
    notion: str = "classical"
    two_series: bool = False
    counts: str = ""
    grouped: bool = False
    later_file: bool = False
    keep_days: int = 400
    total: str = "10"
    model: bool = False
    adopts: bool = False
    marked: bool = False
    preflight: str = "report"
    witnessed: bool = False

    def _input_keys(self) -> str:
        rule = "later-file" if self.later_file else "set-aside"
        return f'corrections = "{rule}"\npreflight = "{self.preflight}"\n'

    def run_file(self) -> str:
        several = self.two_series + bool(self.counts)
        share = ("", "share = 0.5\n", "share = 0.25\n")[several]
        by = 'by = "tariff"\n' if self.grouped else ""
        series = _MEAN.format(name="daily_mean", clamp=20, share=share, by=by)
        if self.two_series:
            series += _MEAN.format(name="coarse", clamp=5, share=share, by="")
        if self.counts:
            rest = "share = 0.5\n"
            series += _COUNTS.format(form=self.counts, share=rest, by=by)
        curve = '[model]\nsource = "declared"\ncurve = "forgetting.csv"\nbasis = "made up"\nassume = "markov"\n'
        promise = PROMISES[self.notion]
        if self.mode == "archive" and self.notion != "age-dependent":
            promise = promise.replace("age_days = 1\n", "")
        return _RUN.format(
            input=_INPUT[self.dataset].format(corrections=self._input_keys()),
            mode=self.mode,
            first=FIRST,
            last="" if self.mode == "live" else f"last_day = {FIRST + timedelta(days=DAYS - 1)}\n",
            wait='wait_for = "{day}.done"\ngive_up_days = 1\n' if self.marked and self.mode != "archive" else "",
            series=series,
            promise=promise,
            total=self.total,
            model=curve if self.model or self.notion == "age-dependent" else "",
            keep=self.keep_days,
            witness='witness = "far/homes.witness"\n' if self.witnessed else "",
        )


@dataclass(frozen=True)
class House:
    """One house of a pair."""

    folder: Path
    public: Public
    seed: int

    def build(self) -> None:
        (self.folder / "incoming").mkdir(parents=True)
        (self.folder / "far").mkdir()
        (self.folder / "run.toml").write_text(self.public.run_file())
        (self.folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.7\n2,0.5\n")
        chance = Random(self.seed)  # noqa: S311
        homes = [f"{chance.choice(['MARK', 'x', 'Flat 7 ', 'é'])}{self.seed}-{number}" for number in range(HOMES)]
        chance.shuffle(homes)
        leaves = FIRST + timedelta(days=1)
        lines = [f"{home},{FIRST},{leaves if i == 5 else ''},{'AB'[i % 2]}" for i, home in enumerate(homes)]
        chance.shuffle(lines)
        (self.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *lines]) + "\n")
        for day in range(DAYS):
            if day != 1:
                (self.folder / f"{FIRST + timedelta(days=day)}.done").touch()

    def deliver(self, night: int) -> None:
        """Write the two files of a night: the days up to then, and what is left again of earlier ones."""
        chance = Random(self.seed * 10 + night)  # noqa: S311
        sound = self.public.preflight == "refuse" and night == 0
        lines = self._lines(chance, (NIGHTS[night] - FIRST).days + 1, sound=sound)
        chance.shuffle(lines)
        cut = chance.randrange(1, len(lines))
        header = "LCLid,tstp,energy(kWh/hh)" if self.public.dataset == "london" else "meter,read_at,wh"
        for number, part in enumerate((lines[:cut], lines[cut:])):
            name = f"{night}{number}-{chance.choice(['MARK', 'flat', 'Haus'])}{chance.randrange(10**6)}.csv"
            (self.folder / "incoming" / name).write_text("\n".join([header, *part]) + "\n")

    def _lines(self, chance: Random, days: int, *, sound: bool) -> list[str]:
        """Return rows up to a day; `sound` ones have no gap and no defect, so that a first run is not refused."""
        london = self.public.dataset == "london"
        homes = [row.split(",")[0] for row in (self.folder / "roster.csv").read_text().splitlines()[1:]]
        homes += [f"stranger{i}" for i in range(chance.randrange(3))]
        gaps, again, bad = chance.choice([0, 0.02, 0.3]), chance.choice([0, 0.05]), chance.choice([0, 0.05])
        gaps, bad = (0, 0) if sound else (gaps, bad)
        most = chance.choice([5, 400, 3000])
        lines = []
        for home in homes:
            for step in range(48 * min(days, DAYS)):
                if chance.random() < gaps and lines:
                    continue
                stamp = datetime.combine(FIRST, time()) + timedelta(minutes=30 * (step + 1))
                energy = chance.randrange(most)
                text = f"{energy / 1000:.3f}" if london else str(energy)
                if chance.random() < bad:
                    text = chance.choice(["-1", "nan", "1e9", "Null" if london else "", "MARK"])
                lines += [f"{home},{stamp},{text}"] * (2 if chance.random() < again else 1)
        return lines

    def run_command(self, *words: str, now: datetime) -> Ended:
        """Return exit status, standard output and standard error of a command, in this process."""
        return with_fixed_noise(self.folder, *words, now=now)

    def published(self) -> dict[str, bytes]:
        release = self.folder / "out" / "release"
        found = {each.name: each.read_bytes() for each in sorted(release.iterdir())} if release.exists() else {}
        ledger, witness = self.folder / "out" / "ledger.sqlite", self.folder / "far" / "homes.witness"
        others = {"ledger": ledger, "witness": witness}
        return {**found, **{name: path.read_bytes() if path.exists() else b"" for name, path in others.items()}}

    def lived(self) -> list[object]:
        """Live two nights and return all that left the house, command by command."""
        left: list[object] = []
        self.build()
        for night, on in enumerate(NIGHTS):
            self.deliver(night)
            now = datetime.combine(on, time(3), UTC)
            as_of = ("--as-of", str(on)) if self.public.mode == "rehearsal" else ()
            if night and self.public.adopts:
                (self.folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.6\n2,0.4\n")
                left.append(self.run_command("ledger", "amend", "run.toml", "--yes", "--json", now=now))
            for words in (("plan", "run.toml", *as_of), ("run", "run.toml", *as_of), ("publish", "run.toml")):
                left.append(self.run_command(*words, "--json", now=now))
                left.append(self.published())
        left.append(self.run_command("ledger", "show", "run.toml", "--json", now=now))
        return left


def with_fixed_noise(folder: Path, *words: str, now: datetime) -> Ended:
    """Run the command in a folder with a sampler that ignores what it is given and a clock that stands still."""
    with (
        mock.patch.object(clock, "now", return_value=now),
        mock.patch.object(mechanisms, "discrete_laplace", _stream(now)),
    ):
        return agedp(*words, folder=folder)


def _stream(now: datetime) -> object:
    """A sampler that ignores what it is given."""
    stream = np.random.default_rng(now.toordinal())

    def fixed(values: object, *, sensitivity: int, loss: object) -> np.ndarray:
        return stream.integers(0, 10**6, len(np.asarray(values)))

    return fixed

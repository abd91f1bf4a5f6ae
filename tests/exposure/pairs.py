"""Pairs of houses that share what is public and differ in everything else, and nights lived in them.

Public: run file, the roster's counts per day and group, markers, model, how many input files there are. Private: ids,
names, readings, gaps, repeats, corrections, late rows, rows that cannot be read, strangers, sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np

from agedp_data import clock, mechanisms
from tests.command import CommandFolder, Ended

FIRST = date(2013, 2, 2)
DAYS, HOMES = 4, 6
NIGHTS = (FIRST + timedelta(days=3), FIRST + timedelta(days=6))

PROMISES = {
    "classical": "epsilon_per_day = 0.5\n",
    "w-event": 'window_days = 3\nepsilon_per_window = 1.2\nspend = "remaining"\n',
    "neighbourhood": 'delta_kwh = 2\nwindow_days = 3\nepsilon_per_window = 0.2\nspend = "fraction"\nfraction = 0.4\n',
    "discounted": 'discount = "exponential"\nrate = 0.5\nepsilon = 1\nschedule = "renewal"\n'
    'clock = "publication-day"\n',
    "age-dependent": 'risk = 0.4\nmethod = "total_variation"\nsecret = "day"\n',
    "temporal": 'alpha = 1.5\nhorizon_days = 6\nbudget = "best"\n',
}
_RUN = """version = 1
[input]
{input}
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
deployment = true
explore = true
{witness}[population]
name = "homes"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "{mode}"
{rehearsed}first_day = {first}
{last}{wait}
{series}
[promise]
accept = ["useless", "no-credit", "total"]
notion = "{notion}"
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
_COUNTS = '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 20\nbins_kwh = [0, 1, 2.5, 20]\nshare = 0.5\n'
_MODEL = '[model]\nsource = "declared"\n{} = "{}.csv"\nbasis = "made up"\nassume = "markov"\n'


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

    def run_file(self) -> str:
        share = ("", "share = 0.5\n", "share = 0.25\n")[self.two_series + bool(self.counts)]
        by, aged = 'by = "tariff"\n' if self.grouped else "", self.mode != "archive" or self.notion == "age-dependent"
        series = _MEAN.format(name="daily_mean", clamp=20, share=share, by=by)
        series += _MEAN.format(name="coarse", clamp=5, share=share, by="") if self.two_series else ""
        series += f'{_COUNTS}form = "{self.counts}"\n{by}' if self.counts else ""
        model = _MODEL.format("curve", "forgetting") if self.model or self.notion == "age-dependent" else ""
        rule = "later-file" if self.later_file else "set-aside"
        return _RUN.format(
            input=_INPUT[self.dataset].format(corrections=f'corrections = "{rule}"\npreflight = "{self.preflight}"\n'),
            mode=self.mode,
            rehearsed='rehearsal_on = "readings"\n' if self.mode == "rehearsal" else "",
            first=FIRST,
            last="" if self.mode == "live" else f"last_day = {FIRST + timedelta(days=DAYS - 1)}\n",
            wait='wait_for = "{day}.done"\ngive_up_days = 1\n' if self.marked and self.mode != "archive" else "",
            series=series,
            notion=self.notion,
            promise=("age_days = 1\n" if aged else "") + PROMISES[self.notion],
            total=self.total,
            model=_MODEL.format("kernel", "kernel") if self.notion == "temporal" else model,
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
        for name in ("incoming", "far"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "run.toml").write_text(self.public.run_file())
        (self.folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.7\n2,0.5\n")
        (self.folder / "kernel.csv").write_text("0.8,0.2\n0.3,0.7\n")
        chance = Random(self.seed)  # noqa: S311
        homes = [f"{chance.choice(['MARK', 'x', 'Flat 7 ', 'é'])}{self.seed}-{number}" for number in range(HOMES)]
        chance.shuffle(homes)
        leaves = FIRST + timedelta(days=1)
        lines = [f"{home},{FIRST},{leaves if i == 5 else ''},{'AB'[i % 2]}" for i, home in enumerate(homes)]
        chance.shuffle(lines)
        (self.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *lines]) + "\n")
        for day in (0, 2, 3):
            (self.folder / f"{FIRST + timedelta(days=day)}.done").touch()

    def deliver(self, night: int) -> None:
        """Write the two files of a night: the days up to then, and what there is again of earlier ones."""
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
        lines: list[str] = []
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

    def published(self) -> dict[str, bytes]:
        release = self.folder / "out" / "release"
        files = {path.name: path.read_bytes() for path in sorted(release.iterdir())} if release.exists() else {}
        others = {"ledger": self.folder / "out" / "ledger.sqlite", "witness": self.folder / "far" / "homes.witness"}
        return {**files, **{name: path.read_bytes() if path.exists() else b"" for name, path in others.items()}}

    def live(self) -> list[object]:
        """Live two nights and return all that becomes public, command by command."""
        seen: list[object] = []
        self.build()
        for night, on in enumerate(NIGHTS):
            self.deliver(night)
            now = datetime.combine(on, time(3), UTC)
            as_of = ("--as-of", str(on)) if self.public.mode == "rehearsal" else ()
            if night and self.public.adopts:
                (self.folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.6\n2,0.4\n")
                seen.append(with_fixed_noise(self.folder, "ledger", "amend", "run.toml", "--yes", "--json", now=now))
            for verb in (("plan", *as_of), ("run", *as_of), ("status", *as_of), ("publish",)):
                words = (verb[0], "run.toml", *verb[1:], "--json")
                seen += [with_fixed_noise(self.folder, *words, now=now), self.published()]
        notions = ("plan", "run.toml", "--notions", "--json")
        seen.append(with_fixed_noise(self.folder, *notions, now=now) if not self.public.counts else "")
        return [*seen, self.published(), with_fixed_noise(self.folder, "ledger", "show", "run.toml", "--json", now=now)]


def with_fixed_noise(folder: Path, *words: str, now: datetime) -> Ended:
    """Run the command in a folder with a sampler that ignores what it is given and a clock that stands still."""
    with (
        mock.patch.object(clock, "now", return_value=now),
        mock.patch.object(mechanisms, "discrete_laplace", fixed_stream(now)),
    ):
        return CommandFolder(folder).agedp(*words)


def fixed_stream(now: datetime) -> Callable[..., np.ndarray]:
    """Return a sampler that ignores what it is given."""
    stream = np.random.default_rng(now.toordinal())
    return lambda values, *, sensitivity, loss: stream.integers(0, 10**6, len(np.asarray(values)))

"""The eighteen populations of the fixtures: each notion in each mode, layouts, models and statistics spread over them.

Days are those around 31 March 2013 (London's clocks go forward) and 7 April 2013 (Sydney's go back).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

FIRST = date(2013, 3, 27)
LAST = date(2013, 4, 10)
HISTORY = (date(2013, 3, 5), date(2013, 3, 24))
BEGUN = tuple(date(2013, 3, 29) + timedelta(days=i) for i in range(4))
FOLLOWING = tuple(date(2013, 4, 2) + timedelta(days=i) for i in range(10))

MEAN = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 30\n'
BY_TARIFF = f'{MEAN}by = "tariff"\n'
COUNTS = '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nbins_kwh = [0, 5, 12.5, 20, 40]\n'
CUMULATIVE = f'{COUNTS}form = "cumulative"\nby = "tariff"\n'
TWO = f'{MEAN}share = 0.7\n{COUNTS}share = 0.3\nby = "tariff"\n'
OF_STATES = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 30\nvalues = "states"\n'

CURVE = '[model]\nsource = "declared"\ncurve = "{}.csv"\nbasis = "made up"\nassume = "curve"\n'
KERNEL = '[model]\nsource = "declared"\nkernel = "{}.csv"\nbasis = "made up"\nassume = "markov"\n'
_ESTIMATED = f"""[model]
source = "estimated"
assume = "markov"
file = "model"
period = [{HISTORY[0]}, {HISTORY[1]}]
chain = "homogeneous"
min_visits = 3
confidence = "plug-in"
ages_days = [1, 2, 7]
publish = "envelope"
"""
OF_DAYS = f'{_ESTIMATED}step = "day"\nstates = 2\nedges = "quantile"\n'
OF_HALF_HOURS = f'{_ESTIMATED}step = "half-hour"\nstates = 4\nedges = [0.1, 0.3, 0.7]\n'

FILES = {
    "slow.csv": "age_days,total_variation\n1,0.9\n3,0.8\n30,0.5\n",
    "fast.csv": "age_days,total_variation\n1,0.7\n3,0.4\n30,0.1\n",
    "sticky.csv": "0.9,0.1\n0.1,0.9\n",
    "loose.csv": "0.7,0.3\n0.3,0.7\n",
}


@dataclass(frozen=True)
class Scene:
    """One population: what its run file contains, and how it is amended (text of the run file, old to new).

    `amended` happened before the fixture was packed; `amendment` is for tests to make.
    """

    notion: str
    mode: str
    dataset: str
    promise: str
    series: str
    amendment: tuple[str, str]
    model: str = ""
    corrections: str = ""
    marker: bool = False
    open_end: bool = False
    amended: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        return f"{self.notion}-{self.mode}"

    @property
    def estimated(self) -> bool:
        return "estimated" in self.model


def _caps(day: str, total: str) -> str:
    return f"max_day_epsilon = {day}\nepsilon_total = {total}\n"


_CLASSICAL = "epsilon_per_day = 0.5\n"
_WINDOW = "window_days = 3\nepsilon_per_window = 1.5\n"
_DISCOUNTED = 'discount = "{}"\nrate = {}\nepsilon = 1.5\nschedule = "{}"\nclock = "{}"\n'
_SMALL = "delta_kwh = 2\nwindow_days = 3\nepsilon_per_window = 0.06\n"

SCENES = (
    Scene(
        "classical", "archive", "london", _CLASSICAL + _caps("0.5", "5"), TWO,
        corrections="set-aside", amendment=("clamp_kwh = 30", "clamp_kwh = 25"),
    ),
    Scene(
        "classical", "live", "long", _CLASSICAL + _caps("0.5", '"unlimited"'), BY_TARIFF,
        marker=True, open_end=True, amendment=("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"),
    ),
    Scene(
        "classical", "rehearsal", "ausgrid", _CLASSICAL + _caps("0.5", "9"), CUMULATIVE,
        corrections="later-file", amended=("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"),
        amendment=("epsilon_total = 9", "epsilon_total = 8"),
    ),
    Scene(
        "w-event", "archive", "ausgrid", _WINDOW + 'spend = "even"\n' + _caps("0.5", "9"), COUNTS,
        amendment=("epsilon_per_window = 1.5", "epsilon_per_window = 1.2"),
    ),
    Scene(
        "w-event", "live", "london", _WINDOW + 'spend = "remaining"\n' + _caps("0.7", '"unlimited"'), TWO,
        open_end=True, amended=("window_days = 3", "window_days = 4"),
        amendment=("max_day_epsilon = 0.7", "max_day_epsilon = 0.6"),
    ),
    Scene(
        "w-event", "rehearsal", "long", _WINDOW + 'spend = "remaining"\n' + _caps("0.6", "9"), MEAN,
        model=CURVE.format("slow"), corrections="later-file", marker=True,
        amendment=('curve = "slow.csv"', 'curve = "fast.csv"'),
    ),
    Scene(
        "age-dependent", "archive", "london",
        'age_days = 1\nepsilon_per_day = 0.5\nmethod = "total_variation"\nsecret = "day"\n' + _caps("0.5", "9"),
        CUMULATIVE, model=CURVE.format("slow"), amendment=("age_days = 1", "age_days = 2"),
    ),
    Scene(
        "age-dependent", "live", "london",
        'risk = 0.9\nmethod = "tight"\nsecret = "day"\n' + _caps("2", "40"), MEAN,
        model=OF_DAYS, corrections="later-file", open_end=True, marker=True,
        amendment=("risk = 0.9", "risk = 0.8"),
    ),
    Scene(
        "age-dependent", "rehearsal", "ausgrid",
        'risk = 0.6\nmethod = "reversibilised"\nsecret = "day"\n' + _caps("0.9", "15"), TWO,
        model=KERNEL.format("sticky"), amended=('kernel = "sticky.csv"', 'kernel = "loose.csv"'),
        amendment=("risk = 0.6", "risk = 0.5"),
    ),
    Scene(
        "temporal", "archive", "ausgrid",
        'alpha = 3\nhorizon_days = 15\nbudget = "exact"\n' + _caps("2", "30"), MEAN,
        model=KERNEL.format("loose"), corrections="later-file", amendment=("horizon_days = 15", "horizon_days = 9"),
    ),
    Scene(
        "temporal", "live", "london",
        'alpha = 2\nhorizon_days = "unlimited"\nbudget = "supremum"\n' + _caps("0.9", '"unlimited"'), OF_STATES,
        model=OF_HALF_HOURS, open_end=True, amendment=("max_day_epsilon = 0.9", "max_day_epsilon = 0.2"),
    ),
    Scene(
        "temporal", "rehearsal", "long",
        'alpha = 3\nhorizon_days = 12\nbudget = "best"\n' + _caps("0.9", "15"), TWO,
        model=KERNEL.format("sticky"), corrections="later-file", amended=("alpha = 3", "alpha = 2.9"),
        amendment=('kernel = "sticky.csv"', 'kernel = "loose.csv"'),
    ),
    Scene(
        "discounted", "archive", "long",
        _DISCOUNTED.format("exponential", "0.9", "optimal", "data-day") + "horizon_days = 12\n" + _caps("0.9", "9"),
        BY_TARIFF, amendment=("horizon_days = 12", "horizon_days = 8"),
    ),
    Scene(
        "discounted", "live", "ausgrid",
        _DISCOUNTED.format("hyperbolic", "2", "renewal", "publication-day") + _caps("0.9", '"unlimited"'), TWO,
        corrections="later-file", open_end=True, marker=True, amendment=("epsilon = 1.5", "epsilon = 1.2"),
    ),
    Scene(
        "discounted", "rehearsal", "london",
        _DISCOUNTED.format("exponential", "0.8", "paper", "data-day") + _caps("0.9", "9"), COUNTS,
        model=CURVE.format("fast"), amendment=("max_day_epsilon = 0.9", "max_day_epsilon = 0.8"),
    ),
    Scene(
        "neighbourhood", "archive", "long", _SMALL + 'spend = "offline"\n' + _caps("0.6", "9"), MEAN,
        amendment=("epsilon_per_window = 0.06", "epsilon_per_window = 0.05"),
    ),
    Scene(
        "neighbourhood", "live", "ausgrid",
        _SMALL + 'spend = "fraction"\nfraction = 0.4\n' + _caps("0.6", '"unlimited"'), BY_TARIFF,
        open_end=True, amendment=("window_days = 3", "window_days = 4"),
    ),
    Scene(
        "neighbourhood", "rehearsal", "london",
        _SMALL + 'spend = "fraction"\nfraction = 0.3\n' + _caps("0.6", "9"), TWO,
        corrections="set-aside", marker=True, amendment=("epsilon_total = 9", "epsilon_total = 6"),
    ),
)  # fmt: skip

_INPUT = {
    "london": 'dataset = "london"\n',
    "ausgrid": 'dataset = "ausgrid"\nmissing_controlled_load = "missing"\n',
    "long": 'dataset = "long"\n',
}
_COLUMNS = """[input.columns]
household = "meter"
time = "read_at"
stamp = "start"
zone = "Europe/London"
day_zone = "Europe/London"
energy = "wh"
unit = "Wh"
missing = ["Null"]
"""


def run_file(scene: Scene) -> str:
    """Return the run file of a scene as it was before any amendment."""
    corrections = f'corrections = "{scene.corrections}"\n' if scene.corrections else ""
    age = "" if scene.mode == "archive" else "age_days = 1\n"
    return f"""version = 1
[input]
{_INPUT[scene.dataset]}files = ["incoming/*.csv"]
{corrections}{_COLUMNS if scene.dataset == "long" else ""}[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
title = "Made up"
[population]
name = "{scene.name}"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "{scene.mode}"
first_day = {FIRST}
{"" if scene.open_end else f"last_day = {LAST}"}
{'wait_for = "incoming/{day}.done"' if scene.marker else ""}
{"give_up_days = 2" if scene.marker else ""}
{scene.series}[promise]
notion = "{scene.notion}"
{age}{scene.promise}{scene.model}[compare]
window_days = 4
exponential = 0.9
delta_kwh = [1, 3]
"""

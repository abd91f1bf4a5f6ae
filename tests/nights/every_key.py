"""The permitted edits of every key of a run file: written by hand from the specification, not read off `agedp`.

An edit sets keys (`-`: removes the line) and states whether they are `free`, may be `amend`ed in this direction,
`never` change (exit 3), or are `wrong` where they are (exit 2). A line is a verdict and its edits, separated by ` & `:
settings `key=TOML`, separated by `; ` (a key with a dot names its table); ` | ` separates values that are edits of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FREE, AMEND, NEVER, WRONG = "free", "amend", "never", "wrong"
Tables = dict[str, dict[str, str]]
Setting = tuple[str, str, str | None]


@dataclass(frozen=True)
class Edit:
    """Settings (table, key, TOML text or None) and what becomes of them; the first one names the edit."""

    verdict: str
    settings: tuple[Setting, ...]

    @property
    def name(self) -> str:
        table, key, text = self.settings[0]
        return f"{table}.{key}={text}"


_BASE = """
version=1
[input]
dataset="london"
files=["incoming/*.csv"]
corrections="later-file"
file_order="name"
max_half_hour_kwh=20
[output]
release="out/release"
confidential="out/confidential"
ledger="sqlite:///out/ledger.sqlite"
[population]
name="homes"
roster="roster.csv"
min_households=3
[schedule]
mode="rehearsal"
rehearsal_on="readings"
first_day=2013-01-02
last_day=2013-01-11
wait_for="markers/{day}"
give_up_days=3
[series.daily_mean]
statistic="mean"
clamp_kwh=40
max_missing=2
missing_kwh=1
"""
_CAPS = "age_days=2; max_day_epsilon=0.6; epsilon_total=9"
_CURVE = 'source="declared"; curve="slow.csv"; basis="made up"; assume="curve"'
_KERNEL = 'source="declared"; kernel="sticky.csv"; basis="made up"; assume="markov"'
_AGED = 'notion="age-dependent"; secret="day"'
_PROMISES = {
    "classical": ('notion="classical"; epsilon_per_day=0.5; delta="1e-6"', ""),
    "w-event": ('notion="w-event"; window_days=3; epsilon_per_window=1.5; spend="even"', _CURVE),
    "age-dependent": (f'{_AGED}; epsilon_per_day=0.5; method="total_variation"', _CURVE),
    "risk": (f'{_AGED}; risk=0.5; method="tight"', _KERNEL),
    "temporal": ('notion="temporal"; alpha=3; horizon_days=12; budget="exact"', _KERNEL),
    "discounted": (
        'notion="discounted"; discount="exponential"; rate=0.9; epsilon=1.5; schedule="renewal"; clock="data-day"', "",
    ),
    "neighbourhood": (
        'notion="neighbourhood"; delta_kwh=2; window_days=3; epsilon_per_window=0.06; spend="fraction"; fraction=0.4',
        "",
    ),
}  # fmt: skip
PROMISES = tuple(_PROMISES)

_EVERYWHERE = """
wrong version=2 | 0 | -
[input]
free files=["incoming/*"] | ["incoming/*.csv", "more/*.csv"] & interval_minutes=30 & max_rejected_share=0.01
free preflight="report" | "refuse"
amend corrections="set-aside"; file_order=- & file_order="modified" & max_half_hour_kwh=10 | 30 | -
never dataset="ausgrid" & accept=["negative"]
wrong interval_minutes=15 | 60 | 20 & columns={household = "a"} & categories=["GC"] & missing_controlled_load="zero"
wrong suffixes=["E*"] & read_off=["unit"]
[output]
never household_register="sqlite:///out/register.sqlite"
free release="out/elsewhere" & confidential="out/house" & title="Another" & source="Ours" & licence="CC0-1.0"
free contact="us" & deployment=true & explore=true & interval=0.5 & layout="monthly" | "single"
free averages_by=["year"] | ["week", "month"]
amend witness="homes.witness" & sign=true
never ledger="sqlite:///out/fresh.sqlite"
[population]
free roster="same.csv"
amend min_households=4 & shared_households="refuse"
free shared_households="count"
never roster="more.csv" | "fewer.csv" & min_households=2
wrong name="others" & meters="absent.csv"
[compare]
free window_days=4 & exponential=0.9 & hyperbolic=2 & delta_kwh=[1, 3]
[alerts]
free min_coverage=0.5
[engine]
free scheduler="processes" & workers=1 & block_mib=1 & keep_days=500
[schedule]
amend last_day=2013-01-10 | 2013-01-12 | - & wait_for="others/{day}" & wait_for=-; give_up_days=-
amend give_up_days=1 | 9 | -
free rehearsal_on=-
never rehearsal_on="synthetic" & mode="live"; rehearsal_on=-
never first_day=2013-01-01 | 2013-01-03 & skip_days=[2013-01-11]
wrong absent_days="missing" & cron="30 6 * * *" & zone="UTC"
[series.daily_mean]
free share=1 & values="readings"
amend series.mean.statistic="mean"; series.mean.clamp_kwh=40; series.daily_mean.=- & clamp_kwh=30 | 50 & by="tariff"
amend clamp_kwh=[20, 40]; share=[0.7, 0.3] & clamp_kwh=[20, 30, 60]; share=[0.5, 0.3, 0.2]; missing_kwh=25
amend max_missing=1 | 3 & missing_kwh=0 | 2 | -
free every="day"
wrong every="week"
wrong clamp_kwh=[20, 40] & clamp_kwh=[20, 40]; share=[0.7, 0.4] & share=[1]
wrong by=["tariff"] & by=["tariff", "area"] & by=["tariff", "area"]; share=[0.7, 0.4]
never statistic="distribution"; bins_kwh=[0, 5, 40] & statistic="profile"; half_hour_clamp_kwh=4
wrong half_hour_clamp_kwh=4
wrong statistic="distribution" & share=0.5 | 2 & values="states" & form="histogram" & bins_kwh=[0, 40]
[series.counts]
amend bins_kwh=[0, 5, 40]; COUNTS & form="cumulative"; bins_kwh=[0, 5, 40]; COUNTS
wrong bins_kwh=[0, 40]; COUNTS & bins_kwh=[0, 5, 30]; COUNTS & form="both"; bins_kwh=[0, 5, 40]; COUNTS
[series.shape]
amend half_hour_clamp_kwh=4; SHAPE
wrong every="month"; half_hour_clamp_kwh=4; SHAPE
wrong SHAPE & half_hour_clamp_kwh=41; SHAPE & half_hour_clamp_kwh=4; bins_kwh=[0, 40]; SHAPE
[series.usable]
amend max_missing=2; USABLE
wrong clamp_kwh=40; USABLE & half_hour_clamp_kwh=4; USABLE
[promise]
free accept=["useless"] | ["no-credit", "total"]
wrong accept=[] | "useless" | ["usless"]
amend age_days=3 & max_day_epsilon=0.55 & epsilon_total=8 | 3
never delta=0.01
wrong delta=0 | 1 | 0.4 | "few"
never age_days=1 | 0 & max_day_epsilon=0.7 & epsilon_total=10 & epsilon_total="unlimited"; delta=-
[model]
wrong file="model" & period=[2012-01-01, 2012-02-01] & states=12 & edges="quantile" & chain="homogeneous" | "cyclic"
wrong memory="one" & min_visits=1 & confidence="plug-in" | "sampling-bound" & level=0.9 & ages_days=[1]
wrong publish="envelope" | "private" & selection_epsilon=1 & coverage=0.9 & failure_probability=0.1 & family="f.csv"
wrong accept_unverified_model=true & quantiles=[{of="spectral-gap",probability=0.5,epsilon=1}]
"""
_BESIDE = {
    "COUNTS": 'statistic="distribution"; share=0.5; clamp_kwh=40',
    "SHAPE": 'statistic="profile"; share=0.5; clamp_kwh=40',
    "USABLE": 'statistic="coverage"; share=0.5',
}
for _name, _table in _BESIDE.items():
    _EVERYWHERE = _EVERYWHERE.replace(_name, f"series.daily_mean.share=0.5; {_table}")

_OWN = {
    "classical": """
never series.daily_mean.every="week"; schedule.last_day=2013-01-13
amend epsilon_per_day=0.4 & delta="1e-7" | 0.0000001 | -
never delta="1e-5"
wrong epsilon_total="unlimited"
never notion="w-event"; window_days=3; epsilon_per_window=1.5; spend="even"; epsilon_per_day=- & epsilon_per_day=0.6
""",
    "w-event": """
never series.daily_mean.every="week"; schedule.last_day=2013-01-13
amend window_days=4 & epsilon_per_window=1.2
never window_days=2 & epsilon_per_window=1.6 & spend="remaining" & epsilon_per_window=1.2; window_days=2
""",
    "age-dependent": """
amend epsilon_per_day=0.4
never epsilon_per_day=0.6 & risk=0.5; epsilon_per_day=- & secret="half-hour" & epsilon_per_day=0.4; age_days=1
wrong method="tight"
""",
    "risk": """
amend risk=0.4
never risk=0.6 & epsilon_per_day=0.1; risk=- & method="total_variation" | "spectral" | "reversibilised"
wrong secret="half-hour"
""",
    "temporal": """
amend alpha=2.9 | 2.8 & horizon_days=11 | 3
never alpha=3.1 | 0.1 & horizon_days=13 & horizon_days="unlimited"; budget="supremum"
never budget="best" | "even" | "supremum"
wrong horizon_days="unlimited" | 0 & budget="algorithm-8"
""",
    "discounted": """
amend epsilon=1.2 | 0.1
never epsilon=1.6 & rate=0.8 | 0.95 & discount="hyperbolic"; rate=3 & discount="hyperbolic"
never schedule="constant" | "paper" & clock="publication-day"
wrong rate=1 | 0 & schedule="optimal" | "corollary-16"
""",
    "neighbourhood": """
amend window_days=4 & epsilon_per_window=0.05
never delta_kwh=1 | 3 & window_days=2 & epsilon_per_window=0.07 & fraction=0.5 | 0.3 & spend="per-request"; fraction=-
never spend="offline"; fraction=-
wrong delta_kwh=41 | 0 & fraction=1 | - & spend="per-request" | "even"
""",
}
_OF_OTHERS = (
    'alpha=1; horizon_days=9; budget="best"; discount="exponential"; rate=0.9; epsilon=1; schedule="optimal"; '
    'clock="data-day"; delta_kwh=1; fraction=0.2; secret="day"; method="tight"; window_days=3; epsilon_per_window=1; '
    'spend="even"; epsilon_per_day=0.5; risk=0.5'
)
"""Keys of a promise that are wrong beside a notion that has none of them."""
_EITHER = {"age-dependent": "risk", "risk": "epsilon_per_day"}
_MODELS = {
    "": f"""
amend {_CURVE}
wrong source="day" & step="day" & kernel="day" & basis="day" & assume="day" & curve="day"
""",
    _KERNEL: """
amend kernel="loose.csv" | "stickier.csv" & basis="thought again" & step="half-hour"
wrong source="estimated" & curve="slow.csv"
""",
    _CURVE: """
amend assume="markov" & curve="fast.csv" | "slower.csv" & kernel="loose.csv"; curve=- & basis="thought again"
wrong source="estimated" & step="day"
""",
}
_OF_A_MODEL = {
    "w-event": "never model.=-",
    "age-dependent": "wrong model.=-",
    "risk": 'wrong model.=-\namend assume="curve"',
    "temporal": 'wrong model.=-\nwrong assume="curve"',
}


def run_file(promise: str) -> Tables:
    """Return the tables of a run file for one of PROMISES."""
    own, model = _PROMISES[promise]
    text = "\n".join([_BASE, "[promise]", *f"{own}; {_CAPS}".split("; "), "[model]", *filter(None, model.split("; "))])
    tables: Tables = {}
    for table, line in _lines(text):
        key, _, value = line.partition("=")
        tables.setdefault(table, {})[key] = value
    return tables


def edits(promise: str) -> list[Edit]:
    """Return at least one edit of every key for a run file, and both directions of every amount."""
    own, model = _PROMISES[promise]
    keys = [setting.partition("=")[0] for setting in own.split("; ")]
    known = (*keys, _EITHER.get(promise))
    wrong = [setting for setting in _OF_OTHERS.split("; ") if setting.partition("=")[0] not in known]
    text = _EVERYWHERE + "[promise]\n" + _OWN[promise] + "\n".join(f"wrong {setting}" for setting in wrong)
    if promise != "classical":
        gone = "; ".join(f"{key}=-" for key in keys if key not in ("notion", "epsilon_per_day"))
        text += f'\nnever notion="classical"; epsilon_per_day=0.5; {gone}'
    text += f"\n[model]\n{_MODELS[model]}{_OF_A_MODEL.get(promise, '')}"
    return [edit for table, line in _lines(text) for edit in _edits(table, line)]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text, each with its table."""
    table = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            table = line.strip("[]")
        else:
            yield table, line


def _edits(table: str, line: str) -> Iterator[Edit]:
    verdict, _, texts = line.partition(" ")
    for text in texts.split(" & "):
        first, *others = text.split("; ")
        name, _, values = first.partition("=")
        for value in values.split(" | "):
            yield Edit(verdict, tuple(_setting(table, each) for each in (f"{name}={value}", *others)))


def _setting(table: str, text: str) -> Setting:
    name, _, value = text.partition("=")
    elsewhere, dot, key = name.rpartition(".")
    return (elsewhere if dot else table, key, None if value == "-" else value)

"""A run file in the making: what is decided, what is read off the files, and what is still to be decided.

A deciding key that no option gives becomes a line `# decide: key = proposal`. Which keys a notion, mode or model needs
is asked of the models of the run file themselves: required fields, and the keys that the loader reports as missing.
A new notion therefore needs nothing here; `_PROPOSALS` only makes its proposals better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from agedp_data.config.messages import Problem
from agedp_data.config.model import Declared, Estimated
from agedp_data.config.reading import check
from agedp_data.config.run import RunFile
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import Block
from pipelines.run_file_options import EVERY_DAY, FLAGS, SERIES, Given, Key, quoted

DECIDE: Final = "# decide: "
_CLASSICAL: Final = "classical"
_ROUNDS: Final = 10
_DAY_EPSILON: Final = Decimal("0.5")
_CLAMP_KWH: Final = Decimal(50)
_CHOICES: Final = {"input": "--dataset", "schedule": "--mode", "promise": "--notion", "model": "[model] source"}
_TABLES: Final = ("input", "input.columns", "output", "population", "schedule", SERIES, "promise", "model")
_LAST: Final = ("max_day_epsilon", "epsilon_total")
_COMMENTED: Final = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One key of a run file with its TOML text; `decided` is false for a proposal that still waits for a decision."""

    key: str
    toml: str
    comment: str = ""
    decided: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """What is read off the files: the layout, the period, how many households, and the columns of a long table."""

    dataset: str
    files: tuple[str, ...]
    first: date
    last: date
    households: int
    columns: tuple[Line, ...] = ()

    @property
    def days(self) -> int:
        """Return how many days the files cover."""
        return (self.last - self.first).days + 1


@dataclass(frozen=True, slots=True)
class Places:
    """Where the run file says that things are, as TOML writes them, and the comments beside them."""

    release: Line = Line("release", '"out/release"', "may be handed over as it is")
    confidential: Line = Line("confidential", '"out/confidential"', "confidential: never hand it over")
    ledger: Line = Line("ledger", '"sqlite:///out/ledger.sqlite"', "the promise itself: back it up, never edit it")
    model: Line = Line("file", '"out/confidential/model"', "`agedp calibrate` makes it once")


@dataclass(frozen=True, slots=True)
class Draft:
    """A run file in the making, table by table."""

    tables: Mapping[str, tuple[Line, ...]]
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def undecided(self) -> tuple[Key, ...]:
        """Return the keys that wait for a decision, in the order of the file."""
        return tuple((table, line.key) for table, lines in self.tables.items() for line in lines if not line.decided)

    def text(self, *, proposals: bool = False) -> str:
        """Return the run file; with `proposals` every proposal is taken, which is for checks and examples only."""
        mark = "" if proposals else DECIDE
        return "\n".join([*_HEAD, *(line for table in self.tables for line in self._table(table, mark))]) + "\n"

    def _table(self, table: str, mark: str) -> Iterator[str]:
        lines = self.tables[table]
        yield from ("", f"[{table}]", *(f"# {note}" for note in self.notes.get(table, ())))
        width = max(len(line.key) for line in lines)
        for line in lines:
            written = f"{'' if line.decided else mark}{line.key:{width}s} = {line.toml}"
            yield f"{written:{_COMMENTED}s} # {line.comment}" if line.comment else written


_HEAD: Final = (
    '# run.toml: written by `agedp init`. Lines that begin with "# decide:" have no default: you decide what decides',
    "# privacy. The figures behind them are proposals. Uncomment them, or give the options of `agedp init`; then",
    "# `agedp plan run.toml` shows what they mean.",
    "version = 1",
)


def draft(facts: Facts, given: Given, *, places: Places, base: Path) -> Draft:
    """Return the run file that the options and the files make.

    Raises:
        RunFileError: an option with a value that a run file refuses, or one that nothing uses.
    """
    given = _with_every_day(facts, given)
    _refuse_columns_without_use(facts, given)
    needed: set[Key] = set()
    for _ in range(_ROUNDS):
        found = _drafted(facts, given, needed, places)
        _, problems = check(found.text(proposals=True), base=base)
        missing = {(problem.table, problem.key) for problem in problems if problem.missing} - needed
        if not missing:
            _refuse(problems, found, given)
            return found
        needed |= missing
    raise RuntimeError("a run file that never stops missing keys")


def decided(found: Draft, *, base: Path) -> RunFile:
    """Return the run file of a draft in which nothing waits for a decision.

    Raises:
        RunFileError: the keys do not go together.
    """
    run, problems = check(found.text(), base=base)
    if run is None:
        raise RunFileError(f"run.toml: [{problems[0].table}] {problems[0].key}: {problems[0].what}")
    return run


def notion_of(given: Given) -> type[Promise] | None:
    """Return the notion that is given, classical if none is, None for one that is not known."""
    name = given.get(("promise", "notion"), quoted(_CLASSICAL))
    return next((notion for notion in NOTIONS if quoted(notion.name) == name), None)


def has_model(given: Given) -> bool:
    """Tell whether the run file has a [model]: its notion needs one, or an option is about one."""
    notion = notion_of(given)
    return any(table == "model" for table, _ in given) or (notion is not None and notion.needs_model)


def flag_of(key: Key) -> str:
    """Return how a key is named to whoever gives options: by its option, else by table and key."""
    return FLAGS.get(key, f"[{key[0]}] {key[1]}")


def _with_every_day(facts: Facts, given: Given) -> Given:
    period = ("model", "period")
    if given.get(period) != f"[{quoted(EVERY_DAY)}]":
        return given
    return {**given, period: f"[{facts.first}, {facts.last}]"}


def _refuse_columns_without_use(facts: Facts, given: Given) -> None:
    named = [key for key in given if key[0] == "input.columns"]
    if named and facts.dataset != "long":
        raise RunFileError(f"{FLAGS[named[0]]} is not used by --dataset {facts.dataset}; it goes with --dataset long")


def _drafted(facts: Facts, given: Given, needed: set[Key], places: Places) -> Draft:
    written = {
        "input": _input(facts, given),
        "output": [places.release, places.confidential, places.ledger],
        "population": [
            Line("name", quoted(f"my-{facts.dataset}-households"), "every series of this name spends one promise"),
            Line("roster", '"roster.csv"', "household_id,from,to: read off the files; correct it from your records"),
        ],
        "schedule": _schedule(facts, given),
        SERIES: [Line("statistic", '"mean"')],
        "promise": [
            Line("notion", quoted(_CLASSICAL), "nothing is assumed about the households; `--notion` has five more")
        ],
    }
    if facts.dataset == "long":
        written["input.columns"] = list(facts.columns)
    if has_model(given):
        source = "declared" if {("model", "curve"), ("model", "kernel")} & set(given) else "estimated"
        written["model"] = [Line("source", quoted(source)), *([places.model] if source == "estimated" else [])]
    proposals = _Proposals(facts, given)
    tables: dict[str, tuple[Line, ...]] = {
        table: tuple(_filled(table, written[table], given, _required(table, given) | _in(table, needed), proposals))
        for table in _TABLES
        if table in written
    }
    return Draft(tables)


def _in(table: str, keys: set[Key]) -> dict[str, None]:
    return dict.fromkeys(sorted(key for of, key in keys if of == table))


def _filled(
    table: str, lines: Sequence[Line], given: Given, required: Mapping[str, None], proposals: _Proposals
) -> Iterator[Line]:
    """Yield the lines of a table: what is written anyway, what is given, and a proposal for what is still missing."""
    own = {line.key: line for line in lines}
    options = {key: toml for (of, key), toml in given.items() if of == table}
    keys = list(dict.fromkeys([*own, *required, *options]))
    for key in sorted(keys, key=lambda each: each in _LAST):
        comment = proposals.comment(table, key)
        if key in options:
            yield Line(key, options[key], comment)
        elif key in own:
            yield replace(own[key], comment=own[key].comment or comment)
        else:
            yield Line(key, proposals.toml(table, key), comment, decided=False)


def _input(facts: Facts, given: Given) -> list[Line]:
    lines = [Line("dataset", quoted(facts.dataset)), Line("files", _list(facts.files))]
    if given.get(("schedule", "mode")) == '"live"':
        lines.append(Line("corrections", quoted("later-file"), decided=False))
    return lines


def _schedule(facts: Facts, given: Given) -> list[Line]:
    mode = given.get(("schedule", "mode"), '"archive"')
    lines = [Line("mode", mode, _MODES.get(mode, ""))]
    if mode == '"live"':
        return [
            *lines,
            Line("first_day", f"{facts.last + timedelta(days=1)}", "first day of the series", decided=False),
        ]
    return [*lines, Line("first_day", f"{facts.first}"), Line("last_day", f"{facts.last}")]


_MODES: Final = {
    '"archive"': "every day of the files now",
    '"rehearsal"': "a simulated clock: each day is released when it is age_days old",
    '"live"': "each day is released when it is age_days old",
}


def _required(table: str, given: Given) -> dict[str, None]:
    """Return the keys that a table must have under the notion or model that is chosen."""
    blocks: Mapping[str, type[Block] | None] = {"promise": notion_of(given), "model": _model_block(given)}
    keys = {"population": ["min_households"], SERIES: ["clamp_kwh"]}.get(table, [])
    block = blocks.get(table)
    if block is not None:
        keys = [key for key, each in block.model_fields.items() if each.is_required()]
    return dict.fromkeys(keys)


def _model_block(given: Given) -> type[Block]:
    return Declared if {("model", "curve"), ("model", "kernel")} & set(given) else Estimated


class _Proposals:
    """A proposal and a comment for every key; proposals follow what is given, so that they go together."""

    def __init__(self, facts: Facts, given: Given) -> None:
        self._facts, self._given = facts, given

    def toml(self, table: str, key: str) -> str:
        """Return the proposal for a key."""
        if (table, key) in self._given:
            return self._given[table, key]
        made = getattr(self, f"_{key}", None)
        return str(made()) if made is not None else _PROPOSED.get((table, key)) or self._of_field(table, key)

    def comment(self, table: str, key: str) -> str:
        """Return what stands beside a key."""
        return _COMMENTS.get((table, key), "")

    def _of_field(self, table: str, key: str) -> str:
        """Return a value of a key that no proposal knows: its first choice, or 1."""
        block = notion_of(self._given) if table == "promise" else _model_block(self._given)
        kind: Any = block.model_fields[key].annotation if block is not None and key in block.model_fields else None
        return quoted(str(get_args(kind)[0])) if get_origin(kind) is Literal else "1"

    def _number(self, table: str, key: str) -> Decimal | None:
        try:
            return Decimal(self._given[table, key])
        except (KeyError, InvalidOperation):
            return None

    def _min_households(self) -> int:
        return min(
            100, max(1, (self._facts.households + 1) // 2)
        )  # not all: every day after the first that leaves would go

    def _epsilon_per_day(self) -> str:
        caps = (self._number("promise", key) for key in ("max_day_epsilon", "epsilon_total"))
        return f"{min([_DAY_EPSILON, *(cap for cap in caps if cap is not None)]):f}"

    def _max_day_epsilon(self) -> str:
        return f"{self._number('promise', 'epsilon_per_day') or Decimal(self._epsilon_per_day()):f}"

    def _epsilon_total(self) -> str:
        cap = self._number("promise", "max_day_epsilon") or Decimal(self._max_day_epsilon())
        return f"{cap * self._days:f}"

    def _clamp_kwh(self) -> str:
        return f"{max(_CLAMP_KWH, self._number('promise', 'delta_kwh') or _CLAMP_KWH):f}"

    @property
    def _days(self) -> int:
        """Return how many days are released, as far as that is known."""
        try:
            first, last = (
                date.fromisoformat(self._given.get(("schedule", key), f"{day}"))
                for key, day in (("first_day", self._facts.first), ("last_day", self._facts.last))
            )
        except ValueError:
            return self._facts.days
        return max(1, (last - first).days + 1)

    def _horizon_days(self) -> int:
        return self._days

    def _budget(self) -> str:
        return quoted("supremum" if self.toml("promise", "horizon_days") == quoted("unlimited") else "best")

    def _rate(self) -> str:
        return "1" if self._given.get(("promise", "discount")) == quoted("hyperbolic") else "0.99"

    def _schedule(self) -> str:
        return quoted("optimal")

    def _spend(self) -> str:
        return quoted("per-request" if ("promise", "delta_kwh") in self._given or self._is("neighbourhood") else "even")

    def _is(self, name: str) -> bool:
        notion = notion_of(self._given)
        return notion is not None and notion.name == name

    def _method(self) -> str:
        return quoted("total_variation" if ("model", "curve") in self._given else "tight")

    def _assume(self) -> str:
        return quoted("curve" if ("model", "curve") in self._given else "markov")

    def _step(self) -> str:
        return quoted("half-hour" if self._given.get(("model", "chain")) == quoted("cyclic") else "day")

    def _period(self) -> str:
        return f"[{self._facts.first}, {self._facts.last}]"


_PROPOSED: Final[Mapping[Key, str]] = {
    ("promise", "age_days"): "2",
    ("promise", "secret"): quoted("day"),
    ("promise", "alpha"): "1",
    ("promise", "discount"): quoted("exponential"),
    ("promise", "epsilon"): "1",
    ("promise", "clock"): quoted("data-day"),
    ("promise", "window_days"): "7",
    ("promise", "epsilon_per_window"): "1",
    ("promise", "fraction"): "0.2",
    ("promise", "delta_kwh"): "1",
    ("model", "states"): "12",
    ("model", "edges"): quoted("quantile"),
    ("model", "chain"): quoted("homogeneous"),
    ("model", "min_visits"): "10",
    ("model", "confidence"): quoted("plug-in"),
    ("model", "level"): "0.95",
    ("model", "publish"): quoted("envelope"),
    ("model", "basis"): quoted("name the source of the curve or kernel"),
}

_COMMENTS: Final[Mapping[Key, str]] = {
    ("input", "corrections"): "two files disagree: the later one by name holds | set-aside: neither",
    ("population", "min_households"): "a day with fewer households is never released; can be raised later",
    (SERIES, "clamp_kwh"): "a household's day counts at most this; public, never read off the data",
    ("promise", "age_days"): "a day is released when it is this old",
    ("promise", "epsilon_per_day"): "epsilon of one day",
    ("promise", "max_day_epsilon"): "cap of any one day",
    ("promise", "epsilon_total"): "cap of all days together; the series ends there",
    ("promise", "method"): "tight | total_variation | spectral | reversibilised",
    ("promise", "secret"): "what the bound is about: day | half-hour",
    ("promise", "alpha"): "bound on the temporal leakage about any one day",
    ("promise", "horizon_days"): "the series closes after so many releases",
    ("promise", "budget"): "best | supremum | exact | even",
    ("promise", "discount"): "exponential | hyperbolic",
    ("promise", "rate"): "a loss j days old counts rate^j, or 1 / (1 + rate j)",
    ("promise", "epsilon"): "bound on the discounted sum, on every day",
    ("promise", "schedule"): "renewal | optimal | constant | classical | paper",
    ("promise", "clock"): "data-day | publication-day",
    ("promise", "window_days"): "length of the window",
    ("promise", "epsilon_per_window"): "epsilon of any window",
    ("promise", "spend"): "w-event: even | remaining; neighbourhood: fraction | per-request | offline",
    ("promise", "delta_kwh"): "size of the change that is protected",
    ("model", "assume"): "markov | curve",
    ("model", "period"): "the days that it is estimated from",
    ("model", "step"): "half-hour | day",
    ("model", "edges"): "quantile | equal-width | a list of public kWh values",
    ("model", "chain"): "homogeneous | cyclic",
    ("model", "min_visits"): "a state with fewer visits is credited no decay",
    ("model", "confidence"): "plug-in | sampling-bound",
    ("model", "publish"): "says knowingly: it comes from the readings and is published without noise",
    ("input.columns", "time_format"): "a strptime pattern, or iso",
    ("input.columns", "stamp"): "a timestamp is the start or the end of its half-hour",
    ("input.columns", "zone"): 'time zone of the timestamps, such as "Europe/London"',
    ("input.columns", "day_zone"): "time zone whose midnight ends a day",
    ("input.columns", "unit"): "kWh | Wh",
}


def _refuse(problems: Sequence[Problem], found: Draft, given: Given) -> None:
    """Refuse what is wrong with the options; what a proposal of another table has a part in is left to the decision."""
    waiting = {table for table, _ in found.undecided}
    for problem in problems:
        if (problem.table, problem.key) in given and (problem.level != "file" or not waiting):
            raise RunFileError(_sentence(problem, given, found))
        if not waiting:
            raise RunFileError(f"{flag_of((problem.table, problem.key))}: {_unquoted(problem.what)}")


def _sentence(problem: Problem, given: Given, found: Draft) -> str:
    key = (problem.table, problem.key)
    flag = flag_of(key)
    if not problem.unused:
        return f"{flag} {given[key].strip(chr(34))}: {_unquoted(problem.what)}"
    choice = _CHOICES.get(problem.table, problem.table)
    lines = {line.key: line.toml.strip('"') for line in found.tables.get(problem.table, ())}
    chosen = lines.get({"--dataset": "dataset", "--mode": "mode", "--notion": "notion"}.get(choice, "source"), "")
    takers = f"; it goes with {choice} {' or '.join(problem.takers)}" if problem.takers else ""
    return f"{flag} is not used by {choice} {chosen}{takers}. Remove {flag}"


def _unquoted(what: str) -> str:
    """Return what is wrong without advice about quotes, which a command line does not need."""
    return what.replace(", without quotes", "").replace(" without quotes", "").replace(" in quotes", "")


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"

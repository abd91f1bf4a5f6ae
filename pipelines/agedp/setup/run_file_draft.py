"""The draft of a run file: decided keys, keys read off the files, and keys without a decision.

A deciding key that no option gives becomes a line `# decide: key = proposal`. Which keys a notion, mode or model needs
is asked of the models of the run file themselves: required fields, and the keys that the loader reports as missing.
A new notion therefore needs nothing here; `run_file_draft` only makes its proposals better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from agedp.setup import run_file_options
from agedp.setup.run_file_options import FLAGS, SERIES, Key, OptionValues, number_of, quoted, toml_text, toml_value
from agedp_data.accounting.renyi import Curve, approximate_epsilon, laplace_curve, largest_equal_loss, multiply
from agedp_data.config.loading import SCHEMA_FILE, Problem, parse, validate_run_file
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import FEWEST_HOUSEHOLDS
from agedp_data.config.run_file import RunFile
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.epsilon import NANO, ceil_nano, exact_text, floor_nano
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Promise
from agedp_data.parameters import Section, watt_hours
from agedp_data.series.series import BY_NAME
from agedp_data.statement.document import PERIOD_WORDS

# --------------------------------------------------------------------------------------------------
# Proposals for the undecided keys of a run file, and the comments on all keys.
#
# A proposal follows what is given, so that the proposals of one run file go together. A notion proposes values for its
# own keys (`NotionText.proposals`); any other key is proposed by its type: its first choice, or 1. A proposal is never
# taken without a decision.
# --------------------------------------------------------------------------------------------------

CLASSICAL: Final = "classical"
_DAY_EPSILON: Final = Decimal("0.5")
_CLAMP_KWH: Final = Decimal(50)
_FOUR_DIGITS_UP: Final = Context(prec=4, rounding=ROUND_CEILING)
_FOUR_DIGITS_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)
_TOTAL: Final = ("promise", "epsilon_total")


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One line of a run file.

    Attributes:
        key: the key within its table.
        toml: its value as TOML text.
        comment: a comment at the end of the line, "" for none.
        decided: whether the line counts; a proposal without a decision is written as a comment.
        read_off: whether its value was read off readings.
    """

    key: str
    toml: str
    comment: str = ""
    decided: bool = True
    read_off: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts of the input files on which proposals are based.

    Attributes:
        dataset: the layout, as in [input].
        files: patterns or addresses of the files.
        first: the first day with a reading.
        last: the last day with a reading.
        households: number of households.
        columns: the lines of [input.columns] of a long table.
        interval_minutes: the interval of the readings [minutes].
    """

    dataset: str
    files: tuple[str, ...]
    first: date
    last: date
    households: int
    columns: tuple[KeyLine, ...] = ()
    interval_minutes: int = INTERVAL_MINUTES

    @property
    def days(self) -> int:
        """Return the number of days that the files cover."""
        return (self.last - self.first).days + 1


def notion_of(options: OptionValues) -> type[Promise] | None:
    """Return the notion that the options name, classical without one, None for an unknown name.

    >>> notion_of({}).name, notion_of({("promise", "notion"): '"none"'})
    ('classical', None)
    """
    name = options.get(("promise", "notion"), quoted(CLASSICAL))
    return next((notion for notion in NOTIONS if quoted(notion.name) == name), None)


def model_block(options: OptionValues) -> type[Section]:
    """Return which [model] it is: declared where an option says so, or names a curve or kernel, else estimated."""
    is_declared = options.get(("model", "source")) == quoted("declared")
    return DeclaredModel if is_declared or {("model", "curve"), ("model", "kernel")} & set(options) else EstimatedModel


class Proposals:
    """A proposal and a comment for every key; proposals depend on the options, so that they are consistent."""

    def __init__(self, facts: FileFacts, options: OptionValues) -> None:
        self._facts, self._options = facts, options

    def toml(self, table: str, key: str) -> str:
        """Return the proposal for a key as TOML text.

        The first that exists: the option, the notion's proposal, a computed one, a fixed one, the key's first choice.
        """
        if (table, key) in self._options:
            return self._options[table, key]
        if (table, key) == _TOTAL and self._has_rolling_delta:
            return quoted("unlimited")
        notion = notion_of(self._options) if table == "promise" else None
        if notion is not None and key in notion.TEXT.proposals:
            return notion.TEXT.proposals[key]
        if computed := getattr(self, f"_of_{key}", None):
            return str(computed())
        return run_file_options.PROPOSALS.get((table, key)) or self._default_choice(table, key)

    def comment(self, table: str, key: str) -> str:
        """Return the comment on a key."""
        if (table, key) == _TOTAL and ("promise", "delta") in self._options:
            return _NO_TOTAL if self.toml(table, key) == quoted("unlimited") else _TOTAL_AT_DELTA
        return run_file_options.COMMENTS.get((table, key), "")

    @property
    def _has_rolling_delta(self) -> bool:
        """Return whether a delta is about a rolling window, and needs no total to apply to."""
        notion = notion_of(self._options)
        is_rolling = notion is not None and notion.TEXT.takes_delta and "window_days" in notion.model_fields
        return is_rolling and ("promise", "delta") in self._options

    @property
    def _delta(self) -> Decimal | None:
        """Return the delta of the options, None without a valid one."""
        delta = number_of({key: toml.strip('"') for key, toml in self._options.items()}, ("promise", "delta"))
        return delta if delta is not None and 0 < delta < 1 else None

    def _curve(self, loss: int) -> Curve:
        """Return the Rényi curve of a day with this loss [nano-epsilon]."""
        clamp = watt_hours(self._clamp) or 1
        return laplace_curve(clamp, clamp * NANO / loss)

    def _default_choice(self, table: str, key: str) -> str:
        """Return a value of a key without a proposal: its first choice, or 1."""
        block = notion_of(self._options) if table == "promise" else model_block(self._options)
        kind: Any = block.model_fields[key].annotation if block is not None and key in block.model_fields else None
        return quoted(str(get_args(kind)[0])) if get_origin(kind) is Literal else "1"

    def _number(self, table: str, key: str) -> Decimal | None:
        return number_of(self._options, (table, key))

    def _of_min_households(self) -> int:
        # not all: every day after the first that leaves would go; fewer are typed
        return min(100, max(FEWEST_HOUSEHOLDS, (self._facts.households + 1) // 2))

    def _of_epsilon_per_day(self) -> str:
        """Return half an epsilon within the caps, or the equal loss that fills a total at delta over the period."""
        caps = [self._number("promise", key) for key in ("max_day_epsilon", "epsilon_total")]
        (day_cap, total), delta = caps, self._delta
        if total is None or total <= 0 or delta is None or not self._has_last_day:
            return f"{min([_DAY_EPSILON, *(cap for cap in caps if cap is not None)]):f}"
        limit = floor_nano(total)
        cap = limit if day_cap is None else min(limit, floor_nano(day_cap))
        loss = largest_equal_loss(self._curve, self._days, epsilon=limit, delta=delta, cap=cap)
        return exact_text(_FOUR_DIGITS_DOWN.divide(Decimal(loss), NANO))

    def _of_max_day_epsilon(self) -> str:
        return f"{self._number('promise', 'epsilon_per_day') or Decimal(self._of_epsilon_per_day()):f}"

    def _of_epsilon_total(self) -> str:
        """Return the total of all days at the cap, with a delta that of so many equal sums, in four digits."""
        cap = self._number("promise", "max_day_epsilon") or Decimal(self._of_max_day_epsilon())
        if self._delta is None or cap <= 0:
            return f"{cap * self._days:f}"
        days = multiply(self._curve(ceil_nano(cap)), self._days)
        total = approximate_epsilon(days, self._delta, pure=ceil_nano(cap * self._days))
        return exact_text(_FOUR_DIGITS_UP.divide(Decimal(total), NANO))

    @property
    def _clamp(self) -> Decimal:
        return self._number(SERIES, "clamp_kwh") or Decimal(self._of_clamp_kwh())

    def _of_clamp_kwh(self) -> str:
        return f"{max(_CLAMP_KWH, self._number('promise', 'delta_kwh') or _CLAMP_KWH):f}"

    def _of_half_hour_clamp_kwh(self) -> str:
        """Return the clamp of a half-hour: a twelfth of the day's, so that a day may have its energy in six hours."""
        return exact_text(max(Decimal("0.001"), round(self._clamp / 12, 1)))

    def _of_bins_kwh(self) -> str:
        return f"[0, {self._clamp / 2:f}, {self._clamp:f}]"

    @property
    def _days(self) -> int:
        """Return the number of days to release, as far as the options determine it."""
        try:
            first, last = (
                date.fromisoformat(self._options.get(("schedule", key), f"{day}"))
                for key, day in (("first_day", self._facts.first), ("last_day", self._facts.last))
            )
        except ValueError:
            return self._facts.days
        return max(1, (last - first).days + 1)

    @property
    def _has_last_day(self) -> bool:
        """Return whether the period is known: that of the files, or a live one with both ends."""
        is_live = self._options.get(("schedule", "mode")) == quoted("live")
        return not is_live or {("schedule", "first_day"), ("schedule", "last_day")} <= set(self._options)

    def _of_horizon_days(self) -> str:
        return str(self._days) if self._has_last_day or ("promise", "delta") in self._options else quoted("unlimited")

    def _of_schedule(self) -> str:
        """Return the schedule of the least noise over a period, or one that needs no end."""
        if self._has_last_day:
            return quoted("optimal")
        return quoted("renewal" if self.toml("promise", "discount") == quoted("hyperbolic") else "constant")

    def _of_budget(self) -> str:
        is_endless = self.toml("promise", "horizon_days") == quoted("unlimited")
        return quoted("supremum" if is_endless and ("promise", "delta") not in self._options else "best")

    def _of_rate(self) -> str:
        return "1" if self._options.get(("promise", "discount")) == quoted("hyperbolic") else "0.99"

    def _of_spend(self) -> str:
        return quoted("per-request" if ("promise", "delta_kwh") in self._options else "even")

    def _of_method(self) -> str:
        return quoted("total_variation" if ("model", "curve") in self._options else "tight")

    def _of_assume(self) -> str:
        return quoted("curve" if ("model", "curve") in self._options else "markov")

    def _of_step(self) -> str:
        return quoted("half-hour" if self._options.get(("model", "chain")) == quoted("cyclic") else "day")

    def _of_period(self) -> str:
        return f"[{self._facts.first}, {self._facts.last}]"


_TOTAL_AT_DELTA: Final = "composed loss of all days, at delta; the series ends there"
_NO_TOTAL: Final = "no bound on all days; each window keeps its own bound, at delta"

DECIDE: Final = "# decide: "
_ROUNDS: Final = 10
_CHOICES: Final = {
    "input": ("--dataset", "dataset"),
    "schedule": ("--mode", "mode"),
    "promise": ("--notion", "notion"),
    SERIES: ("--statistic", "statistic"),
    "model": ("[model] source", "source"),
}
_TABLES: Final = ("input", "input.columns", "output", "population", "schedule", SERIES, "promise", "model")
_LAST: Final = ("max_day_epsilon", "epsilon_total", "delta", "accept")
_COMMENTED: Final = 40
_QUOTES: Final = '"'
_FURTHER: Final = {5: "five", 6: "six", 7: "seven"}.get(len(NOTIONS) - 1, str(len(NOTIONS) - 1))
_ABOUT_CLASSICAL: Final = f"nothing is assumed about the households; `--notion` has {_FURTHER} more"


@dataclass(frozen=True, slots=True)
class DraftPaths:
    """Paths of a run file, relative to its folder.

    Attributes:
        release: the release folder.
        confidential: the confidential folder.
        ledger: the address of the ledger.
        model: the folder of an estimated model.
    """

    release: str = "out/release"
    confidential: str = "out/confidential"
    ledger: str = "sqlite:///out/ledger.sqlite"
    model: str = "out/confidential/model"

    @property
    def output_lines(self) -> list[KeyLine]:
        """Return the lines of [output]."""
        return [
            KeyLine("release", quoted(self.release), "may be handed over as it is"),
            KeyLine("confidential", quoted(self.confidential), "confidential: never hand it over"),
            KeyLine("ledger", quoted(self.ledger), "the promise itself: back it up, never edit it"),
        ]


@dataclass(frozen=True, slots=True)
class RunFileDraft:
    """The draft of a run file, table by table.

    Attributes:
        tables: the lines of each table, in the order of the file.
        notes: comments below the heading of a table.
    """

    tables: Mapping[str, tuple[KeyLine, ...]]
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def undecided(self) -> tuple[Key, ...]:
        """Return the keys without a decision, in the order of the file."""
        return tuple((table, line.key) for table, lines in self.tables.items() for line in lines if not line.decided)

    def with_proposals(self, *, but: Collection[Key] = ()) -> RunFileDraft:
        """Return the draft with its proposals decided, but for some keys."""
        tables = {
            table: tuple(replace(line, decided=line.decided or (table, line.key) not in but) for line in lines)
            for table, lines in self.tables.items()
        }
        return replace(self, tables=tables)

    def text(self, *, proposals: bool = False) -> str:
        """Return the text of the run file.

        Args:
            proposals: whether proposals count as decided, for checks and examples only. Otherwise they are comments,
                and a run file with open decisions is refused.
        """
        mark = "" if proposals else DECIDE
        return "\n".join([*_HEAD, *(line for table in self.tables for line in self._table(table, mark))]) + "\n"

    def _table(self, table: str, mark: str) -> Iterator[str]:
        """Yield the lines of a table; a series is named by its statistic and by what its rows are about."""
        lines, heading = self.tables[table], table
        values = {line.key: line.toml.strip(_QUOTES) for line in lines}
        if table == SERIES and values.get("statistic") in BY_NAME:
            heading = f"series.{PERIOD_WORDS.get(values.get('every', ''), 'daily')}_{values['statistic']}"
        yield from ("", f"[{heading}]", *(f"# {note}" for note in self.notes.get(table, ())))
        width = max(len(line.key) for line in lines)
        for line in lines:
            written = f"{'' if line.decided else mark}{line.key:{width}s} = {line.toml}"
            yield f"{written:{_COMMENTED}s} # {line.comment}" if line.comment else written


_HEAD: Final = (
    f"#:schema ./{SCHEMA_FILE}",
    '# run.toml: written by `agedp init`. Lines that begin with "# decide:" have no default: you decide what',
    "# determines privacy. Their values are proposals. Uncomment them, or give the options of `agedp init`; then",
    "# `agedp plan run.toml` shows what they mean.",
    "version = 1",
)


def draft(facts: FileFacts, options: OptionValues, *, paths: DraftPaths, base: Path) -> RunFileDraft:
    """Return the draft for these options and input files.

    Raises:
        RunFileError: an option with an invalid value, or one without effect.
    """
    if options.get(("model", "period")) == f"[{quoted(run_file_options.EVERY_DAY)}]":
        options = {**options, ("model", "period"): f"[{facts.first}, {facts.last}]"}
    read_off = ("input", "read_off")  # keys of the option, and of the files
    given = toml_value(options[read_off]) if read_off in options else []
    if words := sorted({*given, *(line.key for line in facts.columns if line.read_off)}):
        options = {**options, read_off: toml_text(words)}
    column_flags = [FLAGS[key] for key in options if key[0] == "input.columns"]
    if column_flags and facts.dataset != "long":
        dataset = f"--dataset {facts.dataset}; it goes with --dataset long"
        raise RunFileError(f"{column_flags[0]} is not used by {dataset}")
    needed: set[Key] = set()
    for _ in range(_ROUNDS):
        drafted = _build_draft(facts, options, needed, paths)
        problems = [  # with all proposals accepted; the series has the name that options use
            replace(problem, table=SERIES if problem.table.startswith("series.") else problem.table)
            for problem in validate_run_file(drafted.text(proposals=True), base=base)[1]
        ]
        missing = {(problem.table, problem.key) for problem in problems if problem.missing} - needed
        if not missing:
            _check_problems(problems, drafted, options, base)
            return drafted
        needed |= missing
    raise RuntimeError("a run file that never stops missing keys")


def load_decided(complete: RunFileDraft, *, base: Path) -> RunFile:
    """Return the validated run file of a draft without undecided keys.

    Raises:
        RunFileError: the keys do not go together.
    """
    run, problems = validate_run_file(complete.text(), base=base)
    if run is None:
        raise RunFileError(f"run.toml: [{problems[0].table}] {problems[0].key}: {problems[0].message}")
    return run


def has_model(options: OptionValues) -> bool:
    """Return whether the run file has a [model]: its notion needs one, or an option belongs to it."""
    notion = notion_of(options)
    if any(table == "model" for table, _ in options) or notion is None or not notion.needs_model:
        return any(table == "model" for table, _ in options)
    given: dict[str, Any] = {key: toml.strip('"') for (table, key), toml in options.items() if table == "promise"}
    # a promise with a delta may do without: the notion decides by its keys, a budget among them
    return notion.model_construct(**{"budget": "best", **given}).requires_model


def flag_of(key: Key) -> str:
    """Return the name of a key in messages: its option, else table and key.

    >>> flag_of(("population", "min_households")), flag_of(("engine", "workers"))
    ('--min-households', '[engine] workers')
    """
    return FLAGS.get(key, f"--{key[1]}" if key[0] == "protect" else f"[{key[0]}] {key[1]}")


def _build_draft(facts: FileFacts, options: OptionValues, needed: set[Key], paths: DraftPaths) -> RunFileDraft:
    model = model_block(options)
    lines_by_table = {
        "input": _input(facts, options),
        "output": paths.output_lines,
        "population": [
            KeyLine("name", quoted(f"my-{facts.dataset}-households"), "every series of this name spends one promise"),
            KeyLine("roster", '"roster.csv"', "from the files; correct it from your records (CSV or .parquet)"),
        ],
        "schedule": _schedule(facts, options),
        SERIES: [KeyLine("statistic", '"mean"')],
        "promise": [KeyLine("notion", quoted(CLASSICAL), _ABOUT_CLASSICAL)],
    }
    if facts.dataset == "long":
        lines_by_table["input.columns"] = list(facts.columns)
    if has_model(options):
        lines_by_table["model"] = [KeyLine("source", quoted("declared" if model is DeclaredModel else "estimated"))]
        if model is EstimatedModel:
            lines_by_table["model"].append(KeyLine("file", quoted(paths.model), "`agedp calibrate` makes it once"))
    further = [table for table, _ in options if table not in _TABLES]
    lines_by_table |= {table: [] for table in further}
    proposals = Proposals(facts, options)
    tables: dict[str, tuple[KeyLine, ...]] = {}
    for table in (table for table in dict.fromkeys((*_TABLES, *further)) if table in lines_by_table):
        required = [*_required(table, options), *sorted(key for key_table, key in needed if key_table == table)]
        tables[table] = tuple(_table_lines(table, lines_by_table[table], options, required, proposals))
    is_live = options.get(("schedule", "mode")) == quoted("live")
    is_advised = is_live and ("output", "witness") not in options  # only the user can choose the location of a witness
    witness = (f'witness = "/mnt/other-disk/agedp.witness"  {_WITNESS}',)
    return RunFileDraft(tables, {"output": witness} if is_advised else {})


def _table_lines(
    table: str, lines: Sequence[KeyLine], options: OptionValues, required: Sequence[str], proposals: Proposals
) -> Iterator[KeyLine]:
    """Yield the lines of a table: fixed lines, options, and proposals for required keys without either."""
    written = {line.key: line for line in lines}
    table_options = {key: toml for (key_table, key), toml in options.items() if key_table == table}
    keys = list(dict.fromkeys([*written, *required, *table_options]))
    for key in sorted(keys, key=lambda name: name in _LAST):
        comment = proposals.comment(table, key)
        if key in table_options:
            yield KeyLine(key, table_options[key], comment)
        elif key in written:
            yield replace(written[key], comment=written[key].comment or comment)
        else:
            yield KeyLine(key, proposals.toml(table, key), comment, decided=False)


def _input(facts: FileFacts, options: OptionValues) -> list[KeyLine]:
    lines = [KeyLine("dataset", quoted(facts.dataset)), KeyLine("files", f"[{', '.join(map(quoted, facts.files))}]")]
    if facts.interval_minutes != INTERVAL_MINUTES:
        lines.append(KeyLine("interval_minutes", str(facts.interval_minutes), "minutes between readings"))
    if options.get(("schedule", "mode")) == '"live"':
        lines.append(KeyLine("corrections", quoted("later-file"), decided=False))
    return lines


def _schedule(facts: FileFacts, options: OptionValues) -> list[KeyLine]:
    mode = options.get(("schedule", "mode"), '"archive"')
    lines = [KeyLine("mode", mode, _MODES.get(mode, ""))]
    if mode == '"live"':
        day = facts.last + timedelta(days=1)
        return [*lines, KeyLine("first_day", f"{day}", "first day of the series", decided=False)]
    return [*lines, KeyLine("first_day", f"{facts.first}"), KeyLine("last_day", f"{facts.last}")]


_WITNESS: Final = "# refuses a ledger that was restored from a snapshot; or s3://"
_MODES: Final = {
    '"archive"': "every day of the files now",
    '"rehearsal"': "a simulated clock: each day is released when it is age_days old",
    '"live"': "each day is released when it is age_days old",
}


def _required(table: str, options: OptionValues) -> list[str]:
    """Return the required keys of a table under the chosen notion, model or mode."""
    blocks: Mapping[str, type[Section] | None] = {"promise": notion_of(options), "model": model_block(options)}
    statistic = BY_NAME.get(options.get((SERIES, "statistic"), "mean").strip(_QUOTES), BY_NAME["mean"])
    amounts = [key for key, field in statistic.model_fields.items() if field.is_required() and key != "statistic"]
    rehearsal = ["rehearsal_on"] if options.get(("schedule", "mode")) == quoted("rehearsal") else []
    keys = {"population": ["min_households"], SERIES: amounts, "schedule": rehearsal}.get(table, [])
    block = blocks.get(table)
    if block is not None:
        keys = [key for key, field in block.model_fields.items() if field.is_required()]
        notion = notion_of(options)
        has_bound = notion is not None and ("risk" not in notion.model_fields or ("promise", "risk") in options)
        if block is EstimatedModel and notion is not None and notion.needs_model and has_bound:  # at registration
            keys.append("accept_unverified_model")
    return keys


def _check_problems(problems: Sequence[Problem], drafted: RunFileDraft, options: OptionValues, base: Path) -> None:
    """Raise the first problem that options cause; a problem that involves undecided keys is not raised yet."""
    if any(problem.unused and (problem.table, problem.key) in options.keys() - FLAGS.keys() for problem in problems):
        parse(drafted.text(proposals=True), base=base, name="--set")  # raises, with the nearest known key
    waiting = {table for table, _ in drafted.undecided}
    for problem in problems:
        if (problem.table, problem.key) in options and (problem.level != "file" or not waiting):
            raise RunFileError(_sentence(problem, options, drafted))
        if not waiting:
            raise RunFileError(f"{flag_of((problem.table, problem.key))}: {_unquoted(problem.message)}")


def _sentence(problem: Problem, options: OptionValues, drafted: RunFileDraft) -> str:
    key = (problem.table, problem.key)
    flag = flag_of(key)
    if not problem.unused:
        return f"{flag} {options[key].strip(chr(34))}: {_unquoted(problem.message)}"
    choice, choosing_key = _CHOICES.get(problem.table, (problem.table, ""))
    lines = {line.key: line.toml.strip('"') for line in drafted.tables.get(problem.table, ())}
    chosen = lines.get(choosing_key, "")
    takers = f"; it goes with {choice} {' or '.join(problem.accepted_by)}" if problem.accepted_by else ""
    return f"{flag} is not used by {choice} {chosen}{takers}. Remove {flag}"


def _unquoted(text: str) -> str:
    """Return a message without its advice about quotes, which a command line does not need."""
    return text.replace(", without quotes", "").replace(" without quotes", "").replace(" in quotes", "")

"""The draft of a run file: decided keys, keys read off the files, and keys without a decision.

A deciding key that no option gives becomes a line `# decide: key = proposal`. Which keys a notion, mode or model needs
is asked of the models of the run file themselves: required fields, and the keys that the loader reports as missing.
A new notion therefore needs nothing here; `run_file_proposals` only makes its proposals better.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from agedp.setup.run_file_options import EVERY_DAY, FLAGS, SERIES, Key, OptionValues, quoted, toml_text
from agedp.setup.run_file_proposals import CLASSICAL, FileFacts, KeyLine, Proposals, model_block, notion_of
from agedp_data.config.error_messages import Problem
from agedp_data.config.loading import validate_run_file
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.run_file import RunFile
from agedp_data.config.run_file_schema import SCHEMA_FILE
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.parameters import Section

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
_AMOUNTS: Final[Mapping[str, list[str]]] = {
    quoted("mean"): ["clamp_kwh"],
    quoted("distribution"): ["clamp_kwh", "bins_kwh"],
    quoted("profile"): ["clamp_kwh", "half_hour_clamp_kwh"],
    quoted("coverage"): [],
}
"""Required keys of a series by its statistic."""
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

    def text(self, *, proposals: bool = False) -> str:
        """Return the text of the run file.

        Args:
            proposals: whether proposals count as decided, for checks and examples only. Otherwise they are comments,
                and a run file with open decisions is refused.
        """
        mark = "" if proposals else DECIDE
        return "\n".join([*_HEAD, *(line for table in self.tables for line in self._table(table, mark))]) + "\n"

    def _table(self, table: str, mark: str) -> Iterator[str]:
        lines = self.tables[table]
        yield from ("", f"[{self._heading(table)}]", *(f"# {note}" for note in self.notes.get(table, ())))
        width = max(len(line.key) for line in lines)
        for line in lines:
            written = f"{'' if line.decided else mark}{line.key:{width}s} = {line.toml}"
            yield f"{written:{_COMMENTED}s} # {line.comment}" if line.comment else written

    def _heading(self, table: str) -> str:
        """Return the name of a table in the file; a series is named by its statistic."""
        statistics = [line.toml for line in self.tables[table] if table == SERIES and line.key == "statistic"]
        return next((f"series.daily_{of.strip(_QUOTES)}" for of in statistics if of in _AMOUNTS), table)


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
    options = _with_read_off(facts, _with_every_day(facts, options))
    _check_columns_used(facts, options)
    needed: set[Key] = set()
    for _ in range(_ROUNDS):
        drafted = _build_draft(facts, options, needed, paths)
        problems = _problems(drafted, base)
        missing = {(problem.table, problem.key) for problem in problems if problem.missing} - needed
        if not missing:
            _check_problems(problems, drafted, options)
            return drafted
        needed |= missing
    raise RuntimeError("a run file that never stops missing keys")


def _problems(drafted: RunFileDraft, base: Path) -> list[Problem]:
    """Return the problems of a draft with all proposals accepted; the series has the name that options use."""
    _, problems = validate_run_file(drafted.text(proposals=True), base=base)
    return [
        replace(problem, table=SERIES if problem.table.startswith("series.") else problem.table) for problem in problems
    ]


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
    return FLAGS.get(key, f"[{key[0]}] {key[1]}")


def _with_every_day(facts: FileFacts, options: OptionValues) -> OptionValues:
    period = ("model", "period")
    if options.get(period) != f"[{quoted(EVERY_DAY)}]":
        return options
    return {**options, period: f"[{facts.first}, {facts.last}]"}


def _with_read_off(facts: FileFacts, options: OptionValues) -> OptionValues:
    """Return the options with all keys that were read off readings: those of the option, and of the files."""
    key = ("input", "read_off")
    given = tomllib.loads(f"words = {options[key]}")["words"] if key in options else []
    words = sorted({*given, *(line.key for line in facts.columns if line.read_off)})
    return {**options, key: toml_text(words)} if words else options


def _check_columns_used(facts: FileFacts, options: OptionValues) -> None:
    column_keys = [key for key in options if key[0] == "input.columns"]
    if column_keys and facts.dataset != "long":
        raise RunFileError(
            f"{FLAGS[column_keys[0]]} is not used by --dataset {facts.dataset}; it goes with --dataset long"
        )


def _build_draft(facts: FileFacts, options: OptionValues, needed: set[Key], paths: DraftPaths) -> RunFileDraft:
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
        source = "declared" if {("model", "curve"), ("model", "kernel")} & set(options) else "estimated"
        lines_by_table["model"] = [KeyLine("source", quoted(source))]
        if source == "estimated":
            lines_by_table["model"].append(KeyLine("file", quoted(paths.model), "`agedp calibrate` makes it once"))
    proposals = Proposals(facts, options)
    tables: dict[str, tuple[KeyLine, ...]] = {
        table: tuple(
            _table_lines(
                table, lines_by_table[table], options, _required(table, options) | _in(table, needed), proposals
            )
        )
        for table in _TABLES
        if table in lines_by_table
    }
    return RunFileDraft(tables, _notes(options))


def _notes(options: OptionValues) -> dict[str, tuple[str, ...]]:
    """Return comments on tables: advice to add a witness to a live series; only the user can choose its location."""
    if options.get(("schedule", "mode")) != quoted("live") or ("output", "witness") in options:
        return {}
    return {"output": (f'witness = "/mnt/other-disk/agedp.witness"  {_WITNESS}',)}


def _in(table: str, keys: set[Key]) -> dict[str, None]:
    return dict.fromkeys(sorted(key for key_table, key in keys if key_table == table))


def _table_lines(
    table: str, lines: Sequence[KeyLine], options: OptionValues, required: Mapping[str, None], proposals: Proposals
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
    lines = [KeyLine("dataset", quoted(facts.dataset)), KeyLine("files", _list(facts.files))]
    if facts.interval_minutes != INTERVAL_MINUTES:
        lines.append(KeyLine("interval_minutes", str(facts.interval_minutes), "minutes between readings"))
    if options.get(("schedule", "mode")) == '"live"':
        lines.append(KeyLine("corrections", quoted("later-file"), decided=False))
    return lines


def _schedule(facts: FileFacts, options: OptionValues) -> list[KeyLine]:
    mode = options.get(("schedule", "mode"), '"archive"')
    lines = [KeyLine("mode", mode, _MODES.get(mode, ""))]
    if mode == '"live"':
        return [
            *lines,
            KeyLine("first_day", f"{facts.last + timedelta(days=1)}", "first day of the series", decided=False),
        ]
    return [*lines, KeyLine("first_day", f"{facts.first}"), KeyLine("last_day", f"{facts.last}")]


_WITNESS: Final = "# refuses a ledger that was restored from a snapshot; or s3://"
_MODES: Final = {
    '"archive"': "every day of the files now",
    '"rehearsal"': "a simulated clock: each day is released when it is age_days old",
    '"live"': "each day is released when it is age_days old",
}


def _required(table: str, options: OptionValues) -> dict[str, None]:
    """Return the required keys of a table under the chosen notion, model or mode."""
    blocks: Mapping[str, type[Section] | None] = {"promise": notion_of(options), "model": model_block(options)}
    amounts = _AMOUNTS.get(options.get((SERIES, "statistic"), quoted("mean")), ["clamp_kwh"])
    rehearsal = ["rehearsal_on"] if options.get(("schedule", "mode")) == quoted("rehearsal") else []
    keys = {"population": ["min_households"], SERIES: amounts, "schedule": rehearsal}.get(table, [])
    block = blocks.get(table)
    if block is not None:
        keys = [key for key, field in block.model_fields.items() if field.is_required()]
        if block is EstimatedModel and ("promise", "risk") in options:  # required when the promise is registered
            keys.append("accept_unverified_model")
    return dict.fromkeys(keys)


def _check_problems(problems: Sequence[Problem], drafted: RunFileDraft, options: OptionValues) -> None:
    """Raise the first problem that options cause; a problem that involves undecided keys is not raised yet."""
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


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"

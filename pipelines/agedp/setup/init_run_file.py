"""Input files -> a commented run file and a first roster, for the user to read, correct and decide.

Layout, period, roster, and the columns of a long table, as far as its first rows show them, are read off the files.
Every key that decides privacy is an option; without the option its line begins with `# decide:`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from itertools import product
from pathlib import Path
from typing import Final

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp.run_context import engine_for, load_meters, reading_rules, store_for
from agedp.setup import protection, run_file_draft
from agedp.setup.long_columns import TABLE, LongTable, OtherFiles, UnreadableTable, read_columns
from agedp.setup.run_file_draft import DraftPaths, FileFacts, RunFileDraft, draft, notion_of
from agedp.setup.run_file_options import SERIES, Key, OptionValues, quoted
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.file_identity import first_records, read_header, texts_of_file
from agedp.store.named_days import day_spans
from agedp.store.store import Store
from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.config.loading import SCHEMA_FILE, run_file_schema, validate_run_file
from agedp_data.datasets import filesystem, parquet_parsing
from agedp_data.datasets.csv_lines import raw_cells
from agedp_data.datasets.filesystem import UTF_8, InputFile
from agedp_data.datasets.layout import PASSES, Layout, Records
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.table_text import ENCODINGS, SEPARATORS, encoding_of, is_value, text_lines
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import FIRST_DAY, INTERVAL_MINUTES, LAST_DAY, RejectionReason
from agedp_data.errors import InputError, RunFileError
from agedp_data.messages import escape_text
from agedp_data.roster import READ_OFF_MARK, Roster, columns_of, format_roster, parse_roster, read_roster

# --------------------------------------------------------------------------------------------------
# The roster of a new run file: written once, never over a corrected one.
# --------------------------------------------------------------------------------------------------

BY: Final[Key] = (SERIES, "by")


def is_read_off(roster: Path) -> bool:
    """Return whether a roster exists that still begins with the line that `init` writes.

    The statement then reports that the roster was read off the data; a corrected roster has no such line.
    """
    try:
        with roster.open("rb") as stream:
            return stream.read(len(READ_OFF_MARK)) == READ_OFF_MARK.encode()
    except OSError:
        return False


def is_undecided(run_file: Path) -> bool:
    """Return whether a run file still has lines to decide, as `init` writes them: nothing was run with it."""
    try:
        return any(line.startswith(run_file_draft.DECIDE) for line in run_file.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return False


def check_group_column(roster: Path, options: OptionValues) -> None:
    """Refuse group columns that the roster does not have; the input files contain no groups.

    Raises:
        RunFileError: the roster does not exist or has no such column.
    """
    if BY not in options:
        return
    columns = columns_of(json.loads(options[BY]))
    present = read_roster(roster).counts.groups if roster.exists() else ()
    if missing := [column for column in columns if column not in present]:
        problem = "has no such column" if roster.exists() else "does not exist"
        names = escape_text(",".join(missing if roster.exists() else columns))
        raise RunFileError(
            f"--by {names}: {roster.name} {problem}, and no group can be read off the files. Write "
            f"{escape_text(str(Path(roster.parent.name, roster.name)))} with {names} first, or remove --by"
        )


def existing_file_error(path: Path) -> InputError:
    """Return the error about a file that would be overwritten."""
    return InputError(f"{path} exists already; move it away or name another folder with --in")


_OLD_DAYS, _LOOKED_AT, _SHOWN = 365, 3, 3
_DATES: tuple[Key, ...] = (("schedule", "first_day"), ("schedule", "last_day"), ("model", "period"))
_OF_DATES: tuple[Key, ...] = (*_DATES, ("schedule", "skip_days"), (SERIES, "every"))
"""Options that only a known period can be compared with."""
METERS: Key = ("population", "meters")
_MODE: Key = ("schedule", "mode")
_LAST_WEEK = 7
_PREVIOUS = "run-previous.toml"
_ANY_DAY = FIRST_DAY
_ANY_PERIOD: OptionValues = {_DATES[0]: f"{FIRST_DAY + timedelta(days=1)}", _DATES[1]: f"{LAST_DAY}"}
"""The longest period that meters can have recorded: before the files are read, it excludes no day and no month."""


@dataclass(frozen=True, slots=True)
class FirstReading:
    """One of the first readings of the files, as a run reads it: confidential, for the terminal.

    Attributes:
        household: its household.
        begin: the wall-clock time of `day_zone` at which its interval begins.
        minutes: the minutes of the interval.
        kwh: its energy, None if it is rejected or missing.
        reason: why it is rejected, "kept" otherwise.
    """

    household: str
    begin: datetime
    minutes: int
    kwh: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class InitialFiles:
    """The files written by `init`, and the facts and options that they are based on.

    Attributes:
        run_file: path of the run file.
        roster: path of the roster.
        facts: the facts of the input files.
        draft: the content of the run file, with the keys that await a decision.
        long: the recognised columns of a long table.
        options: the options of the call.
        first: the first readings of a long table.
    """

    run_file: Path
    roster: Path
    facts: FileFacts
    draft: RunFileDraft
    long: LongTable | None = None
    options: OptionValues = field(default_factory=dict)
    first: tuple[FirstReading, ...] = ()

    @property
    def households(self) -> int:
        """Return the number of households on the roster."""
        return self.facts.households

    @property
    def undecided(self) -> tuple[Key, ...]:
        """Return the keys without a decision."""
        return self.draft.undecided

    @property
    def age_days(self) -> int:
        """Return the age of the newest day of the files, in days."""
        return (clock.now().date() - self.facts.last).days

    @property
    def credits_age(self) -> bool:
        """Return whether the notion credits age, so that `age_days` is required."""
        notion = notion_of(self.options)
        return notion is not None and notion.model_fields["age_days"].is_required()

    @property
    def is_old_archive(self) -> bool:
        """Return whether an archive publishes days that are years old."""
        mode = self.options.get(("schedule", "mode"), quoted("archive"))
        return mode == quoted("archive") and self.age_days > _OLD_DAYS

    def read_roster(self) -> Roster:
        """Return the roster that was written."""
        return read_roster(self.roster)


def init(
    patterns: Sequence[str],
    *,
    folder: Path,
    options: OptionValues | None = None,
    paths: DraftPaths | None = None,
    progress: ProgressReporter = SILENT,
) -> InitialFiles:
    """Write run.toml and roster.csv into a folder, and run.schema.json for editors; an existing one is kept.

    A run file that still has lines to decide is written anew, and moved to run-previous.toml.

    Args:
        patterns: files, folders, globs or URLs of the input files.
        folder: where to write.
        options: TOML text of the decided keys, as from `run_file_options.toml_of`.
        paths: paths of release, ledger and model in the run file; by default below `folder`/out.
        progress: receives the progress of reading.

    Raises:
        InputError: no usable file, a file that cannot be parsed, an invalid file of meters, or a run file that exists
            already.
        RunFileError: an option with an invalid value.
    """
    run_file, roster = folder / "run.toml", folder / "roster.csv"
    options = _with_absolute_paths(options or {})
    check_group_column(roster, options)
    is_open = check_replaceable(folder, options)
    paths = paths or DraftPaths()
    dataset, long = read_layout(patterns, options)
    facts = _facts(dataset, long, patterns, {})
    provisional = _provisional(facts, options, paths, folder)
    with _store(provisional, long) as store:
        engine = engine_for(provisional, None, progress)
        delivery = ingest(store, patterns, engine=engine, excluding=provisional.population.own_files, for_roster=True)
        spans = day_spans(store, delivery, engine=engine)
    if not (spans and delivery.rows_kept):
        raise _no_reading_error(delivery, store, patterns)
    facts = _facts(dataset, long, patterns, spans)
    content = format_roster(_roster_rows(spans, facts.last, options)).encode()
    base = folder.absolute()
    if protection.is_asked(options):
        counted = read_roster(roster) if BY in options else parse_roster(roster.name, content)
        drafted = protection.decide(facts, options, counted.counts, paths=paths, base=base, today=clock.today())
    else:
        drafted = draft(facts, options, paths=paths, base=base)
    drafted = _with_age_note(drafted, facts, options)
    if not drafted.undecided:
        run_file_draft.load_decided(drafted, base=base)
    if BY not in options:
        if not roster.exists():
            atomic_files.write(roster, content)
        elif roster.read_bytes() != content:  # an equal one of an interrupted call stays, a corrected one too
            raise existing_file_error(roster)
    if not (schema := folder / SCHEMA_FILE).exists():
        atomic_files.write(schema, (json.dumps(run_file_schema(), indent=1) + "\n").encode(), mode=0o644)
    if is_open:  # as `init` left it, or with comments of its user
        run_file.replace(folder / _PREVIOUS)
    atomic_files.write(run_file, drafted.text().encode(), mode=0o644)
    first = () if long is None else _first_readings(patterns, drafted, folder)
    return InitialFiles(run_file, roster, facts, drafted, long, options, first)


def check_replaceable(folder: Path, options: OptionValues) -> bool:
    """Refuse a folder with a decided run file or a corrected roster; return whether it has a run file to replace.

    Raises:
        InputError: names the file.
    """
    run_file, roster = folder / "run.toml", folder / "roster.csv"
    is_open = run_file.exists() and is_undecided(run_file)
    if (run_file.exists() and not is_open) or (BY not in options and roster.exists() and not is_read_off(roster)):
        raise existing_file_error(roster if is_open or not run_file.exists() else run_file)
    return is_open


def _roster_rows(
    spans: Mapping[str, tuple[date, date]], newest: date, options: OptionValues
) -> Iterator[tuple[str, date, date | None]]:
    """Yield the rows of a roster; those that reach the last week of the files have no end if the series goes on."""
    is_later = options.get(("schedule", "last_day"), "").strip('"') > f"{newest}"
    goes_on = options.get(_MODE) == quoted("live") or (options.get(_MODE) == quoted("rehearsal") and is_later)
    for household in sorted(spans):
        first, last = spans[household]
        yield household, first, None if goes_on and last > newest - timedelta(days=_LAST_WEEK) else last


def _first_readings(patterns: Sequence[str], drafted: RunFileDraft, folder: Path) -> tuple[FirstReading, ...]:
    """Return the first three readings under the lines of the run file, as proposed; none if these do not fit."""
    run, _ = validate_run_file(drafted.text(proposals=True), base=folder.absolute())
    if run is None:
        return ()
    layout, rules = run.input.layout, reading_rules(run)
    for listed in filesystem.list_input_files(patterns, excluding=run.population.own_files).sources:
        source = replace(listed, encoding=layout.encoding)
        header, start = read_header(source, layout)
        if header is not None:
            records = first_records(source, start, header, layout, rules)
            return tuple(_reading(records, i, layout) for i in range(min(_SHOWN, len(records.reason))))
    return ()


def _reading(records: Records, row: int, layout: Layout) -> FirstReading:
    reason, energy = RejectionReason(int(records.reason[row])), int(records.energy_wh[row, 0])
    minutes = int(records.slot[row]) * INTERVAL_MINUTES + int(records.channel[row]) // PASSES * layout.interval_minutes
    midnight = datetime.combine(date_of_day(int(records.day[row])), clock_time())
    is_kept, kwh = reason == RejectionReason.KEPT, energy / layout.units_per_wh / 1000
    household = records.ids[records.household[row]] if records.household[row] >= 0 else ""
    begin = midnight + timedelta(minutes=minutes)
    return FirstReading(household, begin, layout.interval_minutes, kwh if is_kept else None, reason.words)


def _no_reading_error(delivery: Delivery, store: Store, patterns: Sequence[str]) -> InputError:
    """Return the error about files without any kept row."""
    problem = "the files contain no reading, so the roster would be empty"
    reason, number = max(delivery.rejected.items(), key=lambda item: item[1], default=("", 0))
    if reason == RejectionReason.CATEGORY.words:
        for source in filesystem.list_input_files(patterns).sources:
            header, start = read_header(source, store.layout)
            if header is not None and (unasked := texts_of_file(source, start, header, store)):
                return InputError(problem, private=f"{problem}: {unasked}")
    if reason != RejectionReason.ABOVE_BOUND.words:
        return InputError(problem, private=f"{problem}. Rows rejected: {reason}, {number:,}" if number else problem)
    return InputError(
        "the files contain no reading: values exceed max_half_hour_kwh. The unit is wrong, or they are registers of "
        "a meter (docs/your-files.md, Cumulative registers)"
    )


def preview(
    patterns: Sequence[str], *, folder: Path, options: OptionValues, paths: DraftPaths
) -> tuple[RunFileDraft, LongTable | None]:
    """Return the run file that `init` would write, with a period that is not read yet, and what its columns rest on.

    Raises:
        InputError, RunFileError: as `init`.
    """
    options = {key: toml for key, toml in _with_absolute_paths(options).items() if key not in _OF_DATES}
    dataset, long = read_layout(patterns, options)
    check_group_column(folder / "roster.csv", options)
    return _draft_unread(_facts(dataset, long, patterns, {}), options, paths, folder), long


def _draft_unread(facts: FileFacts, options: OptionValues, paths: DraftPaths, folder: Path) -> RunFileDraft:
    """Return the draft before the files are read: what --protect or --epsilon leads to is not known yet."""
    drafter = protection.provisional if protection.is_asked(options) else draft
    return drafter(facts, options, paths=paths, base=folder.absolute())


def _with_absolute_paths(options: OptionValues) -> OptionValues:
    """Return the options with absolute paths; relative ones are relative to the current folder."""
    absolute = dict(options)
    for key in (METERS, ("model", "curve"), ("model", "kernel"), ("model", "family"), ("output", "witness")):
        if key in absolute and "://" not in (location := json.loads(absolute[key])):
            absolute[key] = quoted(str(Path(location).absolute()))
    return absolute


def read_layout(patterns: Sequence[str], options: OptionValues) -> tuple[str, LongTable | None]:
    """Return the layout of the files: by option, by a publisher's header, or by the first rows of a long table.

    Raises:
        InputError: no usable file, or a long table whose first rows do not show its layout.
    """
    meters = [json.loads(options[METERS])] if METERS in options else []
    sources = filesystem.list_input_files(patterns, excluding=meters).sources
    dataset_option = options.get(("input", "dataset"))
    if dataset_option is not None and dataset_option != quoted(Long.name):
        return json.loads(dataset_option), None
    if dataset_option is None and (dataset := _publisher(sources)) is not None:
        return dataset, None
    for source in sources:
        long = _long_table(source, sources, options)
        if long is not None:
            return Long.name, long
    for source in sources:
        if not filesystem.is_parquet(source.location) and (lines := _first_lines(source, options)[1]):
            raise _no_header_error(source, lines)
    for source in sources:
        read_header(source, next(iter(LAYOUTS.values())))  # raises the error about a file that is no text
    problem = "the input files are empty. Deliver the readings, or correct the paths"
    raise InputError(problem, private=f"{sources[0].location}: {problem}")


def _no_header_error(source: InputFile, lines: Sequence[str]) -> InputError:
    """Return the error about a text in which no line is a header with rows below it; its lines are private."""
    mark = max(SEPARATORS, key=lambda mark: len(raw_cells(lines[0], mark)))
    cells = raw_cells(lines[0], mark)
    if (dataset := _recognised(lines)) is not None:  # the lines are decoded, and the publisher's layout is not
        problem = f'it is of dataset "{dataset}", but not in UTF-8; save it as UTF-8'
    elif len(cells) == 1:
        problem = "its lines are no cells between commas, semicolons, tabs or bars: not a table of CSV"
    elif any(map(is_value, cells)):
        problem = "its first line seems to be a row already; write a line with the names of the columns above it"
    elif (longer := _longer_rows(lines, cells, mark)) is not None:
        numbers = f"its rows have {longer} cells and its first line {len(cells)}"
        problem = f"{numbers}, as decimal commas without quotes make them"
    else:
        problem = "no line names the columns of rows below it that have numbers and times"
    return source.error(problem, private=f'{problem}. The first line is "{escape_text(lines[0], 120)}"')


def _recognised(lines: Sequence[str]) -> str | None:
    for name, layout in LAYOUTS.items():
        with suppress(InputError):
            if layout.recognise(lines[: layout.head_lines]) is not None:
                return name
    return None


def _longer_rows(lines: Sequence[str], names: Sequence[str], mark: str) -> int | None:
    """Return the number of cells of the rows below a line of names, if all have more and begin alike."""
    numbers = {len(raw_cells(line, mark)) for line in lines[1:] if line.strip()}
    return numbers.pop() if len(numbers) == 1 and max(numbers) > len(names) else None


def _publisher(sources: Sequence[InputFile]) -> str | None:
    """Return the first dataset with the header of a file, None if no file has a known header."""
    for source, (name, layout) in product(sources, LAYOUTS.items()):
        with suppress(InputError):
            if read_header(source, layout)[0] is not None:
                return name
    return None


def _long_table(source: InputFile, sources: Sequence[InputFile], options: OptionValues) -> LongTable | None:
    """Return the columns of a table by its first lines, None if it has no rows or is no text.

    Raises:
        InputError: its first rows leave open how to read it.
    """
    others = [other for other in sources if other is not source][:_LOOKED_AT]
    try:
        if filesystem.is_parquet(source.location):
            of_cells = {key: toml for key, toml in options.items() if key != (TABLE, "separator")}
            long = read_columns(parquet_parsing.first_lines(source), of_cells, complete=False)
        else:
            encoding, lines, complete = _first_lines(source, options)
            texts = [other for other in others if not filesystem.is_parquet(other.location)]
            files = OtherFiles([file.name for file in sources], [_first_lines(other, options)[1] for other in texts])
            long = read_columns(lines, options, complete=complete, encoding=encoding, others=files)
        if long is not None:
            long.check_readable()
    except InputError as error:
        if str(error).startswith(source.label):
            raise
        of_file = source.error(str(error), private=error.private)
        if isinstance(error, UnreadableTable):
            of_file = UnreadableTable(str(of_file), private=of_file.private, candidates=error.candidates)
        raise of_file from None
    return long


def _first_lines(source: InputFile, options: OptionValues) -> tuple[str, list[str], bool]:
    """Return the encoding of a file, its first lines, none if it is no text, and whether they are all."""
    head = filesystem.read_head(source)
    complete = len(head) < filesystem.HEAD_BYTES
    given = options.get((TABLE, "encoding"))
    encoding = json.loads(given) if given else encoding_of(head, complete=complete)
    lines = text_lines(head, encoding, complete=complete) if encoding in ENCODINGS else []
    return encoding or UTF_8, lines, complete


def _facts(
    dataset: str, long: LongTable | None, patterns: Sequence[str], spans: Mapping[str, tuple[date, date]]
) -> FileFacts:
    first = min((span[0] for span in spans.values()), default=_ANY_DAY)
    last = max((span[1] for span in spans.values()), default=_ANY_DAY)
    columns = long.lines if long is not None else ()
    locations = tuple(pattern if "://" in pattern else str(Path(pattern).absolute()) for pattern in patterns)
    interval = (long.interval_minutes if long is not None else None) or INTERVAL_MINUTES
    return FileFacts(dataset, locations, first, last, len(spans), columns, interval)


def _provisional(facts: FileFacts, options: OptionValues, paths: DraftPaths, folder: Path) -> RunFile:
    """Return a run file that reads the files as the final one will, with every option checked.

    Raises:
        RunFileError: an option with an invalid value, or one without effect.
    """
    undated = {key: toml for key, toml in options.items() if key not in _DATES} | dict(_ANY_PERIOD)
    _draft_unread(facts, undated, paths, folder)
    input_options = {key: toml for key, toml in options.items() if key[0] in ("input", TABLE) or key == METERS}
    lines = tuple(  # an undecided unit becomes Wh, the smaller one, so that no value exceeds the physical bound
        line if line.decided or line.key != "unit" else replace(line, toml=quoted("Wh")) for line in facts.columns
    )
    text = draft(replace(facts, columns=lines), input_options, paths=paths, base=folder.absolute()).text(proposals=True)
    run, problems = validate_run_file(text, base=folder.absolute())
    if run is None:
        raise InputError(f"[{problems[0].table}] {problems[0].key}: {problems[0].message}")
    return run


@contextmanager
def _store(run: RunFile, long: LongTable | None) -> Iterator[Store]:
    """Yield the store that a run will reuse, or a temporary one for a table with undecided columns."""
    store = store_for(run, households=0, meters=load_meters(run))  # not known before the files are read
    confidential = atomic_files.make_private(Path(run.output.confidential))
    if long is None or all(line.decided for line in long.lines):
        yield store
        return
    folder = atomic_files.make_private(confidential / f"proposed-{os.getpid()}")
    try:
        yield replace(store, folder=folder / "store")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _with_age_note(drafted: RunFileDraft, facts: FileFacts, options: OptionValues) -> RunFileDraft:
    """Return the draft with a note on days that are years old."""
    initial = InitialFiles(Path(), Path(), facts, drafted, options=options)
    if not initial.is_old_archive:
        return drafted
    notes = [f"The newest day is {facts.last}. In an archive every day is published now, at an age of years:"]
    notes.append("a bound on the age-dependent loss is then trivially small and means nothing.")
    notes.append('mode = "rehearsal" publishes each day age_days after its end, by a simulated clock.')
    return RunFileDraft(drafted.tables, {**drafted.notes, "schedule": tuple(notes)})


def missing_options(undecided: Sequence[Key], options: OptionValues) -> str:
    """Return all missing options for the chosen notion, as text for one message.

    >>> missing_options([("promise", "epsilon_per_day"), ("population", "min_households")], {})
    '--epsilon-per-day, --min-households'
    """
    notion = notion_of(options)
    has_risk = notion is not None and "risk" in notion.model_fields
    flags = [run_file_draft.flag_of(key) for key in undecided]
    return ", ".join(f"{flag} (or --risk)" if has_risk and flag == "--epsilon-per-day" else flag for flag in flags)

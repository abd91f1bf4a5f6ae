"""Input files -> release folder, in one go: init, calibrate if the notion needs an estimated model, run.

    DIR                             the release folder
    DIR-confidential/               for its owner only
        run.toml  roster.csv        as `agedp init` writes them, with run.schema.json
        arguments.json              of the call that began here
        ledger.sqlite               the promise itself
        confidential/               readings, quality, true means
        model/                      as `agedp calibrate` leaves it

A second call with the same options continues: what is released stays as it is and nothing is drawn again. A call with
other options starts anew while nothing is released, and is refused afterwards, with the differences by option, before
anything is read. FILES are free, as in a run file, and so are the options that add a page to the release folder.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from agedp.calibration.bound import Calibration
from agedp.calibration_pipeline import calibrate
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp.pipeline import RunSummary, run_stages
from agedp.release_folder.folder_files import STATEMENT, is_release_file
from agedp.release_folder.partitions import list_files
from agedp.run_context import RunContext
from agedp.setup.init_run_file import BY, METERS, init, is_read_off, missing_options, preview
from agedp.setup.protection import is_asked
from agedp.setup.run_file_draft import DraftPaths, flag_of
from agedp.setup.run_file_options import FLAGS, Key, OptionValues, quoted, toml_value
from agedp_data.config import load
from agedp_data.config.loading import SCHEMA_FILE
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets import filesystem
from agedp_data.epsilon import exact_text
from agedp_data.errors import ContractChanged, RunFileError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.lifecycle import calibration_draws
from agedp_data.ledger.records import Row
from agedp_data.messages import escape_text
from agedp_data.model import PUBLIC_FILE

# --------------------------------------------------------------------------------------------------
# Arguments of a release in one go: of the call that began it, beside its run file, against those of a later call.
# --------------------------------------------------------------------------------------------------

FILES: Final = "FILES"
ACCEPT: Final[Key] = ("promise", "accept")
_PAGES: Final = {FLAGS["output", key]: key for key in ("deployment", "explore")}
"""Options that add a page to the release folder, and their keys of [output]."""
_ARGUMENTS: Final = "arguments.json"
_FILES_LINE: Final = re.compile(r"^files\s*=\s*\[[^\n]*\][ \t]*$", re.MULTILINE)
_LONGEST: Final = 200


def arguments_of(patterns: Sequence[str], options: OptionValues) -> dict[str, Any]:
    """Return the arguments of a call in a canonical form, so that equal values compare equal.

    Paths are absolute and sorted, numbers have no trailing zeros. What a call accepts is free (`accepted_words`).
    """
    plain_options = {flag_of(key): _plain(toml_value(toml, Decimal)) for key, toml in options.items() if key != ACCEPT}
    return {FILES: sorted(_locations(patterns)), **dict(sorted(plain_options.items()))}


def accepted_words(options: OptionValues) -> list[str]:
    """Return the words of --accept, for a call that continues as well."""
    words: list[str] = _plain(toml_value(options[ACCEPT])) if ACCEPT in options else []
    return words


def write_arguments(folder: Path, arguments: Mapping[str, Any]) -> None:
    """Write the arguments to the folder of the run file."""
    atomic_files.write(folder / _ARGUMENTS, json.dumps(arguments, indent=1).encode())


def differing_arguments(folder: Path, patterns: Sequence[str], options: OptionValues) -> dict[str, tuple[Any, Any]]:
    """Return the arguments that differ from those of the call that began here: by name what was given and what is.

    Raises:
        RunFileError: no call of `agedp sanitise` began here.
    """
    earlier, current = _read_arguments(folder), arguments_of(patterns, options)
    values = {key: (earlier.get(key), current.get(key)) for key in [*earlier, *current]}
    return {key: (before, now) for key, (before, now) in values.items() if before != now}


def different_arguments(folder: Path, differing: Mapping[str, tuple[Any, Any]], *, released: bool) -> ContractChanged:
    """Return the error about options that differ from those of the call that began here.

    Args:
        folder: the confidential folder of the earlier call.
        differing: the arguments that differ.
        released: whether a day is released already; before that, the folder may be deleted to begin anew.
    """
    texts = {name: [*map(_value_text, values)] for name, values in differing.items() if name not in (FILES, *_PAGES)}
    changes = "; ".join(f"{name} was {before} and is {now}" for name, (before, now) in texts.items())
    advice = (
        "Give the same arguments to continue. Another --out makes another release with a ledger of its own: the losses "
        "of two releases of the same households add up"
    )
    if not released:
        advice = f"Nothing is released yet: delete {escape_text(folder.name)} to begin anew, or give the same arguments"
    message = f"this release began with other arguments: {changes}. {advice}"
    return ContractChanged(message, private=f"{escape_text(str(folder))}: {message}")


def write_files(run_file: Path, patterns: Sequence[str]) -> None:
    """Write the files of this call into the run file of an earlier one; nothing else in it changes.

    Raises:
        RunFileError: `files` is not written in one line.
    """
    text = run_file.read_text(encoding="utf-8")
    locations = _locations(patterns)
    line = f"files   = [{', '.join(map(quoted, locations))}]"
    changed = _FILES_LINE.sub(lambda _: line, text, count=1)
    earlier, changed_tables = tomllib.loads(text), tomllib.loads(changed)
    if earlier | {"input": earlier["input"] | {"files": locations}} != changed_tables:
        problem = "[input] files: is not written in one line; write the files of this call there, and use `agedp run`"
        raise RunFileError(problem, private=f"{run_file}: {problem}")
    atomic_files.write(run_file, changed.encode())


def write_pages(run_file: Path, pages: Mapping[str, bool]) -> None:
    """Write which pages a release folder has, by key of [output], into the run file; nothing else in it changes.

    Raises:
        RunFileError: [output] is not written as a table with one key in a line.
    """
    text = changed = run_file.read_text(encoding="utf-8")
    for key, is_written in pages.items():
        line = f"{key} = {str(is_written).lower()}"
        changed, found = re.subn(rf"^{key}\s*=\s*(true|false)\b", line, changed, count=1, flags=re.MULTILINE)
        if not found:
            changed = re.sub(r"^\[output\]", f"[output]\n{line}", changed, count=1, flags=re.MULTILINE)
    earlier = tomllib.loads(text)
    if earlier | {"output": earlier["output"] | pages} != tomllib.loads(changed):
        problem = "[output] has not one key in a line; write the pages of this call there, and use `agedp run`"
        raise RunFileError(problem, private=f"{run_file}: {problem}")
    atomic_files.write(run_file, changed.encode())


def _locations(patterns: Sequence[str]) -> list[str]:
    return [pattern if "://" in pattern else str(Path(pattern).absolute()) for pattern in patterns]


def _value_text(value: object) -> str:
    if value is None:
        return "not given"
    return escape_text(value if isinstance(value, str) else json.dumps(value), _LONGEST)


def _plain(value: object) -> Any:  # noqa: ANN401  (a JSON value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return exact_text(Decimal(value)) if isinstance(value, int | Decimal) else str(value)


def _read_arguments(folder: Path) -> dict[str, Any]:
    try:
        arguments = json.loads((folder / _ARGUMENTS).read_text(encoding="utf-8"))
        if isinstance(arguments, dict):
            return arguments
    except (OSError, ValueError):
        pass
    problem = "holds a run file that `agedp sanitise` did not write; name another --out, or use `agedp run` with it"
    raise RunFileError(f"[output] the confidential folder {problem}", private=f"{escape_text(str(folder))}: {problem}")


RUN_FILE: Final = "run.toml"
"""Name of the run file in DIR-confidential."""
_LEDGER: Final = "ledger.sqlite"
_ROSTER: Final = "roster.csv"
_PREVIOUS_ROSTER: Final = "roster-previous.csv"
_MODEL: Final = "model"
_NOTION: Final[Key] = ("promise", "notion")
_TABLES_WITHOUT_MODEL: Final = frozenset({"population", "output"})
"""Tables of a run file on which no estimated model depends."""


@dataclass(frozen=True, slots=True)
class OneOffResult:
    """Result of a one-off release: the run, and the calibration if one was computed."""

    run: RunSummary
    calibration: Calibration | None


def release_files(
    patterns: Sequence[str], *, out: str | Path, options: OptionValues, progress: ProgressReporter = SILENT
) -> OneOffResult:
    """Release every day of a dataset and write the release folder `out`; confidential files go to `out`-confidential.

    Raises:
        RunFileError: all missing options that decide privacy, or an option with an invalid value; an `out` that is not
            a folder of this machine.
        InputError: a file that cannot be parsed.
        ContractChanged: options that differ from those of an earlier call that released a day.
    """
    calibration = begin_release(patterns, out=out, options=options, progress=progress)
    run_file = confidential_folder(Path(out)) / RUN_FILE
    run = RunContext.load(run_file, progress=progress, accept=accepted_words(options))
    return OneOffResult(run_stages(run), calibration)


def begin_release(
    patterns: Sequence[str], *, out: str | Path, options: OptionValues, progress: ProgressReporter = SILENT
) -> Calibration | None:
    """Do what comes before a release: write the run file and roster of DIR-confidential, and calibrate its model.

    Return the calibration if one was computed. No day is released; a private model is drawn here, once.

    Raises:
        AgedpError: as `release_files`.
    """
    out = local_release_folder(out)
    folder = confidential_folder(out)
    if not _is_begun(patterns, out, options):
        check_options_complete(patterns, options, folder, out)
        _begin(patterns, out, options, progress)
    return _calibrate_once(folder / RUN_FILE, progress)


def _begin(patterns: Sequence[str], out: Path, options: OptionValues, progress: ProgressReporter) -> None:
    """Write arguments, roster and, last, the run file; files of an interrupted call are overwritten."""
    folder = confidential_folder(out)
    with atomic_files.write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_files.exclusive_lock(atomic_files.make_private(folder)):
        if _is_begun(patterns, out, options):  # another call was first
            return
        _drop_unreleased(folder, patterns, options)
        write_arguments(folder, arguments_of(patterns, options))
        roster, previous = folder / _ROSTER, folder / _PREVIOUS_ROSTER
        read_off = BY not in options and is_read_off(roster)
        if read_off:  # perhaps of other files
            roster.replace(previous)
        initial = init(patterns, folder=folder, options=options, paths=draft_paths(out), progress=progress)
        for path in (initial.run_file, folder / SCHEMA_FILE):
            path.chmod(0o600)
        if read_off and previous.read_bytes() == roster.read_bytes():
            previous.unlink()


def _is_begun(patterns: Sequence[str], out: Path, options: OptionValues) -> bool:
    """Return whether an earlier call began this release; its run file then has the files and pages of this call.

    Neither a contract nor draws of a private model alone begin one: they stay in the ledger, and other options begin
    with the losses of the draws.

    Raises:
        ContractChanged: it had other options, and has released a day.
    """
    folder = confidential_folder(out)
    if not (folder / RUN_FILE).exists():
        return False
    differing, rows = differing_arguments(folder, patterns, options), _ledger_rows(folder)
    released = (out / STATEMENT).exists() or any(isinstance(row, ReleaseRecord) for row in rows)
    is_promised = any(isinstance(row, ContractRecord) for row in rows) and bool(calibration_draws(rows))
    if differing and not released and not is_promised:
        return False
    if any(key not in (FILES, *_PAGES) for key in differing):
        raise different_arguments(folder, differing, released=released)
    if FILES in differing:
        write_files(folder / RUN_FILE, patterns)
    if pages := {_PAGES[flag]: now == _plain(True) for flag, (_, now) in differing.items() if flag in _PAGES}:
        write_pages(folder / RUN_FILE, pages)
    if differing:
        write_arguments(folder, arguments_of(patterns, options))
    return True


def _ledger_rows(folder: Path) -> tuple[Row, ...]:
    url = f"sqlite:///{folder / _LEDGER}"
    if not Ledger.exists(url):
        return ()
    with Ledger.open(url) as ledger:
        return ledger.all_rows()


def _drop_unreleased(folder: Path, patterns: Sequence[str], options: OptionValues) -> None:
    """Remove the run file of a call that released nothing, and before it the model, if the options change it."""
    if not (folder / RUN_FILE).exists():
        return
    table_of = {flag: table for (table, _), flag in FLAGS.items()} | {FILES: "input", FLAGS[METERS]: "input"}
    tables = {table_of.get(name, name) for name in differing_arguments(folder, patterns, options)}
    if not tables <= _TABLES_WITHOUT_MODEL and (folder / _MODEL).exists():
        shutil.rmtree(folder / _MODEL)
    (folder / RUN_FILE).unlink()


def local_release_folder(out: str | Path) -> Path:
    """Return the release folder; refuse a URL, and a folder that has no name for DIR-confidential.

    A URL must come as text: a `Path` has lost one of its slashes.
    """
    text = str(out)
    if isinstance(out, str) and filesystem.is_url(text):
        raise RunFileError(
            "--out is a URL; `agedp sanitise` writes to a folder of this machine. Write a run file with `agedp init`, "
            "set [output] release to the URL, and use `agedp run`"
        )
    if Path(text).absolute().name in ("", ".."):
        advice = "DIR-confidential needs the name of the folder. Give a folder with a name of its own"
        raise RunFileError(f"--out {escape_text(text)}: {advice}")
    _check_release_folder(Path(text))
    return Path(text)


def _check_release_folder(out: Path) -> None:
    """Refuse a file, and a folder with files that are not part of a release: they would be handed over with it."""
    place = f"--out {escape_text(str(out))}"
    if out.is_dir():
        with atomic_files.write_errors(out):
            names = sorted(list_files(out))
        foreign_files = [name for name in names if not (is_release_file(name) or atomic_files.is_temporary(name))]
        if foreign_files and STATEMENT not in names:
            problem, advice = f"{place}: holds files that are not of a release", "name a new or empty folder"
            shown = ", ".join(map(escape_text, foreign_files[:3])) + (", ..." if len(foreign_files) > 3 else "")
            raise RunFileError(f"{problem}; {advice}", private=f"{problem} ({shown}); {advice}")
    elif out.exists():
        raise RunFileError(f"{place}: is a file; name a folder")


def confidential_folder(out: Path) -> Path:
    """Return the confidential folder of a release folder: DIR-confidential.

    >>> confidential_folder(Path("/srv/2013")).name
    '2013-confidential'
    """
    absolute = out.absolute()
    return absolute.with_name(f"{absolute.name}-confidential")


def draft_paths(out: Path) -> DraftPaths:
    """Return the paths in the run file of a release folder, relative to DIR-confidential."""
    return DraftPaths(str(out.absolute()), "confidential", f"sqlite:///{_LEDGER}", _MODEL)


def check_options_complete(patterns: Sequence[str], options: OptionValues, folder: Path, out: Path) -> None:
    """Refuse a call without all options that decide privacy, before a file is read beyond its first rows.

    Raises:
        RunFileError: names every missing option.
    """
    provisional, long = preview(patterns, folder=folder, options=options, paths=draft_paths(out))
    undecided = [key for key in provisional.undecided if key not in options]
    if _NOTION not in options and not is_asked(options):
        of_columns = [key for key in undecided if key[0] in ("input", "input.columns")]
        columns = f", {missing_options(of_columns, options)}" if of_columns else ""
        missing = f"--protect (day, week, month, year, all or today) or --notion, and --epsilon{columns}"
    else:
        missing = missing_options(undecided, options)
    if not missing:
        return
    explanation = ""
    if ("model", "publish") in undecided:
        explanation = (
            ". --publish-envelope acknowledges that the leakage bound of the estimated model, which comes from the "
            "readings, is published without noise; --selection-epsilon, --coverage and --failure-probability choose a "
            "bound privately instead; a declared model needs neither (--curve or --kernel, with --basis)"
        )
    if ("model", "accept_unverified_model") in undecided:
        explanation += (
            ". --accept-unverified-model accepts that the promise rests on estimated chains, which one dataset can "
            "contradict but never verify"
        )
    message = f"options that decide have no default. Also give {missing}{explanation}"
    raise RunFileError(message, private=message if long is None else f"{message}. {long.understood}")


def _calibrate_once(run_file: Path, progress: ProgressReporter) -> Calibration | None:
    """Calibrate an estimated model that does not exist yet; return None for any other model, or without one."""
    model = load(run_file).model
    if not isinstance(model, EstimatedModel):
        return None
    public = Path(model.file) / PUBLIC_FILE
    if public.exists():
        return None
    with atomic_files.exclusive_lock(run_file.parent):
        return None if public.exists() else calibrate(run_file, progress=progress)  # an equal call may have been first

"""Release folder -> origin of its files: population, and the head of the ledger that they were published from.

A run must not continue with a ledger that lacks rows of its release folder: it would draw the same days a second time.
So every file that names a head is read, and a folder that cannot be read stops the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from agedp.release_folder.folder_files import (
    PACKAGE,
    REPORT,
    ROWS,
    SIGNATURE,
    STATEMENT,
    SUMS,
    WORDS,
    is_release_file,
    max_bytes,
)
from agedp.release_folder.partitions import ROWS_TABLE, list_files, months_by_table, partition_of
from agedp.release_folder.release_folder import FolderReader
from agedp.release_folder.result_tables import read_guarantee
from agedp_data import foreign_files
from agedp_data.errors import InputError, LedgerBehind
from agedp_data.series.mean import AVERAGES
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES

if TYPE_CHECKING:
    from agedp_data.ledger import Ledger

_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, pa.ArrowException)
_REPORT_HEAD = re.compile("Ledger <code>[0-9a-f]{64}</code>, head\\s+<code>([0-9a-f]{64})</code>")
_REPORT_END = 2**16
"""The footer of the report, which names the head, is in the last bytes."""
_CERTAIN_FILES = (STATEMENT, WORDS, ROWS, f"{AVERAGES.file}.parquet", SUMS, SIGNATURE)


class ReleaseOrigin(NamedTuple):
    """Origin of a file: population ("" if the file is truncated before it), and head of the ledger."""

    population: str
    head: str


def check_ledger_not_behind(ledger: Ledger, origins: Iterable[ReleaseOrigin]) -> None:
    """Check that a ledger contains the rows that the files of the release folder were published from.

    Raises:
        LedgerBehind: it does not; `agedp ledger recover` restores the rows that the folder contains.
    """
    if not all(ledger.contains(origin.head) for origin in origins):
        raise LedgerBehind(
            "the release folder holds more than the ledger, or comes from another one; put back the newest copy of the "
            "ledger, restore it from the folder (`agedp ledger recover`), or name another folder in [output] release"
        )


def release_origins(folder: Path) -> frozenset[ReleaseOrigin]:
    """Return the origins that the files of a release folder name; damaged files are ignored, publishing rewrites them.

    Raises:
        InputError: a file that cannot be read or is none, or a release of which no file names its origin any more.
    """
    names = _file_names(folder)
    _check_kinds(folder)
    parsers: dict[str, Callable[[Path], ReleaseOrigin]] = {
        STATEMENT: lambda path: _origin_of_mapping(foreign_files.parse_json(path.read_bytes())),
        ROWS: _origin_of_rows,
        REPORT: _origin_of_report,
    }
    names -= _closed_months(names)
    tables = {name for name in names if name.endswith(".parquet") and is_release_file(name)}
    parsers |= {name: _origin_of_rows for name in names if (of := partition_of(name)) and of[0] == ROWS_TABLE}
    parsers |= dict.fromkeys(tables, lambda path: _origin_of_mapping(_guarantee(path)))
    origins = {
        origin
        for name in parsers
        if name in names and (origin := _read_origin(folder, name, parsers[name])) is not None
    }
    certain = set() if origins else names & {*_CERTAIN_FILES}
    if not origins and PACKAGE in names and ROWS.encode() in foreign_files.read_small_file(folder, PACKAGE):
        certain.add(PACKAGE)
    if certain:
        problem = "holds a release, but none of its files names the ledger that it comes from"
        raise InputError(
            f"[output] release {problem} ({', '.join(sorted(certain))}); put back a good copy of one of them, or, if "
            "the ledger is the newest there is, move them away and run `agedp publish`"
        )
    heads_with_population = {origin.head for origin in origins if origin.population}
    return frozenset(origin for origin in origins if origin.population or origin.head not in heads_with_population)


def _check_kinds(folder: Path) -> None:
    """Check that what lies in the places of a release are files, which publishing can replace.

    Raises:
        InputError: a link, a folder, a pipe or a device is in one; a run would write through it, or wait for it.
    """
    for name in sorted({*_listed(folder), *_CERTAIN_FILES, PACKAGE, REPORT}):
        with suppress(OSError):  # missing; publishing writes it
            try:
                foreign_files.regular_file(folder, name)
            except InputError as error:
                raise InputError(f"[output] release: {str(error).rpartition('; ')[0]}; remove it") from None


def _listed(folder: Path) -> Mapping[str, str]:
    """Return the files that SHA256SUMS lists, none if it is missing or damaged."""
    with suppress(InputError):
        return FolderReader(folder).checksums
    return {}


def _closed_months(names: Iterable[str]) -> set[str]:
    """Return the files of months of which a later one exists: their heads are before those of the newest month."""
    names = list(names)
    newest = {table: months[-1] for table, months in months_by_table(names).items()}
    return {name for name in names if (of := partition_of(name)) and of[1] != newest[of[0]]}


def list_published_files(folder: Path, tables: Collection[str] = ()) -> list[Path]:
    """Return the files of a release in a folder, without the user's own files of similar names.

    SHA256SUMS lists them, or their metadata has the guarantee of the series in their name (an interrupted release has
    not listed them yet). In the folders of months of a table of the release is nothing else, because readers of data
    sets would read it: what is there is of the release, or in its way.

    Args:
        folder: the release folder.
        tables: tables by month that the release has, beside the listed ones.
    """
    listed = _listed(folder)
    certain, by_month = {*listed, *_CERTAIN_FILES}, {*tables, *months_by_table(listed)}
    return [
        folder / name
        for name in sorted(_file_names(folder))
        if is_release_file(name)
        and (name in certain or name.partition("/")[0] in by_month or _carries_guarantee(folder, name))
    ]


def _carries_guarantee(folder: Path, name: str) -> bool:
    with suppress(OSError, InputError, *_DAMAGED):
        path = foreign_files.regular_file(folder, name)
        if path.suffix == ".jsonl":
            return bool(_origin_of_rows(path).head)
        series = _guarantee(path)["of"]
        names = [f"{table.file}_{series}.parquet" for table in RESULT_TABLES]
        plain = [f"{table.file}.parquet" for table in RESULT_TABLES if table is not AVERAGES]
        return path.name in (*names, *plain, *(f"{table.file}.parquet" for table in DERIVED_TABLES))
    return False


def _file_names(folder: Path) -> set[str]:
    try:
        return set(list_files(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise _unreadable(folder, error) from None


def _read_origin(folder: Path, name: str, origin: Callable[[Path], ReleaseOrigin]) -> ReleaseOrigin | None:
    try:
        return origin(foreign_files.regular_file(folder, name, max_bytes=max_bytes(name)))
    except FileNotFoundError:  # another run is replacing it
        return None
    except OSError as error:
        if error.errno is not None:
            raise _unreadable(folder / name, error) from None
        return None  # pyarrow raises it for a damaged footer
    except (InputError, *_DAMAGED):  # also the user's own link or pipe
        return None


def _unreadable(path: Path, error: OSError) -> InputError:
    problem = f"cannot be read ({error.strerror or type(error).__name__}), so it is unknown what was released"
    return InputError(f"[output] release {problem}; restore its permissions", private=f"{path}: {problem}")


def _origin_of_rows(path: Path) -> ReleaseOrigin:
    lines = foreign_files.read_lines(path)
    header = next(lines, "")
    return _origin(next(filter(None, map(_population, lines)), ""), foreign_files.parse_json(header)["head"])


def _population(line: str) -> object:
    with suppress(*_DAMAGED):  # a truncated line
        return foreign_files.parse_json(foreign_files.parse_json(line)["text"]).get("population")
    return None


def _origin_of_report(path: Path) -> ReleaseOrigin:
    with path.open("rb") as stream:
        stream.seek(-min(_REPORT_END, path.stat().st_size), os.SEEK_END)
        heads = _REPORT_HEAD.findall(stream.read().decode(errors="replace"))
    return _origin("", heads[-1])  # the footer is last; a title may contain the same text


def _guarantee(path: Path) -> dict[str, Any]:
    return read_guarantee(foreign_files.read_limited_schema(path, path.name))


def _origin_of_mapping(mapping: Mapping[str, Any]) -> ReleaseOrigin:
    return _origin(mapping["population"], mapping["ledger"]["head"])


def _origin(population: object, head: object) -> ReleaseOrigin:
    if not isinstance(population, str) or not isinstance(head, str):
        raise TypeError("a file that names its origin names it as text")
    return ReleaseOrigin(population, head)

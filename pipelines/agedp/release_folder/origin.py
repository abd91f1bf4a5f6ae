"""Release folder -> origin of its files: population, and the head of the ledger that they were published from.

A run must not continue with a ledger that lacks rows of its release folder: it would draw the same days a second time.
So every file that names a head is read, and a folder that cannot be read stops the run.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.release_folder.derived_tables import DERIVED_FILES
from agedp.release_folder.partitions import ROWS_TABLE, list_files, months_by_table, partition_of
from agedp.release_folder.published_series import FILES, MEANS
from agedp.release_folder.release_folder import (
    AVERAGES,
    PACKAGE,
    REPORT,
    ROWS,
    STATEMENT,
    SUMS,
    WORDS,
    ReleaseFolder,
    is_release_file,
)
from agedp.release_folder.result_tables import read_guarantee
from agedp_data.errors import InputError, LedgerBehind
from agedp_data.ledger import Ledger

_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, pa.ArrowException)
_REPORT_HEAD = re.compile("Ledger <code>[0-9a-f]{64}</code>, head\\s+<code>([0-9a-f]{64})</code>")
_CERTAIN_FILES = (STATEMENT, WORDS, ROWS, AVERAGES, SUMS)


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
        InputError: a file that cannot be read, or a release of which no file names its origin any more.
    """
    names = _file_names(folder)
    parsers: dict[str, Callable[[bytes], ReleaseOrigin]] = {
        STATEMENT: lambda content: _origin_of_mapping(json.loads(content)),
        ROWS: _origin_of_rows,
        REPORT: _origin_of_report,
    }
    names -= _closed_months(names)
    tables = {name for name in names if name.endswith(".parquet") and is_release_file(name)}
    parsers |= {name: _origin_of_rows for name in names if (of := partition_of(name)) and of[0] == ROWS_TABLE}
    parsers |= dict.fromkeys(tables, lambda content: _origin_of_mapping(_guarantee(content)))
    origins = {
        origin
        for name in parsers
        if name in names and (origin := _read_origin(folder / name, parsers[name])) is not None
    }
    certain = set() if origins else names & {*_CERTAIN_FILES}
    if not origins and PACKAGE in names and ROWS.encode() in (folder / PACKAGE).read_bytes():
        certain.add(PACKAGE)
    if certain:
        problem = "holds a release, but none of its files names the ledger that it comes from"
        raise InputError(
            f"[output] release {problem} ({', '.join(sorted(certain))}); put back a good copy of one of them, or, if "
            "the ledger is the newest there is, move them away and run `agedp publish`"
        )
    heads_with_population = {origin.head for origin in origins if origin.population}
    return frozenset(origin for origin in origins if origin.population or origin.head not in heads_with_population)


def _closed_months(names: Iterable[str]) -> set[str]:
    """Return the files of months of which a later one exists: their heads are before those of the newest month."""
    names = list(names)
    newest = {table: months[-1] for table, months in months_by_table(names).items()}
    return {name for name in names if (of := partition_of(name)) and of[1] != newest[of[0]]}


def list_published_files(folder: Path) -> list[Path]:
    """Return the files of a release in a folder, without the user's own files of similar names.

    SHA256SUMS lists them, or their metadata has the guarantee of the series in their name (an interrupted release has
    not listed them yet).
    """
    listed: Mapping[str, str] = {}
    with suppress(InputError):
        listed = ReleaseFolder(folder).checksums
    named = [folder / name for name in sorted(_file_names(folder)) if is_release_file(name)]
    certain = {*listed, *_CERTAIN_FILES}
    return [path for path in named if path.relative_to(folder).as_posix() in certain or _carries_guarantee(path)]


def _carries_guarantee(path: Path) -> bool:
    with suppress(OSError, *_DAMAGED):
        if path.suffix == ".jsonl":
            return bool(_origin_of_rows(path.read_bytes()).head)
        series = _guarantee(path.read_bytes())["of"]
        names = [f"{file}_{series}.parquet" for file in FILES.values()]
        plain = [f"{file}.parquet" for file in FILES.values() if file != MEANS]
        return path.name in (*names, *plain, *DERIVED_FILES)
    return False


def _file_names(folder: Path) -> set[str]:
    try:
        return set(list_files(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise _unreadable(folder, error) from None


def _read_origin(path: Path, origin: Callable[[bytes], ReleaseOrigin]) -> ReleaseOrigin | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe may never end
            raise InputError(f"[output] release holds {path.name}, which is not a file; remove it")
        content = path.read_bytes()
    except FileNotFoundError:  # another run is replacing it
        return None
    except OSError as error:
        raise _unreadable(path, error) from None
    with suppress(OSError, *_DAMAGED):  # pyarrow raises OSError for a damaged footer; no disk is read here
        return origin(content)
    return None


def _unreadable(path: Path, error: OSError) -> InputError:
    problem = f"cannot be read ({error.strerror or type(error).__name__}), so it is unknown what was released"
    return InputError(f"[output] release {problem}; restore its permissions", private=f"{path}: {problem}")


def _origin_of_rows(content: bytes) -> ReleaseOrigin:
    header, *lines = content.decode("ascii").splitlines()
    return _origin(next(filter(None, map(_population, lines)), ""), json.loads(header)["head"])


def _population(line: str) -> object:
    with suppress(*_DAMAGED):  # a truncated line
        return json.loads(json.loads(line)["text"]).get("population")
    return None


def _origin_of_report(content: bytes) -> ReleaseOrigin:
    heads = _REPORT_HEAD.findall(content.decode())
    return _origin("", heads[-1])  # the footer is last; a title may contain the same text


def _guarantee(content: bytes) -> dict[str, Any]:
    return read_guarantee(pq.read_schema(pa.BufferReader(content)))


def _origin_of_mapping(mapping: Mapping[str, Any]) -> ReleaseOrigin:
    return _origin(mapping["population"], mapping["ledger"]["head"])


def _origin(population: object, head: object) -> ReleaseOrigin:
    if not isinstance(population, str) or not isinstance(head, str):
        raise TypeError("a file that names its origin names it as text")
    return ReleaseOrigin(population, head)

"""Path, statement and checksums of a release folder, as its recipients find them; one line if one is damaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from agedp.release_folder.folder_files import STATEMENT, SUMS
from agedp_data.datasets import filesystem
from agedp_data.errors import InputError
from agedp_data.foreign_files import is_plain_path, parse_json, read_small_file
from agedp_data.messages import escape_text, suggest_file
from agedp_data.statement.document import Statement, read_statement

ESTIMATES_RECORD: Final = "smoothing.json"
_CHECKSUM: Final = re.compile(r"([0-9a-f]{64})  (.+)")


def read_statement_document(folder: Path) -> dict[str, Any]:
    """Return the statement of a release folder as a document.

    Raises:
        InputError: statement.json is missing or damaged.
    """
    try:
        statement = parse_json(read_small_file(folder, STATEMENT))
    except (OSError, ValueError):
        raise InputError(f"{STATEMENT} is missing or damaged; ask for the release again") from None
    if not isinstance(statement, dict):
        raise InputError(f"{STATEMENT} is not a statement; ask for the release again")
    return statement


def read_folder_statement(folder: Path) -> Statement:
    """Return the statement of a release folder, validated.

    Raises:
        InputError: statement.json is missing, damaged or not as agedp writes it.
    """
    try:
        return read_statement(read_small_file(folder, STATEMENT))
    except OSError:
        raise InputError(f"{STATEMENT} is missing or damaged; ask for the release again") from None
    except ValueError as error:
        raise InputError(f"{STATEMENT}: {error}; ask for the release again") from None


def read_checksum_text(folder: Path) -> str:
    """Return the content of SHA256SUMS.

    Raises:
        InputError: SHA256SUMS is missing or damaged.
    """
    try:
        return read_small_file(folder, SUMS).decode("ascii")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{SUMS} is missing: no release folder, or one that was cut off") from None


def parse_checksums(text: str) -> dict[str, str]:
    r"""Return the SHA-256 of each file by its name, a plain path below the folder.

    Raises:
        InputError: a line without a SHA-256 or a name, or a name that is no such path.

    >>> [*parse_checksums(f"{'ab' * 32}  report.html\n")]
    ['report.html']
    """
    checksums = {}
    for line in text.removesuffix("\n").split("\n"):
        match = _CHECKSUM.fullmatch(line)
        if match is None or not is_plain_path(match[2]):
            name = "" if match is None else f": '{escape_text(match[2], 200)}' is no plain path below the folder"
            raise InputError(f"{SUMS} differs from the published file{name}; ask for the release again")
        checksums[match[2]] = match[1]
    return checksums


def release_path(folder: str | Path) -> Path:
    """Return the path of an existing release folder.

    Raises:
        InputError: the folder does not exist, may not be read, contains estimates, or is a URL.
    """
    if filesystem.is_url(str(folder)):
        location = filesystem.format_location(str(folder))
        raise InputError(f"{location} is a URL; download its files into a folder, then name that folder")
    path = Path(folder)
    try:
        exists = path.is_dir()
        names = {entry.name for entry in path.iterdir()} if exists else set()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its permissions") from None
    if not exists:
        message = f"{path} is not a folder; name the release folder itself"
        raise InputError(message, private=f"{message}{suggest_file(path)}")
    if ESTIMATES_RECORD in names and STATEMENT not in names:
        raise InputError(
            f"{path} contains estimates of agedp smooth, not a release. Check them in that folder by sha256sum --check "
            f"{SUMS}, and name the release folder for anything else"
        )
    if not names & {STATEMENT, SUMS}:
        inside = next((name for name in sorted(names) if (path / name / STATEMENT).is_file()), None)
        message = f"{path} is not a release folder; name the release folder itself"
        raise InputError(message, private=message if inside is None else f"{message}, such as {path / inside}")
    return path

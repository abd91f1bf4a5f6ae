"""The roster of a new run file: written once, never over a corrected one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from agedp.local_files import atomic_files
from agedp.setup.run_file_options import SERIES, Key, OptionValues
from agedp_data.errors import InputError, RunFileError
from agedp_data.messages import escape_text
from agedp_data.roster import READ_OFF_MARK, columns_of, read_roster

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


def check_group_column(roster: Path, options: OptionValues) -> None:
    """Refuse group columns that the roster does not have; the input files contain no groups.

    Raises:
        RunFileError: the roster does not exist or has no such column.
    """
    if BY not in options:
        return
    columns = columns_of(json.loads(options[BY]))
    present = read_roster(roster).groups if roster.exists() else ()
    if missing := [column for column in columns if column not in present]:
        problem = "has no such column" if roster.exists() else "does not exist"
        names = escape_text(",".join(missing if roster.exists() else columns))
        raise RunFileError(
            f"--by {names}: {roster.name} {problem}, and no group can be read off the files. Write "
            f"{escape_text(str(Path(roster.parent.name, roster.name)))} with {names} first, or remove --by"
        )


def write_roster(roster: Path, content: bytes) -> None:
    """Write the roster; an equal one of an interrupted call is not changed.

    Raises:
        InputError: another roster exists, for instance a corrected one.
    """
    if roster.exists():
        if roster.read_bytes() != content:
            raise existing_file_error(roster)
        return
    atomic_files.write(roster, content)


def existing_file_error(path: Path) -> InputError:
    """Return the error about a file that would be overwritten."""
    return InputError(f"{path} exists already; move it away or name another folder with --in")

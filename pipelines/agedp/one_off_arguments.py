"""Arguments of a release in one go: of the call that began it, beside its run file, against those of a later call."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from agedp.local_files import atomic_files
from agedp.setup.run_file_draft import flag_of
from agedp.setup.run_file_options import Key, OptionValues, quoted
from agedp_data.errors import ContractChanged, RunFileError
from agedp_data.messages import escape_text
from agedp_data.parameters import exact_text

FILES: Final = "FILES"
ACCEPT: Final[Key] = ("promise", "accept")
_ARGUMENTS: Final = "arguments.json"
_FILES_LINE: Final = re.compile(r"^files\s*=\s*\[[^\n]*\][ \t]*$", re.MULTILINE)
_LONGEST: Final = 200


def arguments_of(patterns: Sequence[str], options: OptionValues) -> dict[str, Any]:
    """Return the arguments of a call in a canonical form, so that equal values compare equal.

    Paths are absolute and sorted, numbers have no trailing zeros. What a call accepts is free (`accepted_words`).
    """
    plain_options = {flag_of(key): _plain(toml) for key, toml in options.items() if key != ACCEPT}
    return {FILES: sorted(_locations(patterns)), **dict(sorted(plain_options.items()))}


def accepted_words(options: OptionValues) -> list[str]:
    """Return the words of --accept, for a call that continues as well."""
    words: list[str] = _plain(options[ACCEPT]) if ACCEPT in options else []
    return words


def write_arguments(folder: Path, arguments: Mapping[str, Any]) -> None:
    """Write the arguments to the folder of the run file."""
    atomic_files.write(folder / _ARGUMENTS, json.dumps(arguments, indent=1).encode())


def differing_arguments(folder: Path, patterns: Sequence[str], options: OptionValues) -> list[str]:
    """Return the names of the arguments that differ from those of the call that began here.

    Raises:
        RunFileError: no call of `agedp sanitise` began here.
    """
    earlier, current = _read_arguments(folder), arguments_of(patterns, options)
    return [key for key in dict.fromkeys([*earlier, *current]) if earlier.get(key) != current.get(key)]


def different_arguments(
    folder: Path, patterns: Sequence[str], options: OptionValues, *, released: bool
) -> ContractChanged:
    """Return the error about options that differ from those of the call that began here.

    Args:
        folder: the confidential folder of the earlier call.
        patterns: the files of this call.
        options: the options of this call.
        released: whether a day is released already; before that, the folder may be deleted to begin anew.

    Raises:
        RunFileError: no call of `agedp sanitise` began here.
    """
    earlier, current = _read_arguments(folder), arguments_of(patterns, options)
    names = [name for name in differing_arguments(folder, patterns, options) if name != FILES]
    changes = "; ".join(
        f"{name} was {_value_text(earlier.get(name))} and is {_value_text(current.get(name))}" for name in names
    )
    advice = (
        "Give the same arguments to continue. Another --out makes another release with a ledger of its own: the losses "
        "of two releases of the same households add up, and no ledger counts them together"
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


def _locations(patterns: Sequence[str]) -> list[str]:
    return [pattern if "://" in pattern else str(Path(pattern).absolute()) for pattern in patterns]


def _value_text(value: object) -> str:
    return (
        "not given" if value is None else escape_text(value if isinstance(value, str) else json.dumps(value), _LONGEST)
    )


def _plain(toml: str) -> Any:  # noqa: ANN401  (a JSON value)
    value = tomllib.loads(f"value = {toml}", parse_float=Decimal)["value"]
    return _text(value)


def _text(value: object) -> Any:  # noqa: ANN401  (a JSON value)
    if isinstance(value, list):
        return [_text(item) for item in value]
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

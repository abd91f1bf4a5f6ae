"""The options of `agedp init` and `agedp sanitise`: one for every key of a run file that decides something.

An option is written into the run file under its key, and the loader of run files checks it there: an option has no
rule of its own. The texts are in run_file_options.json, a line for each key: option, help, comment and proposal. No
model is imported, so that the list of options costs nothing. A test compares it with the models of the run file. A key
that only a new notion has needs no line: `notion_options` takes it from the notion, as soon as a command needs it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, Literal

from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text

Form = Literal["value", "text", "list", "words", "columns", "where", "value or list", "text or list", "flag", "switch"]
SEVERAL: Final = ("words", "columns", "where")
"""Forms of options that may be given several times."""
Key = tuple[str, str]
"""Table and key of a run file, such as ("promise", "epsilon_per_day")."""

SERIES: Final = "series.daily_mean"
EVERY_DAY: Final = "all"
"""`--period all`: the model is estimated from every day of the files."""

_NUMBER = re.compile(r"[+-]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})([eE][+-]?\d{1,2})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunFileOption:
    """One option of `agedp init` and `agedp sanitise`.

    Attributes:
        flag: the option on the command line.
        key: the key that it writes, as (table, key).
        metavar: the placeholder of its value in the help, "" for a flag.
        help: one line of help.
        form: how the value is written in TOML; those of `SEVERAL` may be given several times: one column is a text, two
            are a list, and "where" is COLUMN=TEXT. A "flag" publishes the envelope, a "switch" is true.
        comment: comment on the key in the run file that `agedp init` writes.
        proposal: proposed value as TOML text, where neither the notion nor another key decides it.
    """

    flag: str
    key: Key
    metavar: str
    help: str
    form: Form = "value"
    comment: str = ""
    proposal: str = ""

    @property
    def name(self) -> str:
        """Return the name of the option as a Python parameter.

        >>> RunFileOption("--age-days", ("promise", "age_days"), "DAYS", "").name
        'age_days'
        """
        return self.flag.removeprefix("--").replace("-", "_")


def _read_options() -> Iterator[RunFileOption]:
    """Yield the options of run_file_options.json, by table and key; the help of some tables begins with their name."""
    begins = {"input.columns": "long table: ", "model": "model: "}
    texts = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    for table, keys in texts.items():
        for key, entry in keys.items():
            flag, text = entry.pop("flag", "--" + key.replace("_", "-")), begins.get(table, "") + entry.pop("help")
            yield RunFileOption(flag, (table, key), entry.pop("metavar", ""), text, **entry)


OPTIONS: Final = tuple(_read_options())

_PUBLISH: Final[Key] = ("model", "publish")
_SELECTION: Final[Key] = ("model", "selection_epsilon")
"""An option of a private choice, which therefore writes publish = "private"."""

FLAGS: Final[Mapping[Key, str]] = {option.key: option.flag for option in OPTIONS}
COMMENTS: Final[Mapping[Key, str]] = {option.key: option.comment for option in OPTIONS}
PROPOSALS: Final[Mapping[Key, str]] = {option.key: option.proposal for option in OPTIONS}
_BY_NAME: Final[Mapping[str, RunFileOption]] = {option.name: option for option in OPTIONS}


def notion_options() -> tuple[RunFileOption, ...]:
    """Return the options of those keys of [promise] that have no line in `OPTIONS`.

    A new notion thereby gets its options. The call imports the notions, which takes too long for the list of commands.
    """
    from agedp_data.notions import NOTIONS  # noqa: PLC0415  (the list of commands must not wait for the notions)

    options: dict[str, RunFileOption] = {}
    for notion in NOTIONS:
        for key in notion.model_fields:
            if ("promise", key) not in FLAGS:
                text = notion.TEXT.option_help.get(key, "key of this notion")
                flag = "--" + key.replace("_", "-")
                options.setdefault(key, RunFileOption(flag, ("promise", key), "VALUE", f"{notion.name}: {text}"))
    return tuple(options.values())


OptionValues = Mapping[Key, str]
"""Options as the TOML text of each key."""


def number_of(options: OptionValues, key: Key) -> Decimal | None:
    """Return the number that an option gives a key, if it gives one."""
    try:
        return Decimal(options[key])
    except (KeyError, InvalidOperation):
        return None


def toml_of(options: Mapping[str, str | bool | Sequence[str] | None]) -> dict[Key, str]:
    """Return the TOML text of the options that were given, by key; `options` is by their names.

    >>> toml_of({"epsilon_per_day": ".50", "notion": "classical", "risk": None, "model_ages": "1,2"})
    {('promise', 'epsilon_per_day'): '0.50', ('promise', 'notion'): '"classical"', ('model', 'ages_days'): '[1, 2]'}
    """
    texts: dict[Key, str] = {}
    for name, value in options.items():
        if value is not None and value is not False and value != []:
            option = _BY_NAME.get(name) or next(option for option in notion_options() if option.name == name)
            texts[option.key] = _toml(value, option.form)
    if ("protect", "span") in texts:  # its epsilon and delta are about that span
        for key in ("epsilon", "delta"):
            if ("promise", key) in texts:
                texts["protect", key] = texts.pop(("promise", key))
    if _SELECTION in texts:
        texts.setdefault(_PUBLISH, quoted("private"))
    return texts


def set_keys(given: Sequence[str]) -> dict[Key, str]:
    """Return the TOML text of keys that are given as "table.key=value"; a value that is no TOML is text.

    The key of a series is that of the one that options describe, whatever its name.

    Raises:
        RunFileError: not of this form.

    >>> set_keys(["engine.workers=2", "series.daily_mean.every=month", "output.layout = 'monthly'"])
    {('engine', 'workers'): '2', ('series.daily_mean', 'every'): '"month"', ('output', 'layout'): "'monthly'"}
    """
    texts: dict[Key, str] = {}
    for text in given:
        name, mark, value = (part.strip() for part in text.partition("="))
        table, dot, key = name.rpartition(".")
        if not (mark and dot and table and key and value):
            raise RunFileError(f"--set {escape_text(text)}: write TABLE.KEY=VALUE, such as output.layout=monthly")
        try:
            toml_value(value)
        except tomllib.TOMLDecodeError:
            value = quoted(value)
        texts[SERIES if table.startswith("series.") else table, key] = value
    return texts


def _toml(given: str | bool | Sequence[str], form: Form) -> str:
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else []
    if form in ("flag", "switch"):
        return quoted("envelope") if form == "flag" else "true"
    if form == "columns":
        return toml_text(texts[0] if len(texts) == 1 else texts)
    if form == "where" and all("=" in text for text in texts):
        pairs = [text.partition("=") for text in texts]
        return toml_text({name: [text for key, _, text in pairs if key == name] for name, _, _ in pairs})
    return _toml_of_text(",".join(texts), form)


def _toml_of_text(value: str, form: Form) -> str:
    if form == "text or list" and "," in value:
        return toml_text([part.strip() for part in value.split(",")])
    if form in ("text", "text or list", "where"):
        return quoted(value)
    if form in ("list", "words") or (form == "value or list" and "," in value):
        return f"[{', '.join(_value(part.strip()) for part in value.split(','))}]"
    return _value(value)


def _value(text: str) -> str:
    """Return a number or date as TOML writes it, anything else as text, which the loader refuses with a message."""
    if _NUMBER.fullmatch(text):
        return f"{Decimal(text):f}"
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            return quoted(text)
    return quoted(text)


def toml_text(value: object) -> str:
    """Return a value of [input.columns] as TOML text.

    >>> print(toml_text({"register": ["E1", "E2"]}), toml_text(("date", "time")), toml_text(30))
    { "register" = ["E1", "E2"] } ["date", "time"] 30
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{quoted(str(key))} = {toml_text(part)}' for key, part in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)


def toml_value(toml: str, parse_float: Callable[[str], Any] = float) -> Any:  # noqa: ANN401  (any value of a key)
    """Return the value of TOML text, the inverse of `toml_text`."""
    return tomllib.loads(f"value = {toml}", parse_float=parse_float)["value"]


def quoted(text: str) -> str:
    """Return text as a TOML string.

    >>> print(quoted("incoming/*.csv"))
    "incoming/*.csv"
    """
    encodable = text.encode("utf-8", "replace").decode()  # no lone surrogates: names of files need not be UTF-8
    return re.sub(
        "[\x7f\u00a0\u202f]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(encodable, ensure_ascii=False)
    )

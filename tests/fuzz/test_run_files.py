"""Every key of every table, found by walking the models: what is wrong with it is one line that helps."""

# ruff: noqa: E501, S311  (tables of odd values; choices, not secrets)

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp_data.config import load, parse
from agedp_data.config.run_file import RunFile
from agedp_data.errors import RunFileError
from tests.fuzz.run_files import Key, Raw, blocks, keys, sound, toml

KEYS = keys()
CHANCE = random.Random(20261129)


def swept(every: Sequence[Key], number: int) -> pytest.MarkDecorator:
    """Return a sweep over keys: so many of them, chosen by a seed, in the fast run, and all others with the long tests."""
    chosen = CHANCE.sample(every, number)
    cases = [pytest.param(key, marks=() if key in chosen else pytest.mark.long) for key in every]
    return pytest.mark.parametrize("key", cases, ids=str)


JARGON = re.compile(
    r"Input should|type=|validation error|https?://|pydantic|Decimal\(|datetime\.|<class|literal_error|tuple|NoneType"
)
_HELPS = re.compile(
    r"must|write|did you mean|remove|no file system|at most|at least|it (takes|belongs|goes)|known are|too l|exactly one"
)
HIDDEN = {
    "files", "release", "confidential", "ledger", "roster", "wait_for", "curve", "kernel", "family", "file", "witness",
    "household_register", "meters",
}  # fmt: skip
"""Keys whose values name places: those stand in the private text only."""


def refusal(text: str) -> RunFileError:
    """The refusal of a run file; both of its texts are one line without jargon that says what would help."""
    with pytest.raises(RunFileError) as caught:
        parse(text, base=Path("/house"), name="r.toml")
    for line in (str(caught.value), caught.value.private):
        assert line.startswith("r.toml: ")
        assert line.isprintable(), repr(line)
        assert len(line) < 500, line
        assert not JARGON.search(line), line
        assert _HELPS.search(line), line
    return caught.value


def spoilt(key: Key, value: str) -> str:
    document, table = key.document()
    table[key.key] = Raw(value)
    return toml(document)


def where(key: Key) -> str:
    return f"[{'.'.join(key.path)}] {key.key}" if key.path else key.key


OTHER_TYPES = {
    "number": [
        '"50 kWh"', '"5"', "true", "[]", "[true]", "2013-01-01", "07:32:00", "2013-01-01T00:00:00", "{}", "[[1]]",
    ],
    "text": ["5", "0.5", "true", "nan", "[]", "[1]", "2013-01-01", "07:32:00", "{a = 1}", "1e300"],
    "date": ['"2013-01-31"', "5", "2013-01-01T00:00:00", "07:32:00", "[2013-01-01]", "true", '"01/02/2013"', "{}"],
    "list": ["5", "true", '"a"', "2013-01-01", "{}", "[[]]", "[{a = 1}]", "[true]"],
}  # fmt: skip
IMPOSSIBLE = {
    "number": ["-1", "-0.001", "nan", "inf", "-inf", "1e300", "1e-300", "1e999999999", "9" * 30],
    "text": ['""', '" "', '"\\u0007"', '"a\\nb"', '"a\\u0000b"', '"a\\u2028b"', f'"{"z" * 5000}"'],
    "date": ["0001-01-01", "9999-12-31", "1969-12-31", "2200-01-01"],
    "list": ["[nan]", "[-1]", "[1e300]", "[2, 1]", "[1, 1]", "[2013-01-01]", f"[1, {'9' * 30}]"],
}
ZERO_IS_SOUND = {"max_missing", "missing_kwh", "keep_days", "age_days", "first_period", "skip_lines"}
SOUND = {
    ("skip_days", "[2013-01-01]"),
    ("thousands", '""'),
    ("thousands", '" "'),
    ("add", '""'),
    ("energy", '"a"'),
    ("where", "{}"),
}


def kind(key: Key) -> str:
    match key.value:
        case bool() | str():
            return "text"
        case date():
            return "date"
        case list():
            return "list"
        case _:
            return "number"


def wrong_values(key: Key) -> Iterator[str]:
    """What this key cannot be, whatever it is called: from the type of a sound value."""
    others = (value for value in OTHER_TYPES[kind(key)] if value != json.dumps(key.value, default=str))
    yield from (value for value in others if (key.key, value) not in SOUND)
    if kind(key) == "number" and key.key not in ZERO_IS_SOUND:
        yield "0"
    if isinstance(key.value, int) and kind(key) == "number" and not _takes_fractions(key):
        yield "1.5"
    yield from (value for value in IMPOSSIBLE[kind(key)] if (key.key, value) not in SOUND)
    if key.literals and kind(key) == "text":
        misspelt = (key.literals[0].upper(), key.literals[0][:-1], "of another kind")
        yield from (json.dumps(each) for each in misspelt if each not in key.literals)  # "," has no capital letter


def _takes_fractions(key: Key) -> bool:
    return bool(re.search(r"_kwh$|epsilon|alpha|rate|share|hyperbolic", key.key))


@pytest.mark.parametrize("share", [0.15, pytest.param(1, marks=pytest.mark.long)])
@swept(KEYS, 30)
def test_what_a_key_cannot_be_is_refused_with_table_key_and_value(key, share):
    parse(toml(key.document()[0]), base=Path("/house"), name="r.toml")
    values, chance = list(wrong_values(key)), random.Random(str(key))
    for value in chance.sample(values, max(1, round(share * len(values)))):
        line = str(refusal(spoilt(key, value)))
        assert where(key) in line or "takes exactly one" in line, line
        if key.key in HIDDEN:
            assert "50 kWh" not in line
            assert "zzz" not in line
        elif len(value) < 20 and not re.search(r"[\\e{]|[0-9]T|\d\.\d|\d{4}", value):
            assert f"{key.key} = {value}" in line, (value, line)


@swept([key for key in KEYS if key.literals and kind(key) == "text"], 10)
def test_a_misspelt_choice_is_answered_with_the_nearest_one(key):
    for literal in key.literals:
        wrong = literal[0] + literal[2:] if len(literal) > 3 else literal + "x"
        for misspelt in {literal.upper(), literal[:-1], wrong} - {*key.literals}:
            if len(literal) > 1 and len(misspelt) > 1:
                line = str(refusal(spoilt(key, json.dumps(misspelt))))
                assert f'"{literal}"' in line or f"'{literal}'" in line, line


@swept(KEYS, 10)
def test_a_misspelt_key_is_answered_with_the_key_itself(key):
    name = key.key
    swapped = name[0] + name[2] + name[1] + name[3:] if len(name) > 3 else name + "_"
    sisters = {other.key for other in KEYS if other.path == key.path}
    for misspelt in {name[:-1], name[1:], name + "s", name.upper(), swapped} - sisters:
        if len(misspelt) < 3:
            continue
        document, table = key.document()
        table[misspelt] = table.pop(name)
        line = str(refusal(toml(document)))
        assert f"'{misspelt}'" in line
        # the list of keys that has it is an answer too, and so is a sister: "by" has no letters to go by
        listed = name in re.split(r"[\s,']+", line.partition("it takes ")[2]) or len(name) < 5
        assert listed or f"'{name}'" in line or f"{name}: is missing" in line, line


@swept([key for key in KEYS if key.path], 10)
def test_a_key_in_the_wrong_table_is_sent_to_its_own(key):
    own = {other.path for other in KEYS if other.key == key.key}
    for path in {(), ("output",), ("engine",)} - own:
        document, table = key.document()
        other = document[path[0]] if path else document
        if not path and key.key in RunFile.model_fields:
            continue
        other[key.key] = table[key.key]
        line = str(refusal(toml(document)))
        assert f"'{key.key}'" in line or f"[{key.key}]" in line
        homes = [f"[{'.'.join(home)}]".replace("daily", "NAME") for home in own]
        if key.key != "source" or "[model]" not in line:
            assert any(home in line for home in homes) or "did you mean" in line, line


def test_every_block_of_the_run_file_is_walked():
    found = {(path[0], choice) for path, choice, _ in blocks()}
    assert {("promise", "classical"), ("promise", "w-event"), ("series", "distribution"), ("engine", "")} <= found
    assert len(KEYS) > 120


ODD_NAMES = st.text(max_size=12) | st.sampled_from(["a\nb", "\u2028", "k" * 5000, "", " ", "\u202e", "clamp_kwh "])
FUZZ = settings(max_examples=30, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(name=ODD_NAMES, table=st.sampled_from(["", "output", "promise", "engine"]))
def test_a_key_or_table_of_any_name_is_refused_in_one_short_line(name, table):
    document = sound("promise", "classical")
    below = document[table] if table else document
    known = name in below or any(key.key == name and key.table == table for key in KEYS)
    if known or any(0xD800 <= ord(char) <= 0xDFFF for char in name) or (not table and name in ("model", "compare")):
        return
    below[name] = 1 if table else {"a": 1}
    refusal(toml(document))


TOML_ERRORS = [
    ("version 1\n", "line 1, column 9: is not TOML"),
    ("version = 1\n\nversion = 2\n", "line 3, column 12: is not TOML: cannot overwrite a value"),
    ("a = " + "[" * 100_000, "lists or tables are nested too deeply"),
    ("version = " + "9" * 5000, "a number is too long to be read"),
    ("[a]\n[a]\n", "line 2, column 3: is not TOML: cannot declare [a] twice"),
    ("x = 'a\n", "line 1, column"),
    ("x = 2013-02-30", "line 1, column 5: is not TOML: invalid date"),
    ("\x00", "line 1, column 1"),
    ('"a\nb" = 1', "line 1, column 3"),
    ("[" + "k" * 3000 + "]\n[" + "k" * 3000 + "]", "line 2, column 3002"),
]


@pytest.mark.parametrize(("text", "what"), TOML_ERRORS)
def test_what_is_not_toml_is_told_by_line_and_column(text, what):
    with pytest.raises(RunFileError) as caught:
        parse(text, base=Path("/house"), name="r.toml")
    assert str(caught.value).startswith(f"r.toml: {what}")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@FUZZ
@given(at=st.integers(0, 3000), odd=st.binary(min_size=0, max_size=3), length=st.integers(0, 4))
def test_a_run_file_with_odd_bytes_is_understood_or_refused_in_one_line(tmp_path, at, odd, length):
    data = toml(sound("promise", "classical")).encode()
    at %= len(data)
    (tmp_path / "r.toml").write_bytes(data[:at] + odd + data[at + length :])
    try:
        load(tmp_path / "r.toml")
    except RunFileError as error:
        for line in (str(error), error.private):
            assert line.isprintable(), repr(line)
            assert len(line) < 700
            assert not JARGON.search(line)


def test_a_run_file_is_a_file_of_a_sensible_size(tmp_path):
    (tmp_path / "big.toml").write_bytes(b"# x\n" * 2_500_000)
    (tmp_path / "utf16.toml").write_bytes("version = 1".encode("utf-16"))
    (tmp_path / "latin.toml").write_bytes(b"version = 1\n# caf\xe9\n")
    messages = {
        tmp_path / "big.toml": "larger than a megabyte",
        Path("/dev/zero"): "is a pipe or a device",
        tmp_path: "is a folder",
        tmp_path / "utf16.toml": "is not UTF-8 text",
        tmp_path / "latin.toml": r"^latin\.toml: is not UTF-8 text \(line 2\)",
        tmp_path / "none.toml" / "r.toml": "the file does not exist",
        tmp_path / "big.toml" / "r.toml": "cannot be read",
        tmp_path / ("x" * 300): "cannot be read",
    }
    for path, message in messages.items():
        with pytest.raises(RunFileError, match=message) as caught:
            load(path)
        assert str(tmp_path) not in str(caught.value)

"""Rosters: rows, groups and members in any form, and every malformed line named by its number."""

from __future__ import annotations

import csv
import io
import pickle
import random
from datetime import date, timedelta

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data import roster as roster_module
from agedp_data.errors import InputError
from agedp_data.roster import READ_OFF_MARK, format_roster, parse_roster, read_roster, sort_rows

# The roster: both days count, every malformed line is named by its number and never by a household.


def roster(folder, text):
    path = folder / "roster.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_roster(path)


BAD = {
    "SECRET,2013-01-01": "2 fields where the header has 3", "SECRET,2013-01-01,,": "4 fields where the header has 3",
    ",2013-01-01,": "no household_id", "SECRET,,": "`from` must be a date",
    "SECRET,01/02/2013,": "`from` must be a date", "SECRET,2013-02-29,": "`from` must be a date",
    "SECRET,2013-01-01,never": "`to` must be a date", "SECRET,2013-01-02,2013-01-01": "`to` lies before `from`",
    '"SECRET"x,2013-01-01,': "is not CSV", '"SECRET,2013-01-01,': "is not CSV",
}  # fmt: skip


@pytest.mark.parametrize("above", [0, 1])
def test_a_malformed_line_is_named_by_its_number(tmp_path, above):
    head = f"{READ_OFF_MARK}\n" * above
    good = '"two\nlines",2013-01-01,\n\nB,2013-01-01,\n'  # lines 2 and 3, 4 (empty), 5
    for line, message in BAD.items():
        with pytest.raises(InputError) as caught:
            roster(tmp_path, f"{head}household_id,from,to\n{good}{line}\n")
        assert str(caught.value).startswith(f"[population] roster: line {6 + above}: {message}")
        assert "SECRET" not in str(caught.value) + caught.value.private
        assert str(tmp_path) in caught.value.private
        assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("second", ["2013-01-10,", "2013-01-01,2013-01-01", "2012-12-01,2013-01-01", "2012-12-01,"])
def test_a_household_counted_twice_on_a_day_is_refused(tmp_path, second):
    with pytest.raises(InputError, match=r"lines \d and \d count one household twice") as caught:
        roster(tmp_path, f"household_id,from,to\nB,2013-01-01,\nSECRET,2013-01-01,2013-01-10\nSECRET,{second}\n")
    assert {word for word in str(caught.value).split() if word.isdigit()} == {"3", "4"}


def test_a_file_that_is_no_roster_is_one_line(tmp_path):
    for text, message in (
        *((text, "must begin with") for text in (b"", b"household_id,from\n", b"id,from,to\nA,2013-01-01,\n")),
        (b"household_id,from,to,a,a\n", "must begin with"),
        (b"household_id,from,to,\nA,2013-01-01,,\n", "must begin with"),
        (b"household_id,from,to\n", "no households"),
        (b"household_id,from,to\nA\xff,2013-01-01,\n", "not UTF-8"),
        ("household_id,from,to\n".encode("utf-16"), "not UTF-8"),
    ):
        with pytest.raises(InputError, match=message):
            roster(tmp_path, text)
    with pytest.raises(InputError, match="agedp init"):
        read_roster(tmp_path / "none.csv")


IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
SPANS = st.tuples(st.dates(), st.dates() | st.none()).filter(lambda span: span[1] is None or span[0] <= span[1])
ROWS = st.dictionaries(IDS.map(lambda text: text.strip(" \t")).filter(bool), SPANS, min_size=1, max_size=5)


@settings(max_examples=50)
@given(ROWS, st.dates())
def test_what_init_writes_is_read_back(tmp_path_factory, spans, day):
    text = format_roster((household, *span) for household, span in spans.items())
    found = roster(tmp_path_factory.mktemp("roster"), text)
    counted = sum(first <= day and (last is None or day <= last) for first, last in spans.values())
    assert (found.read_off, found.rows.ids, found.counts.households(day)) == (True, tuple(sorted(spans)), counted)


# Rosters as text and as Parquet: whatever the form, the same rows, cells, members and errors.

FIRST = date(2013, 1, 1)
Row = tuple[str, date, date | None, str, str]
HEADER = ("household_id", "from", "to", "feeder", "area")


def some_rows(seed: int, households: int = 40) -> list[Row]:
    """Return shuffled rows: several per household, with gaps, open ends, and groups that change."""
    draw = random.Random(seed)  # noqa: S311
    rows: list[Row] = []
    for i in range(households):
        day = FIRST + timedelta(days=draw.randrange(40))
        for number in range(draw.randrange(1, 4)):
            end = day + timedelta(days=draw.randrange(15))
            is_open = draw.random() < 0.3
            area = draw.choice("NSE")
            rows.append((f"ß {i % 7}-{i}", day, None if is_open else end, f"F{draw.randrange(4)}", area))
            if is_open:
                break
            day = end + timedelta(days=1 + number * draw.randrange(3))
    draw.shuffle(rows)
    return rows


def as_text(rows: list[Row], *, quoting: int = csv.QUOTE_MINIMAL, end: str = "\n") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow(HEADER)
    writer.writerows((row[0], row[1], "" if row[2] is None else row[2], *row[3:]) for row in rows)
    return text.getvalue().encode()


def as_table(rows: list[Row], **types: pa.DataType) -> bytes:
    """Return the rows as Parquet, each column in its type: dates or texts, text, dictionaries of text."""
    arrays = {}
    for name, column in zip(HEADER, zip(*rows, strict=True), strict=True):
        kind = types.get(name, pa.date32() if name in ("from", "to") else pa.string())
        values = [str(value) if value is not None and pa.types.is_string(kind) else value for value in column]
        arrays[name] = (
            pa.array(values, pa.date32()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
        )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays), sink, row_group_size=17)
    return sink.getvalue().to_pybytes()


FORMS = {
    "text": as_text,
    "quoted": lambda rows: as_text(rows, quoting=csv.QUOTE_ALL),
    "windows": lambda rows: b"\xef\xbb\xbf" + as_text(rows, end="\r\n"),
    "read off": lambda rows: READ_OFF_MARK.encode() + b" by agedp\n" + as_text(rows),
    "blanks": lambda rows: as_text(rows).replace(b",", b" ,\t") + b"\n\n,,,,\n",
    "table": as_table,
    "texts": lambda rows: as_table(rows, **{"from": pa.string(), "to": pa.string(), "household_id": pa.large_string()}),
    "dictionaries": lambda rows: as_table(
        rows,
        household_id=pa.dictionary(pa.int16(), pa.string()),
        feeder=pa.dictionary(pa.int8(), pa.string()),
        **{"from": pa.timestamp("ns"), "to": pa.date64()},
    ),
}


def name_of(form: str) -> str:
    return "r.parquet" if form in ("table", "texts", "dictionaries") else "r.csv"


def brute_members(rows: list[Row], day: date, columns: tuple[int, ...]) -> dict[str, list[str]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if row[1] <= day and (row[2] is None or day <= row[2]):
            groups.setdefault(tuple(row[column] for column in columns) or ("all",), []).append(row[0])
    return {"/".join(path): sorted(groups[path]) for path in sorted(groups)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_every_form_has_the_same_cells_and_members(form, seed):
    rows = some_rows(seed)
    roster = parse_roster(name_of(form), FORMS[form](rows))
    again = pickle.loads(pickle.dumps(roster))  # noqa: S301
    assert (list(roster.rows.ids), roster.read_off) == (sorted({row[0] for row in rows}), form == "read off")
    for by, columns in ((None, ()), ("area", (4,)), ("feeder", (3,)), (("feeder", "area"), (4, 3))):
        for day in (FIRST + timedelta(days=number) for number in range(-1, 70, 5)):
            expected = brute_members(rows, day, columns)
            cells = tuple((group, len(names)) for group, names in expected.items()) or ((("all", 0),) if not by else ())
            assert roster.counts.cells(day, by) == again.counts.cells(day, by) == cells
            for of in (roster.rows, again.rows):
                members = of.members(day, by)
                assert {group: [of.ids[code] for code in sorted(codes)] for group, codes in members.items()} == (
                    expected or ({"all": []} if by is None else {})
                )


def outcome(parse, content: bytes) -> object:
    """Return the sorted rows that a parser gives, or its error."""
    try:
        parsed = parse(content)
        if parsed is None:
            return None
        rows = sort_rows("r.csv", parsed, ("area",))
    except InputError as error:
        return str(error), error.private
    columns = {name: list(labels) for name, labels in rows.groups.items()}
    return list(rows.ids), rows.household.tolist(), rows.first.tolist(), rows.last.tolist(), columns, parsed.read_off


def check_parsers_agree(content: bytes) -> bool:
    by_column = outcome(roster_module.parse_columns, content)
    assert by_column is None or by_column == outcome(lambda text: roster_module.parse_lines("r.csv", text), content)
    return by_column is not None


CELLS = st.sampled_from(
    ["", " ", "A", "B ", "\tC", "2013-01-01", "2013-02-29", " 2013-05-05", "0000-01-01", "9999-12-31", "20130101",
     "never", "a/b", '"A"', '"A,B"', '"A\nB"', 'A"B', '"A""B"', '"', "é", "\x0c", "\x1c", "\u2028", "\x00", "'", "\\"]
)  # fmt: skip
LINES = st.one_of(
    st.tuples(st.sampled_from(["A", "B", "C", '"D"']), st.sampled_from(["2013-01-01", "2013-02-01"]),
              st.sampled_from(["", "2013-01-20", "2013-03-01"]), st.sampled_from(["n", "s", "", "n/s"])).map(list),
    st.lists(CELLS, min_size=3, max_size=5),
)  # fmt: skip
TEXTS = st.tuples(
    st.sampled_from(["", "\ufeff", f"{READ_OFF_MARK}\n", f"{READ_OFF_MARK}, \"x\"\r\n", "\n"]),
    st.sampled_from(["household_id,from,to,area", ' household_id, "from",to ,area', "household_id,from,to",
                     "a,from,to,b",
                     "household_id,from,to,area,area", "household_id,from,to,", "household_id,from,to, x ,area"]),
    st.lists(LINES.map(",".join), max_size=4),
    st.sampled_from(["\n", "\r\n", "\n", "\r"]),
    st.sampled_from(["", "\n", "\n\n", "\r\n", ",,,\n", "\n,,,", " "]),
)  # fmt: skip


@given(TEXTS)
def test_dirty_texts_have_the_same_rows_or_the_same_error(parts):
    start, header, lines, end, ending = parts
    check_parsers_agree((start + end.join([header, *lines]) + ending).encode())


@given(st.integers(0, 200), st.binary(max_size=2), st.integers(0, 3))
def test_a_changed_byte_has_the_same_rows_or_the_same_error(place, inserted, removed):
    content = as_text(some_rows(2, households=4))
    place %= len(content)
    check_parsers_agree(content[:place] + inserted + content[place + removed :])


def test_an_overlap_is_named_by_the_lines_of_the_file():
    content = b"household_id,from,to\nB,2013-01-01,\n,,\nA,2013-01-05,\nA,2013-01-01,2013-01-05\n"
    with pytest.raises(InputError, match="lines 5 and 4 count one household twice"):
        parse_roster("r.csv", content)


def table(**columns: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


GOOD = {"household_id": ["A", "SECRET"], "from": [FIRST, FIRST], "to": pa.array([None, None], pa.date32())}
DATES = "must contain dates or texts like 2013-01-31; write it as dates, without a time of day or a time zone"
BAD_TABLES = {
    "row 2: no household_id": {"household_id": ["A", None]},
    "row 1: no household_id": {"household_id": [" ", None]},
    "row 2: `from` must be a date like 2013-01-31": {"from": [FIRST, None]},
    "row 1: `from` must be a date like 2013-01-31": {"from": ["01/02/2013", "2013-01-01"]},
    "row 2: `to` must be a date like 2013-01-31": {"to": [None, "soon"]},
    "row 2: `to` lies before `from`": {"to": [None, date(2012, 12, 31)]},
    "rows 1 and 2 count one household twice on the same day": {"household_id": ["SECRET", "SECRET"]},
    f"column from {DATES}": {"from": [1.5, 2.5]},
    f"column to {DATES}": {"to": pa.array([0, 3_600_000], pa.timestamp("ms"))},
    "column household_id must be text or whole numbers": {"household_id": [b"A", b"B"]},
    "column area must be text or whole numbers": {"area": [1.5, 2.5]},
    "must begin with household_id,from,to": {"household_id ": ["A", "B"], "household_id": None},
    "row 2: a label in column area, a level of a hierarchy, is empty": {"area": ["n", None]},
    'row 1: a label in column area, a level of a hierarchy, contains "/"': {"area": ["n/s", "n"]},
}


@pytest.mark.parametrize("problem", BAD_TABLES)
def test_a_wrong_table_is_named_by_column_and_row(problem):
    columns = {name: values for name, values in {**GOOD, **BAD_TABLES[problem]}.items() if values is not None}
    with pytest.raises(InputError) as caught:
        parse_roster("r.parquet", table(**columns), path_columns=["area"])
    assert f"r.parquet: {problem}" in caught.value.private
    assert "row 1" not in str(caught.value)
    assert "row 2" not in str(caught.value)
    assert "SECRET" not in caught.value.private


@pytest.mark.parametrize("content", [b"", b"household_id,from,to\n", table(**GOOD)[:-40], table(**GOOD)[8:]])
def test_a_file_that_is_not_parquet_is_one_line(content):
    with pytest.raises(InputError, match="is not Parquet"):
        parse_roster("r.PARQUET", content)


def test_numbers_are_texts_and_empty_rows_are_skipped():
    columns = {
        "area": pa.array([7, None, 8]),
        "to": ["", None, "2013-02-01 "],
        "from": ["2013-01-01", None, "2013-01-02"],
    }
    roster = parse_roster("r.parquet", table(**columns, household_id=pa.array([12, None, 5])))
    assert (list(roster.rows.ids), roster.rows.groups) == (["12", "5"], {"area": ("7", "8")})
    assert roster.rows.first.tolist() == [(date(2013, 1, day) - date(1970, 1, 1)).days for day in (1, 2)]


def test_a_table_at_a_url_is_read_as_one_on_a_disk():
    rows = some_rows(5)
    fsspec.filesystem("memory").pipe("/roster-formats/r.parquet", as_table(rows))
    assert list(read_roster("memory://roster-formats/r.parquet").rows.ids) == sorted({row[0] for row in rows})
    fsspec.filesystem("memory").pipe("/roster-formats/r.parquet", table(**{**GOOD, "to": [None, "soon"]}))
    with pytest.raises(InputError, match=r"^\[population\] roster: column to, in a row: `to` must be a date"):
        read_roster("memory://roster-formats/r.parquet")

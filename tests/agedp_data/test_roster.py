"""The roster: both days count, every malformed line is named by its number and never by a household."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.errors import InputError
from agedp_data.roster import READ_OFF_MARK, format_roster, read_roster


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

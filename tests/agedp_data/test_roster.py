"""The roster: both days count, every malformed line is named by its number and never by a household."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.errors import InputError
from agedp_data.roster import READ_OFF_MARK, format_roster, read_roster

DAY = date(2013, 1, 1)


def roster(folder, text):
    path = folder / "roster.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_roster(path)


def test_both_days_are_included_and_an_empty_end_stays_open(tmp_path):
    found = roster(tmp_path, "household_id,from,to\nA,2013-01-02,2013-01-03\nB,2013-01-03,\n")
    assert [found.households(date(2013, 1, day)) for day in (1, 2, 3, 4)] == [0, 1, 2, 1]
    assert found.households(date.max) == 1
    assert found.ids == ("A", "B")


def test_a_household_may_leave_come_back_and_change_group(tmp_path):
    found = roster(
        tmp_path,
        "household_id,from,to,tariff\nA,2013-02-01,,ToU\nA,2013-01-01,2013-01-10,Std\nA,2013-01-11,2013-01-20,ToU\n",
    )
    assert [found.households(DAY + timedelta(days=day)) for day in (0, 9, 10, 19, 20, 30, 31)] == [1, 1, 1, 1, 0, 0, 1]
    assert found.groups == {"tariff": ("Std", "ToU", "ToU")}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffhousehold_id,from,to\r\nA,2013-01-01,\r\n",
        'household_id, from ,to\n"A" , 2013-01-01 , \n\n',
        "household_id,from,to\nA,2013-01-01,",
        f"{READ_OFF_MARK}, anything\nhousehold_id,from,to\nA,2013-01-01,\n",
        f"\ufeff{READ_OFF_MARK}\r\nhousehold_id,from,to\r\nA,2013-01-01,\r\n",
    ],
)
def test_marks_blanks_quotes_and_line_ends_do_not_matter(tmp_path, text):
    text = text.replace('"A" ', '"A"')
    found = roster(tmp_path, text)
    assert (found.ids, found.households(DAY)) == (("A",), 1)
    assert found.read_off == (READ_OFF_MARK in text)


def test_an_id_may_hold_a_comma_a_quote_and_a_line_end(tmp_path):
    found = roster(tmp_path, 'household_id,from,to\n"a,""b""\nc",2013-01-01,\n')
    assert found.ids == ('a,"b"\nc',)


BAD = {
    "SECRET,2013-01-01": "2 fields where the header has 3", "SECRET,2013-01-01,,": "4 fields where the header has 3",
    ",2013-01-01,": "no household_id", "SECRET,,": "`from` must be a date",
    "SECRET,01/02/2013,": "`from` must be a date", "SECRET,2013-02-29,": "`from` must be a date",
    "SECRET,2013-01-01,never": "`to` must be a date", "SECRET,2013-01-02,2013-01-01": "`to` lies before `from`",
    '"SECRET"x,2013-01-01,': "is not CSV", '"SECRET,2013-01-01,': "is not CSV",
}  # fmt: skip


@pytest.mark.parametrize("above", [0, 1])
@pytest.mark.parametrize(("line", "message"), BAD.items())
def test_a_malformed_line_is_named_by_its_number(tmp_path, line, message, above):
    head = f"{READ_OFF_MARK}\n" * above
    good = '"two\nlines",2013-01-01,\n\nB,2013-01-01,\n'  # lines 2 and 3, 4 (empty), 5
    with pytest.raises(InputError) as caught:
        roster(tmp_path, f"{head}household_id,from,to\n{good}{line}\n")
    assert str(caught.value).startswith(f"[population] roster: line {6 + above}: {message}")
    assert "SECRET" not in str(caught.value) + caught.value.private
    assert str(tmp_path) in caught.value.private
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("second", ["2013-01-10,", "2013-01-01,2013-01-01", "2012-12-01,2013-01-01", "2012-12-01,"])
def test_a_household_counted_twice_on_a_day_is_refused_with_both_lines(tmp_path, second):
    with pytest.raises(InputError, match=r"lines \d and \d count one household twice") as caught:
        roster(tmp_path, f"household_id,from,to\nB,2013-01-01,\nSECRET,2013-01-01,2013-01-10\nSECRET,{second}\n")
    assert {word for word in str(caught.value).split() if word.isdigit()} == {"3", "4"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"household_id,from\n", "must begin with"),
        (b"id,from,to\nA,2013-01-01,\n", "must begin with"),
        (b"household_id,from,to,a,a\n", "must begin with"),
        (b"household_id,from,to,\nA,2013-01-01,,\n", "must begin with"),
        (b"", "must begin with"),
        (b"household_id,from,to\n", "no households"),
        (b"household_id,from,to\nA\xff,2013-01-01,\n", "not UTF-8"),
        ("household_id,from,to\n".encode("utf-16"), "not UTF-8"),
    ],
)
def test_a_file_that_is_no_roster_is_one_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        roster(tmp_path, text)


def test_a_missing_roster_says_what_makes_one(tmp_path):
    with pytest.raises(InputError, match="agedp init"):
        read_roster(tmp_path / "none.csv")


IDS = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
    .map(lambda text: text.strip(" \t"))
    .filter(bool)
)
SPANS = st.tuples(st.dates(), st.dates() | st.none()).filter(lambda span: span[1] is None or span[0] <= span[1])


@given(st.dictionaries(IDS, SPANS, min_size=1, max_size=5), st.dates())
def test_what_init_writes_is_read_back(tmp_path_factory, spans, day):
    text = format_roster((home, *span) for home, span in spans.items())
    found = roster(tmp_path_factory.mktemp("roster"), text)
    counted = sum(first <= day and (last is None or day <= last) for first, last in spans.values())
    assert found.read_off
    assert found.ids == tuple(sorted(spans))
    assert found.households(day) == counted

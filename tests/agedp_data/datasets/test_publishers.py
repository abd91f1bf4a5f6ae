"""The publishers' files: headers, dates and categories, and the committed samples."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from agedp_data.datasets.ausgrid import Ausgrid, AusgridKeys
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.london import London
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.validation import ReadingRules, RejectionReason
from tests.agedp_data.datasets.parsing import RULES, parse, reasons, settle, step

# The publishers' layouts: London's headers and timestamps at the END of the half-hour; Ausgrid's years.

KEPT, DATE, CATEGORY = RejectionReason.KEPT, RejectionReason.DATE, RejectionReason.CATEGORY
FOUR = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) "
SIX = FOUR + ",Acorn,Acorn_grouped"
THREE = "LCLid,DateTime,KWH/hh (per half hour)"


def london(header: str, *rows: str) -> dict[tuple[str, int], int]:
    return settle(London(), RULES, [parse(London(), header, *rows)]).readings


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (FOUR, "MAC000002,Std,2012-10-12 00:30:00.0000000, 0.143 "),
        (FOUR.rstrip(), "MAC000002,Std,2012-10-12 00:30:00.0000000, 0.143 "),
        (SIX, "MAC000002,Std,12/10/2012 00:30:00, 0.143 ,ACORN-A,Affluent"),
        ("LCLid,tstp,energy(kWh/hh)", "MAC000002,2012-10-12 00:30:00.0000000, 0.143 "),
        (THREE + " ", "MAC000002,2012-10-12 00:30:00,0.143"),
        ('"LCLid","DateTime","KWH/hh (per half hour)"', '"MAC000002","2012-10-12 00:30:00","0.143"'),
        (SIX, '"MAC000002",Std,"12/10/2012 00:30:00", 0.143 ,"a, b",c'),
    ],
)
def test_every_london_header_in_the_wild_says_the_same(header, row):
    assert london(header, row) == {("MAC000002", step(date(2012, 10, 12))): 143}


@pytest.mark.parametrize("index", ["", "Unnamed: 0,"])
def test_a_row_of_a_london_day_begins_at_midnight(index):
    """hh_0 is the half-hour from 0:00 to 0:30, hh_47 that from 23:30 to 24:00: n Wh in the n-th of them, from 1 on."""
    header = f"{index}LCLid,day,{','.join(f'hh_{slot}' for slot in range(48))}"
    cells = [f"{slot / 1000:.3f}" for slot in range(1, 49)]
    day = {("MAC000002", step(date(2013, 3, 31), slot)): slot + 1 for slot in range(48)}  # 48 half-hours of GMT
    before = "7," if index else ""
    assert london(header, f"{before}MAC000002,2013-03-31,{','.join(cells)}") == day
    spoilt = [*cells[:5], "x", *cells[6:]]
    del day["MAC000002", step(date(2013, 3, 31), 5)]
    assert london(header, f"{before}MAC000002,2013-03-31,{','.join(spoilt)}") == day


AUSGRID = Ausgrid()
LABELS = [*[f"{hour}:{minute}" for hour in range(24) for minute in ("00", "30")][1:], "0:00"]
HEADER = "Customer,Generator Capacity,Postcode,Consumption Category,date," + ",".join(LABELS)
QUALITY = HEADER + ",Row Quality"
STEPS = [f"{slot / 1000:.3f}" for slot in range(1, 49)]


def row(category, day, cells=STEPS, *, quality=""):
    return ",".join(["12", "3.78", "2076", category, day, *cells, *([] if quality is None else [quality])])


def ausgrid(*rows: str, header: str = QUALITY, rules: ReadingRules = RULES) -> ParsedChunk:
    return parse(AUSGRID, header, *rows, rules=rules)


@pytest.mark.parametrize(
    "header",
    [
        f",{QUALITY}",
        f"Unnamed: 0,{HEADER}",
        ",".join(f'"{name}"' for name in ("", *QUALITY.split(","))),
        ",".join(["", *HEADER.split(",")[:5], *(f"{label}:00" for label in LABELS)]),
        ",".join(["", *HEADER.split(",")[:5], *(label.rjust(5, "0") for label in LABELS)]),
    ],
)
def test_ausgrid_is_recognised_with_an_index_and_other_texts_of_the_labels(header):
    cells = row("GC", "1/07/2012", quality="" if "Quality" in header else None)
    parsed = ausgrid(f"7,{cells}", header=header)
    assert parsed.records.ids == ("12",)
    assert parsed.records.energy_wh.tolist() == [list(range(1, 49))]


def test_other_columns_or_another_order_are_of_neither_publisher():
    for header in ("", "LCLid,DateTime", "DateTime,LCLid,KWH/hh (per half hour)", FOUR + ",Acorn", "a,b,c"):
        assert London().recognise([header]) is None
    for header in (HEADER.partition(",0:30")[0], QUALITY.replace("0:30,1:00", "1:00,0:30"), QUALITY + ",More"):
        assert AUSGRID.recognise([header]) is None


NO_DATES = [
    "", "31/06/2012", "0/07/2012", "1/13/12", "7/31/2012", "2012-07-32", "2012-07-01 10:00:00", "never", "1/07/0001",
    "31/12/1969", "1/07/9999",
]  # fmt: skip
DATES = {"1/07/2010": 1, "02/07/2010": 2, "1-Jul-10": 1, "02-JUL-10": 2} | dict.fromkeys(NO_DATES)
DATES |= {"2010-07-01": 1, "2010-07-02 00:00:00": 2, "2010-07-02T00:00:00.000Z": 2}


def test_each_date_is_day_first_and_read_by_itself():
    for texts in (list(DATES), list(DATES)[::-1], *([text] for text in DATES)):
        parsed = ausgrid(*(row("GC", text) for text in texts))
        assert reasons(parsed) == [KEPT if DATES[text] else DATE for text in texts]
        days = [step(date(2010, 7, DATES[text])) // 48 for text in texts if DATES[text]]
        assert parsed.records.day[parsed.records.reason == KEPT].tolist() == days


def test_consumption_and_controlled_load_are_channels_and_the_rest_is_counted():
    rows = [row(category, "1/07/2012") for category in ("GC", "CL", "GG", "XX", "")]
    parsed = ausgrid(*rows)
    assert reasons(parsed) == [KEPT, KEPT] + [CATEGORY] * 3
    assert parsed.records.channel.tolist()[:2] == [0, 1]
    assert parsed.rejected_row.tolist() == []
    noted = ausgrid(
        row("GC", "1/07/2012", quality="NA"), row("CL", "1/07/2012", quality=" NA "), row("GC", "2/07/2012")
    )
    assert (reasons(noted), noted.records.notes) == ([KEPT] * 3, {"rows with Row Quality NA (kept)": 2})
    generation = ausgrid(*rows, rules=ReadingRules(layout_keys=AusgridKeys(categories=("GG",))))
    assert reasons(generation) == [CATEGORY, CATEGORY, KEPT, CATEGORY, CATEGORY]


# The committed samples in data/: counted by hand in data/README.md, read by the layouts.

DATA = Path(__file__).resolve().parents[3] / "data"
VARIANTS = {  # and the rows kept and rejected, counted by hand
    "london_publisher.csv": ("publisher", 33, 4),
    "london_older.csv": ("older", 33, 4),
    "london_sample.csv": ("older", 33, 4),
    "london_kaggle.csv": ("kaggle", 33, 3),
    "ausgrid_2010_2011.csv": ("without Row Quality", 13, 10),
    "ausgrid_2012_2013.csv": ("with Row Quality", 13, 10),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_sample_has_the_rows_that_its_readme_counts(name):
    layout, data = LAYOUTS[name.split("_")[0]], (DATA / name).read_bytes()
    header = layout.recognise(data.decode().splitlines()[:20])
    chunk = parse_lines(data.split(b"\n", header.lines)[-1], layout=layout, header=header, rules=RULES)
    found = settle(layout, RULES, [chunk])
    assert (header.variant, found.rows_kept, found.rows_rejected) == VARIANTS[name]
    row = next(line for line in (DATA / "README.md").read_text().splitlines() if line.startswith(f"| `{name}`"))
    assert [cell.strip() for cell in row.split("|")][3:5] == [str(found.rows), str(found.rows_kept)]
    assert data.count(b"\r\n") == (0 if name == "london_kaggle.csv" else data.count(b"\n"))
    if name == "ausgrid_2012_2013.csv":  # the spring day has 46 readings, the day without GC none
        per_day = Counter((household, time // 48) for household, time in found.readings)
        assert sorted(per_day.values()) == [46, 46] + [48] * 7
        assert Counter(household for household, _ in per_day) == {"1": 4, "2": 5}

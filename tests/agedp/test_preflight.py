"""A first run on files that make a release senseless is refused before anything is registered; later nights are not."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from itertools import accumulate
from random import Random

import pytest

from agedp.stages import aggregate
from agedp_data.errors import REFUSED_INPUT, ContractChanged, PreflightFailed, RunFileError
from agedp_flows.text.run_text import alert_lines

FIRST = date(2013, 1, 1)
HOMES, TWELVE = "ABC", "ABCDEFGHIJKL"
LIVE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'


def day(number):
    return FIRST + timedelta(days=number)


def rows(homes, days, *, minutes=30, wh=lambda: 200):
    """London rows of an interval, stamped at its end."""
    start = datetime.combine(FIRST, time())
    steps = [
        start + timedelta(days=number, minutes=minutes * (i + 1)) for number in days for i in range(1440 // minutes)
    ]
    return [f"{home},{stamp},{wh() / 1000}" for home in homes for stamp in steps]


def prepare(house, *files, homes=HOMES, days=4, edits=(), **keys):
    """Write files, roster and a run file that refuses."""
    for name, lines in zip("abc", files, strict=False):
        house.london({}, name=f"{name}.csv", extra=lines)
    house.roster([(home, FIRST, None) for home in homes])
    house.write(FIRST, day(days - 1), **keys)
    house.edit(('preflight = "report"\n', ""), *edits)


def refused(house) -> PreflightFailed:
    """Run, and return the refusal; nothing is registered and no release folder is there."""
    with pytest.raises(PreflightFailed) as caught:
        house.run()
    assert caught.value.exit_status == 2
    assert not (house.folder / "ledger.sqlite").exists()
    assert not (house.folder / "release").exists()
    assert str(caught.value) == REFUSED_INPUT
    return caught.value


def findings(house) -> dict[str, tuple[str, str]]:
    record = json.loads((house.folder / "confidential" / "preflight.json").read_text())
    return {each["check"]: (each["verdict"], each["result"]) for each in record["findings"]}


def alerts(house) -> list[dict[str, object]]:
    path = house.folder / "confidential" / "alerts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_half_hours_pass_with_duplicates_and_empty_readings(house):
    lines = rows(HOMES, range(4))
    prepare(house, [*lines, *lines, *(f"D,{line.split(',')[1]},Null" for line in lines[:192])])
    assert len(house.run().released) == 4
    assert {verdict for verdict, _ in findings(house).values()} == {"ok"}
    assert (house.folder / "confidential" / "preflight.json").stat().st_mode & 0o077 == 0
    assert "of 12 household-days have about all of their readings" in findings(house)["readings"][1]
    assert "9.6 kWh" in findings(house)["unit"][1]  # 48 x 0.2


def shifted(lines: list[str], every: int) -> list[str]:
    """Move each so many-th row between two half-hours."""
    return [line.replace(":00,", ":07,") if i % every == 0 else line for i, line in enumerate(lines)]


def registers(values: list[int]) -> list[str]:
    """Rows of registers, the same of every household."""
    each = iter(values * len(HOMES))
    return rows(HOMES, range(4), wh=lambda: next(each))


def rising(start_wh: int) -> list[str]:
    """Rows of registers that rise by about 150 Wh from reading to reading."""
    return registers(list(accumulate(Random(1).choices([0, 150, 300], k=191), initial=start_wh)))  # noqa: S311


REFUSED = {
    "registers from zero": (rising(0), 4, "registers of a meter"),
    "registers": (rising(8000), 4, "registers of a meter"),
    "registers of the day": (registers([150 * (i % 48 + 1) for i in range(192)]), 4, "registers of a meter"),
    "registers of whole kWh": (registers([i // 12 * 1000 for i in range(192)]), 4, "registers of a meter"),
    "large registers": (
        rows(HOMES, range(4), wh=lambda: 12_345_600), 4,
        "bound: 3 of 3 households, 100.0% of 12 household-days, 576 rows ... max_half_hour_kwh ... registers",
    ),
    "days that nobody delivered": (
        rows(HOMES, [0, 1]), 5, "[schedule]: some days of the period have hardly a usable household. ... "
        "3 due days with at most a tenth of the households usable: 2013-01-03 to 2013-01-05",
    ),
    "an empty file": ([], 4, "[input] files: the files contain no row of data ... a.csv"),
    "other households": (rows("XYZ", range(4)), 4, "are roster and files of the same population"),
    "another period": (
        rows(HOMES, [40, 41]), 4,
        "[schedule] first_day = 2013-01-01: the files hold no reading of a due day ... 2013-02-1",
    ),
}  # fmt: skip
"""Rows, days of the period, and what the refusal says to the operator."""


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_make_a_release_senseless_are_refused(house, case):
    lines, days, texts = REFUSED[case]
    prepare(house, lines, days=days)
    error = refused(house)
    assert [(text, error.private) for text in texts.split(" ... ") if text not in error.private] == []


def test_households_of_another_interval_or_without_days_are_refused(house):
    """Two of twelve households have hours in a file of half-hours; then one of ten delivers two of the days."""
    prepare(house, [*rows(TWELVE[:10], range(4)), *rows(TWELVE[10:], range(4), minutes=60)], homes=TWELVE)
    assert "interval: 2 of 12 households, 16.7% of 48 household-days" in refused(house).private
    prepare(house, [*rows(TWELVE[:10], [0, 1]), *rows("A", [2, 3])], homes=TWELVE[:10])
    error = refused(house)  # a straggler does not release the rest of a period as noise
    assert "[schedule]: some days of the period have hardly a usable household." in error.private
    assert "2013-01-03 to 2013-01-04" in error.private


def test_a_tenth_of_first_rows_off_the_grid_is_refused(house):
    """One row in 8 is off the grid, then one in 20."""
    lines = rows(HOMES, range(4))
    prepare(house, shifted(lines, 8), edits=[("clamp_kwh = 50", "clamp_kwh = 50\nmax_missing = 9")])
    assert "more than a tenth of the first rows lie between the 30-minute marks" in refused(house).private
    house.london({}, extra=shifted(lines, 20))
    assert "interval: 3 of 3 households" in refused(house).private
    house.edit(("[output]", 'accept = ["interval"]\n[output]'))
    assert len(house.run().released) == 4


def test_a_share_of_rejected_rows_above_the_limit_is_refused(house):
    """576 rows, of which 0.25 are text: 144."""
    lines = rows(HOMES, range(4))
    prepare(house, [f"{line.rpartition(',')[0]},x" if i % 4 == 0 else line for i, line in enumerate(lines)])
    error = refused(house)
    assert "text: 3 of 3 households, 100.0% of 12 household-days, 144 rows" in error.private
    assert '("x" for a number)' in error.private
    house.edit(("[output]", 'accept = ["text"]\n[output]'))
    assert "25.00% of 576 rows; 144 text in a number" in refused(house).private
    house.edit(("[output]", "max_rejected_share = 0.25\n[output]"))
    assert "no household of the roster has a usable day" in refused(house).private


def test_absent_days_may_be_skipped(house):
    prepare(house, rows(HOMES, [0, 2]))
    house.edit(("last_day = 2013-01-04", "last_day = 2013-01-04\nskip_days = [2013-01-04, 2013-01-02]"))
    assert [(row.state, row.loss > 0) for row in house.run().released] == [("released", True), ("skipped", False)] * 2
    claim = house.release.statement
    assert claim["days"]["skipped"] == ["2013-01-02", "2013-01-04"]
    assert claim["contract"]["schedule"]["skip_days"] == ["2013-01-02", "2013-01-04"]
    house.edit(("skip_days = [2013-01-04, 2013-01-02]", "skip_days = [2013-01-02]"))
    with pytest.raises(ContractChanged, match="skip_days"):
        house.run()


def accepted(name):
    """An edit of the run file that accepts a finding in writing."""
    return "[output]", f'accept = ["{name}"]\n[output]'


CORRECTED = [line.replace(",0.2", ",0.3") for line in rows(HOMES, [1]) if "2013-01-02 1" in line]
QUARTERS = rows("L", range(4), minutes=15)
MISSING_45 = ("clamp_kwh = 50", "clamp_kwh = 50\nmax_missing = 45")
WARNED = {  # files, households, edits, the finding and its text
    "absent days count as missing": (
        [rows(HOMES, [0, 1])], HOMES, [("last_day", 'absent_days = "missing"\nlast_day')], "absent days", "",
    ),
    "a report alone is wanted": (
        [rows(HOMES, [0, 1])], HOMES, [("[output]", 'preflight = "report"\n[output]')], "absent days", "",
    ),
    "an unusual unit": ([rows(HOMES, range(4), wh=lambda: 1)], HOMES, [], "unit", "0.048 kWh"),
    "quarters of one household": (
        [rows(TWELVE[:5], range(4)), [*rows(TWELVE[5:11], range(4)), *QUARTERS]], TWELVE, [accepted("interval")],
        "rejected rows", "1 file above 5%",
    ),
    "a day that a second file corrects": (
        [rows(HOMES, range(4)), CORRECTED], HOMES, [MISSING_45, accepted("conflicts")],
        "conflicts", 'Where later files correct earlier ones, write [input] corrections = "later-file"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
def test_files_that_may_be_as_they_are_give_a_warning(house, case):
    files, homes, edits, check, text = WARNED[case]
    prepare(house, *files, homes=homes, edits=edits)
    assert [row.state for row in house.run().released] == ["released"] * 4
    verdict, result = findings(house)[check]
    assert (verdict, text in result) == ("warning", True)


def test_after_the_first_release_the_same_files_are_only_reported(house):
    prepare(house, rows(HOMES, [0]), mode="live", promise=LIVE, days=9)
    assert len(house.run(today=day(2)).released) == 1
    house.london({}, extra=rows(HOMES, [1, 2], minutes=60), name="b.csv")
    work = house.run(today=day(4))
    assert [row.state for row in work.released] == ["released", "released"]
    assert {"interval", "coverage"} <= {each.name for each in work.checked.findings if each.verdict == "warning"}
    assert {each.verdict for each in work.checked.findings} <= {"ok", "warning"}


def test_a_correction_that_its_name_puts_first_is_refused(house):
    later = ('corrections = "set-aside"', 'corrections = "later-file"')
    prepare(house, mode="live", promise=LIVE, days=9, edits=[later])
    house.london({}, name="meters.csv", extra=rows(HOMES, [0, 1]))
    house.london({}, name="meters-corrected.csv", extra=rows("A", [0, 1], wh=lambda: 300))  # "-" is before "."
    with pytest.raises(PreflightFailed) as caught:
        house.run(today=day(2))
    assert "96 rows of meters-corrected.csv corrected by files later in the order" in caught.value.private
    assert 'rename it ("_" after "meters" comes last) and add an empty line at its end' in caught.value.private
    (house.folder / "input" / "meters-corrected.csv").rename(renamed := house.folder / "input" / "meters_corrected.csv")
    with pytest.raises(PreflightFailed):  # of the store
        house.run(today=day(2))
    renamed.write_text(renamed.read_text() + "\n")
    assert len(house.run(today=day(2)).released) == 1
    assert findings(house)["files"][0] == "ok"
    assert "96 rows of meters.csv corrected by files later in the order" in findings(house)["files"][1]
    house.london({}, name="meters-2.csv", extra=rows("B", [1, 2], wh=lambda: 300))
    [line] = alert_lines(house.run(today=day(3)).alerts)  # of a running series it is a warning
    assert "1 input file is corrected by files that come later by name: meters-2.csv. " in line
    assert findings(house)["files"][0] == "warning"


@pytest.mark.parametrize("is_checked", [True, False])
def test_the_statement_says_if_nothing_could_refuse_the_files(house, is_checked):
    """What holds of the first release is stated ever after, whatever the free key says later."""
    prepare(house, rows(HOMES, [0, 1]), mode="live", promise=LIVE, days=9)
    plain, reporting = "[input]\n", '[input]\npreflight = "report"\n'
    first, later = (plain, reporting) if is_checked else (reporting, plain)
    for today, edit in ((2, (plain, first)), (3, (first, later))):
        house.edit(edit)
        house.run(today=day(today))
        text = (house.folder / "release" / "STATEMENT.md").read_text()
        assert text.count('By [input] preflight = "report"') == (not is_checked)
        house.release.verify()


def test_a_new_live_population_must_write_corrections(house):
    key = 'corrections = "set-aside"\n'
    prepare(house, rows(HOMES, [0, 1]), mode="live", promise=LIVE, days=9, edits=[(key, "")])
    with pytest.raises(RunFileError, match=r'run.toml: \[input\] corrections is missing: .* "later-file"'):
        house.run(today=day(2))
    assert house.run(today=FIRST).released == ()  # nothing is due
    assert not (house.folder / "ledger.sqlite").exists()
    house.edit(("[output]", f"{key}[output]"))
    house.run(today=day(2))
    house.edit((key, ""))  # a running series keeps what silence meant
    assert len(house.run(today=day(3)).released) == 1


def test_a_day_with_few_usable_households_is_alerted_once(house):
    prepare(house, rows(HOMES, [0]), mode="live", promise=LIVE, days=9, rest="[alerts]\nmin_coverage = 0.5\n")
    house.run(today=day(2))
    assert alerts(house) == []
    house.london({}, extra=rows("A", [1]), name="b.csv")
    for _ in range(2):
        house.run(today=day(3))
    assert [{**each, "at": ""} for each in alerts(house)] == [
        {"at": "", "population": "homes", "day": "2013-01-02", "alert": "coverage", "part": 1, "whole": 3,
         "share": 0.3333, "limit": 0.5}
    ]  # fmt: skip
    assert (house.folder / "confidential" / "alerts.jsonl").stat().st_mode & 0o077 == 0


def test_a_night_of_zeros_is_alerted(house):
    prepare(house, rows(HOMES, [0]), mode="live", promise=LIVE, days=9)
    house.run(today=day(2))
    house.london({}, extra=rows("AB", [1], wh=lambda: 0) + rows("C", [1]), name="b.csv")
    [line] = alert_lines(house.run(today=day(3)).alerts)
    assert "most households have 0 kWh on 1 due day: 2013-01-02 (2 households with 0 kWh of 3)" in line
    assert [(alert["alert"], alert["part"], alert["whole"]) for alert in alerts(house)] == [("zeros", 2, 3)]


@pytest.mark.parametrize(("rows_of_day", "alerted"), [(7, 0), (48, 1)])  # of 144: 4.9 % and a third
def test_many_conflicting_readings_of_a_day_are_alerted(house, rows_of_day, alerted):
    others = rows("XYZ", range(4))  # not on the roster: neither their readings nor their conflicts count
    corrected = rows("A", [1], wh=lambda: 300)[:rows_of_day] + rows("X", [1], wh=lambda: 300)
    prepare(house, rows(HOMES, range(4)) + others, corrected, edits=[accepted("conflicts")])
    assert [row.state for row in house.run().released] == ["released"] * 4
    found = [(alert["alert"], alert["day"], alert["part"], alert["whole"]) for alert in alerts(house)]
    assert found == [("conflicts", "2013-01-02", 48, 144)][:alerted]


@pytest.mark.parametrize(
    ("second", "kind", "check"),
    [
        (rows(TWELVE[6:], [1], minutes=15), "rejected", "rejected rows"),  # each household seems complete
        (None, "unreadable", "files"),
    ],
)
def test_a_bad_file_of_a_later_night_is_named_to_the_operator(house, second, kind, check):
    prepare(house, rows(TWELVE, [0]), homes=TWELVE, days=10, mode="live", promise=LIVE)
    house.run(today=day(2))
    house.london({}, extra=rows(TWELVE[:6], [1]), name="b.csv")
    house.london({}, extra=second or [], name="c.csv")
    if not second:
        (house.folder / "input" / "c.csv").write_text("LCLid;tstp;kWh\nG;2013-01-02 00:30:00;1\n")
    work = house.run(today=day(3))
    assert len(work.released) == 1
    [alert] = alerts(house)
    assert (alert["alert"], findings(house)[check][0], "c.csv" in str(alert["about"])) == (kind, "warning", True)
    if second:
        assert (alert["day"], alert["part"], alert["whole"]) == ("2013-01-02", 288, 576)
        [line] = alert_lines(work.alerts)
        assert line.startswith("warning: more than 5% of the rows of 1 input file are rejected: ")


def test_hours_are_refused_though_the_first_rows_hide_them(house):
    """So many households that the first rows of a file in the order of time are of one stamp."""
    homes = [f"H{number:04d}" for number in range(2500)]
    lines = rows(homes, [0], minutes=60)
    prepare(house, sorted(lines, key=lambda line: line.split(",")[1]), homes=homes, days=1)
    assert "interval: 2,500 of 2,500 households" in (private := refused(house).private)
    assert "(60 minutes in 2,500 households)" in private


def test_a_run_beside_another_that_reports_the_same_days_finds_the_same(house, monkeypatch):
    prepare(house, rows(HOMES, range(4)), mode="live", promise=LIVE, days=9)
    house.run(today=day(2))
    expected = findings(house)
    counts = iter([0, 1])  # the other run reports its day between two readings of this one
    monkeypatch.setattr(aggregate, "count_reported", lambda *_, **__: next(counts))
    house.run(today=day(2))
    assert findings(house) == expected


@pytest.mark.parametrize(
    ("days", "what"),
    [
        ("[]", "must be a list of dates"),
        ("[2013-01-09]", "names 2013-01-09, which is not a day of the period"),
        ("[2013-01-02, 2013-01-02]", "names a day twice"),
        ('["2013-01-02"]', "must be a date without quotes"),
        (f"[{', '.join(str(day(number)) for number in range(4))}]", "lists every day of the period"),
    ],
)
def test_skip_days_are_some_days_of_the_period(house, days, what):
    prepare(house, [], edits=[("last_day", f"skip_days = {days}\nlast_day")])
    with pytest.raises(RunFileError, match=what):
        house.run()

"""A first run on files that make a release senseless is refused before anything is registered; later nights are not."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from itertools import accumulate
from random import Random

import pytest

from agedp.pipeline import run_stages
from agedp.preflight.alerts import format_alerts
from agedp.stages.plan import plan
from agedp_data.errors import ContractChanged, InputError, PreflightFailed, RunFileError, UnreadableFile
from agedp_data.ledger import Ledger

FIRST = date(2013, 1, 1)
HOMES = "ABC"
LIVE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def rows(homes, days, *, minutes=30, wh=lambda: 200):
    """London rows of an interval, stamped at its end."""
    start = datetime.combine(FIRST, time())
    steps = [
        start + timedelta(days=number, minutes=minutes * (i + 1)) for number in days for i in range(1440 // minutes)
    ]
    return [f"{home},{stamp},{wh() / 1000}" for home in homes for stamp in steps]


def deliver(house, lines, *, name="a.csv"):
    house.london({}, name=name, extra=lines)


def prepare(house, lines, *, days=4, edits=(), **keys):
    """Write files, roster and a run file that refuses."""
    deliver(house, lines)
    house.roster([(home, FIRST, None) for home in HOMES])
    house.write(FIRST, day(days - 1), **keys)
    house.edit(('preflight = "report"\n', ""), *edits)


def prepare_many(house, homes, *lines):
    """Write files of many households, and a run file that refuses."""
    for number, own in enumerate(lines):
        deliver(house, own, name=f"{'ab'[number]}.csv")
    house.roster([(home, FIRST, None) for home in homes])
    house.write(FIRST, day(3))
    house.edit(('preflight = "report"\n', ""))


def refused(house, **keys) -> PreflightFailed:
    """Run, and return the refusal; nothing is registered and no release folder is there."""
    with pytest.raises(PreflightFailed) as caught:
        house.run(**keys)
    assert caught.value.exit_status == 2
    assert not (house.folder / "ledger.sqlite").exists()
    assert not (house.folder / "release").exists()
    public = str(caught.value)
    for name in (*HOMES, "a.csv"):
        assert f" {name} " not in public
    return caught.value


def findings(house) -> dict[str, tuple[str, str]]:
    record = json.loads((house.folder / "confidential" / "preflight.json").read_text())
    return {each["check"]: (each["verdict"], each["result"]) for each in record["findings"]}


def test_half_hourly_files_pass_and_are_described(house):
    prepare(house, rows(HOMES, range(4)))
    work = house.run()
    assert len(work.released) == 4
    assert {verdict for verdict, _ in findings(house).values()} == {"ok"}
    assert (house.folder / "confidential" / "preflight.json").stat().st_mode & 0o077 == 0
    assert findings(house)["interval"][1].startswith(
        "100.0% of 12 household-days have about all of their readings; 0.0% of the rows are off the 30-minute grid"
    )
    assert "9.6 kWh" in findings(house)["unit"][1]  # 48 x 0.2


@pytest.mark.parametrize("minutes", [60, 15, 10, 120])
def test_another_interval_is_refused_by_the_first_stamps(house, minutes):
    prepare(house, rows(HOMES, range(4), minutes=minutes))
    with pytest.raises(UnreadableFile, match=f"readings are {minutes} minutes apart, not 30; "):
        house.run()
    assert not (house.folder / "ledger.sqlite").exists()


def by_time(lines: list[str]) -> list[str]:
    return sorted(lines, key=lambda line: line.split(",")[1])


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


TWELVE = "ABCDEFGHIJKL"
REFUSED = {
    "registers from zero": (rising(0), 4, "registers of a meter", ""),
    "registers": (rising(8000), 4, "registers of a meter", ""),
    "registers of the day": (registers([150 * (i % 48 + 1) for i in range(192)]), 4, "registers of a meter", ""),
    "registers of whole kWh": (registers([i // 12 * 1000 for i in range(192)]), 4, "registers of a meter", ""),
    "large registers": (
        rows(HOMES, range(4), wh=lambda: 12_345_600), 4,
        "[input] max_rejected_share = 0.2 ... max_half_hour_kwh: the unit is wrong, or they are registers", "100.00%",
    ),
    "days that nobody delivered": (
        rows(HOMES, [0, 1]), 5, "[schedule]: some days of the period have hardly a usable household.",
        "3 due days with at most a tenth of the households usable: 2013-01-03 to 2013-01-05",
    ),
    "an empty file": ([], 4, "[input] files: the files contain no row of data", "a.csv"),
    "other households": (rows("XYZ", range(4)), 4, "are roster and files of the same population", ""),
    "another period": (
        rows(HOMES, [40, 41]), 4,
        "[schedule] first_day = 2013-01-01: the files hold no reading of a due day", "2013-02-1",
    ),
}  # fmt: skip
"""Rows, days of the period, and the public and private text of the refusal."""


@pytest.mark.parametrize("minutes", [60, 120])
def test_another_interval_is_refused_where_the_first_stamps_do_not_show_it(house, minutes):
    """So many households that the first rows of a file in the order of time are of one interval."""
    many = [f"H{number:04d}" for number in range(2500)]
    prepare(house, by_time(rows(many, [0], minutes=minutes)), days=1)
    assert f"[input] files: readings are {minutes} minutes apart, not 30." in str(refused(house))


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_make_a_release_senseless_are_refused(house, case):
    lines, days, public, private = REFUSED[case]
    prepare(house, lines, days=days)
    error = refused(house)
    assert all(text in str(error) for text in public.split(" ... "))
    assert private in error.private
    assert not private or private not in str(error)


def test_many_stamps_between_two_half_hours_are_refused_by_the_first_rows(house):
    """A tenth of 576 rows is refused, one row in 20 is not."""
    lines = rows(HOMES, range(4))
    prepare(house, shifted(lines, 8))
    with pytest.raises(UnreadableFile, match="more than a tenth of the first rows lie between the 30-minute marks"):
        house.run()
    deliver(house, shifted(lines, 20))
    house.edit(("clamp_kwh = 50", "clamp_kwh = 50\nmax_missing = 9"))
    assert len(house.run().released) == 4


def test_a_share_of_rejected_rows_above_the_limit_is_refused(house):
    """576 rows, of which 0.25 are text: 144."""
    lines = rows(HOMES, range(4))
    prepare(house, [f"{line.rpartition(',')[0]},x" if i % 4 == 0 else line for i, line in enumerate(lines)])
    assert "25.00% of 576 rows; 144 text in a number" in refused(house).private
    house.edit(("[output]", "max_rejected_share = 0.25\n[output]"))
    with pytest.raises(PreflightFailed, match="no household of the roster has a usable day"):
        house.run()


def test_rows_without_a_reading_and_duplicates_are_not_rejected_rows(house):
    lines = rows(HOMES, range(4))
    prepare(house, [*lines, *lines, *(f"D,{line.split(',')[1]},Null" for line in lines[:192])])
    assert len(house.run().released) == 4
    assert findings(house)["rejected rows"][0] == "ok"


def test_absent_days_may_be_skipped(house):
    prepare(house, rows(HOMES, [0, 2]), days=4)
    house.edit(("last_day = 2013-01-04", "last_day = 2013-01-04\nskip_days = [2013-01-04, 2013-01-02]"))
    work = house.run()
    assert [(row.day, row.state, row.loss > 0) for row in work.released] == [
        ("2013-01-01", "released", True), ("2013-01-02", "skipped", False),
        ("2013-01-03", "released", True), ("2013-01-04", "skipped", False),
    ]  # fmt: skip
    claim = house.release.statement
    assert claim["days"]["skipped"] == ["2013-01-02", "2013-01-04"]
    assert claim["contract"]["schedule"]["skip_days"] == ["2013-01-02", "2013-01-04"]
    house.run()  # and again, from the ledger alone
    house.edit(("skip_days = [2013-01-04, 2013-01-02]", "skip_days = [2013-01-02]"))
    with pytest.raises(ContractChanged, match="skip_days"):
        house.run()


def test_absent_days_may_count_as_missing(house):
    prepare(house, rows(HOMES, [0]), days=2)
    house.edit(("last_day = 2013-01-02", 'last_day = 2013-01-02\nabsent_days = "missing"'))
    assert [row.state for row in house.run().released] == ["released", "released"]
    assert findings(house)["absent days"][0] == "warning"


def test_a_run_file_that_only_wants_a_report_is_not_refused(house):
    prepare(house, rows(HOMES, [0, 1]), days=4, edits=[("[output]", 'preflight = "report"\n[output]')])
    assert len(house.run().released) == 4
    assert findings(house)["absent days"][0] == "warning"


def test_an_unusual_unit_is_a_warning(house):
    prepare(house, rows(HOMES, range(4), wh=lambda: 1))
    assert len(house.run().released) == 4
    verdict, result = findings(house)["unit"]
    assert verdict == "warning"
    assert "0.048 kWh" in result


def test_after_the_first_release_the_same_files_are_only_reported(house):
    prepare(house, rows(HOMES, [0]), mode="live", promise=LIVE, days=9)
    assert len(house.run(today=day(2)).released) == 1
    deliver(house, rows(HOMES, [1, 2], minutes=60), name="b.csv")
    work = house.run(today=day(4))
    assert [row.state for row in work.released] == ["released", "released"]
    assert {"interval", "coverage"} <= {each.check for each in work.checked.findings if each.verdict == "warning"}
    assert {each.verdict for each in work.checked.findings} <= {"ok", "warning"}


def test_a_new_live_population_must_write_corrections(house):
    prepare(house, rows(HOMES, [0, 1]), mode="live", promise=LIVE, days=9)
    house.edit(('corrections = "set-aside"\n', ""))
    with pytest.raises(RunFileError, match=r'run.toml: \[input\] corrections is missing: .* "later-file"'):
        house.run(today=day(2))
    assert not (house.folder / "ledger.sqlite").exists()
    assert house.run(today=FIRST).released == ()  # nothing is due, so nothing is registered


def test_a_running_live_series_keeps_what_silence_meant(house):
    prepare(house, rows(HOMES, [0, 1]), mode="live", promise=LIVE, days=9)
    house.run(today=day(2))
    house.edit(('corrections = "set-aside"\n', ""))
    assert len(house.run(today=day(3)).released) == 1


def test_new_keys_leave_the_contract_as_it_was(house, published_twice):
    """A ledger of run files without the new keys goes on under one that has the free ones."""
    text = published_twice.run_file.read_text()
    free = text.replace('preflight = "report"', "max_rejected_share = 0.3").replace(
        "[promise]", "[alerts]\nmin_coverage = 0.4\n[promise]"
    )
    published_twice.run_file.write_text(free.replace("last_day", 'absent_days = "missing"\nlast_day'))
    try:
        session = published_twice.session()
        plan(session)
        ledger = Ledger.open(session.run.run_file.output.ledger)
        kept = json.loads(ledger.contracts("homes")[-1].promise)
        assert kept == session.promise
        assert "skip_days" not in kept["schedule"]
        assert not {"preflight", "max_rejected_share"} & kept["input"].keys()
    finally:
        published_twice.run_file.write_text(text)


@pytest.mark.parametrize(
    ("days", "what"),
    [
        ("[]", "must be a list of dates"),
        ("[2013-01-09]", "names 2013-01-09, which is not a day of the period"),
        ("[2013-01-02, 2013-01-02]", "names a day twice"),
        ('["2013-01-02"]', "must be a date without quotes"),
    ],
)
def test_skip_days_are_days_of_the_period(house, days, what):
    prepare(house, [], edits=[("last_day", f"skip_days = {days}\nlast_day")])
    with pytest.raises(RunFileError, match=what):
        house.context()


def test_a_period_of_skipped_days_alone_is_refused(house):
    prepare(house, rows(HOMES, [0]), days=1, edits=[("last_day", "skip_days = [2013-01-01]\nlast_day")])
    with pytest.raises(RunFileError, match=r"\[schedule\] skip_days: lists every day of the period"):
        house.run()


def alerts(house) -> list[dict[str, object]]:
    path = house.folder / "confidential" / "alerts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_day_with_few_usable_households_is_alerted_once(house):
    prepare(house, rows(HOMES, [0]), mode="live", promise=LIVE, days=9, rest="[alerts]\nmin_coverage = 0.5\n")
    house.run(today=day(2))
    assert alerts(house) == []
    deliver(house, rows("A", [1]), name="b.csv")
    for _ in range(2):
        house.run(today=day(3))
    assert [{**each, "at": ""} for each in alerts(house)] == [
        {"at": "", "population": "homes", "day": "2013-01-02", "alert": "coverage", "part": 1, "whole": 3,
         "share": 0.3333, "limit": 0.5}
    ]  # fmt: skip
    assert (house.folder / "confidential" / "alerts.jsonl").stat().st_mode & 0o077 == 0


def test_a_day_whose_files_disagree_is_alerted_whatever_is_configured(house):
    """Case: two files that disagree about a whole day of one home of three: a third of its 144 readings."""
    prepare(house, rows(HOMES, range(4)))
    deliver(house, rows("A", [1], wh=lambda: 300), name="b.csv")
    work = house.run()
    [alert] = alerts(house)
    assert (alert["alert"], alert["day"], alert["part"], alert["whole"]) == ("conflicts", "2013-01-02", 48, 144)
    assert findings(house)["conflicts"][0] == "warning"
    assert [row.state for row in work.released] == ["released"] * 4


def test_few_conflicts_are_no_alert_and_a_later_file_has_none(house):
    prepare(house, rows(HOMES, range(2)), days=2)
    deliver(house, rows("A", [1], wh=lambda: 300)[:7], name="b.csv")  # 7 of 144 are 4.9 %
    house.run()
    assert alerts(house) == []
    assert "2013-01-02: 4.9% lost" in findings(house)["conflicts"][1]


def test_alerts_are_bounded(house, monkeypatch):
    monkeypatch.setattr("agedp.preflight.alerts.MAX_ALERT_BYTES", 400)
    prepare(house, rows(HOMES, [0]), mode="live", promise=LIVE, days=30)
    house.run(today=day(2))
    for number in range(3, 12):
        house.run(today=day(number))
    kept = alerts(house)
    folder = house.folder / "confidential"
    assert kept[-1]["day"] == str(day(9))
    assert sum((folder / name).stat().st_size for name in ("alerts.jsonl", "alerts.1.jsonl")) <= 800
    days = [json.loads(line)["day"] for line in (folder / "alerts.1.jsonl").read_text().splitlines()]
    assert [*days, *(each["day"] for each in kept)] == [str(day(9 - i)) for i in range(len(days) + len(kept))][::-1]


def test_a_folder_that_cannot_be_written_after_the_draw_says_what_is_charged(house, monkeypatch):
    prepare(house, rows(HOMES, range(4)))

    def full(*_: object) -> None:
        raise InputError("[output] cannot be written (No space left on device)")

    monkeypatch.setattr("agedp.stages.publish.publish_release", full)
    run = house.context()
    with pytest.raises(InputError, match="4 due days are drawn and charged; the next run publishes them"):
        run_stages(run)
    monkeypatch.undo()
    house.run()
    assert (house.folder / "release" / "statement.json").exists()


def by_suppliers(house, number: int, **lines: list[str]) -> None:
    """Deliver the rows of one day, a file for each supplier."""
    for name, own in lines.items():
        deliver(house, own, name=f"{name}-{number}.csv")


def begun(house, **keys) -> None:
    """Release the first day of a live series of twelve households."""
    by_suppliers(house, 0, one=rows(TWELVE[:6], [0]), two=rows(TWELVE[6:], [0]))
    house.roster([(home, FIRST, None) for home in TWELVE])
    house.write(FIRST, day(9), mode="live", promise=LIVE, **keys)
    house.edit(('preflight = "report"\n', ""))
    assert len(house.run(today=day(2)).released) == 1


def test_quarters_of_an_hour_after_the_first_release_are_alerted(house):
    """Every second row of one supplier lies between two half-hours, and each household seems complete."""
    begun(house)
    by_suppliers(house, 1, one=rows(TWELVE[:6], [1]), two=rows(TWELVE[6:], [1], minutes=15))
    work = house.run(today=day(3))
    assert len(work.released) == 1
    [alert] = alerts(house)
    assert (alert["alert"], alert["day"], alert["part"], alert["whole"]) == ("rejected", "2013-01-02", 288, 576)
    assert str(alert["about"]).endswith("two-1.csv")
    [line] = format_alerts(work.alerts)
    assert line.startswith("warning: more than 5% of the rows of 1 input file are rejected: ")


def test_a_file_that_is_set_apart_on_a_later_night_is_named_to_the_operator(house):
    begun(house)
    by_suppliers(house, 1, one=rows(TWELVE[:6], [1]))
    (house.folder / "input" / "two-1.csv").write_text("LCLid;tstp;kWh\nG;2013-01-02 00:30:00;1\n")
    work = house.run(today=day(3))
    assert len(work.released) == 1
    assert findings(house)["files"][0] == "warning"
    assert "1 file rejected as a whole: " in findings(house)["files"][1]
    [alert] = alerts(house)
    assert alert["alert"] == "unreadable"
    assert "two-1.csv" in str(alert["about"])
    assert "its columns are separated by semicolons" in str(alert["about"])


def test_alerts_that_cannot_be_written_change_nothing_that_is_published(house, monkeypatch):
    begun(house)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "alerts.jsonl")

    monkeypatch.setattr("agedp.stages.report.append_alerts", full)
    work = run_stages(house.context(today=day(3)))
    assert len(work.released) == 1
    assert [alert.kind for alert in work.alerts] == ["coverage"]
    assert [failure.private for failure in work.failures] == ["alerts.jsonl: No space left on device"]


def test_households_of_another_interval_and_absent_days_are_refused(house):
    """Two of twelve households have hours in a file of half-hours; then one of ten delivers two of the days."""
    prepare_many(house, TWELVE, [*rows(TWELVE[:10], range(4)), *rows(TWELVE[10:], range(4), minutes=60)])
    assert "many households have another interval than the others" in str(refused(house))
    prepare_many(house, TWELVE[:10], [*rows(TWELVE[:10], [0, 1]), *rows("A", [2, 3])])
    error = refused(house)  # a straggler does not release the rest of a period as noise
    assert "[schedule]: some days of the period have hardly a usable household." in str(error)
    assert "2013-01-03 to 2013-01-04" in error.private


def test_quarters_of_one_household_beside_the_others_are_a_warning(house):
    quarters = rows("L", range(4), minutes=15)
    prepare_many(house, TWELVE, rows(TWELVE[:5], range(4)), [*rows(TWELVE[5:11], range(4)), *quarters])
    assert len(house.run().released) == 4
    verdict, result = findings(house)["rejected rows"]
    assert (verdict, "1 file above 5%" in result) == ("warning", True)


def test_a_day_that_a_second_file_corrects_is_a_warning_that_names_the_remedy(house):
    lines = rows(HOMES, range(4))
    deliver(house, [line.replace(",0.2", ",0.3") for line in lines if "2013-01-02 1" in line], name="b.csv")
    prepare(house, lines, edits=[("[series", "[series")])
    house.edit(("clamp_kwh = 50", "clamp_kwh = 50\nmax_missing = 45"))
    assert len(house.run().released) == 4
    verdict, result = findings(house)["conflicts"]
    assert verdict == "warning"
    assert result.endswith('if later files correct earlier ones, write [input] corrections = "later-file"')


def test_before_the_first_release_a_skipped_day_does_not_hide_an_unreadable_file(house):
    """No day is released yet, so a file that cannot be understood stops the run."""
    prepare(house, rows(HOMES, [1]), days=9, mode="live", promise=LIVE)
    house.edit(("last_day", "skip_days = [2013-01-01]\nlast_day"))
    assert [row.state for row in house.run(today=day(2)).released] == ["skipped"]
    (house.folder / "input" / "b.csv").write_text("no;table;here\n")
    with pytest.raises(UnreadableFile):
        house.run(today=day(3))

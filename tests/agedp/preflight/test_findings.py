"""What the judge finds in files of twenty households and four days: counts by hand, causes, and what settles them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from datetime import date, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest

import agedp
from agedp.one_off import release_files
from agedp.preflight.input_checks import CAUSES, MAX_TOUCHED_SHARE, Finding, first_refusal, judge
from agedp.preflight.input_findings import ExaminedDays, find_in_days
from agedp.preflight.rejection_findings import RosterDays, Touched, are_ambiguous, rising_households
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import OPTIONS
from agedp_data.errors import REFUSED_INPUT, ContractChanged, PreflightFailed, RunFileError
from agedp_data.parameters import FindingName
from agedp_data.roster import RosterRows
from agedp_data.statement.note_texts import NOTES

HOMES, DAYS = 20, 4
COLUMNS = {"household_column": "meter", "time_column": "at", "time_format": "%Y-%m-%d %H:%M", "energy_column": "use"}
COLUMNS |= {"stamp": "start", "zone": "UTC", "day_zone": "UTC", "unit": "kWh", "dataset": "long"}
COLUMNS |= {"negative": "reject", "decimal": ".", "thousands": ""}  # which init may ask for
KEYS = {name.removesuffix("_column"): COLUMNS[name] for name in COLUMNS if name != "dataset"}
PROMISE = {"notion": "classical", "epsilon_per_day": "9", "max_day_epsilon": "9", "epsilon_total": "unlimited"}
TERMS = {**COLUMNS, **PROMISE, "clamp_kwh": "50", "min_households": "2"}
Line = Callable[[int, datetime, int], list[str]]


def kwh(wh: float) -> str:
    return f"{wh / 1000:.3f}"


def sound(home: int, at: datetime, wh: int) -> list[str]:
    return [f"M{home:02},{at:%Y-%m-%d %H:%M},{kwh(wh)}"]


def write(
    folder: Path, line: Line = sound, *, first: date = date(2024, 1, 8), minutes: int = 30, days: int = DAYS
) -> str:
    """Write the lines of every household and interval, with made-up energies, and return the file."""
    random, lines = Random(1), ["meter,at,use"]  # noqa: S311
    for home in range(HOMES):
        start = datetime(first.year, first.month, first.day)
        for number in range(days * 1440 // minutes):
            lines += line(home, start + timedelta(minutes=minutes * number), random.randrange(100, 1300))
    (folder / "meters.csv").write_text("\n".join(lines) + "\n")
    return str(folder / "meters.csv")


def options(**changed: str) -> dict[tuple[str, str], str]:
    form = {option.name: option for option in OPTIONS}
    values = {**TERMS, **changed}
    plain = {"epsilon_per_day", "max_day_epsilon", "clamp_kwh", "min_households", "interval_minutes", "accept_finding"}
    plain |= {"max_rejected_share", "read_off"}
    return {form[name].key: value if name in plain else json.dumps(value) for name, value in values.items()}


def released(folder: Path, file: str, **changed: str) -> int:
    """Return the number of days that are released."""
    result = release_files([file], out=folder / "out", options=options(**changed) | {("promise", "accept"): ACCEPT})
    result.run.check_not_refused()
    return len(result.run.released)


ACCEPT = '["useless", "total", "no-credit"]'


def found(folder: Path) -> dict[str, dict[str, object]]:
    record = json.loads((folder / "out-confidential/confidential/preflight.json").read_text())
    return {finding["check"]: finding for finding in record["findings"] if finding["check"] in CAUSES}


def found_in_python(folder: Path) -> dict[str, Finding]:
    """Return the findings about the file by the keys of the run file that was written for it."""
    columns = tomllib.loads((folder / "out-confidential/run.toml").read_text())["input"]["columns"]
    findings = agedp.findings(str(folder / "meters.csv"), columns=columns)
    return {finding.name: finding for finding in findings}


def of_home(number: int, changed: Line) -> Line:
    """Return lines of which those of the first homes are changed."""
    return lambda home, at, wh: (changed if home < number else sound)(home, at, wh)


def text(value: Callable[[int], str]) -> Line:
    return lambda home, at, wh: [f"M{home:02},{at:%Y-%m-%d %H:%M},{value(wh)}"]


def register(home: int, at: datetime, wh: int) -> list[str]:
    minutes = (at - datetime(2024, 1, 8)) // timedelta(minutes=1)
    return sound(home, at, 5000 + 7 * minutes)


def five_minutes(home: int, at: datetime, wh: int) -> list[str]:
    return [line for part in range(6) for line in sound(home, at + timedelta(minutes=5 * part), wh // 6)]


def part(home: int, at: datetime) -> int:
    """Return an energy that does not rise through the day."""
    return 10 * home + at.hour * 7 % 24 + 1


REFUSED: dict[str, tuple[Line, FindingName, int, str]] = {  # lines, finding, household-days, what the operator reads
    "a unit after the number": (of_home(12, text(lambda wh: f"{kwh(wh)} kWh")), "text", 48, '"kWh" after the number'),
    "a decimal comma in quotes": (of_home(2, text(lambda wh: f'"0,{wh % 100:02}"')), "text", 8, 'the decimal mark ","'),
    "a comma between thousands": (
        text(lambda wh: f'"{wh:,}"' if wh >= 1000 else f"{wh}"), "thousands", 80, 'thousands = ","',
    ),
    "a narrow no-break space between thousands": (
        text(lambda wh: f"{wh:,}".replace(",", "\u202f")), "thousands", 80, r'thousands = "\u202f"',
    ),
    "a day in thousandths of the unit": (
        lambda home, at, wh: sound(home, at, wh / 1000 if at.day == 9 else wh),
        "rounded", 20, "(1 day from 2024-01-09 to 2024-01-09)",
    ),
    "the sum of eighteen homes beside a temperature": (
        lambda home, at, _: sound(home, at, (
            9000 if home == 19 else part(home, at) if home < 18 else sum(part(n, at) for n in range(18))
        )),
        "total", 80, "the sum of those of all others",
    ),
    "net metering": (of_home(6, text(lambda wh: kwh(-wh))), "negative", 24, 'negative = "zero"'),
    "one home out of twenty with 5 minutes": (
        lambda *of: (five_minutes if of[0] == 19 else sound)(*of), "interval", 4, "5 minutes in 1 household",
    ),
    "one home out of twenty with hours": (
        of_home(1, lambda *of: sound(*of) if of[1].minute == 0 else []), "interval", 4, "60 minutes in 1 household",
    ),
    "two channels": (
        of_home(10, lambda home, at, wh: [*sound(home, at, wh), *sound(home, at, wh + 1)]), "channels", 40, 'add = "',
    ),
    "a half-hour of every home": (
        lambda *of: [] if (of[1].hour, of[1].minute) == (23, 30) else sound(*of), "slot", 80, "from 23:30 to 24:00",
    ),
    "a register of one home": (of_home(1, register), "registers", 4, "registers of a meter"),
    "times that nobody can read": (
        of_home(1, lambda home, at, wh: [f"M00,{at:%d/%m/%Y %H:%M},0.1"]), "time", 4, 'such as "08/01/2024 00:00"',
    ),
    "a day that ends a second early": (
        lambda home, at, wh: sound(home, at, wh)
        + ([f"M{home:02},{at:%Y-%m-%d} 23:59:59,0.1"] if (at.hour, at.minute) == (23, 30) else []),
        "interval", 80, 'such as "2024-01-08 23:59:59"',
    ),
    "a half-hour that is 0 in every home": (
        lambda home, at, wh: sound(home, at, 0 if (at.hour, at.minute) == (23, 30) else wh),
        "slot", 80, "from 23:30 to 24:00",
    ),
    "the sum of nineteen homes": (
        lambda home, at, _: sound(home, at, part(home, at) if home < 19 else sum(part(n, at) for n in range(19))),
        "total", 80, "the sum of those of all others",
    ),
    "two homes in thousandths of the unit": (of_home(2, text(lambda wh: f"{wh / 1e6:.6f}")), "rounded", 8, "unit"),
    "a mark for no reading": (
        lambda home, at, wh: sound(home, at, 9999 if (at.hour, at.minute, home % 2) == (5, 0, 0) else wh),
        "marker", 40, "missing",
    ),
    "a header that names other columns": (
        lambda home, at, wh: (["meter,use,at"] if (home, at.day, at.hour) == (10, 8, 0) else []) + sound(home, at, wh),
        "rejected", 80, "another order",
    ),
    "values above the bound": (of_home(1, text(lambda wh: f"{60 + wh}")), "bound", 4, "max_half_hour_kwh"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_cause_is_named_with_its_household_days_and_its_key(tmp_path, case):
    line, name, number, words = REFUSED[case]
    with pytest.raises(PreflightFailed) as caught:
        released(tmp_path, write(tmp_path, line), unit="Wh" if name == "thousands" else "kWh")
    finding = found(tmp_path)[name]
    assert (finding["verdict"], finding["number"], finding["limit"]) == ("refused", number, 1)
    assert words in caught.value.private
    assert str(caught.value) == REFUSED_INPUT
    assert not (tmp_path / "out").exists()
    assert found_in_python(tmp_path)[name].verdict == "refused"


def test_a_divided_number_is_named_where_its_decimal_mark_is_the_separator(tmp_path):
    """Two of 20 homes have their decimal commas without quotes on a day: 96 rows of four fields for three."""

    def half_quoted(home: int, at: datetime, wh: int) -> list[str]:
        energy = kwh(wh).replace(".", ",")
        return [f"M{home:02},{at:%Y-%m-%d %H:%M}," + (energy if home < 2 and at.day == 8 else f'"{energy}"')]

    with pytest.raises(PreflightFailed) as caught:
        released(tmp_path, write(tmp_path, half_quoted), decimal=",")
    assert found(tmp_path)["rejected"]["number"] == 2
    assert 'wrong number of fields: a decimal "," without quotes divides a number' in caught.value.private


@pytest.mark.parametrize(("cell", "shown"), [("---", '"---" for a number'), ("", "an empty cell for a number")])
def test_the_cell_of_the_energy_is_quoted_and_no_other_one(tmp_path, cell, shown):
    """Beside it are an address and a mark of quality, which are no numbers either."""

    def of_a_street(home: int, at: datetime, wh: int) -> list[str]:
        energy = cell if home < 2 and at.hour == 5 else kwh(wh)
        return [f"M{home:02},{at:%Y-%m-%d %H:%M},{energy},Weg {home},W"]

    file = Path(write(tmp_path, of_a_street))
    file.write_text(file.read_text().replace("meter,at,use\n", "meter,at,use,street,quality\n", 1))
    with pytest.raises(PreflightFailed) as caught:
        released(tmp_path, str(file), missing=["n/a"])
    for private in (caught.value.private, found_in_python(tmp_path)["text"].sentence):
        assert shown in private
        assert "Weg" not in private
        assert '"W"' not in private


@pytest.mark.parametrize(("minutes", "of_one"), [(15, 30), (5, 15), (5, 60)])
def test_longer_intervals_of_a_home_among_parts_of_half_hours(tmp_path, minutes, of_one):
    """A home has one of two, three or six rows of a half-hour, so none is complete: on all of its four days."""
    file = write(tmp_path, of_home(1, lambda *of: sound(*of) if of[1].minute % of_one == 0 else []), minutes=minutes)
    with pytest.raises(PreflightFailed) as caught:
        released(tmp_path, file, interval_minutes=str(minutes))
    [finding] = agedp.findings(file, columns=KEYS, interval_minutes=minutes)
    for name, number, text in (
        ("interval", found(tmp_path)["interval"]["number"], caught.value.private),
        (finding.name, finding.number, finding.sentence),
    ):
        assert (name, number) == ("interval", 4)
        assert f"more than {minutes} minutes in 1 household" in text


@pytest.mark.parametrize("case", ["net metering", "two channels", "one home out of twenty with hours"])
@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
def test_a_dask_frame_is_judged_as_a_frame_in_memory(tmp_path, case):
    """Rows that were rejected before the frame existed refuse its release; a frame of fewer rows is taken as it is."""
    line, name, number, _ = REFUSED[case]
    file = write(tmp_path, line)
    for as_dask in (False, True):
        frame = agedp.read(file, columns=KEYS, as_dask=as_dask)
        assert [(finding.name, finding.number) for finding in agedp.findings(frame)] == [(name, number)]
        promise = agedp.Classical(epsilon_per_day=9, max_day_epsilon=9, epsilon_total="unlimited")
        with pytest.raises(PreflightFailed):
            agedp.release(frame, promise=promise, clamp_kwh=50, min_households=2)
        if case == "net metering":
            assert agedp.findings(frame[frame["household_id"] > "M06"]) == ()


def test_sound_files_have_no_finding(tmp_path):
    assert released(tmp_path, write(tmp_path)) == DAYS
    assert found(tmp_path) == {}


def test_lines_without_a_reading_are_no_finding(tmp_path):
    """After the first row of each home: an empty line, a comment, a title, units, the header; in all half of a day."""

    def titled(home: int, at: datetime, wh: int) -> list[str]:
        lines = ["", f"# home {home}", f"Home {home} from 2024-01-08 on", "-,[local time],[kWh]", "meter,at,use"]
        return sound(home, at, wh) + (lines if (at.day, at.hour, at.minute) == (8, 0, 0) else [])

    assert released(tmp_path, write(tmp_path, titled)) == DAYS
    assert found(tmp_path) == {}
    assert found_in_python(tmp_path) == {}


def test_one_household_day_of_a_hundred_and_twenty_is_a_warning(tmp_path):
    """One reading of 20 x 6 household-days is negative: under 1 %."""

    def one_negative(home: int, at: datetime, wh: int) -> list[str]:
        return sound(home, at, -1 if (home, at.day, at.hour) == (0, 9, 5) else wh)

    assert released(tmp_path, write(tmp_path, one_negative, days=6)) == 6
    finding = found(tmp_path)["negative"]
    assert (finding["verdict"], finding["number"], finding["limit"]) == ("warning", 1, 1)


def test_a_single_household_day_shows_no_pattern():
    """1 of 80 household-days is more than 1 %, and so are 2, which are refused."""
    verdicts = [judge({"text": Touched(1, {"all": days}, 3)}, {"all": 80}, 20)[0].verdict for days in (1, 2)]
    assert verdicts == ["warning", "refused"]


def test_what_is_accepted_in_writing_is_released_and_listed(tmp_path):
    file = write(tmp_path, REFUSED["net metering"][0])
    assert released(tmp_path, file, accept_finding='["negative"]', max_rejected_share="0.5") == DAYS
    statement = json.loads((tmp_path / "out/statement.json").read_text())
    assert statement["contract"]["input"]["accept"] == ["negative"]
    assert any("Its findings negative are accepted in writing" in note for note in statement["notes"])
    assert agedp.verify(tmp_path / "out").compared
    assert found(tmp_path)["negative"]["verdict"] == "warning"


def initial(folder: Path, file: str, **changed: str) -> str:
    """Return the run file that init writes without an option for unit and negative energies."""
    folder.mkdir()
    given = {key: toml for key, toml in options(**changed).items() if key[1] not in ("dataset", "unit", "negative")}
    init([file], folder=folder, options=given | {("promise", "accept"): ACCEPT})
    return (folder / "run.toml").read_text()


def test_keys_that_were_read_off_readings_are_listed(tmp_path):
    """A hundredth of the energies is negative and no header names a unit; all other keys are options."""

    def some_negative(home: int, at: datetime, wh: int) -> list[str]:
        return sound(home, at, -10 if at.minute == 0 and at.hour % 12 == 7 and home % 4 == 0 else wh)

    text = initial(tmp_path / "house", write(tmp_path, some_negative))
    assert 'read_off = ["negative", "unit"]' in text
    run_file = tmp_path / "house/run.toml"
    run_file.write_text(text.replace("# decide: ", ""))
    release = agedp.sanitise(run_file)
    assert release.statement["contract"]["input"]["read_off"] == ["negative", "unit"]
    note = NOTES.read_off_keys.format(names="negative, unit")
    assert (release.statement["notes"].count(note), (release.path / "STATEMENT.md").read_text().count(note)) == (1, 1)
    assert agedp.verify(release.path).compared
    run_file.write_text(run_file.read_text().replace('["negative", "unit"]', '["negative"]'))
    with pytest.raises(ContractChanged, match="read_off"):
        agedp.sanitise(run_file)


def test_keys_that_options_decide_are_no_readings(tmp_path):
    """The header names the unit: nothing is read off readings unless an option says so."""
    lines = write(tmp_path).replace("meters.csv", "named.csv")
    Path(lines).write_text((tmp_path / "meters.csv").read_text().replace("meter,at,use", "meter,at,kwh"))
    assert "read_off" not in initial(tmp_path / "plain", lines, energy_column="kwh")
    assert 'read_off = ["stamp"]' in initial(tmp_path / "chosen", lines, energy_column="kwh", read_off='["stamp"]')
    with pytest.raises(RunFileError, match="did you mean 'negative'"):
        initial(tmp_path / "wrong", lines, energy_column="kwh", read_off='["negatve"]')
    assert released(tmp_path, write(tmp_path)) == DAYS
    statement = json.loads((tmp_path / "out/statement.json").read_text())
    assert "read_off" not in statement["contract"]["input"]
    assert not any("read off" in note and "keys" in note for note in statement["notes"])


def test_clock_times_that_the_zone_skips_are_refused(tmp_path):
    """London has no 01:00 and 01:30 on 31 March 2024: UTC has, and all days from then on are cut one hour off."""
    file = write(tmp_path, first=date(2024, 3, 30), days=3)
    with pytest.raises(PreflightFailed) as caught:
        released(tmp_path, file, zone="Europe/London", day_zone="Europe/London")
    assert "(40 rows at times that it skips in spring). Correct [input.columns] zone" in caught.value.private
    assert found(tmp_path)["clock"]["number"] == 40


def days(cell: str) -> str:
    """Return a line for each household and day from 29 March 2024 on; `cell` is at 02:00 and 02:30 of the 31st."""
    lines = [f"meter,at,{','.join(f'h{number}' for number in range(1, 49))}"]
    for home, on in product(range(HOMES), (date(2024, 3, 29) + timedelta(number) for number in range(DAYS))):
        is_short = (on.month, on.day) == (3, 31)
        cells = [cell if is_short and slot in (4, 5) else "0.5" for slot in range(48)]
        lines.append(f"M{home:02},{on},{','.join(cells)}")
    return "\n".join([*lines, ""])


def wide(cell: str) -> str:
    """Return the same, with a line for each half-hour."""
    times = [datetime(2024, 3, 29) + number * timedelta(minutes=30) for number in range(DAYS * 48)]
    gap = [datetime(2024, 3, 31, 2), datetime(2024, 3, 31, 2, 30)]
    cells = [[f"{at:%Y-%m-%d %H:%M}", *[cell if at in gap else "0.5"] * HOMES] for at in times]
    return "\n".join(map(",".join, [["at", *(f"M{home:02}" for home in range(HOMES))], *cells])) + "\n"


BERLIN = {"zone": "Europe/Berlin", "day_zone": "Europe/Berlin", "unit": "kWh", "stamp": "start", "time": "at"}
BY_DAY = BERLIN | {"household": "meter", "energy": ["h1", "h48"], "time_format": "%Y-%m-%d"}
WIDE = BERLIN | {"household": "*", "energy": "*", "time_format": "iso"}


@pytest.mark.parametrize(("table", "columns"), [(days, BY_DAY), (wide, WIDE)])
def test_cells_at_times_that_the_zone_skips_are_empty(tmp_path, table, columns):
    """A number there is one of another clock: of the 80 household-days those from 31 March on are in doubt."""
    path = tmp_path / "meters.csv"
    path.write_text(table(""))
    assert agedp.findings(str(path), columns=columns) == ()
    frame = agedp.read(str(path), columns=columns)
    of_day = frame["interval_start"].dt.tz_convert("Europe/Berlin").dt.date
    assert of_day.value_counts(sort=False).sort_index().tolist() == [HOMES * number for number in (48, 48, 46, 48)]
    path.write_text(table("0.5"))
    [clock] = agedp.findings(str(path), columns=columns)
    assert (clock.name, clock.number, clock.verdict) == ("clock", 40, "refused")


def test_a_day_whose_date_cannot_be_read_is_one_household_day(tmp_path):
    (tmp_path / "meters.csv").write_text(days("").replace("M00,2024-03-30", "M00,30 March"))
    [time] = agedp.findings(str(tmp_path / "meters.csv"), columns=BY_DAY)
    assert (time.name, time.number) == ("time", 1)


@pytest.mark.parametrize(("minutes", "rows"), [(60, 20), (30, 20), (15, 60)])
def test_ends_by_another_clock_are_refused(tmp_path, minutes, rows):
    """In UTC every household has a row for each time of the skipped hour, of which the two ends are one instant.

    The household-days are those of 31 March and 1 April.
    """
    file = write(tmp_path, first=date(2024, 3, 30), days=3, minutes=minutes)
    zone = {"zone": "Europe/London", "day_zone": "Europe/London", "stamp": "end", "interval_minutes": str(minutes)}
    with pytest.raises(PreflightFailed) as caught:
        released(tmp_path, file, **zone)
    assert f"({rows} rows at times that it skips in spring). Correct [input.columns] zone" in caught.value.private
    assert found(tmp_path)["clock"]["number"] == 40
    columns = {"household": "meter", "time": "at", "energy": "use", "time_format": "iso", "unit": "kWh"}
    columns |= {key: zone[key] for key in ("zone", "day_zone", "stamp")}
    [clock] = [f for f in agedp.findings(file, columns=columns, interval_minutes=minutes) if f.name == "clock"]
    assert (clock.verdict, clock.number) == ("refused", 40)


def test_a_repeated_hour_that_nobody_repeats_is_refused(tmp_path):
    file = write(tmp_path, first=date(2024, 10, 26), days=3)
    zone = {"zone": "Europe/London", "day_zone": "Europe/London"}
    with pytest.raises(PreflightFailed, match=REFUSED_INPUT) as caught:
        released(tmp_path, file, **zone)
    assert "no household repeats the hour" in caught.value.private
    assert f"{HOMES} of {HOMES} households, " in caught.value.private
    assert found(tmp_path)["clock"]["number"] == HOMES
    assert released(tmp_path / "sum", file, **zone, repeated="sum") == 3


def roster(first: list[int], last: list[int], **groups: list[str]) -> RosterRows:
    names = [f"M{number}" for number in range(len(first))]
    return RosterRows(names, np.arange(len(first)), np.array(first), np.array(last), groups)


def test_the_same_households_count_once():
    """Twelve homes whose clock is wrong in spring, and in autumn: 12 of them, and the days of the longer half year."""
    both = Touched(12, {"all": 90}, 24, {"skipped": 24}) | Touched(12, {"all": 40, "tariff A": 20}, is_sampled=True)
    assert both == Touched(12, {"all": 90, "tariff A": 20}, 24, {"skipped": 24}, is_sampled=True)


def test_a_group_alone_is_enough_for_a_refusal():
    """2 of 400 household-days are a warning in all, and 2 of 20 of a small group a refusal."""
    days = {"all": 2, "tariff B": 2}
    [finding] = judge({"negative": Touched(1, days, 2)}, {"all": 400, "tariff A": 380, "tariff B": 20}, 40)
    assert (finding.verdict, "10.0% in group tariff B" in finding.sentence) == ("refused", True)
    assert judge({"negative": Touched(1, {"all": 2}, 2)}, {"all": 400}, 40)[0].verdict == "warning"
    assert MAX_TOUCHED_SHARE == 0.01


def test_a_gap_beside_rejected_rows_is_not_named_first():
    """Rejected rows may leave a home with every third reading by chance; they touch more household-days."""
    touched = {"interval": Touched(1, {"all": 3}), "text": Touched(12, {"all": 36}, 900)}
    findings = judge(touched, {"all": 36}, 12)
    assert [finding.name for finding in findings] == ["interval", "text"]
    assert first_refusal(findings) == findings[1]


def test_household_days_are_those_of_the_roster_on_due_days():
    """M0 is on the roster on days 1 to 3, M1 on days 2 to 9; days 2, 3 and 4 are due: 2 + 3 household-days."""
    days = RosterDays(roster([1, 2], [3, 9], tariff=["A", "B"]), [2, 3, 4], ["tariff"])
    assert days.totals == {"all": 5, "tariff A": 2, "tariff B": 3}
    keys = days.on_roster(np.array([0, 0, 1, -1]), np.array([1, 3, 4, 3]))
    assert days.touched(keys).days == {"all": 2, "tariff A": 1, "tariff B": 1}
    assert len(days.days_of(np.array([0, 1]), np.array([9, 2]))) == 4


def test_daily_totals_of_a_register_rise_for_a_fortnight():
    """15 days: those of M0 rise each day, those of M1 fall once in three days."""
    day = np.tile(np.arange(15), 2)
    energy = np.concatenate([np.arange(15) * 400 + 10_000, 5000 + np.arange(15) % 3 * 100])
    examined = ExaminedDays()
    member_days = np.stack([np.repeat([0, 1], 15), day, np.full(30, 48), energy])
    touched = find_in_days([member_days], RosterDays(roster([0, 0], [14, 14]), range(15)), examined)
    assert (touched["registers"].households, touched["registers"].days["all"]) == (1, 15)
    assert touched["interval"].households == 0


def test_a_month_of_one_home_in_another_unit_is_named():
    """60 days from 1970-01-01, 9 kWh a day: in February M0 has 9 Wh, M1 nothing as an empty home, M2 300 Wh."""
    day, energy = np.tile(np.arange(59), 3), np.full((3, 59), 9000)
    energy[:, 31:] = [[9], [0], [300]]
    member_days = np.stack([np.repeat([0, 1, 2], 59), day, np.full(177, 48), energy.ravel()])
    found = find_in_days([member_days], RosterDays(roster([0] * 3, [58] * 3), range(59)), ExaminedDays())["rounded"]
    assert (found.households, found.days["all"], found.details) == (1, 28, {"1970-02": 1})


def test_households_in_blocks_have_the_findings_of_each_household(monkeypatch):
    """60 homes of 30 days: every third has hours, every fourth a register, every fifth rounded days."""
    home, day = (indices.ravel() for indices in np.indices((60, 30)))
    energy = np.where(home % 4 == 0, 10_000 + 400 * day, 5000 + 100 * (day % 3))
    energy = np.where(home % 5 == 0, 40, energy)
    member_days = np.stack([home, day, np.where(home % 3 == 0, 24, 48), energy])
    pieces = [member_days[:, day < 11], member_days[:, day >= 11]]  # two months
    monkeypatch.setattr("agedp.preflight.input_findings._AT_ONCE", 100)
    touched = find_in_days(pieces, RosterDays(roster([0] * 60, [29] * 60), range(30)), ExaminedDays())
    hours = sum(number % 3 == 0 for number in range(60))
    rounded = sum(number % 3 > 0 and number % 5 == 0 for number in range(60))
    registers = sum(number % 3 > 0 and number % 4 == 0 and number % 5 > 0 for number in range(60))
    found = [(touched[name].households, touched[name].days["all"]) for name in ("interval", "rounded", "registers")]
    assert found == [(hours, 30 * hours), (rounded, 30 * rounded), (registers, 30 * registers)]
    assert touched["interval"].details == {"60 minutes": hours}


def test_a_home_that_uses_nothing_is_no_register():
    """Two homes of 96 half-hours: one switches on once, the other rises 30 times and never falls."""
    minute = np.tile(np.arange(96) * 30, 2)
    energy = np.concatenate([np.arange(96) // 90, np.arange(96) // 3])
    codes, flags = rising_households(np.repeat([0, 1], 96), minute, energy)
    assert (codes.tolist(), flags.tolist()) == ([0, 1], [False, True])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["987", "1.234", "310", "2.001", "45", "1.110"], True),
        (["0.987", "1.234", "3", "2.001", "4", "1.110"], False),  # below one: decimals
        (["987", "1.23", "310", "2.001", "45", "1.110"], False),  # two decimals
        (["1987", "1.234", "310", "2.001", "45", "1.110"], False),  # a whole number above 999
        (["1.234", "2.001", "1.110"], False),  # all have three decimals
        (["0", "0", "0", "1.234", "2.001", "1.110"], False),  # a zero says nothing
    ],
)
def test_numbers_that_may_have_points_between_thousands(cells, expected):
    assert are_ambiguous(cells, ".") is expected

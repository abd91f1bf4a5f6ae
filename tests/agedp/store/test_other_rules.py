"""What was read under other rules, or as another dataset, never counts; what should count and cannot, stops the run."""

from __future__ import annotations

import shutil
from datetime import date, timedelta

import pytest

from agedp.setup.init_run_file import init
from agedp.stages.amend import amend
from agedp.store import store as store_module
from agedp_data.errors import InputError

FIRST = date(2026, 3, 1)
PROMISE = 'notion = "classical"\nage_days = 2\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
USE_WH = {"A": 100, "B": 200, "C": 1000}  # a half-hour
A_DAY = 48
LOW = {"all": A_DAY * (100 + 200)}  # under 0.75 kWh every row of C is set aside; a missing household counts as 0
ALL = {"all": A_DAY * (100 + 200 + 1000)}
LONG = """dataset = "long"
[input.columns]
household = "LCLid"
time = "tstp"
stamp = "end"
zone = "UTC"
day_zone = "UTC"
energy = "energy(kWh/hh)"
unit = "{}"
"""


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


@pytest.fixture
def nights(house):
    """Three nights of three homes have come; each a file."""
    house.roster([(home, FIRST, None) for home in USE_WH])
    for number in range(3):
        deliver(house, number)
    write(house, 20)
    return house


def deliver(house, number: int) -> None:
    readings = {(home, day(number), slot): wh for home, wh in USE_WH.items() for slot in range(48)}
    house.london(readings, name=f"night-{number}.csv")


def write(house, bound_kwh: float, *, mode: str = "live", rest: str = "") -> None:
    path = house.write(FIRST, day(60), mode=mode, promise=PROMISE, rest=rest)
    path.write_text(path.read_text().replace("[output]", f"max_half_hour_kwh = {bound_kwh}\n[output]", 1))


def lower_the_bound(house, number: int) -> None:
    house.edit(("max_half_hour_kwh = 20", "max_half_hour_kwh = 0.75"))
    amend(house.context(today=day(number)))


def clear_away(house) -> None:
    shutil.rmtree(house.folder / "input")
    (house.folder / "input").mkdir()


def sums(work) -> dict[date, dict[str, int]]:
    return {of: found.sum_wh for (of, _), found in work.checked.sums.by_day.items()}


def rows_counted(house) -> dict[str, int]:
    """Return how many rows QUALITY counts, by what became of them."""
    counts: dict[str, int] = {}
    for line in house.records("quality"):
        counts[line["what"]] = counts.get(line["what"], 0) + line["rows"]
    return counts


def test_after_a_lower_bound_each_row_counts_once_and_as_it_reads_under_the_new_one(nights):
    assert sums(nights.run(today=day(3))) == {day(0): ALL}
    lower_the_bound(nights, 3)
    work = nights.run(today=day(4))
    assert sums(work) == {day(1): LOW}
    assert (work.delivery.rows_read, work.delivery.rows_kept) == (3 * 3 * A_DAY, 3 * 2 * A_DAY)
    above = "above the physical bound of a half-hour"
    assert rows_counted(nights) == {"rows read": 3 * 3 * A_DAY, "kept": 3 * 2 * A_DAY, above: 3 * A_DAY}


def test_files_read_under_the_old_and_the_new_bound_may_be_cleared_away(nights):
    nights.run(today=day(3))
    lower_the_bound(nights, 3)
    nights.run(today=day(4))
    clear_away(nights)
    assert sums(nights.run(today=day(5))) == {day(2): LOW}


def test_files_cleared_away_under_the_old_bound_stop_the_run_until_they_or_the_key_are_back(nights):
    nights.run(today=day(3))
    shutil.copytree(nights.folder / "input", nights.folder / "kept")
    clear_away(nights)
    lower_the_bound(nights, 3)
    with pytest.raises(InputError, match=r"no longer delivered were read under another \[input\] max_half_hour_kwh;"):
        nights.run(today=day(4))
    shutil.copytree(nights.folder / "kept", nights.folder / "input", dirs_exist_ok=True)
    assert sums(nights.run(today=day(4))) == {day(1): LOW}


def test_files_whose_readings_are_let_go_are_not_asked_for_again(nights):
    nights.edit(("epsilon_total = 30\n", "epsilon_total = 30\n[engine]\nkeep_days = 0\n"))
    for number in range(3, 33):
        deliver(nights, number)
    nights.run(today=day(36))  # 6 April: 3 April is the last day released, March is let go
    for number in range(31):
        (nights.folder / "input" / f"night-{number}.csv").unlink()
    lower_the_bound(nights, 36)
    deliver(nights, 33)
    deliver(nights, 34)
    assert sums(nights.run(today=day(37))) == {day(34): LOW}


def test_a_first_run_under_another_bound_than_init_reads_anew(house):
    house.roster([(home, FIRST, None) for home in USE_WH])
    for number in range(3):
        deliver(house, number)
    init([str(house.folder / "input")], folder=house.folder / "made")
    write(house, 0.75)
    house.edit(('confidential = "confidential"', 'confidential = "made/out/confidential"'))
    work = house.run(today=day(3))
    assert sums(work) == {day(0): LOW}
    assert work.delivery.rows_read == 3 * 3 * A_DAY


def test_a_unit_that_a_rehearsal_had_wrong_is_corrected_by_a_new_ledger_alone(nights):
    write(nights, 20, mode="rehearsal")
    nights.edit(('dataset = "london"', ""))
    nights.edit(("[output]", LONG.format("Wh") + "[output]"))
    wrong = nights.run(as_of=day(3))
    assert sums(wrong) == {day(0): {"all": 0 + 0 + A_DAY}}  # 0.1 Wh and 0.2 Wh are rounded to 0, 1 Wh stays
    nights.edit(('unit = "Wh"', 'unit = "kWh"'))
    nights.edit(("ledger.sqlite", "second.sqlite"))
    nights.edit(('release = "release"', 'release = "second"'))
    right = nights.run(as_of=day(3))
    assert sums(right) == {day(0): ALL}
    assert right.delivery.rejected == {}


def test_two_datasets_in_one_confidential_folder_do_not_meet(nights):
    assert sums(nights.run(today=day(3))) == {day(0): ALL}
    nights.run_file.rename(nights.folder / "london.toml")
    labels = [f"{m // 60 % 24}:{m % 60:02d}" for m in range(30, 24 * 60 + 1, 30)]
    head = "Customer,Generator Capacity,Postcode,Consumption Category,date," + ",".join(labels)
    days = [f"{home},1,2000,GC,{day(n):%d/%m/%Y}," + ",".join(["0.5"] * 48) for home in "AB" for n in range(3)]
    (nights.folder / "solar").mkdir()
    (nights.folder / "solar" / "a.csv").write_text("\n".join([head, *days]) + "\n")
    nights.write(FIRST, day(60), mode="live", dataset="ausgrid", promise=PROMISE)
    for old, new in (
        ('"input/*.csv"', '"solar/*.csv"'),
        ('name = "homes"', 'name = "solar homes"'),
        ('release = "release"', 'release = "solar release"'),
    ):
        nights.edit((old, new))
    work = nights.run(today=day(3))
    assert sums(work) == {day(0): {"all": 2 * 48 * 500}}
    assert work.delivery.rows_read == 6
    (nights.folder / "london.toml").rename(nights.run_file)
    assert sums(nights.run(today=day(4))) == {day(1): ALL}


def test_a_correction_counts_by_its_own_name_wherever_the_incoming_folder_moves(nights):
    nights.edit(('corrections = "set-aside"', 'corrections = "later-file"'))
    old, new = nights.folder / "old", nights.folder / "new"
    (nights.folder / "input").rename(old)
    nights.edit(('"input/*.csv"', '"old/*.csv"'))
    assert sums(nights.run(today=day(3))) == {day(0): ALL}
    shutil.rmtree(old)
    corrected = {("C", day(1), slot): 1 for slot in range(48)}
    nights.london(corrected, name="night-9-corrects.csv")
    (nights.folder / "input").rename(new)  # before "old" by its folder, after night-1.csv by its name
    nights.edit(('"old/*.csv"', '"new/*.csv"'))
    assert sums(nights.run(today=day(4))) == {day(1): {"all": A_DAY * (100 + 200 + 1)}}


@pytest.fixture
def under_the_format_of_0_1(monkeypatch):
    """Return what runs a night as version 0.1 would have: with the number of its format in every content id."""

    def run(nights, today: date):
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "FORMAT", 4)
            store_module._reading_rules_json.cache_clear()
            work = nights.run(today=today)
        store_module._reading_rules_json.cache_clear()
        return work

    return run


def test_files_that_version_0_1_read_count_on_after_they_are_cleared_away(nights, under_the_format_of_0_1):
    assert sums(under_the_format_of_0_1(nights, day(3))) == {day(0): ALL}
    clear_away(nights)
    deliver(nights, 3)
    work = nights.run(today=day(4))
    assert sums(work) == {day(1): ALL}
    assert work.delivery.rows_read == work.delivery.rows_kept == 4 * 3 * A_DAY
    assert (work.delivery.files_new, work.delivery.late_rows) == (1, 0)


def test_files_that_version_0_1_read_and_that_are_still_delivered_are_read_again_once(nights, under_the_format_of_0_1):
    under_the_format_of_0_1(nights, day(3))
    work = nights.run(today=day(4))
    assert sums(work) == {day(1): ALL}
    assert work.delivery.rows_read == work.delivery.rows_kept == 3 * 3 * A_DAY
    assert (work.delivery.files_new, work.delivery.late_rows) == (3, 0)
    clear_away(nights)
    work = nights.run(today=day(5))
    assert sums(work) == {day(2): ALL}
    assert (work.delivery.rows_read, work.delivery.files_new) == (3 * 3 * A_DAY, 0)


def test_a_file_of_an_unknown_format_stops_the_run(nights, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "FORMAT", 3)
        store_module._reading_rules_json.cache_clear()
        nights.run(today=day(3))
    store_module._reading_rules_json.cache_clear()
    clear_away(nights)
    with pytest.raises(InputError, match="were read by another version of agedp; put the files back"):
        nights.run(today=day(4))

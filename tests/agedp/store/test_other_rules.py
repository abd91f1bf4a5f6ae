"""What was read under other rules, or as another dataset, never counts; what should count and cannot, stops the run."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from agedp.setup.init_run_file import init
from agedp.stages.amend import amend
from agedp.store import store as store_module
from agedp_data.errors import InputError
from tests.exact_sums import sum_wh

FIRST = date(2026, 3, 1)
PROMISE = 'notion = "classical"\nage_days = 2\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
USE_WH = {"A": 100, "B": 200, "C": 1000}  # a half-hour
ROWS = 48 * len(USE_WH)  # a night
LOW = {"all": 48 * (100 + 200)}  # under 0.75 kWh every row of C is rejected; a missing household counts as 0
ALL = {"all": 48 * (100 + 200 + 1000)}


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def deliver(house, number: int) -> None:
    readings = {(home, day(number), slot): wh for home, wh in USE_WH.items() for slot in range(48)}
    house.london(readings, name=f"night-{number}.csv")


def write(house, bound_kwh: float, *, mode: str = "live") -> None:
    house.write(FIRST, day(60), mode=mode, promise=PROMISE)
    house.edit(("[output]", f"max_half_hour_kwh = {bound_kwh}\n[output]"))


def fill(house):
    """Let three nights of three homes come, each a file."""
    house.roster([(home, FIRST, None) for home in USE_WH])
    for number in range(3):
        deliver(house, number)
    write(house, 20)
    return house


@pytest.fixture
def nights(house):
    return fill(house)


@pytest.fixture(scope="module")
def released_once(houses, tmp_path_factory):
    house = fill(houses(tmp_path_factory.mktemp("nights")))
    assert sums(house.run(today=day(3))) == {day(0): ALL}
    return house


@pytest.fixture
def released(released_once, houses, tmp_path):
    """The same on the night after the first release."""
    return houses(Path(shutil.copytree(released_once.folder, tmp_path / "released", copy_function=shutil.copy2)))


def lower_the_bound(house, number: int) -> None:
    house.edit(("max_half_hour_kwh = 20", "max_half_hour_kwh = 0.75"))
    amend(house.context(today=day(number)))


def clear_away(house) -> None:
    shutil.rmtree(house.folder / "input")
    (house.folder / "input").mkdir()


def sums(work) -> dict[date, dict[str, int]]:
    return {of: sum_wh(found) for (of, _), found in work.checked.sums.by_day.items()}


def test_after_a_lower_bound_each_row_counts_once_under_the_new_one(released):
    lower_the_bound(released, 3)
    work = released.run(today=day(4))
    assert sums(work) == {day(1): LOW}
    assert (work.delivery.rows_read, work.delivery.rows_kept) == (3 * ROWS, 2 * ROWS)
    counts = {line["what"]: 0 for line in released.records("quality")}
    for line in released.records("quality"):
        counts[line["what"]] += line["rows"]
    assert counts == {"rows read": 3 * ROWS, "kept": 2 * ROWS, "above the physical bound of a half-hour": ROWS}
    clear_away(released)  # files that were read under both bounds
    assert sums(released.run(today=day(5))) == {day(2): LOW}


def test_files_cleared_away_under_the_old_bound_stop_the_run_until_they_are_back(released):
    (released.folder / "input").rename(released.folder / "kept")
    (released.folder / "input").mkdir()
    lower_the_bound(released, 3)
    with pytest.raises(InputError, match=r"no longer delivered were read under another \[input\] max_half_hour_kwh;"):
        released.run(today=day(4))
    shutil.copytree(released.folder / "kept", released.folder / "input", dirs_exist_ok=True)
    assert sums(released.run(today=day(4))) == {day(1): LOW}


def test_files_whose_readings_were_removed_are_not_asked_for_again(nights):
    nights.edit(("epsilon_total = 30\n", "epsilon_total = 30\n[engine]\nkeep_days = 0\n"))
    for number in range(3, 33):
        deliver(nights, number)
    nights.run(today=day(36))  # 6 April: 3 April is the last day released, March is removed
    for number in range(31):
        (nights.folder / "input" / f"night-{number}.csv").unlink()
    lower_the_bound(nights, 36)
    deliver(nights, 33)
    deliver(nights, 34)
    assert sums(nights.run(today=day(37))) == {day(34): LOW}


def test_a_first_run_under_another_bound_than_init_reads_anew(nights):
    init([str(nights.folder / "input")], folder=nights.folder / "made")
    write(nights, 0.75)
    nights.edit(('confidential = "confidential"', 'confidential = "made/out/confidential"'))
    work = nights.run(today=day(3))
    assert sums(work) == {day(0): LOW}
    assert work.delivery.rows_read == 3 * ROWS


def test_a_correction_counts_by_its_own_name_wherever_the_folder_moves(nights):
    nights.edit(('corrections = "set-aside"', 'corrections = "later-file"'))
    old, new = nights.folder / "old", nights.folder / "new"
    (nights.folder / "input").rename(old)
    nights.edit(('"input/*.csv"', '"old/*.csv"'))
    assert sums(nights.run(today=day(3))) == {day(0): ALL}
    shutil.rmtree(old)
    nights.london({("C", day(1), slot): 1 for slot in range(48)}, name="night-9-corrects.csv")
    (nights.folder / "input").rename(new)  # before "old" by its folder, after night-1.csv by its name
    nights.edit(('"old/*.csv"', '"new/*.csv"'))
    assert sums(nights.run(today=day(4))) == {day(1): {"all": 48 * (100 + 200 + 1)}}


@pytest.fixture
def run_in_format(monkeypatch):
    """Return what runs the first night as a version with another number of the format in its content ids."""

    def run(house, number: int) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "FORMAT", number)
            store_module._reading_rules_json.cache_clear()
            assert sums(house.run(today=day(3))) == {day(0): ALL}
        store_module._reading_rules_json.cache_clear()

    return run


@pytest.mark.parametrize(("cleared", "new"), [(True, 1), (False, 4)])
def test_files_that_version_0_1_read_count_once_cleared_away_or_not(nights, run_in_format, cleared, new):
    run_in_format(nights, 4)
    if cleared:
        clear_away(nights)
    deliver(nights, 3)
    work = nights.run(today=day(4))
    assert sums(work) == {day(1): ALL}
    assert work.delivery.rows_read == work.delivery.rows_kept == 4 * ROWS
    assert (work.delivery.files_new, work.delivery.late_rows) == (new, 0)


def test_a_file_of_an_unknown_format_stops_the_run(nights, run_in_format):
    run_in_format(nights, 3)
    clear_away(nights)
    with pytest.raises(InputError, match="were read by another version of agedp; put the files back"):
        nights.run(today=day(4))

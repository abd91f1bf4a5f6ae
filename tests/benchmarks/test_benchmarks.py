"""The harness on a hundred thousand rows, its bars and its pages; the coverage that the confidential page prints."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from agedp.reports.model_check_report import COVERAGE, COVERED_DAYS
from tests.benchmarks import nights, packaging, report, scale
from tests.benchmarks.__main__ import DOCS, compared
from tests.benchmarks.coverage import LAGS, PAGE, TABLE, measure
from tests.benchmarks.judging import (
    AGAIN,
    CALIBRATE,
    LIMIT,
    RUN,
    SUMS,
    WIDE_LIMIT,
    disagreements,
    fixed_and_by_rows,
    judged,
    steps_of_rows,
)
from tests.benchmarks.lcl import ROWS_PER_HOME, write_lcl, write_night, write_night_table
from tests.benchmarks.measuring import Measured
from tests.benchmarks.measuring import measure as measure_contender
from tests.benchmarks.million_meters import QUARTER, UNDISTURBED
from tests.benchmarks.records import Log, Results, best, merge, read_results, write_results
from tests.benchmarks.scenes import wide_rows_per_home
from tests.benchmarks.tuned import PARQUET, STATES, TUNED, convert, count_sorted, join_partitions


@pytest.mark.long
def test_contenders_find_the_same_and_one_that_fails_is_named(tmp_path: Path) -> None:
    log = Log(tmp_path)
    names = [LIMIT, SUMS, RUN, AGAIN, WIDE_LIMIT, CALIBRATE, *TUNED]
    found = {one.contender: one for one in compared(tmp_path, 100_000, log, only=names, rounds=1, minutes=5)}
    assert [one.failed for one in found.values()] == [""] * len(names)
    limit, ours, pandas = found[LIMIT], found[SUMS], found["pandas"]
    assert limit.found["rows"] == limit.rows == 4 * ROWS_PER_HOME
    assert ours.found == pandas.found
    assert disagreements(list(found.values())) == []
    # a half-hour that is there twice every 31 days, and one row without a reading, in each home's rows
    twice = (ROWS_PER_HOME - 1) // (31 * 48 + 1)
    assert sum(ours.found["counts"]) == 4 * (ROWS_PER_HOME - twice - 1 - 2)
    for measured in found.values():
        assert min(measured.start_s, measured.work_s, measured.cpu_s) > 0
        assert 30 < measured.peak_mb < 2000
    differing = [limit, ours, replace(pandas, found=pandas.found | {"wh": 1})]
    assert disagreements(differing) == ["pandas at 0.1 million rows"]
    # a second call finds all of it in the folder, though the files are gone
    assert not list(tmp_path.glob("rows-*"))
    again = compared(tmp_path, 100_000, Log(tmp_path), only=names, rounds=1, minutes=5)
    assert again == list(found.values())


def test_a_contender_that_fails_or_takes_too_long_or_too_much_is_named(tmp_path: Path) -> None:
    failed = measure_contender(LIMIT, tmp_path / "none", rows=1)
    assert failed.failed.startswith("exit status 1")
    late = measure_contender("pandas", tmp_path / "none", rows=1, minutes=0.001)
    assert late.failed == "stopped: longer than 0.001 minutes"
    large = measure_contender("pandas", tmp_path / "none", rows=1, memory_gb=0.01)
    assert large.failed == "stopped at 0.01 GB of memory"


def test_partitions_are_joined_where_a_day_or_a_step_is_cut(tmp_path: Path) -> None:
    import pandas as pd

    from tests.benchmarks.tuned import END, HOUSEHOLD, READING, columns

    write_lcl(tmp_path / "lcl.csv", rows=1, rows_per_home=3_000)
    frame = pd.concat([pd.read_csv(tmp_path / "lcl.csv", **columns()).iloc[:3_000]])
    frame = pd.concat([frame, frame.assign(**{HOUSEHOLD: "MAC000003"})]).astype({HOUSEHOLD: "category"})
    whole = join_partitions([count_sorted(frame)])
    by_hand = frame.dropna().drop_duplicates([HOUSEHOLD, END])
    assert whole["wh"] == round(1000 * by_hand[READING].sum())
    days = (by_hand[END] - pd.Timedelta(minutes=1)).dt.date
    assert whole["days"] == len(set(zip(by_hand[HOUSEHOLD], days, strict=True)))
    assert sum(whole["counts"]) == 2 * steps_of_rows(3_000)
    for cut in (1, 47, 48, 1_487, 1_488, 1_489, 3_000, 3_001, 5_999):  # 1,487 and 1,488 are the same half-hour
        parts = [count_sorted(part) for part in (frame.iloc[:cut], frame.iloc[cut:])]
        assert join_partitions(parts) == whole
    assert len(whole["counts"]) == STATES**2
    assert convert(tmp_path / "lcl.csv") == {"files": 1}
    assert (tmp_path / PARQUET / "00001.parquet").exists()


def of(contender: str, rows: float, work_s: float, peak_mb: float = 100, **found: object) -> Measured:
    return Measured(
        contender, int(rows), work_s=work_s, cpu_s=work_s, peak_mb=peak_mb, found=dict(found), size=int(rows)
    )


def test_the_bars_are_those_that_were_asked_for() -> None:
    at = 40e6
    measured = [
        of(LIMIT, at, 2.0),
        of(SUMS, at, 3.1, 901),
        replace(of(RUN, at, 6.0, 900), start_s=0.5),
        of(AGAIN, at, 2.9),
        of(WIDE_LIMIT, at, 3.0),
        of(CALIBRATE, at, 30.0, apart_s=11.0, apart_cpu_s=10.0),
    ]
    met = {f"{one.subject}: {one.bar}": one.met for one in judged(measured)}
    assert {bar for bar, is_met in met.items() if not is_met} == {
        *(f"{SUMS}, 40 M: {clock} at most 1.5 x limit" for clock in ("wall time", "CPU time")),  # 3.1 of 3 s
        *(f"{SUMS}, 40 M: {clock}, start-up included, at most 1.5 x limit" for clock in ("wall time", "CPU time")),
        f"{SUMS}, 40 M: memory at most 900 MB",
        f"{RUN}, 40 M: wall time, start-up included, at most 2 x limit + 2 s",  # 6.5 of 6 s
        f"{CALIBRATE}, 40 M: CPU time at most 3 x limit + 10 s",  # 30 - 10 of 19 s; 30 - 11 is within
        f"{CALIBRATE}, 40 M: CPU time, start-up included, at most 3 x limit + 10 s",
    }
    assert len(met) == 3 * 4 + 3 + 1
    small = [replace(one, size=1_000_000) for one in measured]
    assert len(judged(small)) == 3 + 1  # memory and the second run: the rest is start-up at that size
    calibrated = [of(CALIBRATE, rows, 2 + 0.25 * rows / 1e6, homes=5_566) for rows in (10e6, 40e6)]
    assert fixed_and_by_rows([of(CALIBRATE, 1e6, 9, homes=1_489), *calibrated], CALIBRATE) == pytest.approx((2, 0.25))
    assert np.isnan(fixed_and_by_rows(calibrated[:1], CALIBRATE)).all()


def test_the_bars_of_nights_are_those_that_were_asked_for() -> None:
    def night(name: str, cpu_s: float, peak_mb: float = 100) -> Measured:
        return Measured(name, 267_168, start_cpu_s=0.1, cpu_s=cpu_s - 0.1, peak_mb=peak_mb)

    measured = [
        night(nights.CELLS, 0.9, 251),
        night(nights.ROSTER, 3.1, 399),
        night(f"{nights.NIGHTLY}, after 365 nights", 1.0),
        night(f"{nights.NIGHTLY}, after 1,095 nights", 1.3),
        night(f"{nights.NIGHTLY}, of four nights", 5.0),
        night(nights.MILLION, 40, 2_000),
    ]
    assert [(one.subject, one.bar.partition(" ")[0], one.met) for one in judged(measured)] == [
        (nights.CELLS, "CPU", True),
        (nights.CELLS, "memory", False),
        (nights.ROSTER, "CPU", False),
        (nights.ROSTER, "memory", True),
        (f"{nights.NIGHTLY}, after 1,095 nights", "CPU", True),
        (nights.MILLION, "memory", True),
        (f"{nights.NIGHTLY}, after 1,095 nights", "CPU", False),  # 1.3 times that after 365 nights, of 1.25
        (f"{nights.NIGHTLY}, of four nights", "CPU", True),  # 3.8 times
    ]


def test_a_log_that_was_cut_off_is_continued(tmp_path: Path) -> None:
    log = Log(tmp_path)
    (stored,) = log.add("run at 4", 0, [of(RUN, 4, 2.0)], size=4)
    with (tmp_path / "results.jsonl").open("a") as stream:
        stream.write('{"key": "run at 4", "round": 1, "fou')
    read = Log(tmp_path)
    assert (read.get("run at 4", 0), read.get("run at 4", 1)) == ([stored], None)
    lines = (tmp_path / "results.jsonl").read_text().replace(stored.commit, "another")
    (tmp_path / "results.jsonl").write_text(lines)
    assert Log(tmp_path).get("run at 4", 0) is None


def test_the_best_round_counts_with_the_memory_of_the_worst() -> None:
    rounds = [of(RUN, 1, 3.0, 50), of(RUN, 1, 2.0, 40)]
    assert best(rounds) == of(RUN, 1, 2.0, 50)
    failed = Measured(RUN, 1, failed="killed")
    assert best([*rounds, failed]) is failed


def test_a_part_replaces_its_own_figures_and_none_of_another_machine(tmp_path: Path) -> None:
    first = merge(None, [of(RUN, 1e6, 3.0), of(SUMS, 1e6, 1.0)], install=["installed"])
    write_results(first, tmp_path / "measured.json")
    read = read_results(tmp_path / "measured.json")
    assert read == first
    second = merge(read, [of(RUN, 1e6, 2.0), of(RUN, 10e6, 9.0)])
    assert [(one.contender, one.size, one.work_s) for one in second.measured] == [
        (RUN, 1_000_000, 2.0), (SUMS, 1_000_000, 1.0), (RUN, 10_000_000, 9.0),
    ]  # fmt: skip
    assert second.install == ("installed",)
    other = merge(replace(first, machine="another"), [of(RUN, 1e6, 2.0)])
    assert len(other.measured) == 1


def test_both_pages_are_those_of_the_measured_figures(tmp_path: Path) -> None:
    results = read_results()
    assert results is not None
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    assert page == "\n".join(report.lines(results, report.by_hand(page))) + "\n"
    scale.write_scale(tmp_path, results)
    assert (DOCS / "scale.md").read_text("utf-8") == (tmp_path / "scale.md").read_text("utf-8")
    for one in results.measured:
        assert json.loads(one.to_json()) == asdict(one)


def test_the_figures_of_30_million_meters_follow_from_the_measured_ones() -> None:
    stages = {"plan": [9, 1.0], "ingest": [9, 24.0], "aggregate": [9, 12.0], "release": [9, 2.0], "publish": [9, 1.0],
              "report": [9, 0.5]}  # fmt: skip
    found = {"stages": stages, "read_bytes": 48_000_000 * 50, "stored_bytes": 48_000_000 * 2, "stored_files": 400}
    million = Measured(nights.MILLION, 48_000_000, start_cpu_s=0.5, peak_mb=900, start_mb=100, found=found)
    checked = {"apart_s": 5.0, "apart_cpu_s": 4.0, "checked": {"days": 500, "half-hours": 100}, "homes": 5_000}
    calibrate = [of(CALIBRATE, rows, cpu_s, **checked) for rows, cpu_s in ((10e6, 10), (40e6, 22))]
    clients = [
        Measured(name, 1, found={"client_mb": client_mb, "worker_mb": [300.0]})
        for name, client_mb in ((QUARTER, 275.0), (UNDISTURBED, 350.0))
    ]
    measured = (of(LIMIT, 40e6, 8.0), million, *calibrate, *clients)
    rows = {}
    for line in scale.lines(Results("machine", "versions", (), measured)):
        if line.startswith("| ") and line.count("|") == 4 and "arithmetic" not in line:
            what, _, result = line.strip("| ").split(" | ")
            rows[what] = result
    assert rows["rows"] == "525,600,000,000"  # the last table that has it: 30,000,000 x 48 x 365
    assert rows["bytes read"] == "72.0 GB"  # 1.44e9 x 50
    assert rows["tasks that parse"] == "537"  # 72e9 / 134,217,728 = 536.4
    assert rows["buckets"] == "600"
    assert rows["bytes stored"] == "2.9 GB"  # 1.44e9 x 2
    assert rows["CPU time of ingest"] == "720 s"  # 24 / 48 x 1,440
    assert rows["CPU time of aggregate"] == "360 s"
    assert rows["both, of one bucket"] == "1.80 s"  # 0.75 x 2.4
    assert rows["CPU time of the night"] == "1,084 s"  # 720 + 360 + 4.5 = 1,084.5, to the even number
    assert rows["workers for one hour"] == "1"
    assert rows["a task"] == "400 MB"  # (900 - 100) / 2
    assert rows["a worker of one thread"] == "500 MB"
    assert rows["the coordinator, per household"] == "100 bytes"
    assert rows["the coordinator, without households"] == "250 MB"
    assert rows["the coordinator"] == "3,250 MB"
    assert rows["CPU time of the rows"] == "58 hours"  # (22 - 10) / 30 = 0.4 s x 525,600 = 210,240 s
    assert rows["CPU time of the households"] == "3 hours"  # (10 - 4 - 4) / 5,000 = 0.4 s per 1,000 households
    assert rows["goodness of fit of a sample"] == "4 s"  # 4 / 500 x 500


def test_files_of_5566_households_have_the_rows_of_the_size() -> None:
    assert 5_566 * wide_rows_per_home(40_000_000) == pytest.approx(40e6, rel=1e-3)
    assert wide_rows_per_home(167_932_474) == ROWS_PER_HOME
    assert wide_rows_per_home(1_000_000) == 14 * 48


def test_a_night_is_the_same_as_csv_and_as_parquet(tmp_path: Path) -> None:
    import pandas as pd

    write_night(tmp_path / "night.csv", day="2024-02-29", homes=30)
    write_night_table(tmp_path / "night.parquet", day="2024-02-29", homes=30)
    text, table = pd.read_csv(tmp_path / "night.csv"), pd.read_parquet(tmp_path / "night.parquet")
    assert len(text) == len(table) == 30 * 48
    reading = "KWH/hh (per half hour) "
    np.testing.assert_allclose(text[reading].astype(float), table[reading])
    assert list(text["LCLid"]) == list(table["LCLid"])
    assert (pd.to_datetime(text["DateTime"].str.strip()) == table["DateTime"]).all()
    assert table["DateTime"].iloc[[0, 47]].astype(str).tolist() == ["2024-02-29 00:30:00", "2024-03-01 00:00:00"]
    write_night(tmp_path / "later.csv", day="2024-02-29", homes=2, first_home=999_997)
    later = pd.read_csv(tmp_path / "later.csv")
    assert later["LCLid"].unique().tolist() == ["MAC999999", "MAC1000000"]


@pytest.mark.long
def test_nights_with_nothing_due_release_nothing(tmp_path: Path) -> None:
    measured = [
        *nights.cells(tmp_path, nights=4, groups=2, bins=3),
        *nights.roster(tmp_path, homes=50),
        *nights.nightly(tmp_path, homes=5, nights=33),
        *nights.million(tmp_path, homes=60),
    ]
    assert [one.failed for one in measured] == [""] * 7
    *quiet, million = measured
    assert [one.found for one in quiet] == [{"released": 0, "skipped": 0}] * 6
    assert million.found["released"] == 1
    assert set(million.found["stages"]) == {"plan", "ingest", "aggregate", "release", "publish", "report"}
    assert [one.rows for one in quiet[3:]] == [240, 240, 960]


def test_the_distributions_that_agedp_needs_are_followed_to_the_end() -> None:
    needed = packaging.closure("agedp")
    assert {"agedp", "pyarrow", "opendp", "pandas", "greenlet", "pydantic-core"} <= needed
    assert not {"pytest", "moto", "polars"} & needed
    assert 0.3 < packaging.megabytes("agedp") < 5


@pytest.mark.parametrize(("homes", "within"), [(40, 0.25), pytest.param(400, 0.08, marks=pytest.mark.long)])
def test_the_printed_coverage_is_the_measured_one(homes: int, within: float) -> None:
    assert tuple(LAGS) == COVERED_DAYS
    found = [
        measure(days=365, homes=homes, sojourn=(30, 180), keep=keep, replicates=19, rng=np.random.default_rng(5))
        for keep in (0.8, 0.95)
    ]
    # Of two kinds of homes the worse is printed, so a sample of both lies about it from below.
    held = np.min([one.interval.held for one in found], axis=0)
    np.testing.assert_allclose(held, COVERAGE, atol=within)
    # The check finds them at once: the state two days ago says more than the chain of yesterday's.
    assert min(one.rejected[1] for one in found) > 0.85
    assert PAGE.read_text("utf-8").partition(TABLE)[2].count("\n") > 45

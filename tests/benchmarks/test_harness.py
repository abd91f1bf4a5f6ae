"""The harness itself, on a hundred thousand rows: contenders find the same, and one that fails is told, not hidden."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks import measuring
from tests.benchmarks.__main__ import compared
from tests.benchmarks.judging import AGAIN, EDGES, RUN, SUMS, disagreements, judged, slope
from tests.benchmarks.lcl import ROWS_PER_HOME
from tests.benchmarks.measuring import Measured, measure
from tests.benchmarks.report import _lines
from tests.benchmarks.scenes import scene


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    folder = tmp_path_factory.mktemp("bench")
    return compared(folder, 100_000, ["limit", SUMS, "pandas"], rounds=1, minutes=5)


def test_all_that_count_find_the_same_and_every_one_is_measured(found: list[Measured]) -> None:
    assert [one.contender for one in found] == ["limit", SUMS, "pandas"]
    assert not [one.failed for one in found if one.failed]
    limit, ours, pandas = found
    assert limit.found["rows"] == limit.rows == 4 * ROWS_PER_HOME
    assert ours.found == pandas.found
    assert disagreements(found) == []
    # a half-hour that is there twice every 31 days, and one row without a reading, in each home's rows
    twice = (ROWS_PER_HOME - 1) // (31 * 48 + 1)
    assert sum(ours.found["counts"]) == 4 * (ROWS_PER_HOME - twice - 1 - 2)
    for one in found:
        assert one.start_s > 0
        assert one.work_s > 0
        assert one.cpu_s > 0
        assert 30 < one.peak_mb < 2000


def test_another_answer_is_told(found: list[Measured]) -> None:
    other = [replace(one, found=one.found | {"wh": 1}) if one.contender == "pandas" else one for one in found]
    assert disagreements(other) == ["pandas at 0.1 million rows"]
    text = "\n".join(_lines(other))
    assert "Contenders with other days, Wh or counts: pandas at 0.1 million rows." in text
    assert "All contenders that count agree." in "\n".join(_lines(found))


def test_a_contender_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    made = scene(tmp_path, ROWS_PER_HOME)
    broken = replace(made, folder=tmp_path / "none")
    failed = measure(SUMS, broken.csv, rows=made.rows)
    assert failed.failed.startswith("exit status 1: ")
    text = "\n".join(_lines([failed, measure("limit", made.csv, rows=made.rows)]))
    assert f"* {SUMS} at 0.0 million rows: exit status 1" in text
    assert "| limit |" in text


def test_a_contender_that_takes_too_long_is_ended_and_told(tmp_path: Path) -> None:
    made = scene(tmp_path, ROWS_PER_HOME)
    assert "longer than 0.002 minutes" in measure("pandas", made.csv, rows=made.rows, minutes=0.002).failed
    shutil.rmtree(tmp_path)


def of(contender: str, rows: float, work_s: float, peak_mb: float = 100, **found: object) -> Measured:
    return Measured(contender, int(rows), work_s=work_s, peak_mb=peak_mb, found=dict(found))


def test_the_bars_are_those_that_were_asked_for() -> None:
    at = 40e6
    made = [
        of("limit", at, 2.0),
        of(SUMS, at, 7.5, 821),
        of(RUN, at, 11.0, 820),
        of(AGAIN, at, 2.9),
        of(EDGES, at, 14.0, apart=1.1),
        of("polars", at, 13.4),
        of("DuckDB", at, 26.3),
        of("pandas groupby-apply", at, 74.0),
    ]
    told = [(verdict.bar.partition(" at most")[0], verdict.met) for verdict in judged(made)]
    assert told == [
        (SUMS, False),  # more than 2.2 x 2 + 3 = 7.4 s
        (RUN, True),  # 3 x 2 + 5 = 11 s
        (EDGES, True),  # 14 - 1.1 s that are timed apart, of 4 x 2 + 5 = 13 s
        ("second run, nothing new, under 3 s", True),
        (f"{SUMS} in", False),  # 700 + 3 x 40 = 820 MB
        (f"{RUN} in", True),
        (f"{EDGES} in", True),
        (f"{SUMS} faster than polars by 1.8", False),
        (f"{SUMS} faster than DuckDB by 3.5", True),
        (f"{SUMS} faster than pandas groupby-apply by 10.0", False),
    ]


def test_the_slope_is_that_of_a_line_through_the_sizes() -> None:
    made = [of(RUN, rows, 2 + 0.25 * rows / 1e6) for rows in (1e6, 10e6, 40e6)]
    line = slope(made, RUN, "work_s")
    assert line is not None
    assert line == pytest.approx((2, 0.25))
    assert slope(made[:1], RUN, "work_s") is None


def test_memory_counts_the_children_too(tmp_path: Path) -> None:
    import subprocess
    import sys
    import time

    code = "import time; held = b'x' * 120_000_000; print(len(held), flush=True); time.sleep(30)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    child = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"120000000\n"
        time.sleep(0.1)
        assert measuring._proportional_bytes(child.pid) > 120_000_000
    finally:
        import psutil

        for one in psutil.Process(child.pid).children():
            one.kill()
        child.wait()
        child.stdout.close()

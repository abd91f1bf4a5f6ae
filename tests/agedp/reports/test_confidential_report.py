"""The confidential report says what is true, how far off the release is, and whom clamp and model hang on."""

from __future__ import annotations

import html
import math
import re
import stat
from datetime import date, timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.internal_records.cell_tables import COVERAGE
from agedp.local_files import atomic_files
from agedp.pipeline import calibrate
from agedp.reports.household_details import clamp_effects
from agedp.reports.mean_series import CellMean
from agedp.reports.report_data import InternalSources
from agedp.reports.utility import CellUtility, pair_with_true_means, utility
from tests.agedp.reports.html import Page, faults_of
from tests.minimal import of_three_states

FIRST, DAYS = date(2013, 3, 4), 12
LARGE, GONE = "Big & <Co>", "Gone"
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "curve.csv"\n'


def build(house, *, mode="archive", promise=None):
    """Four homes of 9.6 kWh; one uses 72 kWh on three days, one has no readings from the sixth day on."""
    readings = {}
    for home in ("A", "B", LARGE, GONE):
        for i in range(DAYS):
            if home == GONE and i >= 5:
                continue
            each = 1500 if home == LARGE and i in (2, 3, 7) else 200
            readings |= {(home, FIRST + timedelta(days=i), slot): each for slot in range(48)}
    house.london(readings, extra=["A,2013-03-04 00:30:00,Null", "A,2013-03-04 01:00:00,nonsense"])
    house.roster([(home, FIRST, None) for home in ("A", "B", LARGE, GONE)])
    (house.folder / "curve.csv").write_text("1,0.9\n7,0.5\n")
    last = FIRST + timedelta(days=DAYS - 1)
    house.write(FIRST, last, mode=mode, rest=CURVE, **({"promise": promise} if promise else {}))
    return house


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    house = build(houses(tmp_path_factory.mktemp("house")))
    house.run(today=date(2013, 6, 1))
    return house


def report(house) -> str:
    return (house.folder / "confidential" / "report.html").read_text()


def cells(text: str, name: str) -> list[str]:
    """Return the cells of the first table row with this name."""
    row = re.search(rf'<tr><th scope="row"[^>]*>{re.escape(html.escape(name))}</th>(.*?)</tr>', text)
    assert row is not None, name
    return [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row[1])]


def test_it_is_a_sound_page_for_its_owner_alone_and_in_no_release(made):
    path = made.folder / "confidential" / "report.html"
    assert faults_of(path.read_text()) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Confidential" in Page(path.read_text()).text
    released = b"".join(made.files().values())
    for secret in (LARGE.encode(), html.escape(LARGE).encode(), b"published and true values", b"usable"):
        assert secret not in released


def test_errors_are_what_separates_the_two_tables(made):
    truth = made.records("true_means")
    said = {row["day"]: row for row in pq.read_table(made.folder / "release" / "daily_averages.parquet").to_pylist()}
    # before noise: the clamp of 50 kWh, and 0 for a home without a usable day
    for i, line in enumerate(truth):
        usable = 3 if i >= 5 else 4
        large = 50.0 if i in (2, 3, 7) else 9.6
        assert line["true_mean_kwh"] == pytest.approx((9.6 * (usable - 1) + large) / 4)
    errors = [said[line["day"]]["mean_kwh"] - line["true_mean_kwh"] for line in truth]
    inside = [said[one["day"]]["low_kwh"] <= one["true_mean_kwh"] <= said[one["day"]]["high_kwh"] for one in truth]
    row = cells(report(made), "daily_mean, all")
    rms, sd = math.sqrt(sum(error**2 for error in errors) / DAYS), truth and said[FIRST]["noise_sd_kwh"]
    assert row[0] == str(DAYS)
    assert [float(cell) for cell in row[1:4]] == pytest.approx([rms, sd, rms / sd], rel=6e-3)
    assert row[4] == f"{100 * sum(inside) / DAYS:.1f} %"
    changes = np.diff([line["true_mean_kwh"] for line in truth])
    assert float(row[6]) == pytest.approx(math.sqrt(np.mean(changes**2)), rel=6e-3)
    # the mean size of Laplace noise is its scale, the standard deviation by the root of two
    relative = np.mean([said[one["day"]]["noise_sd_kwh"] / math.sqrt(2) / one["true_mean_kwh"] for one in truth])
    assert float(row[5].removesuffix(" %")) == pytest.approx(100 * relative, rel=6e-3)


def test_coverage_and_clamp_are_counted_by_day(made):
    lines = COVERAGE.read(made.folder / "confidential" / "coverage.parquet")
    assert [(line["households"], line["usable"], line["clamped"]) for line in lines] == [
        (4, 3 if i >= 5 else 4, int(i in (2, 3, 7))) for i in range(DAYS)
    ]
    # 12 days of 4 homes, 7 without one of them: 41 of 48; 3 of the 41 above the clamp
    month = [row for row in re.findall(r">2013-03</th>(.*?)</tr>", report(made)) if row.count("<td>") == 4]
    assert re.findall(r"<td>(.*?)</td>", month[0]) == ["12", "75.0", f"{4100 / 48:.1f}", f"{300 / 41:.2f}"]


def test_the_household_that_the_clamp_binds_is_named_with_its_days_and_what_is_cut(made):
    assert cells(report(made), LARGE) == ["3", "72"]
    summary = made.run()  # nothing is due: the store is read, the report made anew
    run = summary.run
    sources = InternalSources(run.run_file, run.paths, run.roster, run.store, summary.delivery)
    (found,) = clamp_effects(sources, [FIRST + timedelta(days=i) for i in range(DAYS)])
    assert [(one.household, one.days_above, one.largest_kwh) for one in found.clamped_households] == [(LARGE, 3, 72.0)]
    assert found.cut_kwh == pytest.approx(3 * 22 / 4 / DAYS)


def test_rows_set_aside_are_counted_by_reason(made):
    quality = made.records("quality")
    totals = {}
    for line in quality:
        totals[line["what"]] = totals.get(line["what"], 0) + line["rows"]
    assert totals["rows read"] == 48 * (3 * DAYS + 5) + 2
    for what, number in totals.items():
        assert cells(report(made), what)[0] == f"{number:,}"
    assert sum(number for what, number in totals.items() if what not in ("rows read", "kept")) >= 2


def test_nightly_runs_keep_the_coverage_of_earlier_nights(house):
    caps = 'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
    promise = f'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\n{caps}'
    build(house, mode="live", promise=promise)
    for night in (3, 4, 5, 9):
        house.run(today=FIRST + timedelta(days=night))
        lines = COVERAGE.read(house.folder / "confidential" / "coverage.parquet")
        assert [line["day"] for line in lines] == [FIRST + timedelta(days=i) for i in range(night - 1)]
    assert f"true means of {night - 1}" in Page(report(house)).text
    assert len(cells(report(house), "daily_mean, all")) == 8  # how stale a day is as well


def test_a_run_that_was_cut_off_before_it_noted_them_notes_them_the_next_time(house):
    build(house)
    house.run(today=date(2013, 6, 1))
    for name in ("coverage.parquet", "true_means.parquet", "report.html"):
        (house.folder / "confidential" / name).unlink()
    before = house.files()
    house.run(today=date(2013, 6, 2))
    assert len(COVERAGE.read(house.folder / "confidential" / "coverage.parquet")) == DAYS
    assert faults_of(report(house)) == []
    assert house.files() == before


def test_damaged_coverage_is_renamed_with_a_warning_and_begins_anew(house):
    build(house)
    (house.folder / "confidential").mkdir(mode=0o700)
    atomic_files.write(house.folder / "confidential" / "coverage.parquet", b"PAR1 damaged")
    work = house.run(today=date(2013, 6, 1))
    [notice] = work.notices
    assert "coverage.parquet" in notice.private
    assert "coverage.parquet" not in notice.public
    assert (house.folder / "confidential" / "coverage.parquet.damaged").read_bytes() == b"PAR1 damaged"
    assert (house.folder / "release" / "SHA256SUMS").exists()


ESTIMATED = "[model]\n" + of_three_states("2013-03-04, 2013-03-15")


def test_the_household_that_decides_an_estimated_model_is_named_age_by_age(house):
    build(house)
    chance = np.random.default_rng(3)
    house.london(
        {
            (home, FIRST + timedelta(days=i), slot): int(value)
            for home in ("A", "B", LARGE, GONE)
            for i, day in enumerate(chance.integers(50, 400, (DAYS, 48)))
            for slot, value in enumerate(day)
        }
    )
    run_file = house.run_file.read_text()
    house.run_file.write_text(run_file.replace(CURVE, ESTIMATED))
    calibrate(house.run_file)
    house.run(today=date(2013, 6, 1))
    columns = pq.read_table(house.folder / "model" / "households.parquet").to_pydict()
    text = report(house)
    assert faults_of(text) == []
    assert f"{columns['forgets'].count(False)} of 4 households count as never mixing" in Page(text).text
    for age in (1, 2):
        values = columns[f"total_variation_{age}_days"]
        row = cells(text, f"{age} d")
        assert values[columns["household_id"].index(row[0])] == max(values)
        assert float(row[1]) == pytest.approx(max(values), rel=6e-3)
    assert "Model and lagged counts" in text
    released = b"".join(house.files().values())
    assert b"Model and lagged counts" not in released


def published(day, mean, half, sd):
    return CellMean(FIRST + timedelta(days=day), 10, mean, mean - half, mean + half, sd, 1)


def test_utility_measures_errors_against_the_noise_day_by_day():
    days = [
        CellUtility(FIRST, 10.0, published(0, 13.0, 2.0, 1.0)),
        CellUtility(FIRST + timedelta(days=1), 12.0, published(1, 8.0, 5.0, 2.0)),
        CellUtility(FIRST + timedelta(days=3), 15.0, published(3, 15.0, 1.0, 2.0)),
    ]
    found = utility(days, age_days=2)
    assert found.rms_kwh == pytest.approx(math.sqrt((9 + 16 + 0) / 3))
    assert found.expected_kwh == pytest.approx(math.sqrt((1 + 4 + 4) / 3))
    assert found.in_sd == pytest.approx(math.sqrt(25 / 9))
    assert found.relative == pytest.approx((1 / 10 + 2 / 12 + 2 / 15) / 3 / math.sqrt(2))
    assert found.inside == pytest.approx(2 / 3)
    assert found.change_kwh == pytest.approx(2.0)
    assert found.stale_kwh == pytest.approx(3.0)
    assert math.isnan(utility(days[:1], age_days=2).change_kwh)


def test_days_without_a_noted_truth_are_left_out():
    line = {"series": "s", "cell": "all", "day": FIRST, "true_mean_kwh": 1.0}
    released = {"s": {"all": [published(0, 1.0, 1.0, 1.0), published(1, 1.0, 1.0, 1.0)], "other": []}, "t": {"all": []}}
    assert [one.day for one in pair_with_true_means([line], released)["s", "all"]] == [FIRST]
    assert pair_with_true_means([], released) == {}

"""The confidential report: true means, errors, coverage, and the households that decide clamp and model."""

from __future__ import annotations

import html
import math
import re
import stat
from datetime import date, timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.reports.confidential_report import Compared, InternalSources, clamp_effects, utility
from tests.agedp.reports.html import Page, faults_of

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


def test_errors_are_the_differences_of_published_and_true_means(made):
    truth = made.records("true_means")
    published = {
        row["day"]: row for row in pq.read_table(made.folder / "release" / "daily_averages.parquet").to_pylist()
    }
    # before noise: the clamp of 50 kWh, and 0 for a household without a usable day
    for i, line in enumerate(truth):
        large = 50.0 if i in (2, 3, 7) else 9.6
        assert line["true_mean_kwh"] == pytest.approx((9.6 * (2 if i >= 5 else 3) + large) / 4)
    pairs = [(published[line["day"]], line["true_mean_kwh"]) for line in truth]
    row = cells(report(made), "daily_mean, all")
    rms = math.sqrt(sum((release["mean_kwh"] - true) ** 2 for release, true in pairs) / DAYS)
    sd, inside = pairs[0][0]["noise_sd_kwh"], sum(day["low_kwh"] <= true <= day["high_kwh"] for day, true in pairs)
    assert row[0] == str(DAYS)
    assert [float(cell) for cell in row[1:4]] == pytest.approx([rms, sd, rms / sd], rel=6e-3)
    assert row[4] == f"{100 * inside / DAYS:.3g} %"
    # the mean size of Laplace noise is its scale, the standard deviation by the root of two
    relative = np.mean([sd / math.sqrt(2) / true for _, true in pairs])
    assert float(row[5].removesuffix(" %")) == pytest.approx(100 * relative, rel=6e-3)
    changes = np.diff([true for _, true in pairs])
    assert float(row[6]) == pytest.approx(math.sqrt(np.mean(changes**2)), rel=6e-3)


def test_coverage_clamp_and_rejected_rows_are_counted(made):
    lines = made.records("coverage")
    assert [(line["households"], line["usable"], line["clamped"]) for line in lines] == [
        (4, 3 if i >= 5 else 4, int(i in (2, 3, 7))) for i in range(DAYS)
    ]
    # 12 days of 4 households, 7 without one of them: 41 of 48 are 85.4 %; 3 of the 41 above the clamp are 7.32 %
    month = [row for row in re.findall(r">2013-03</th>(.*?)</tr>", report(made)) if row.count("<td>") == 4]
    assert re.findall(r"<td>(.*?)</td>", month[0]) == ["12", "75 %", "85.4 %", "7.32 %"]
    totals: dict[str, int] = {}
    for line in made.records("quality"):
        totals[line["what"]] = totals.get(line["what"], 0) + line["rows"]
    assert totals["rows read"] == 48 * (3 * DAYS + 5) + 2
    assert sum(number for what, number in totals.items() if what not in ("rows read", "kept")) >= 2
    for what, number in totals.items():
        assert cells(report(made), what)[0] == f"{number:,}"


def test_the_clamped_household_is_named_with_its_days(made):
    assert cells(report(made), LARGE) == ["3", "72"]
    summary = made.run()  # nothing is due: the store is read, the report made again
    run = summary.run
    sources = InternalSources(run.run_file, run.paths, run.roster, run.store, summary.delivery)
    [effects] = clamp_effects(sources, [FIRST + timedelta(days=i) for i in range(DAYS)])
    clamped = [(one.household, one.days_above, one.largest_kwh) for one in effects.clamped_households]
    assert clamped == [(LARGE, 3, 72.0)]
    assert effects.cut_kwh == pytest.approx(3 * 22 / 4 / DAYS)


def test_utility_compares_errors_with_the_noise_day_by_day():
    values = ([10.0, 12.0, 15.0], [13.0, 8.0, 15.0], [1.0, 2.0, 2.0], [2.0, 5.0, 1.0])
    days = Compared(np.array([0, 1, 3]), *map(np.array, values))
    found = utility(days, age_days=2)
    assert found.rms == pytest.approx(math.sqrt((9 + 16 + 0) / 3))
    assert found.expected == pytest.approx(math.sqrt((1 + 4 + 4) / 3))
    assert found.in_sd == pytest.approx(math.sqrt(25 / 9))
    assert found.relative == pytest.approx((1 / 10 + 2 / 12 + 2 / 15) / 3 / math.sqrt(2))
    assert found.inside == pytest.approx(2 / 3)
    assert (found.change, found.stale) == (pytest.approx(2.0), pytest.approx(3.0))
    assert math.isnan(utility(days.of(slice(1)), age_days=2).change)

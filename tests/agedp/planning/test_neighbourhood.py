"""A promise about small changes: noise, caps, windows, amendments, plan, statement, report."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from agedp.stages.amend import amend, preview_amendment
from agedp.stages.publish import write_folder_as_of
from tests.agedp.reports.html import Page, faults_of

FIRST, DAYS = date(2013, 1, 1), 9
TODAY = date(2013, 6, 1)
KEYS = "delta_kwh = 2\nwindow_days = 4\nepsilon_per_window = {}\nmax_day_epsilon = {}\nepsilon_total = {}\n"
BELOW = (
    '[series.below]\nstatistic = "distribution"\nform = "cumulative"\nclamp_kwh = 40\n'
    "bins_kwh = [0, 5, 6, 10, 40]\nshare = 0.25\n"
)


def day(number):
    return FIRST + timedelta(days=number)


def promised(spend, *, epsilon="0.4", cap="100", total='"unlimited"'):
    rest = "fraction = 0.3\n" if spend == "fraction" else ""
    return f'notion = "neighbourhood"\nspend = "{spend}"\n{rest}' + KEYS.format(epsilon, cap, total)


@pytest.fixture
def homes(house):
    house.fill([day(i) for i in range(DAYS)], wh=100)
    return house


def write(homes, promise, *, rest="", last=DAYS - 1, **keys):
    homes.write(FIRST, day(last), promise=promise, rest=rest, **keys)
    if "share" in rest:
        text = homes.run_file.read_text()
        homes.run_file.write_text(text.replace('statistic = "mean"\n', 'statistic = "mean"\nshare = 0.75\n', 1))


def bounds_of(release):
    return {bound["name"]: Decimal(bound["epsilon"]) for bound in release.statement["figures"]}


@pytest.mark.parametrize("spend", ["fraction", "per-request", "offline"])
def test_windows_of_small_changes_hold_by_the_scales_of_the_draws(homes, spend):
    write(homes, promised(spend), rest=BELOW + "[compare]\ndelta_kwh = [1, 30]\n")
    homes.run(today=TODAY)
    small, any_size = {}, {}
    for row in homes.rows():
        # 2 kWh move the sum by 2000 Wh of 50,000, and cross two of the three inner edges
        assert row.sensitivity == {"daily_mean": 50_000, "below": 3}[row.series]
        moved = {"daily_mean": 2000, "below": 2}[row.series]
        small.setdefault(row.day, {})[row.series] = Fraction(moved) / Fraction(row.scale)
        any_size[row.day] = any_size.get(row.day, 0) + row.loss
    for series in small.values():  # shares are of small changes
        assert float(series["daily_mean"]) == pytest.approx(float(3 * series["below"]), rel=1e-6)
    spent = {date.fromisoformat(on): sum(series.values()) for on, series in small.items()}
    assert len(spent) == DAYS
    fullest = max(sum(spent.get(start + timedelta(days=i), 0) for i in range(4)) for start in spent)
    assert (0 if spend == "fraction" else 0.35) < fullest <= Fraction(4, 10)
    release = homes.release
    release.verify()
    bounds = bounds_of(release)
    assert bounds["day"] * 10**9 == max(any_size.values())
    assert float(bounds["change of 2 kWh"]) == pytest.approx(float(max(spent.values())), rel=1e-7)
    assert float(bounds["change of 2 kWh, window of 4 days"]) == pytest.approx(float(fullest), rel=1e-7)
    assert bounds["change of 1 kWh"] < bounds["change of 2 kWh"] < bounds["change of 4 kWh"] < bounds["day"]
    assert "change of 30 kWh" in bounds
    assert "change of 50 kWh" not in bounds
    assert "A day that goes missing" in release.statement["notes"][0]
    words = (release.path / "STATEMENT.md").read_text()
    assert "A *share* is of each day's loss about a change by at most 2 kWh;" in words
    report = (release.path / "report.html").read_text()
    assert faults_of(report) == []
    assert "change of 30 kWh" in Page(report).text


def test_rows_count_by_the_clamp_and_bins_of_their_contract(homes):
    promise = promised("per-request").replace("spend", "age_days = 1\nspend")
    write(homes, promise, rest=BELOW, mode="rehearsal")
    homes.run(as_of=day(4))
    before, then = bounds_of(homes.release), homes.files()
    write(homes, promise, rest=BELOW.replace("[0, 5, 6, 10, 40]", "[0, 5, 6, 6.5, 40]"), clamp="20", mode="rehearsal")
    preview = preview_amendment(homes.session(as_of=day(4)))
    assert [change.verdict for change in preview.changes] == ["allowed", "allowed"]
    amend(homes.context(as_of=day(4)))
    homes.run(as_of=day(7))
    homes.release.verify()
    bounds = bounds_of(homes.release)
    assert (bounds["change of 2 kWh, window of 4 days"], bounds["change of 2 kWh"]) == (Decimal("0.4"), Decimal("0.1"))
    assert bounds["day"] == before["day"]  # the days of the larger clamp have the larger loss
    assert write_folder_as_of(homes.session(as_of=day(7)), day(4))
    assert homes.files() == then

"""A promise about small changes on its whole way: noise, caps, windows, amendments, plan, statement, report."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from agedp import privacy_audit
from agedp.ledger_transfer import verify_against
from agedp.stages.amend import amend, preview_amendment
from agedp.stages.publish import write_folder_as_of
from agedp_data.audit.power import AuditDatasets
from agedp_data.config import load
from agedp_data.errors import Refused, RunFileError
from agedp_flows.text.plan_text import plan_json, plan_lines
from tests.agedp.reports.html import Page, faults_of

FIRST, DAYS = date(2013, 1, 1), 12
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


def rows_of(homes):
    with homes.ledger() as ledger:
        assert ledger.verify() == ()
        return [row for row in ledger.rows() if row.state == "released"]


def fullest(spent, window):
    numbers = {date.fromisoformat(each): loss for each, loss in spent.items()}
    return max(
        sum(numbers.get(start + timedelta(days=i), Fraction(0)) for i in range(window))
        for start in (day(i) for i in range(-window, DAYS))
    )


@pytest.mark.parametrize("spend", ["fraction", "per-request", "offline"])
def test_windows_of_small_changes_hold_by_the_scales_that_were_drawn(homes, spend):
    write(homes, promised(spend), rest=BELOW)
    homes.run(today=TODAY)
    small, any_size = {}, {}
    for row in rows_of(homes):
        # 2 kWh move the sum by 2000 Wh of 50,000, and cross two of the three inner edges
        assert row.sensitivity == {"daily_mean": 50_000, "below": 3}[row.series]
        moved = {"daily_mean": 2000, "below": 2}[row.series]
        own = Fraction(moved) / Fraction(row.scale)
        part = {"daily_mean": Fraction(3, 4), "below": Fraction(1, 4)}[row.series]
        small.setdefault(row.day, {})[row.series] = own / part
        any_size[row.day] = any_size.get(row.day, 0) + row.loss
    for of_day in small.values():  # shares are of small changes
        assert of_day["daily_mean"] == pytest.approx(float(of_day["below"]), rel=1e-6)
    spent = {each: Fraction(3, 4) * own["daily_mean"] + Fraction(1, 4) * own["below"] for each, own in small.items()}
    assert len(spent) == DAYS
    assert Fraction(35, 100) < fullest(spent, 4) <= Fraction(4, 10) or spend == "fraction"
    assert fullest(spent, 4) <= Fraction(4, 10)
    release = homes.release
    words = (release.path / "STATEMENT.md").read_text()
    assert "The share of the series is 0.25 of each day's loss about a change by at most 2 kWh;" in words
    assert "of each day's epsilon" not in words
    figures = {each["name"]: Decimal(each["epsilon"]) for each in release.statement["figures"]}
    assert figures["day"] * 10**9 == max(any_size.values())
    assert float(figures["change of 2 kWh"]) == pytest.approx(float(max(spent.values())), rel=1e-7)
    assert float(figures["change of 2 kWh, window of 4 days"]) == pytest.approx(float(fullest(spent, 4)), rel=1e-7)
    assert figures["change of 2 kWh"] < figures["change of 4 kWh"] < figures["day"]


def test_the_noise_is_a_twentyfifth_of_what_the_same_epsilon_asks_for_any_change(homes):
    write(homes, promised("per-request"))
    homes.run(today=TODAY)
    assert [row.scale for row in rows_of(homes)] == pytest.approx([2000 / 0.1] * DAYS)
    assert {row.loss for row in rows_of(homes)} == {2_500_000_000}


def test_a_cap_that_binds_is_kept_and_the_plan_says_so(homes):
    write(homes, promised("per-request", cap="0.5", total="3"))
    lines = plan_lines(homes.session())
    assert any(
        "max_day_epsilon = 0.5 is the binding limit" in line and "epsilon 0.02 for small changes instead" in line
        for line in lines
    )
    with pytest.raises(Refused, match="epsilon_total = 3"):
        homes.run(today=TODAY)
    rows = rows_of(homes)
    assert [row.loss for row in rows] == [500_000_000] * 6
    limits = {each["name"]: each["limit"] for each in homes.release.statement["figures"]}
    assert (limits["day"], limits["change of 2 kWh"]) == ("0.5", "0.4")
    write(homes, promised("per-request", cap="2.5", total="3"))
    assert not any("is the binding limit" in line for line in plan_lines(begin_anew(homes)))


def test_the_plan_gives_the_noise_of_every_schedule_by_what_is_published(homes):
    write(homes, promised("per-request"))
    [line] = [line for line in plan_lines(homes.session()) if line.startswith("mean noise scale by schedule")]
    # .4 in 4 days are .1 a day about 2 kWh, 2.5 about 50 kWh: the scale is .4 of the clamp
    assert "per-request 0.4," in line
    assert plan_json(homes.session())["mean_noise_by_schedule"]["per-request"] == pytest.approx(0.4)


def test_the_report_gives_its_own_schedule_the_noise_that_the_mean_was_published_with(homes):
    write(homes, promised("per-request"), rest=BELOW)
    homes.run(today=TODAY)
    release = homes.release
    [published] = release.table()["noise_sd_kwh"].unique()
    said = Page((release.path / "report.html").read_text()).text
    [own] = re.findall(r"per-request \(as promised\) ([0-9.,]+)", said)
    assert float(own.replace(",", "")) == pytest.approx(published, rel=0.01)


def begin_anew(homes):
    text = homes.run_file.read_text().replace("ledger.sqlite", "other.sqlite").replace('"release"', '"elsewhere"')
    homes.run_file.write_text(text.replace('"confidential"', '"house"'))
    return homes.session()


def test_rows_count_by_the_clamp_and_bins_of_their_time_after_an_amendment(homes):
    write(homes, promised("per-request"), rest=BELOW)
    homes.run(today=day(5))
    before = homes.release.statement["figures"]
    write(homes, promised("per-request"), rest=BELOW.replace("[0, 5, 6, 10, 40]", "[0, 5, 6, 6.5, 40]"), clamp="20")
    assert [each.verdict for each in preview_amendment(homes.session()).changes] == ["allowed", "allowed"]
    amend(homes.context())
    homes.run(today=TODAY)
    release = homes.release
    release.verify()
    assert len(rows_of(homes)) == 2 * DAYS
    windows = {each["name"]: each["epsilon"] for each in release.statement["figures"]}
    assert windows["change of 2 kWh, window of 4 days"] == "0.4"
    assert windows["change of 2 kWh"] == "0.1"
    # the days of the larger clamp said most about any change; they still do
    assert windows["day"] == {each["name"]: each["epsilon"] for each in before}["day"]


def test_a_release_of_before_an_amended_clamp_is_written_again_byte_for_byte(homes):
    promise = promised("per-request").replace("spend", "age_days = 1\nspend")
    write(homes, promise, mode="rehearsal")
    homes.run(as_of=day(4))
    write(homes, promise, mode="rehearsal", clamp="40")
    amend(homes.context(as_of=day(4)))
    homes.run(as_of=day(7))
    then = homes.files()
    write(homes, promise, mode="rehearsal", clamp="30", rest=BELOW)
    amend(homes.context(as_of=day(7)))
    homes.run(as_of=day(10))
    assert write_folder_as_of(homes.session(as_of=day(10)), day(7))
    assert homes.files() == then
    # 2 kWh were .1 a day, of 50 kWh first and then of 40: 4 kWh are twice that under either
    assert "4 kWh: 0.2;" in then["report.html"].decode()
    with homes.ledger() as ledger:
        verify_against(homes.release, ledger)


def test_a_plan_of_the_whole_period_needs_its_last_day(homes):
    write(homes, promised("offline").replace("spend", "age_days = 1\nspend"), mode="rehearsal")
    text = homes.run_file.read_text()
    assert load(homes.run_file).notion.name == "neighbourhood"
    homes.run_file.write_text(text.replace(f"last_day = {day(DAYS - 1)}\n", ""))
    with pytest.raises(RunFileError, match=r"spend.*known period"):
        load(homes.run_file)


def test_the_statement_opens_with_what_is_no_small_change_and_the_report_shows_every_size(homes):
    write(homes, promised("fraction"), rest="[compare]\ndelta_kwh = [1, 30]\n")
    homes.run(today=TODAY)
    release = homes.release
    release.verify()
    assert "A day that goes missing" in release.statement["notes"][0]
    names = [each["name"] for each in release.statement["figures"]]
    assert [f"change of {size} kWh" in names for size in (1, 2, 4, 30, 50)] == [True, True, True, True, False]
    report = (release.path / "report.html").read_text()
    assert faults_of(report) == []
    assert "Privacy loss of a day by size of the change, kWh" in Page(report).text
    day_loss = {each["name"]: Fraction(each["epsilon"]) for each in release.statement["figures"]}
    assert day_loss["change of 30 kWh"] == day_loss["day"] * Fraction(30, 50)


def test_without_a_size_asked_for_no_other_promise_speaks_of_sizes(homes):
    homes.write(FIRST, day(DAYS - 1))
    homes.run(today=TODAY)
    release = homes.release
    assert not any("change of" in each["name"] for each in release.statement["figures"])
    assert "by its size in kWh" not in (release.path / "report.html").read_text()


def test_a_day_between_days_that_filled_their_window_is_skipped_and_the_days_behind_it_go_on(homes):
    write(homes, promised("per-request", epsilon="0.4"))
    homes.run(today=day(4))
    write(homes, promised("per-request", epsilon="0.1"))
    amend(homes.context())
    homes.run(today=TODAY)
    with homes.ledger() as ledger:
        states = [row.state for row in ledger.rows()]
    # four days said .4 in all: no window with one of them has anything left of .1
    assert states == ["released"] * 4 + ["skipped"] * 3 + ["released"] * (DAYS - 7)


def test_the_audit_keeps_what_is_promised_of_a_change_of_any_size(homes):
    write(homes, promised("per-request", epsilon="0.32"))
    found = privacy_audit.audit(homes.run_file, datasets=AuditDatasets(800, 1))
    assert found.measured[0].promised == 2.0
    assert found.measured[0].lower_bound > 0.7  # 4000 simulated ones: 0.996 at least
    assert found.is_within_promise

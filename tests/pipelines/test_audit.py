"""The audit passes the real path and exposes what is planted into it: noise, clamp, memory, composition."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from agedp_data import noise
from agedp_data.privacy.shown_faults import CHOICES, Charged, fewest, unseen
from flows.auditing import audit_json, audit_lines
from pipelines import aggregate, audit, publish
from pipelines.audit import Audit, Measured

HOMES = 3000
CLASSICAL = 'notion = "classical"\nepsilon_per_day = 2\nmax_day_epsilon = 2\nepsilon_total = "unlimited"\n'
WINDOW = (
    'notion = "w-event"\nwindow_days = 2\nepsilon_per_window = 2\nspend = "even"\nmax_day_epsilon = 2\n'
    'epsilon_total = "unlimited"\n'
)
TWO = '[series.second]\nstatistic = "mean"\nclamp_kwh = 20\nshare = 0.5\n'


@pytest.fixture
def run_file(house):
    house.roster([("A", date(2013, 1, 1), None)])
    house.write(date(2013, 1, 1), date(2013, 1, 9), promise=CLASSICAL)
    return house.run_file


def measured(run_file: Path) -> tuple[Measured, Measured]:
    one, series = audit.audit(run_file, households=HOMES).measured
    return one, series


def test_the_real_path_is_passed_and_the_bounds_are_near_what_is_promised(run_file):
    one, series = measured(run_file)
    assert (one.promised, series.promised) == (2.0, 4.0)
    # of 400 such audits, simulated, the least prove 1.39 and 2.28
    assert 1.2 < one.proven <= 2.0 < one.noticed < 3
    assert 1.9 < series.proven <= 4.0
    assert not list(run_file.parent.glob("confidential/*"))


def test_two_series_that_share_a_window_are_passed(house, run_file):
    house.write(date(2013, 1, 1), date(2013, 1, 9), promise=WINDOW, rest=TWO)
    run_file.write_text(run_file.read_text().replace("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n"))
    one, series = measured(run_file)
    assert (one.promised, series.promised) == (0.5, 2.0)
    assert one.kept
    assert 0.2 < series.proven <= 2  # of 400 simulated ones the least is 0.47


def test_half_the_noise_is_exposed(run_file, monkeypatch):
    sound = noise.discrete_laplace

    def halved(exact, *, sensitivity, loss):
        return sound(exact, sensitivity=sensitivity, loss=2 * loss)

    monkeypatch.setattr(noise, "discrete_laplace", halved)
    assert not measured(run_file)[0].kept


def test_a_skipped_clamp_is_exposed(run_file, monkeypatch):
    sound = noise.discrete_laplace

    def unclamped(exact, *, sensitivity, loss):
        return sound(3 * exact, sensitivity=sensitivity, loss=loss)  # what the households of that world use

    monkeypatch.setattr(noise, "discrete_laplace", unclamped)
    assert not measured(run_file)[0].kept


def test_a_sum_beyond_the_clamp_never_reaches_the_noise(run_file, monkeypatch):
    monkeypatch.setattr(aggregate.np, "minimum", lambda found, _: found)
    with pytest.raises(RuntimeError, match="outside what its sensitivity protects; nothing was drawn"):
        measured(run_file)


def test_fresh_noise_on_a_second_run_is_exposed(run_file, monkeypatch):
    begin, folders = audit.Work, set()

    def forgetful(fitted, *rest):
        place = Path(fitted.output.release).parent
        if place in folders:
            for name in ("release", "confidential"):
                shutil.rmtree(place / name)
            (place / "ledger.sqlite").unlink()
        folders.add(place)
        return begin(fitted, *rest)

    monkeypatch.setattr(audit, "Work", forgetful)
    assert not measured(run_file)[0].kept


def test_a_composition_that_forgets_a_release_is_exposed(run_file, monkeypatch):
    figures = publish.figures
    monkeypatch.setattr(publish, "figures", lambda work, rows: figures(work, rows[:1]))
    one, series = measured(run_file)
    assert one.kept
    assert series.promised == 2.0
    assert not series.kept


def charged(*days: tuple[float, ...], parts: int = 1) -> list[Charged]:
    """Releases of so many days, by series."""
    return [Charged(f"2013-01-0{i}", each, parts, 3.0) for i, day in enumerate(days, 1) for each in day]


def test_what_small_losses_hide_is_named_and_larger_ones_hide_nothing():
    kept = Audit(
        (Measured("one release", 0.07, 0.0, 0.18),), 20_000, unseen(charged((0.07, 0.03)), 20_000, confidence=0.999)
    )
    assert "half the noise" not in unseen(charged((0.5,), (0.5,)), 5_000, confidence=0.999)
    assert kept.unseen == ("half the noise", "fresh noise on a second run")
    assert kept.kept
    assert audit_lines(kept)[-1].endswith("not ruled out: half the noise, fresh noise on a second run")
    assert audit_json(kept)["cannot_show"] == list(kept.unseen)


def test_a_day_of_two_that_is_not_counted_shows_where_the_days_spend_enough():
    assert "a day left out of the total" in unseen(charged((0.07, 0.03), (0.07, 0.03)), 20_000, confidence=0.999)
    assert unseen(charged((0.5,), (0.5,)), 20_000, confidence=0.999) == ()
    assert "a day left out of the total" not in unseen(charged((0.5,)), 1_000, confidence=0.999)  # there is one day


def test_counts_told_in_many_parts_need_more_homes():
    one, many = (unseen(charged((0.2,), (0.2,), parts=parts), 10_000, confidence=0.999) for parts in (1, 20))
    assert set(one) < set(many)


def test_there_are_as_few_homes_as_show_what_the_most_would_show():
    assert fewest(charged((0.5,), (0.5,)), confidence=0.999) == CHOICES[0]
    assert fewest(charged((0.3,), (0.3,)), confidence=0.999) == 10_000
    assert unseen(charged((0.3,), (0.3,)), 5_000, confidence=0.999)
    assert not unseen(charged((0.3,), (0.3,)), 10_000, confidence=0.999)


def test_without_a_number_the_losses_of_the_run_file_decide_how_many_homes(run_file, monkeypatch):
    asked = []
    monkeypatch.setattr(audit, "fewest", lambda releases, **_: asked.append([each.epsilon for each in releases]) or 300)
    assert audit.audit(run_file).households == 300
    assert asked == [[2.0, 2.0]]

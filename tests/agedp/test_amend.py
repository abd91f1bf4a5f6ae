"""Amending a contract: what it does to every figure, counted by hand, and that nothing looser is ever recorded."""

from __future__ import annotations

import json
import math
import re
from datetime import date, timedelta
from fractions import Fraction

import pytest

from agedp.stages.amend import amend, preview_amendment, record_amendment
from agedp_data.errors import ContractChanged, LedgerError, Refused, RunFileError
from agedp_data.leakage.exact import PROBABILITY_UNIT, PiecewiseLeakage
from agedp_data.leakage.population_bound import leakage_bound

FIRST = date(2013, 1, 1)
TODAY = date(2013, 1, 4)  # three days have ended
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = {}\n'
REHEARSED = 'notion = "classical"\nage_days = {}\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
W_EVENT = (
    'notion = "w-event"\nwindow_days = {}\nepsilon_per_window = 1\nspend = "even"\nmax_day_epsilon = 1\n'
    'epsilon_total = "unlimited"\n'
)
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.3\nmethod = "total_variation"\nsecret = "day"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
TEMPORAL = (
    'notion = "temporal"\nalpha = {}\nhorizon_days = {}\nbudget = "even"\nmax_day_epsilon = 1\n'
    'epsilon_total = "unlimited"\n'
)
CHAIN = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "kernel.csv"\nstep = "day"\n'
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "{}"\n'


def day(number):
    return FIRST + timedelta(days=number)


@pytest.fixture
def homes(house):
    """Four homes that use 9.6 kWh a day, and ten days of it."""
    house.fill([day(i) for i in range(10)], households="ABCD")
    (house.folder / "curve.csv").write_text("1,0.5\n7,0.2\n")
    (house.folder / "slower.csv").write_text("1,0.9\n7,0.8\n")
    return house


def released(homes, **keys):
    homes.write(FIRST, day(9), **keys)
    homes.run(today=TODAY)


def amended(session):
    return record_amendment(session, preview_amendment(session))


def edited(homes, **keys):
    homes.write(FIRST, day(9), **keys)
    return homes.session()


def kwh_a_home(clamp_wh, loss, homes):
    """The discrete Laplace law's standard deviation at scale clamp/loss."""
    q = math.exp(-loss / clamp_wh)
    return math.sqrt(2 * q) / (1 - q) / homes / 1000


def test_smaller_epsilon_shows_less_loss_more_noise_and_a_later_end(homes):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    found = preview_amendment(edited(homes, promise=CLASSICAL.format(0.25, 3)))
    assert [(each.key, each.old, each.new, each.verdict) for each in found.changes] == [
        ("promise.epsilon_per_day", '"0.5"', '"0.25"', "allowed")
    ]
    # 1.5 of 3 is spent: three days of 0.5 are left (4th to 6th January), or six of 0.25 (to the 9th)
    before, after = found.before, found.after
    assert (before.next_day, before.loss, before.last_day) == (day(3), 500_000_000, day(5))
    assert (after.next_day, after.loss, after.last_day) == (day(3), 250_000_000, day(8))
    assert before.ended_by_promise
    assert after.ended_by_promise
    assert before.noise_sd_kwh["daily_mean"] == pytest.approx(kwh_a_home(50_000, 0.5, 4), rel=1e-6)
    assert after.noise_sd_kwh["daily_mean"] == pytest.approx(kwh_a_home(50_000, 0.25, 4), rel=1e-6)
    for side in (before, after):
        said = {figure.name: figure.value for figure in side.bounds}
        assert said["total"] == pytest.approx(1_500_000_000, abs=3)


def test_a_smaller_total_ends_the_series_earlier_and_a_period_may_end_before_the_promise(homes):
    released(homes, promise=CLASSICAL.format(0.5, '"unlimited"'))
    found = preview_amendment(edited(homes, promise=CLASSICAL.format(0.5, 2)))
    assert (found.before.last_day, found.before.ended_by_promise) == (day(9), False)
    assert (found.after.last_day, found.after.ended_by_promise) == (day(3), True)


def test_a_total_below_what_is_spent_ends_the_series_at_once(homes):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    after = preview_amendment(edited(homes, promise=CLASSICAL.format(0.5, 1))).after
    assert (after.next_day, after.loss, after.last_day, dict(after.noise_sd_kwh)) == (day(3), 0, None, {})


def test_a_series_whose_last_day_is_released_has_no_next_day(homes):
    homes.write(FIRST, day(1))
    homes.run(today=TODAY)
    homes.write(FIRST, day(1), clamp="40")
    after = preview_amendment(homes.session()).after
    assert (after.next_day, after.last_day) == (None, None)


def test_a_smaller_clamp_means_less_noise_at_the_same_loss(homes):
    released(homes)
    found = preview_amendment(edited(homes, clamp="25"))
    [change] = found.changes
    assert (change.key, change.verdict) == ("series.daily_mean.clamp_kwh", "allowed")
    assert found.before.loss == found.after.loss
    ratio = found.after.noise_sd_kwh["daily_mean"] / found.before.noise_sd_kwh["daily_mean"]
    assert ratio == pytest.approx(0.5, rel=1e-6)


def test_a_wider_window_counts_what_was_released_under_the_narrow_one(homes):
    released(homes, promise=W_EVENT.format(2))
    found = preview_amendment(edited(homes, promise=W_EVENT.format(4)))
    # three days of a half: a window of four days holds 1.5 of 1 already, so nothing for two days, then a quarter a day
    figures = {figure.name: figure.value for figure in found.after.bounds}
    assert figures["window of 4 days"] == pytest.approx(1_500_000_000, abs=3)
    assert (found.before.loss, found.after.loss, found.after.last_day) == (500_000_000, 0, day(9))


def test_a_statement_says_that_windows_of_before_an_amendment_exceed_the_bound_of_today(homes):
    released(homes, promise=W_EVENT.format(2))
    warnings = homes.release.statement["warnings"]
    assert not any("last change of the promise" in one for one in warnings)
    amended(edited(homes, promise=W_EVENT.format(4)))
    homes.run(today=day(9))
    claim = homes.release.statement
    said = next(figure for figure in claim["figures"] if figure["name"] == "window of 4 days")
    assert float(said["epsilon"]) == float(said["limit"]) == pytest.approx(1.5, abs=3e-9)
    assert [one for one in claim["warnings"] if "last change of the promise" in one] == [
        f"window of 4 days: what was released before the last change of the promise comes to {said['epsilon']}, more "
        "than its bound of 1 now. No change undoes that; 1 binds whatever further releases are part of."
    ]


def test_another_model_changes_the_figures_of_what_was_released(homes):
    released(homes, promise=AGED, rest=MODEL.format("curve.csv"))
    found = preview_amendment(edited(homes, promise=AGED, rest=MODEL.format("slower.csv")))
    assert [change.key for change in found.changes] == ["model.hash"]
    risks = [
        next(figure.value for figure in side.bounds if figure.name == "risk") for side in (found.before, found.after)
    ]
    assert risks[0] < risks[1]
    assert found.after.loss == found.before.loss == 300_000_000


def test_an_amendment_is_recorded_once_and_releases_go_on_under_it(homes):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    session = edited(homes, promise=CLASSICAL.format(0.25, 3))
    with pytest.raises(ContractChanged, match="agedp ledger amend"):
        homes.run(today=TODAY)
    made = amended(session)
    assert amended(session) == made
    homes.run(today=day(6))
    with homes.ledger() as ledger:
        assert [row.hash for row in ledger.contracts("homes")][-1] == made.hash
        losses = [Fraction(row.loss, 10**9) for row in ledger.rows()]
        assert ledger.verify() == ()
    assert [round(float(loss), 8) for loss in losses] == [0.5] * 3 + [0.25] * 3
    claim = homes.release.statement
    assert claim["version"] == 2
    assert claim["contract"]["promise"]["epsilon_per_day"] == "0.25"


def test_a_new_model_is_kept_with_the_contract_that_names_it(homes):
    released(homes, promise=AGED, rest=MODEL.format("curve.csv"))
    session = edited(homes, promise=AGED, rest=MODEL.format("slower.csv"))
    amended(session)
    with homes.ledger() as ledger:
        assert [model.envelope for model in ledger.models()][-1] == session.model.text
        assert json.loads(ledger.contracts()[-1].promise)["model"]["hash"] == ledger.models()[-1].model


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"promise": CLASSICAL.format(0.5, 4)}, "promise.epsilon_total"),
        ({"promise": CLASSICAL.format(0.5, '"unlimited"')}, "promise.epsilon_total"),
        ({"promise": CLASSICAL.format(0.4, 3).replace("0.5", "0.6")}, "promise.max_day_epsilon"),
        ({"promise": W_EVENT.format(2)}, "promise.notion"),
        ({"promise": CLASSICAL.format(0.5, 3), "least": 1}, "population.min_households"),
    ],
)
def test_what_loosens_is_refused_by_name_and_nothing_is_written(homes, keys, named):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    before = (homes.folder / "ledger.sqlite").read_bytes()
    with pytest.raises(Refused, match=named) as caught:
        amended(edited(homes, **keys))
    assert caught.value.exit_status == 3
    assert "nothing was recorded" in str(caught.value)
    assert (homes.folder / "ledger.sqlite").read_bytes() == before


def test_an_alpha_below_what_is_said_is_refused_for_it_would_end_the_series(homes):
    # a register of two fair bits: neighbouring days share one, so each tells of the next as much as of itself
    (homes.folder / "kernel.csv").write_text("0.5,0.5,0,0\n0,0,0.5,0.5\n0.5,0.5,0,0\n0,0,0.5,0.5\n")
    released(homes, promise=TEMPORAL.format(2, 10), rest=CHAIN)
    before = (homes.folder / "ledger.sqlite").read_bytes()
    session = edited(homes, promise=TEMPORAL.format("0.5", 10), rest=CHAIN)
    [change] = preview_amendment(session).refused
    # three days of .2: all of them are told about the second
    assert change.key == "promise.alpha"
    assert change.why.startswith("alpha = 0.5 is below 0.6, the leakage so far about 2013-01-02: the series would end")
    with pytest.raises(Refused, match=r"promise\.alpha.*0\.6, the leakage so far about.*nothing was recorded"):
        amended(session)
    assert (homes.folder / "ledger.sqlite").read_bytes() == before
    # what is said itself is no less than what is said, and a little above it days go on
    amended(edited(homes, promise=TEMPORAL.format("0.8", 10), rest=CHAIN))
    assert len(homes.run(today=day(6)).released) == 3


def test_a_newer_model_that_says_more_than_alpha_is_told_before_it_ends_the_series(homes):
    quick, slow = "0.6,0.4\n0.4,0.6\n", "0.999,0.001\n0.001,0.999\n"
    promise = TEMPORAL.format("0.5", '"unlimited"').replace("even", "supremum")
    (homes.folder / "kernel.csv").write_text(quick)
    released(homes, promise=promise, rest=CHAIN)
    said = sum(row.loss for row in homes.ledger().rows()) / 10**9
    assert said > 0.5  # and three days of a kernel that forgets next to nothing say next to all of it
    (homes.folder / "kernel.csv").write_text(slow)
    [change] = [
        each
        for each in preview_amendment(edited(homes, promise=promise, rest=CHAIN)).changes
        if each.key == "model.hash"
    ]
    assert change.verdict == "allowed"
    told = re.search(r"alpha = 0.5 is below (\d\.\d+), the leakage so far about .*: the series would END", change.why)
    assert told, change.why
    assert 0.5 < float(told[1]) <= said
    assert "Leave [model] as it is to continue" in change.why
    # a model that says no more is told nothing about
    (homes.folder / "kernel.csv").write_text("0.55,0.45\n0.45,0.55\n")
    harmless = preview_amendment(edited(homes, promise=promise, rest=CHAIN)).changes
    assert not any("END" in each.why for each in harmless)


def test_a_series_that_began_before_a_kernels_pieces_were_kept_goes_on_as_it_was(homes, monkeypatch):
    (homes.folder / "kernel.csv").write_text("0.8,0.2\n0.3,0.7\n")
    promise = TEMPORAL.format(2, '"unlimited"').replace("even", "supremum")

    def by_grid(*given, **more):
        return leakage_bound(*given, **more | {"pieces": False})

    with monkeypatch.context() as earlier:
        earlier.setattr("agedp_data.model.leakage_bound", by_grid)
        released(homes, promise=promise, rest=CHAIN)
        [grid] = homes.ledger().models()
    assert "hulls" not in json.loads(grid.envelope)["envelope"]
    rows = homes.run(today=day(6)).released
    assert len(rows) == 3
    assert len({row.loss for row in homes.ledger().rows()}) == 1  # and no more, as a model with pieces would grant
    assert homes.ledger().models() == (grid,)
    assert "hulls" in json.loads(homes.context().model.text)["envelope"]


def test_a_machine_whose_arithmetic_has_other_last_digits_goes_on_with_the_pieces_that_are_kept(homes, monkeypatch):
    (homes.folder / "kernel.csv").write_text("0.8,0.2\n0.3,0.7\n")
    promise = TEMPORAL.format(2, '"unlimited"').replace("even", "supremum")
    real = PiecewiseLeakage.from_floats

    def elsewhere(over, under):
        found = real(over, under)
        return PiecewiseLeakage([min(PROBABILITY_UNIT, each + 1) for each in found.over], found.under)

    with monkeypatch.context() as earlier:
        earlier.setattr(PiecewiseLeakage, "from_floats", elsewhere)
        released(homes, promise=promise, rest=CHAIN)
        [kept] = homes.ledger().models()
    assert kept.model != homes.context().model.id
    assert not preview_amendment(homes.session()).changes
    assert len(homes.run(today=day(6)).released) == 3
    assert homes.ledger().models() == (kept,)
    (homes.folder / "kernel.csv").write_text("0.8,0.2\n0.3001,0.6999\n")  # another kernel is another promise
    with pytest.raises(ContractChanged, match="model"):
        homes.run(today=day(7))


def test_one_looser_key_spoils_the_tighter_ones_beside_it(homes):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    with pytest.raises(Refused) as caught:
        amended(edited(homes, promise=CLASSICAL.format(0.25, 4)))
    assert "epsilon_total" in str(caught.value)
    assert "epsilon_per_day" not in str(caught.value)


def test_a_contract_that_changed_since_it_was_looked_at_is_not_overwritten(homes):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    session = edited(homes, promise=CLASSICAL.format(0.4, 3))
    seen = preview_amendment(session)
    amended(edited(homes, promise=CLASSICAL.format(0.25, 3)))
    with pytest.raises(LedgerError, match="amended meanwhile"):
        record_amendment(session, seen)


def test_a_population_without_a_contract_has_nothing_to_amend(homes):
    released(homes)
    homes.run_file.write_text(homes.run_file.read_text().replace('name = "homes"', 'name = "others"'))
    (homes.folder / "release").rename(homes.folder / "elsewhere")
    with pytest.raises(LedgerError, match="no contract of 'others'"):
        amend(homes.context())


def test_in_a_rehearsal_an_amendment_has_the_simulated_date(homes):
    homes.write(FIRST, day(9), mode="rehearsal", promise=REHEARSED.format(1))
    homes.run(as_of=day(5))
    homes.write(FIRST, day(9), mode="rehearsal", promise=REHEARSED.format(2))
    made = amend(homes.context(as_of=day(5)))
    assert made.at == day(5).isoformat()


def test_a_rehearsal_is_amended_to_an_open_period_and_runs_on_when_it_is_told_how_far(homes):
    homes.write(FIRST, day(9), mode="rehearsal", promise=REHEARSED.format(1))
    homes.run(as_of=day(5))
    homes.run_file.write_text(homes.run_file.read_text().replace(f"last_day = {day(9)}\n", ""))
    made = amend(homes.context())
    assert made.at == day(5).isoformat()
    with pytest.raises(RunFileError, match="needs --as-of DATE"):
        homes.run()
    assert [row.contract for row in homes.run(as_of=day(6)).released] == [made.hash]

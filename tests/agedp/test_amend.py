"""Amending a contract: what it does to every figure, counted by hand, and that nothing looser is ever recorded."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pytest

from agedp.stages.amend import amend, preview_amendment, record_amendment
from agedp_data.errors import ContractChanged, Refused, RunFileError
from agedp_data.leakage.exact import PROBABILITY_UNIT, PiecewiseLeakage
from agedp_data.leakage.population_bound import leakage_bound

FIRST = date(2013, 1, 1)
TODAY = date(2013, 1, 4)  # three days have ended
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = {}\n'
W_EVENT = (
    'notion = "w-event"\nwindow_days = {}\nepsilon_per_window = 1\nspend = "even"\nmax_day_epsilon = 1\n'
    'epsilon_total = "unlimited"\n'
)
TEMPORAL = (
    'notion = "temporal"\nalpha = {}\nhorizon_days = {}\nbudget = "even"\nmax_day_epsilon = 1\n'
    'epsilon_total = "unlimited"\n'
)
SUPREMUM = TEMPORAL.replace("even", "supremum").format("{}", '"unlimited"')
CHAIN = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "kernel.csv"\nstep = "day"\n'


def day(number):
    return FIRST + timedelta(days=number)


@pytest.fixture
def homes(house):
    """Four homes that use 9.6 kWh a day, and ten days of it."""
    house.fill([day(i) for i in range(10)], households="ABCD")
    (house.folder / "curve.csv").write_text("1,0.5\n7,0.2\n")
    (house.folder / "slower.csv").write_text("1,0.9\n7,0.8\n")
    return house


def released(homes, *, kernel="", **keys):
    """Release three days, of a chain of days if there is one."""
    (homes.folder / "kernel.csv").write_text(kernel)
    homes.write(FIRST, day(9), **keys)
    homes.run(today=TODAY)


def edited(homes, **keys):
    homes.write(FIRST, day(9), **keys)
    return homes.session()


def amended(session):
    return record_amendment(session, preview_amendment(session))


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
    for side, loss, last in ((found.before, 0.5, day(5)), (found.after, 0.25, day(8))):
        assert (side.next_day, side.loss, side.last_day, side.ended_by_promise) == (day(3), loss * 10**9, last, True)
        assert side.noise_sd_kwh["daily_mean"] == pytest.approx(kwh_a_home(50_000, loss, 4), rel=1e-6)
        assert {bound.name: bound.value for bound in side.bounds}["total"] == pytest.approx(1_500_000_000, abs=3)


def test_a_wider_window_counts_what_was_released_under_the_narrow_one(homes):
    released(homes, promise=W_EVENT.format(2))
    session = edited(homes, promise=W_EVENT.format(4))
    found = preview_amendment(session)
    # three days of a half: a window of four days holds 1.5 of 1 already, so nothing for two days, then a quarter a day
    bounds = {bound.name: bound.value for bound in found.after.bounds}
    assert bounds["window of 4 days"] == pytest.approx(1_500_000_000, abs=3)
    assert (found.before.loss, found.after.loss, found.after.last_day) == (500_000_000, 0, day(9))
    amended(session)
    homes.run(today=day(9))
    statement = homes.release.statement
    bound = next(bound for bound in statement["figures"] if bound["name"] == "window of 4 days")
    assert float(bound["epsilon"]) == float(bound["limit"]) == pytest.approx(1.5, abs=3e-9)
    [warning] = [text for text in statement["warnings"] if "last change of the promise" in text]
    assert f"has epsilon {bound['epsilon']}, more than its limit of 1 now" in warning


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
    assert [round(row.loss / 10**9, 8) for row in homes.rows()] == [0.5] * 3 + [0.25] * 3
    statement = homes.release.statement
    assert (statement["version"], statement["contract"]["promise"]["epsilon_per_day"]) == (2, "0.25")


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"promise": CLASSICAL.format(0.5, 4)}, "promise.epsilon_total"),
        ({"promise": CLASSICAL.format(0.25, '"unlimited"')}, "promise.epsilon_total"),  # beside a tighter key
        ({"promise": CLASSICAL.format(0.5, 3), "least": 1}, "population.min_households"),
    ],
)
def test_what_loosens_is_refused_by_name_and_nothing_is_written(homes, keys, key):
    released(homes, promise=CLASSICAL.format(0.5, 3))
    before = (homes.folder / "ledger.sqlite").read_bytes()
    with pytest.raises(Refused, match=key) as caught:
        amended(edited(homes, **keys))
    assert caught.value.exit_status == 3
    assert "nothing was recorded" in str(caught.value)
    assert "epsilon_per_day" not in str(caught.value)
    assert (homes.folder / "ledger.sqlite").read_bytes() == before


def test_an_alpha_below_the_leakage_so_far_is_refused(homes):
    # a register of two fair bits: neighbouring days share one, so each tells of the next as much as of itself
    kernel = "0.5,0.5,0,0\n0,0,0.5,0.5\n0.5,0.5,0,0\n0,0,0.5,0.5\n"
    released(homes, kernel=kernel, promise=TEMPORAL.format(2, 10), rest=CHAIN)
    before = (homes.folder / "ledger.sqlite").read_bytes()
    session = edited(homes, promise=TEMPORAL.format("0.5", 10), rest=CHAIN)
    [change] = preview_amendment(session).refused
    # three days of .2: the second leaks all of them
    assert change.key == "promise.alpha"
    assert change.why.startswith("alpha = 0.5 is below 0.6, the leakage so far about 2013-01-02: the series would end")
    with pytest.raises(Refused, match=r"promise\.alpha.*nothing was recorded"):
        amended(session)
    assert (homes.folder / "ledger.sqlite").read_bytes() == before
    amended(edited(homes, promise=TEMPORAL.format("0.8", 10), rest=CHAIN))
    assert len(homes.run(today=day(6)).released) == 3


def test_a_model_that_would_end_the_series_says_so(homes):
    keys = {"promise": SUPREMUM.format("0.5"), "rest": CHAIN}
    released(homes, kernel="0.6,0.4\n0.4,0.6\n", **keys)
    assert sum(row.loss for row in homes.rows()) > 500_000_000  # and a slow kernel leaks next to all of it
    for kernel, ends in (("0.999,0.001\n0.001,0.999\n", True), ("0.55,0.45\n0.45,0.55\n", False)):
        (homes.folder / "kernel.csv").write_text(kernel)
        [change] = [each for each in preview_amendment(edited(homes, **keys)).changes if each.key == "model.hash"]
        assert change.verdict == "allowed"
        assert ("the series would END" in change.why) is ends


def elsewhere(over, under, *, real=PiecewiseLeakage.from_floats):
    """The pieces of a machine whose arithmetic has other last digits."""
    found = real(over, under)
    return PiecewiseLeakage([min(PROBABILITY_UNIT, each + 1) for each in found.over], found.under)


def by_grid(*given, **more):
    """The bound as it was before a kernel's pieces were kept."""
    return leakage_bound(*given, **more | {"pieces": False})


@pytest.mark.parametrize(
    ("place", "earlier"),
    [
        ("agedp_data.leakage.exact.PiecewiseLeakage.from_floats", elsewhere),
        ("agedp_data.leakage.population_bound.leakage_bound", by_grid),
    ],
)
def test_a_series_goes_on_with_the_model_that_is_kept(homes, monkeypatch, place, earlier):
    with monkeypatch.context() as patch:
        patch.setattr(place, earlier)
        released(homes, kernel="0.8,0.2\n0.3,0.7\n", promise=SUPREMUM.format(2), rest=CHAIN)
        [kept] = homes.ledger().models()
    assert kept.model != homes.context().model.id
    assert not preview_amendment(homes.session()).changes
    assert len(homes.run(today=day(6)).released) == 3
    assert len({row.loss for row in homes.rows()}) == 1  # no more than the kept model grants
    assert homes.ledger().models() == (kept,)
    (homes.folder / "kernel.csv").write_text("0.8,0.2\n0.3001,0.6999\n")  # another kernel is another promise
    with pytest.raises(ContractChanged, match="model"):
        homes.run(today=day(7))


REHEARSED = CLASSICAL.format(0.5, 9) + "age_days = {}\n"


def test_a_rehearsal_is_amended_on_its_simulated_date(homes):
    homes.write(FIRST, day(9), mode="rehearsal", promise=REHEARSED.format(1))
    homes.run(as_of=day(5))
    homes.write(FIRST, day(9), mode="rehearsal", promise=REHEARSED.format(2))
    homes.edit((f"last_day = {day(9)}\n", ""))
    made = amend(homes.context())
    assert made.at == day(5).isoformat()
    with pytest.raises(RunFileError, match="needs --as-of DATE"):
        homes.run()
    assert [row.contract for row in homes.run(as_of=day(7)).released] == [made.hash]

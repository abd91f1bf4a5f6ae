"""The whole way: what the ledger charged, what the folder says, and that both are the same for ever."""

from __future__ import annotations

import math
from contextlib import nullcontext
from datetime import date, timedelta

import pytest

import agedp
from agedp.internal_records.population_accounts import PopulationAccounts
from agedp.pipeline import run_stages
from agedp.stages.release import ImpossibleSum
from agedp_data.datasets.synthetic import write_london, write_roster
from agedp_data.errors import ChainError, ContractChanged, LedgerError, Refused, RunFileError
from agedp_data.series.series_terms import EnergySeries

FIRST, DAYS = date(2013, 1, 28), 7
TODAY = date(2026, 1, 1)
SMALL = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = {}\n'
AGED = (
    'notion = "age-dependent"\nage_days = 2\nrisk = 0.6\nmethod = "total_variation"\nsecret = "day"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "{}"\n{}\n'


@pytest.fixture
def homes(house):
    """Six synthetic London households over seven days."""
    made = write_london(house.folder / "input", households=6, first_day=FIRST, days=DAYS, seed=4)
    write_roster(house.folder / "roster.csv", household_ids=made.household_ids, first_day=FIRST)
    (house.folder / "curve.csv").write_text("1,0.9\n2,0.5\n7,0.2\n")
    (house.folder / "kernel.csv").write_text("0.9,0.1\n0.2,0.8\n")
    return house


def day(number):
    return FIRST + timedelta(days=number)


def write(homes, **keys):
    return homes.write(FIRST, day(DAYS - 1), **keys)


def losses_by_day(rows):
    return {date.fromisoformat(row.day): row.loss for row in rows if row.state == "released"}


@pytest.mark.parametrize("assume", ["curve", "markov"])
def test_the_aged_risk_never_exceeds_its_promise(homes, assume):
    given = 'curve = "curve.csv"' if assume == "curve" else 'kernel = "kernel.csv"'
    write(homes, mode="rehearsal", promise=AGED, rest=CURVE.format(assume, given))
    with pytest.raises(Refused) if assume == "curve" else nullcontext():
        homes.run()  # a curve's risk is nearly the sum: without the Markov assumption the series ends
    losses = losses_by_day(homes.rows())
    published = sorted(losses)
    risks = []
    for newest in published:  # the day after it was published everything is older: the largest is at publication
        known = {one: losses[one] / 1e9 for one in published if one <= newest}
        risks.append(risk_by_curve(known) if assume == "curve" else risk_by_kernel(known))
    assert len(published) == (1 if assume == "curve" else DAYS)
    assert max(risks) <= 0.6
    assert max(risks) > (0.28 if assume == "curve" else 0.4)
    figures = {one["name"]: one["epsilon"] for one in homes.release.statement["figures"]}
    assert max(risks) <= float(figures["risk"]) <= 0.6


def risk_by_curve(known):
    """min over j of L_j(e_j) + the sum of the others (docs/chains.md), d = .5 from 2 days on, .2 from 7."""
    newest = max(known)
    distance = {one: 0.2 if (newest - one).days + 2 >= 7 else 0.5 for one in known}
    return min(math.log1p(distance[one] * math.expm1(loss)) + sum(known.values()) - loss for one, loss in known.items())


def risk_by_kernel(known):
    """z_k = e_k + ln(1 + d (e^z - 1)) day by day, then two days more; d(t) = .7^t for the chain .1, .2."""
    z = 0.0
    for loss in (known[one] for one in sorted(known)):
        z = loss + math.log1p(0.7 * math.expm1(z))
    return math.log1p(0.7**2 * math.expm1(z))


def test_days_with_too_few_households_are_skipped_and_never_drawn(homes):
    ids = [line.split(",")[0] for line in (homes.folder / "roster.csv").read_text().splitlines()[1:]]
    homes.roster([(home, FIRST if i < 2 else day(3), None) for i, home in enumerate(ids)])
    write(homes, promise=SMALL.format(4.5), least=7)
    with pytest.raises(RunFileError, match="min_households = 7"):  # there is no such day
        homes.run(today=TODAY)
    assert not (homes.folder / "ledger.sqlite").exists()
    write(homes, promise=SMALL.format(4.5), least=3)
    homes.run(today=TODAY)
    assert [(row.state, row.values != ()) for row in homes.rows()] == [("skipped", False)] * 3 + [
        ("released", True)
    ] * 4
    days = homes.release.statement["days"]
    assert (days["skipped"], days["first"]) == ([str(day(i)) for i in range(3)], str(day(3)))
    homes.release.verify()


def test_a_sum_beyond_the_clamp_is_noticed_before_the_draw(homes, monkeypatch):
    write(homes, clamp="0.01", promise=SMALL.format(4.5))
    monkeypatch.setattr(EnergySeries, "clamp_energy", lambda series, energy_wh: energy_wh)
    with pytest.raises(ChainError, match="outside its range"):
        homes.run(today=TODAY)
    monkeypatch.setattr(EnergySeries, "check_counted", lambda *_: None)
    with pytest.raises(ImpossibleSum):
        homes.run(today=TODAY)
    assert not homes.rows()


def test_true_means_are_read_by_one_call(house):
    house.fill([date(2013, 1, 1), date(2013, 1, 2)], wh=200)  # 48 half-hours of 0.2 kWh
    house.roster([(name, date(2013, 1, 1), None) for name in "ABC"])
    house.write(date(2013, 1, 1), date(2013, 1, 2))
    assert len(agedp.true_means(house.run_file)) == 0
    house.run(today=date(2013, 1, 3))
    frame = agedp.true_means(house.run_file)
    assert [*frame.columns] == ["day", "series", "cell", "households", "true_mean_kwh", "released_mean_kwh"]
    assert frame["true_mean_kwh"].round(9).tolist() == [9.6, 9.6]
    assert frame["released_mean_kwh"].tolist() == pytest.approx([row.values[0] / 3000 for row in house.rows()])


def test_a_run_without_a_draw_does_not_bind_the_next(homes, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(EnergySeries, "is_possible", lambda *_: False)
        for clamp in ("30", "40"):  # a fault just before the first draw, under two promises
            write(homes, clamp=clamp, promise=SMALL.format(9))
            with pytest.raises(ImpossibleSum):
                homes.run(today=TODAY)
    write(homes, clamp="20", promise=SMALL.format(4.5))
    homes.run(today=TODAY)
    rows = homes.rows()
    assert {row.sensitivity for row in rows} == {20_000}  # Wh: the clamp of the file that released
    homes.release.verify()
    assert [len(of["released"]) for of in homes.release.statement["versions"]] == [0, 0, 1]
    write(homes, clamp="30", promise=SMALL.format(9))
    with pytest.raises(ContractChanged, match=r"series\.daily_mean\.clamp_kwh"):
        homes.run(today=TODAY)
    assert homes.rows() == rows


def test_what_a_run_publishes_counts_as_its_release(homes, monkeypatch):
    write(homes, promise=SMALL.format(2))  # four days
    with monkeypatch.context() as patched:  # killed after its draws
        patched.setattr("agedp.pipeline.publish_folder", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            homes.run(today=day(4))
    summary = run_stages(homes.context(today=TODAY))
    assert str(summary.refusal).endswith(
        f"{day(4)}: the promise permits no further release: 2 is spent, epsilon_total = 2"
    )
    assert [row["day"] for row in summary.facts["released"]] == [str(day(i)) for i in range(4)]
    assert homes.release.statement["days"]["released"] == 4
    assert run_stages(homes.context(today=TODAY)).facts["released"] == []


def test_days_before_an_error_of_the_ledger_are_released(homes, monkeypatch):
    write(homes)
    monkeypatch.setattr("agedp.stages.release.DAYS_PER_TRANSACTION", 2)
    charge, calls = PopulationAccounts.charge, iter(range(9))

    def charge_once(*args, **keys):
        if next(calls) == 1:
            raise LedgerError("the disk is full; nothing was stored")
        charge(*args, **keys)

    monkeypatch.setattr(PopulationAccounts, "charge", charge_once)
    summary = run_stages(homes.context(today=TODAY))
    assert [row["day"] for row in summary.facts["released"]] == [str(day(0)), str(day(1))]
    with pytest.raises(LedgerError, match="the disk is full"):
        summary.check_not_refused()

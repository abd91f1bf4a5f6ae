"""The whole way: what the ledger charged, what the folder says, and that both are the same for ever."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import gamma

from agedp_data.datasets.synthetic import write_london, write_roster
from agedp_data.errors import LedgerError, Refused, RunFileError

FIRST, DAYS = date(2013, 1, 28), 9
TODAY = date(2026, 1, 1)
SMALL = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = {}\n'
W_EVENT = (
    'notion = "w-event"\nwindow_days = 3\nepsilon_per_window = 1\nspend = "{}"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
AGED = (
    'notion = "age-dependent"\nage_days = 2\nrisk = 0.6\nmethod = "total_variation"\nsecret = "day"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "{}"\n{}\n'
COMPARE = "[compare]\nwindow_days = 4\n"


@pytest.fixture
def homes(house):
    """Six made-up London homes over nine days."""
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


def test_a_classical_year_is_drawn_charged_and_published(homes):
    write(homes, clamp="0.01", promise=SMALL.format(4.5), rest=COMPARE)
    homes.run(today=TODAY)
    rows = homes.rows()
    assert [row.day for row in rows] == [day(i).isoformat() for i in range(DAYS)]
    for row in rows:
        exact = Fraction(row.sensitivity) / Fraction(row.scale) * 10**9
        assert (row.sensitivity, row.loss, row.published_on) == (10, math.ceil(exact), "2026-01-01")
        assert row.loss <= 500_000_000
    table = pq.ParquetFile(homes.folder / "release" / "daily_averages.parquet").read()
    assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
        ("day", "date32[day]", False), ("group", "string", False), ("revision", "int32", False),
        ("households", "int64", False), ("noisy_sum_wh", "int64", False), ("mean_kwh", "double", False),
        ("noise_sd_kwh", "double", False), ("low_kwh", "double", False), ("high_kwh", "double", False),
        ("published_on", "date32[day]", False), ("epsilon", "double", False), ("version", "int32", False),
    ]  # fmt: skip
    for line, row in zip(table.to_pylist(), rows, strict=True):
        (value,) = row.values
        deviation, half = law(row.scale, coverage=Fraction(95, 100))
        assert (line["noisy_sum_wh"], line["households"], line["group"]) == (value, 6, "all")
        assert line["mean_kwh"] == value / 6000
        assert line["noise_sd_kwh"] == pytest.approx(deviation / 6000, rel=1e-9)
        assert (line["low_kwh"], line["high_kwh"]) == ((value - half) / 6000, (value + half) / 6000)
        assert (line["epsilon"], line["version"], line["published_on"]) == (0.5, 1, TODAY)
    homes.release.verify()


def law(scale, *, coverage):
    """Standard deviation and the smallest covering half-width, by summing (1-q)/(1+q) q^|k| outwards."""
    q = math.exp(-1 / scale)
    ks = np.arange(1, int(60 * scale))
    weights = (1 - q) / (1 + q) * q**ks
    covered = (1 - q) / (1 + q) + 2 * np.cumsum(weights)
    return math.sqrt(2 * (weights * ks**2).sum()), int(ks[np.argmax(covered >= float(coverage))])


def test_the_guarantee_travels_with_the_figures(homes):
    write(homes, promise=SMALL.format(4.5), rest=COMPARE)
    homes.run(today=TODAY)
    metadata = pq.ParquetFile(homes.folder / "release" / "daily_averages.parquet").schema_arrow.metadata
    assert set(metadata) == {b"agedp"}
    guarantee, claim = json.loads(metadata[b"agedp"]), homes.release.statement
    assert guarantee["interval"] == {"coverage": "0.95", "covers": "the noise and nothing else"}
    assert guarantee["promise"]["notion"] == "classical"
    assert guarantee["series"]["daily_mean"]["clamp_kwh"] == "50"
    assert guarantee["day_zone"] == "GMT"
    assert guarantee["ledger"] == claim["ledger"]
    sums = dict(reversed(line.split("  ")) for line in homes.files()["SHA256SUMS"].decode().splitlines())
    others = {"ledger_rows.jsonl", "report.html", "datapackage.json"}
    assert set(sums) == {"daily_averages.parquet", "statement.json", "STATEMENT.md", *others}


@pytest.mark.parametrize("spend", ["even", "remaining"])
def test_no_window_ever_spends_more_than_its_promise(homes, spend):
    write(homes, promise=W_EVENT.format(spend), rest=COMPARE)
    homes.run(today=TODAY)
    losses = losses_by_day(homes.rows())
    windows = [sum(losses[day(i + j)] for j in range(3)) for i in range(DAYS - 2)]
    assert len(losses) == DAYS
    assert max(windows) <= 10**9
    assert max(windows) > 0.8 * 10**9
    figures = {one["name"]: one["epsilon"] for one in homes.release.statement["figures"]}
    four = max(sum(losses[day(i + j)] for j in range(4)) for i in range(DAYS - 3))
    exact = {"day": max(losses.values()), "total": sum(losses.values()), "window of 3 days": max(windows)}
    for name, value in (exact | {"window of 4 days": four}).items():
        assert Fraction(figures[name]) * 10**9 == value


@pytest.mark.parametrize("assume", ["curve", "markov"])
def test_the_aged_risk_never_exceeds_its_promise(homes, assume):
    given = 'curve = "curve.csv"' if assume == "curve" else 'kernel = "kernel.csv"'
    write(homes, mode="rehearsal", promise=AGED, rest=CURVE.format(assume, given))
    try:
        homes.run()
        refused = False
    except Refused:
        refused = True
    losses = losses_by_day(homes.rows())
    published = sorted(losses)
    risks = []
    for newest in published:  # the day after it was published everything is older: the largest is at publication
        known = {one: losses[one] / 1e9 for one in published if one <= newest}
        risks.append(risk_by_curve(known) if assume == "curve" else risk_by_kernel(known))
    assert refused == (assume == "curve")  # nearly the sum: without the Markov assumption the series ends
    assert len(published) == (1 if assume == "curve" else DAYS)
    assert max(risks) <= 0.6
    assert max(risks) > (0.28 if assume == "curve" else 0.45)
    figures = {one["name"]: one["epsilon"] for one in homes.release.statement["figures"]}
    assert max(risks) <= float(figures["risk"]) <= 0.6


def risk_by_curve(known):
    """min over j of L_j(e_j) + the sum of the others (MATHS 2b), d = .5 from 2 days on, .2 from 7."""
    newest = max(known)
    distance = {one: 0.2 if (newest - one).days + 2 >= 7 else 0.5 for one in known}
    return min(math.log1p(distance[one] * math.expm1(loss)) + sum(known.values()) - loss for one, loss in known.items())


def risk_by_kernel(known):
    """z_k = e_k + ln(1 + d (e^z - 1)) day by day, then two days more; d(t) = .7^t for the chain .1, .2."""
    z = 0.0
    for loss in (known[one] for one in sorted(known)):
        z = loss + math.log1p(0.7 * math.expm1(z))
    return math.log1p(0.7**2 * math.expm1(z))


def test_a_second_run_draws_nothing_and_writes_the_same_bytes(homes):
    write(homes, promise=SMALL.format(4.5))
    homes.run(today=TODAY)
    before, rows = homes.files(), homes.rows()
    work = homes.run(today=TODAY + timedelta(days=30))
    assert work.due_days.due == ()
    assert (homes.files(), homes.rows()) == (before, rows)
    (homes.folder / "release" / "SHA256SUMS").unlink()  # cut off: mended, with the same draws
    (homes.folder / "release" / "statement.json").write_bytes(b"{")
    homes.run(today=TODAY)
    assert (homes.files(), homes.rows()) == (before, rows)


def test_at_the_total_the_run_is_refused_and_the_days_before_are_published(homes):
    write(homes, promise=SMALL.format(1.7))
    with pytest.raises(Refused) as caught:
        homes.run(today=TODAY)
    assert caught.value.exit_status == 3
    assert [row.day for row in homes.rows()] == [day(i).isoformat() for i in range(3)]
    release = homes.release
    release.verify()
    assert list(release.table()["noisy_sum_wh"]) == [row.values[0] for row in homes.rows()]
    assert release.statement["days"]["released"] == 3
    true = homes.records("true_means")
    assert [line["day"] for line in true] == [day(i) for i in range(3)]
    assert [line["released_mean_kwh"] for line in true] == list(release.table()["mean_kwh"])


def test_noise_is_what_the_true_mean_differs_by(homes):
    write(
        homes, promise=SMALL.format(4.5), clamp="0.001", least=2
    )  # a home that is there is above: at most 6 Wh, at scale 2
    homes.run(today=TODAY)
    true = homes.records("true_means")
    assert {round(line["true_mean_kwh"] * 6000) for line in true} <= {3, 4, 5, 6}
    noise = [round((line["released_mean_kwh"] - line["true_mean_kwh"]) * 6000) for line in true]
    assert any(noise)
    assert max(map(abs, noise)) < 120  # e^-60


def test_what_is_drawn_has_the_scale_that_is_recorded(house):
    days = 400
    house.london({("A", FIRST, 0): 100})  # no day has enough readings: every true sum is 0, every value is noise
    house.roster([("A", FIRST, None), ("B", FIRST, None)])
    house.write(FIRST, day(days - 1), promise=SMALL.format('"unlimited"'))
    house.run(today=TODAY)
    rows = house.rows()
    drawn = sum(abs(row.values[0]) / row.scale for row in rows)
    # At scale 100,000 Wh |noise|/scale is exponential to 1e-5, so the sum is Gamma(400); 1e-10 at either end.
    low, high = gamma(days).ppf([1e-10, 1 - 1e-10])
    assert {row.scale for row in rows} == {100_000.0}
    assert low < drawn < high
    assert not low < drawn / 2 < high
    assert not low < drawn * 2 < high


def test_days_with_too_few_households_are_skipped_published_as_such_and_never_drawn(homes):
    ids = [line.split(",")[0] for line in (homes.folder / "roster.csv").read_text().splitlines()[1:]]
    homes.roster([(home, FIRST if i < 2 else day(3), None) for i, home in enumerate(ids)])
    write(homes, promise=SMALL.format(4.5), least=3)
    homes.run(today=TODAY)
    states = [row.state for row in homes.rows()]
    assert states == ["skipped"] * 3 + ["released"] * 6
    claim = homes.release.statement
    assert claim["days"]["skipped"] == [day(i).isoformat() for i in range(3)]
    assert claim["days"]["first"] == day(3).isoformat()
    homes.release.verify()


def test_a_promise_to_too_few_homes_is_refused_before_it_is_registered(homes):
    write(homes, promise=SMALL.format(4.5), least=7)
    with pytest.raises(RunFileError, match="min_households = 7"):
        homes.run(today=TODAY)
    assert not (homes.folder / "ledger.sqlite").exists()
    assert not (homes.folder / "release").exists()


def test_a_rehearsal_steps_through_its_dates_and_two_halves_are_one_whole(homes):
    write(homes, mode="rehearsal", promise=SMALL.format(4.5) + "age_days = 2\n")
    homes.run(as_of=day(6))
    half = homes.rows()
    homes.run()
    rows = homes.rows()
    assert [row.published_on for row in rows] == [day(i + 3).isoformat() for i in range(DAYS)]
    assert rows[: len(half)] == half
    assert len(half) == 4
    assert homes.release.statement["rehearsal"] == 1
    assert "REHEARSAL" in homes.files()["STATEMENT.md"].decode()
    write(homes, promise=SMALL.format(4.5))
    with pytest.raises(LedgerError, match="a rehearsal needs a ledger of its own"):
        homes.run(today=TODAY)


def test_the_statement_keeps_the_figures_that_are_always_true_first(homes):
    write(homes, promise=SMALL.format(4.5), rest=COMPARE + CURVE.format("curve", 'curve = "curve.csv"'))
    homes.run(today=TODAY)
    claim = homes.release.statement
    kinds = [figure["kind"] for figure in claim["figures"]]
    assert kinds == sorted(kinds)  # "assumption-free" before "conditional"
    assert claim["figures"][0]["name"] == "day"
    assert "envelope" not in claim["model"]
    assert any("does not vouch for the model" in text for text in claim["warnings"])

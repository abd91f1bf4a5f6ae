"""Every notion for a target: closed forms and brute force; from public input alone; no notion by name."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

from agedp.ledger_session import comparison_view
from agedp.planning.notion_comparison import ComparisonTarget, compare_promises
from agedp.planning.row_noise import ChangeYardstick
from agedp_data.accounting.ageing import peak
from agedp_data.errors import RunFileError
from agedp_flows.text.comparison_text import comparison_lines, parse_target

FIRST = date(2013, 1, 1)
CHAIN = np.array([[0.8, 0.2], [0.3, 0.7]])
HOMES, CLAMP_KWH, DAYS = 500, 20, 30
WEEKLY = (
    'notion = "w-event"\nwindow_days = 5\nepsilon_per_window = 1\nspend = "even"\n'
    "max_day_epsilon = {cap}\nepsilon_total = {total}\n"
)
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.2\nmethod = "tight"\nsecret = "day"\n'
    "max_day_epsilon = 1\nepsilon_total = 9\n"
)
COMPARED = "[compare]\nexponential = 0.9\nhyperbolic = 1\n"
FEW = "[compare]\nexponential = 0.9\n"
KERNEL = '[model]\nsource = "declared"\nkernel = "kernel.csv"\nstep = "day"\nbasis = "made up"\nassume = "markov"\n'


def begun(
    house, *, cap="3", total='"unlimited"', homes=HOMES, rest=COMPARED + KERNEL, promise=WEEKLY, days=DAYS, **keys
):
    if homes is not None:
        house.roster([(f"home-{i}", FIRST, None) for i in range(homes)])
    (house.folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in CHAIN) + "\n")
    last = FIRST + timedelta(days=days - 1)
    text = promise.replace("{cap}", cap).replace("{total}", total)
    house.write(FIRST, last, clamp=str(CLAMP_KWH), promise=text, rest=rest, **keys)
    return house.session()


def offers(session, **target):
    found = compare_promises(session.terms(), comparison_view(session), ComparisonTarget(**target))
    return found, {(entry.notion, entry.method): entry for entry in found.entries}


@pytest.fixture(scope="module")
def compared(houses, tmp_path_factory):
    """Compare the notions for a risk or an error; each comparison is made once."""

    @cache
    def compare(risk=None, error_kwh=None, **settings):
        session = begun(houses(tmp_path_factory.mktemp("house")), **settings)
        return offers(session, risk=None if risk is None else Decimal(risk), error_kwh=error_kwh)

    return compare


def noise(loss, homes=HOMES):
    """Return Laplace noise of scale clamp/loss in a mean of so many households."""
    return math.sqrt(2) * CLAMP_KWH / (loss * homes)


def root_mean_square(losses, homes=HOMES):
    return math.sqrt(np.mean([noise(loss, homes) ** 2 for loss in losses]))


def remaining(window, days, amount):
    """Return half of what the last `window` days left, by brute force in floats."""
    spent = []
    for _ in range(days):
        spent.append((amount - sum(spent[-(window - 1) :])) / 2)
    return spent


def test_for_a_risk_each_row_has_its_closed_form(compared):
    found, rows = compared(risk="0.6")
    losses = np.linspace(0, 0.6, 6001)
    constant = losses[peak(CHAIN, losses, age=0, interval=1, method="tight") <= 0.6].max()
    expected = {
        ("classical", "each day"): [0.6] * DAYS,
        ("classical", "all days alike"): [0.6 / DAYS] * DAYS,
        ("w-event", "5 days, even"): [0.6 / 5] * DAYS,
        ("w-event", "5 days, remaining"): remaining(5, DAYS, 0.6),
        # renewal: what is left each day is (1 - .9) of all
        ("discounted", "exponential 0.9, renewal"): [0.6, *[0.6 * 0.1] * (DAYS - 1)],
    }
    for key, losses in expected.items():
        series = rows[key].series
        assert [loss / 1e9 for loss in series.losses] == pytest.approx(losses, rel=1e-6, abs=2e-9), key
        assert series.noise_kwh == pytest.approx(root_mean_square(losses), rel=1e-5)
        assert series.worst_kwh == pytest.approx(noise(min(losses)), rel=1e-5)
        assert series.unusable_days == sum(noise(loss) > 1 for loss in losses)
        assert (series.first_day, series.last_day) == (FIRST, FIRST + timedelta(days=DAYS - 1))
    aged = rows["age-dependent", "tight"].series.losses[-1] / 1e9
    assert 0.95 * constant <= aged <= constant + 1e-4  # the leakage bound is rounded up between its grid's points
    assert (found.households, found.change) == (HOMES, ChangeYardstick(1.0))
    assert found.target == ComparisonTarget(risk=Decimal("0.6"))


def recomputed(name, days):
    """Return the bound of a name from losses by day, without the library."""
    if name == "day":
        return max(days)
    if name == "total":
        return sum(days)
    if name.startswith("window"):
        return max(sum(days[i : i + 5]) for i in range(len(days)))
    rate = float(name.split()[-1].rstrip(")"))
    weight = (lambda j: rate**j) if "exponential" in name else (lambda j: 1 / (1 + rate * j))
    return max(sum(weight(t - k) * days[k] for k in range(t + 1)) for t in range(len(days)))


@pytest.mark.parametrize(("cap", "total"), [("0.3", "2"), ("0.05", "40")])
def test_bounds_and_caps_hold_of_the_losses_of_each_row(compared, cap, total):
    weekly = WEEKLY.replace("window = 1", "window = 0.04")
    found, _ = compared(risk="0.6", cap=cap, total=total, promise=weekly, rest=COMPARED)
    entries = [entry for entry in found.entries if entry.series]
    assert len(entries) >= 8
    for entry in entries:
        series = entry.series
        days = [0.0] * (series.first_day - FIRST).days + [loss / 1e9 for loss in series.losses]
        days += [0.0] * (DAYS - len(days))
        assert max(days) <= float(cap) + 1e-12
        assert sum(days) <= float(total) + 1e-9
        if entry.bound.kind == "assumption-free":
            assert recomputed(entry.bound.name, days) <= 0.6 + 1e-9
            assert recomputed(entry.bound.name, days) == pytest.approx(series.reaches / 1e9, rel=1e-6, abs=2e-9)
        assert entry.meets_target == (len(series.losses) == DAYS)
        assert (series.ended_by == "epsilon_total") == (len(series.losses) < DAYS)


@pytest.mark.parametrize("rest", [FEW, pytest.param(COMPARED + KERNEL, marks=pytest.mark.long)])
def test_for_an_error_each_row_has_the_smallest_four_digit_bound(house, rest):
    session = begun(house, cap="20", rest=rest)
    _, rows = offers(session, error_kwh=0.5)
    judged = {key: entry for key, entry in rows.items() if entry.series is not None and not entry.promised}
    assert len(judged) >= 5
    for key, entry in judged.items():
        assert entry.series.noise_kwh <= 0.5 * (1 + 1e-9)
        step = Decimal(1).scaleb(entry.epsilon.adjusted() - 3)
        _, less = offers(session, risk=entry.epsilon - step)
        assert less[key].series.noise_kwh > 0.5, key
    assert float(rows["classical", "each day"].epsilon) == pytest.approx(math.sqrt(2) * 20 / (0.5 * 500), rel=1e-3)
    assert float(rows["w-event", "5 days, even"].epsilon) == pytest.approx(5 * math.sqrt(2) * 20 / 250, rel=1e-3)


def test_without_a_target_the_bound_of_the_run_file_is_the_target(house, compared):
    found, rows = compared(rest="")
    assert found.target == ComparisonTarget(risk=Decimal(1), from_run_file=True)
    assert [key for key, entry in rows.items() if entry.promised] == [("w-event", "5 days, even")]
    weekly = compared(risk="0.5", rest="")[1]["w-event", "as the run file says"]
    assert (weekly.meets_target, weekly.epsilon) == (False, 1)
    begun(house, mode="live", promise=AGED, rest=KERNEL, days=9)
    found, rows = offers(house.session(today=date(2013, 1, 1)))
    risk = float(peak(CHAIN, 0.2, age=1, interval=1, method="tight"))
    assert float(found.target.risk) == pytest.approx(risk, rel=0.1)
    assert rows["age-dependent", "as the run file says"].meets_target


def test_days_that_are_released_count_and_bind(house):
    daily = 'notion = "classical"\nepsilon_per_day = {}\nmax_day_epsilon = 1\nepsilon_total = 18\n'
    house.fill([FIRST + timedelta(days=i) for i in range(4)])
    begun(house, homes=None, promise=daily.format(0.2), rest="", days=4)
    house.run(today=FIRST + timedelta(days=4))
    with pytest.raises(RunFileError, match="every day of the period is released"):
        offers(house.session())
    session = begun(house, homes=None, promise=daily.format(0.1), rest="", days=6)
    found, rows = offers(session)
    own = rows["classical", "each day"]
    assert (found.days[0], found.target.risk) == (FIRST + timedelta(days=4), Decimal("0.1"))
    assert (own.promised, own.epsilon, own.ahead, own.meets_target) == (True, Decimal("0.2"), Decimal("0.1"), True)
    asked = offers(session, risk=Decimal("0.1"))[1]
    assert not asked["classical", "each day"].meets_target  # no promise undoes what is released
    assert "no loss, however small, keeps the bound" in asked["w-event", "7 days, even"].reason
    even = offers(session, risk=Decimal("0.9"))[1]["w-event", "7 days, even"].series
    assert round(even.losses[0] / 1e9, 6) == 0.1  # four days of .2 left .1 of .9
    assert even.reaches <= 900_000_000


@pytest.mark.parametrize("text", ["1_000", "\u0663", " 1", "1e", "-1", "nan", ".", "1\n"])
def test_a_target_is_a_number_in_plain_digits(text):
    with pytest.raises(RunFileError, match="must be a number"):
        parse_target(text, None)
    assert parse_target("1e3", None).risk == 1000


def test_the_smallest_published_group_of_the_noisiest_mean_decides(house):
    lines = [f"{i},2013-01-01,,{'low' if i < 400 else 'high' if i < 490 else 'rare'}" for i in range(HOMES)]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *lines]) + "\n")
    second = '\nby = "tariff"\nshare = 0.6\n[series.every]\nstatistic = "mean"\nclamp_kwh = 20\nshare = 0.4\n[promise]'
    begun(house, homes=None, least=20, rest="")
    house.edit(("\n[promise]", second))
    found, rows = offers(house.session(), risk=Decimal("0.6"))
    # the 10 rare ones are not published
    assert (found.series, found.groups, found.households) == ("daily_mean", "tariff", 90)
    assert rows["classical", "each day"].series.noise_kwh == pytest.approx(noise(0.6 * 0.6, 90), rel=1e-6)


def test_households_are_counted_day_by_day(house):
    begins = {FIRST + timedelta(days=2): "a", FIRST + timedelta(days=10): "b"}
    house.roster([(f"{name}{i}", first, None) for first, name in begins.items() for i in range(50)])
    found, rows = offers(begun(house, homes=None, least=10, rest=""), risk=Decimal("0.6"))
    series = rows["classical", "each day"].series
    assert (series.first_day, len(series.losses)) == (FIRST + timedelta(days=2), DAYS - 2)
    noises = [noise(0.6, 50)] * 8 + [noise(0.6, 100)] * (DAYS - 10)
    assert series.noise_kwh == pytest.approx(math.sqrt(np.mean(np.square(noises))), rel=1e-6)
    assert found.households == 50


def test_a_share_too_small_for_a_draw_has_noise_without_end_and_no_remedy(house):
    promise = 'notion = "w-event"\nwindow_days = 40\nepsilon_per_window = 1\nspend = "remaining"\n'
    begun(house, promise=f'{promise}max_day_epsilon = 1\nepsilon_total = "unlimited"\n', rest="", days=40)
    house.edit(("clamp_kwh = 20\n", "clamp_kwh = 20\nshare = 0.2\n"))
    more = '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 20\nbins_kwh = [0, 5, 20]\nshare = 0.8\n'
    house.run_file.write_text(house.run_file.read_text() + more)
    found, _ = offers(house.session(), risk=Decimal(1))  # half of what is left each day: below 1e-9 of epsilon
    [entry] = [entry for entry in found.entries if entry.promised]
    assert (entry.series.noise_kwh, entry.needs) == (math.inf, None)
    assert entry.facts(found.change)["noise_sd_kwh"] is None
    assert any("no end" in line for line in comparison_lines(found))

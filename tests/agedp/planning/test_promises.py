"""Every notion for a target: against closed forms and brute force; from public input alone; no notion by name."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp.planning.compare_notions import compare_promises
from agedp.planning.notion_comparison import ComparisonTarget, DayToDayChange, epsilon_at, smallest_epsilon
from agedp_data.accounting.ageing import peak
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS, Classical
from agedp_data.notions.alternatives import Alternative
from agedp_flows.text.comparison_text import parse_target, promises_lines
from tests.command import CommandFolder

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


def delivered(house, *, days):
    """Three households with readings of the first days."""
    of_days = [FIRST + timedelta(days=i) for i in range(days)]
    house.london({(f"h{i}", day, slot): 200 for i in range(3) for day in of_days for slot in range(48)})
    house.roster([(f"h{i}", FIRST, None) for i in range(3)])


def offers(session, **target):
    found = compare_promises(session.terms(), session.forecast_view, ComparisonTarget(**target))
    return found, {(one.notion, one.method): one for one in found.entries}


def noise(loss, homes=HOMES):
    """Laplace noise of scale clamp/loss in a mean of so many homes."""
    return math.sqrt(2) * CLAMP_KWH / (loss * homes)


def root_mean_square(losses, homes=HOMES):
    return math.sqrt(np.mean([noise(loss, homes) ** 2 for loss in losses]))


def remaining(window, days, amount):
    """Half of what the last `window` days left, by brute force in floats."""
    spent = []
    for _ in range(days):
        spent.append((amount - sum(spent[-(window - 1) :])) / 2)
    return spent


def test_for_a_risk_each_row_has_the_losses_and_noise_of_its_closed_form(house):
    found, rows = offers(begun(house), risk=Decimal("0.6"))
    renewal = [0.6, *[0.6 * 0.1] * (DAYS - 1)]  # exponential .9: what is left each day is (1 - .9) of all
    losses = np.linspace(0, 0.6, 6001)
    constant = losses[peak(CHAIN, losses, age=0, interval=1, method="tight") <= 0.6].max()
    expected = {
        ("classical", "each day"): [0.6] * DAYS,
        ("classical", "all days alike"): [0.6 / DAYS] * DAYS,
        ("w-event", "5 days, even"): [0.6 / 5] * DAYS,
        ("w-event", "5 days, remaining"): remaining(5, DAYS, 0.6),
        ("discounted", "exponential 0.9, renewal"): renewal,
    }
    for key, losses in expected.items():
        series = rows[key].series
        assert [loss / 1e9 for loss in series.losses] == pytest.approx(losses, rel=1e-6, abs=2e-9), key
        assert series.noise_kwh == pytest.approx(root_mean_square(losses), rel=1e-5)
        assert series.worst_kwh == pytest.approx(noise(min(losses)), rel=1e-5)
        assert (series.first_day, series.last_day) == (FIRST, FIRST + timedelta(days=DAYS - 1))
    aged = rows["age-dependent", "tight"].series
    assert aged.losses[-1] / 1e9 == pytest.approx(
        constant, rel=0.05
    )  # the envelope rounds up between its grid's points
    assert aged.losses[-1] / 1e9 <= constant + 1e-4
    assert (found.households, found.change) == (HOMES, DayToDayChange(1.0))
    assert found.target == ComparisonTarget(risk=Decimal("0.6"))


def recomputed(name, days):
    """Return the figure of a name from losses by day, without the library."""
    if name == "day":
        return max(days)
    if name == "total":
        return sum(days)
    if name.startswith("window"):
        return max(sum(days[i : i + 5]) for i in range(len(days)))
    rate = float(name.split()[-1].rstrip(")"))
    weight = (lambda j: rate**j) if "exponential" in name else (lambda j: 1 / (1 + rate * j))
    return max(sum(weight(t - k) * days[k] for k in range(t + 1)) for t in range(len(days)))


@pytest.mark.parametrize(("cap", "total"), [("3", '"unlimited"'), ("0.3", "2"), ("0.05", "40")])
def test_what_each_row_promises_holds_of_its_losses_and_so_do_the_caps(house, cap, total):
    found, _ = offers(
        begun(house, cap=cap, total=total, promise=WEEKLY.replace("window = 1", "window = 0.04")), risk=Decimal("0.6")
    )
    told = [one for one in found.entries if one.series]
    assert len(told) >= 10
    for one in told:
        days = [0.0] * DAYS
        gap = (one.series.first_day - FIRST).days
        for i, loss in enumerate(one.series.losses):
            days[gap + i] = loss / 1e9
        assert max(days) <= float(cap) + 1e-12
        assert total.startswith('"') or sum(days) <= float(total) + 1e-9
        if one.bound.kind == "assumption-free":
            assert recomputed(one.bound.name, days) <= 0.6 + 1e-9
            assert recomputed(one.bound.name, days) == pytest.approx(one.series.reaches / 1e9, rel=1e-6, abs=2e-9)
        assert one.meets_target == (len(one.series.losses) == DAYS)
        assert (one.series.ended_by == "epsilon_total") == (len(one.series.losses) < DAYS)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_for_an_error_each_row_has_the_smallest_four_digit_bound(house, every):
    session = begun(house, cap="20")
    _, rows = offers(session, error_kwh=0.5)
    judged = {key: one for key, one in rows.items() if one.series is not None and not one.promised}
    assert len(judged) >= 9
    assert all(one.series.noise_kwh <= 0.5 * (1 + 1e-9) for one in judged.values())
    for key, one in list(judged.items())[::every]:
        step = Decimal(1).scaleb(one.epsilon.adjusted() - 3)
        _, less = offers(session, risk=one.epsilon - step)
        assert less[key].series.noise_kwh > 0.5, key
    assert float(rows["classical", "each day"].epsilon) == pytest.approx(math.sqrt(2) * 20 / (0.5 * 500), rel=1e-3)
    assert float(rows["w-event", "5 days, even"].epsilon) == pytest.approx(5 * math.sqrt(2) * 20 / 250, rel=1e-3)


def test_the_cheapest_that_keeps_the_target_is_marked_once_with_and_once_without_an_assumption(house):
    for target in ({"risk": Decimal("0.6")}, {"error_kwh": 0.5}):
        found, _ = offers(begun(house, total="15"), **target)
        kept = [one for one in found.entries if one.meets_target]
        if "risk" in target:
            assert any(one.series and not one.meets_target for one in found.entries)  # the total ends some before
        for kind in ("assumption-free", "conditional"):
            of_kind = [one for one in kept if one.bound.kind == kind]
            [best] = [one for one in found.entries if one.cheapest and one.bound.kind == kind]
            cost = (lambda one: one.series.noise_kwh) if "risk" in target else (lambda one: one.epsilon)
            assert cost(best) == min(cost(one) for one in of_kind)


def test_as_many_homes_as_it_says_make_an_unusable_release_usable_and_one_less_does_not(house):
    _, rows = offers(begun(house, homes=3, rest=FEW), risk=Decimal("0.6"))
    for key in (("classical", "each day"), ("w-event", "5 days, even"), ("discounted", "exponential 0.9, renewal")):
        one = rows[key]
        assert one.series.noise_kwh > 1
        assert one.series.unusable_days == DAYS
        for homes, usable in ((one.needs.households_needed, True), (one.needs.households_needed - 1, False)):
            _, more = offers(begun(house, homes=homes, rest=FEW), risk=Decimal("0.6"))
            assert (more[key].series.noise_kwh <= 1) == usable
            assert (more[key].needs is None) == usable


def test_so_large_a_figure_as_it_says_makes_it_usable_under_the_same_caps_or_none_does(house):
    session = begun(house, homes=40, cap="0.8", rest="")
    _, rows = offers(session, risk=Decimal("0.3"))
    for key in (("classical", "each day"), ("w-event", "5 days, even"), ("classical", "all days alike")):
        needs = rows[key].needs
        _, more = offers(session, risk=needs.bound)
        assert more[key].series.noise_kwh <= 1 < rows[key].series.noise_kwh
        assert more[key].series.epsilon == needs.epsilon
        # 40 homes: sqrt 2 x 20/(40 e) = 1 at e = .7071
        assert needs.epsilon / 1e9 == pytest.approx(math.sqrt(0.5), rel=2e-3)
    _, low = offers(begun(house, homes=40, cap="0.7", rest=""), risk=Decimal("0.3"))
    assert {one.needs.bound for one in low.values() if one.needs} == {None}
    assert {round(one.needs.epsilon / 1e9, 6) for one in low.values() if one.needs} == {0.707107}


def test_without_a_target_the_run_files_own_figure_is_it_and_its_row_is_marked(house):
    found, rows = offers(begun(house))
    assert found.target == ComparisonTarget(risk=Decimal(1), from_run_file=True)
    assert [key for key, one in rows.items() if one.promised] == [("w-event", "5 days, even")]
    found, rows = offers(begun(house, promise=AGED))
    own = rows["age-dependent", "as the run file says"]
    assert own.promised
    assert set(own.series.losses) == {200_000_000}
    # an archive of 2013 says nothing of today: what is left to compare by is the day's loss
    assert (found.target, own.series.reaches) == (ComparisonTarget(risk=Decimal("0.2"), from_run_file=True), 0)
    begun(house, mode="live", promise=AGED)
    found, rows = offers(house.session(today=date(2013, 1, 1)))
    risk = float(peak(CHAIN, 0.2, age=1, interval=1, method="tight"))
    assert float(found.target.risk) == pytest.approx(risk, rel=0.1)
    assert rows["age-dependent", "as the run file says"].meets_target
    rows = offers(begun(house), risk=Decimal("0.5"))[1]
    assert not rows["w-event", "as the run file says"].meets_target  # it promises 1
    assert rows["w-event", "as the run file says"].epsilon == 1


def test_what_cannot_be_had_says_why(house):
    _, rows = offers(begun(house, rest=""), risk=Decimal(1))
    assert "needs a [model]" in rows["age-dependent", "tight"].reason
    assert "[compare]" in rows["discounted", ""].reason
    live = house.run_file.read_text().replace('"archive"', '"live"').replace("notion =", "age_days = 1\nnotion =")
    house.run_file.write_text("\n".join(line for line in live.splitlines() if not line.startswith("last_day")))
    found, rows = offers(house.session(), risk=Decimal(1))
    assert "last_day" in rows["classical", "all days alike"].reason
    assert found.endless
    assert rows["classical", "each day"].series.beyond
    _, rows = offers(begun(house, cap="0.01", promise=WEEKLY.replace("window = 1", "window = 0.01")), error_kwh=0.001)
    assert "max_day_epsilon = 0.01: a day would need epsilon" in rows["classical", "each day"].reason
    assert "a day would need epsilon 56.57" in rows["classical", "each day"].reason
    with pytest.raises(RunFileError, match="min_households = 600"):
        offers(begun(house, least=600), risk=Decimal(1))


def test_the_smallest_published_group_of_the_noisiest_mean_decides(house):
    lines = [f"{i},2013-01-01,,{'low' if i < 400 else 'high' if i < 490 else 'rare'}" for i in range(HOMES)]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *lines]) + "\n")
    grouped = (
        '\nby = "tariff"\nshare = 0.6\n[series.all_homes]\nstatistic = "mean"\nclamp_kwh = 20\nshare = 0.4\n[promise]'
    )
    begun(house, homes=None, least=20)
    house.run_file.write_text(house.run_file.read_text().replace("\n[promise]", grouped))
    found, rows = offers(house.session(), risk=Decimal("0.6"))
    # the 10 rare ones are not published
    assert (found.series, found.groups, found.households) == ("daily_mean", "tariff", 90)
    assert rows["classical", "each day"].series.noise_kwh == pytest.approx(noise(0.6 * 0.6, 90), rel=1e-6)


def test_homes_that_come_and_days_with_too_few_are_counted_day_by_day(house):
    late = FIRST + timedelta(days=10)
    house.roster(
        [*((f"a{i}", FIRST + timedelta(days=2), None) for i in range(50)), *((f"b{i}", late, None) for i in range(50))]
    )
    found, rows = offers(begun(house, homes=None, least=10), risk=Decimal("0.6"))
    series = rows["classical", "each day"].series
    assert (series.first_day, len(series.losses)) == (FIRST + timedelta(days=2), DAYS - 2)
    noises = [noise(0.6, 50)] * 8 + [noise(0.6, 100)] * (DAYS - 10)
    assert series.noise_kwh == pytest.approx(math.sqrt(np.mean(np.square(noises))), rel=1e-6)
    assert found.households == 50


def test_what_is_released_already_counts(house):
    delivered(house, days=4)
    begun(house, homes=None)
    house.run(today=FIRST + timedelta(days=4))
    found, rows = offers(house.session(), risk=Decimal("0.9"))
    assert found.days[0] == FIRST + timedelta(days=4)
    even = rows["w-event", "5 days, even"].series  # four days of .2: .1 remains of .9, then .18 a day as they leave
    assert [round(loss / 1e9, 6) for loss in even.losses[:3]] == [0.1, 0.18, 0.18]
    assert even.reaches <= 900_000_000


DAILY = 'notion = "classical"\nepsilon_per_day = {day}\nmax_day_epsilon = {cap}\nepsilon_total = {total}\n'


def test_days_that_are_released_bind_what_a_figure_may_come_to_whatever_is_promised_now(house):
    delivered(house, days=3)
    begun(house, homes=None, promise=DAILY.format(day=0.5, cap=1, total=18), days=3)
    house.run(today=FIRST + timedelta(days=4))
    session = begun(house, homes=None, promise=DAILY.format(day=0.1, cap=1, total=18), days=6)
    found, rows = offers(session)
    own = next(one for one in found.entries if one.promised)
    assert found.target == ComparisonTarget(risk=Decimal("0.1"), from_run_file=True)
    assert (own.method, own.epsilon, own.ahead, own.meets_target) == ("each day", Decimal("0.5"), Decimal("0.1"), True)
    assert rows["classical", "each day"] is own
    lines = promises_lines(session, ComparisonTarget())
    assert (
        "   classical, each day: the bound of the released days is 0.5 already; the promise bounds future days by 0.1"
        in lines
    )
    asked = offers(session, risk=Decimal("0.1"))[1]
    assert not asked["classical", "each day"].meets_target  # no promise undoes what is released
    assert asked["w-event", "7 days, even"].reason == (
        "releases no day: under these caps and this model and what is released already no loss, however small, keeps "
        "the figure"
    )


def test_the_mark_of_the_run_file_is_explained_only_where_a_row_bears_it(house):
    delivered(house, days=3)
    begun(house, homes=None, promise=DAILY.format(day=0.5, cap=1, total=18), days=3, rest=FEW)
    house.run(today=FIRST + timedelta(days=4))
    weekly = WEEKLY.replace("window = 1", "window = 0.2").replace("{cap}", "1").replace("{total}", "18")
    lines = promises_lines(begun(house, homes=None, promise=weekly, days=5, rest=FEW), ComparisonTarget())
    assert not any(line.startswith("=") for line in lines)
    assert any("w-event" in line and "releases no day: under these caps and what is" in line for line in lines)


def test_a_period_that_is_released_has_nothing_left_to_promise(house):
    delivered(house, days=3)
    begun(house, homes=None, promise=DAILY.format(day=0.5, cap=1, total=18), days=3)
    site = CommandFolder(house.folder)
    assert "last possible day, if each day is released when due: 2013-01-03" in site.succeed("plan", "run.toml")
    house.run(today=FIRST + timedelta(days=4))
    with pytest.raises(RunFileError, match="every day of the period is released"):
        offers(house.session())
    assert "--notions" not in site.succeed("plan", "run.toml")


@pytest.mark.parametrize(
    ("promise", "asked"), [(AGED.replace("day = 0.2", "day = 0.01"), None), (f"age_days = 1\n{WEEKLY}", "0.3")]
)
def test_an_unusable_promise_of_the_run_file_has_its_line_among_what_would_mend_it(house, promise, asked):
    session = begun(house, promise=promise, homes=100, rest=FEW + KERNEL, days=10, mode="rehearsal")
    target = ComparisonTarget(risk=None if asked is None else Decimal(asked))
    own = next(one for one in compare_promises(session.terms(), session.forecast_view, target).entries if one.promised)
    assert own.method == "as the run file says"
    assert own.series.noise_kwh > 1
    assert own.needs.households_needed == math.ceil(100 * own.series.noise_kwh)
    lines = promises_lines(session, target)
    row, needed = (
        next(i for i, line in enumerate(lines) if own.method in line and at in line)
        for at in ("!", f" {own.needs.households_needed:,} ")
    )
    assert lines[row].startswith("=")
    assert row < next(i for i, line in enumerate(lines) if line.startswith("!  Unusable")) < needed


def test_a_promise_by_risk_stands_once(house):
    aged = AGED.replace("epsilon_per_day = 0.2", "risk = 0.6")
    found, _ = offers(begun(house, promise=aged, homes=100, days=10, mode="rehearsal"))
    of_tight = [
        one for one in found.entries if one.notion == "age-dependent" and one.keys and one.keys["method"] == "tight"
    ]
    assert [(one.method, one.promised) for one in of_tight] == [("tight", True)]


def test_no_figure_is_promised_beyond_what_the_days_may_spend(house):
    _, rows = offers(begun(house, cap="0.5"), risk=Decimal(1_000_000))
    assert rows["classical", "all days alike"].epsilon == Decimal("0.5") * DAYS


def test_a_series_that_is_usable_on_the_whole_says_on_how_many_days_it_is_not(house):
    losses = []  # hyperbolic 1, renewal: what the days before leave
    for t in range(10):
        losses.append(0.5 - sum(loss / (1 + t - k) for k, loss in enumerate(losses)))
    homes = math.ceil((root_mean_square(losses, 1) + noise(min(losses), 1)) / 2)  # rms below 1 kWh, the worst above
    unusable = sum(noise(loss, homes) > 1 for loss in losses)
    session = begun(house, homes=homes, rest=COMPARED, days=10)
    assert 0 < unusable < 10
    assert (
        f"   discounted, hyperbolic 1, renewal: usable on average, but on {unusable} of 10 days the noise exceeds "
        "the day-to-day change"
    ) in promises_lines(session, ComparisonTarget(risk=Decimal("0.5")))


@pytest.mark.parametrize("written", ["1_000", "\u0663", " 1", "1e", "-1", "nan", ".", "1\n"])
def test_a_target_is_a_number_in_plain_digits(written):
    with pytest.raises(RunFileError, match="must be a number"):
        parse_target(written, None)
    assert parse_target("1e3", None).risk == 1000


class Doubled(Classical):
    """A notion that nothing else knows: half of its amount each day."""

    name: ClassVar[str] = "doubled"
    notion: Literal["doubled"]

    @classmethod
    def candidates(cls, comparison):
        return (Alternative("halves", lambda amount: {"epsilon_per_day": amount / 2}, "day"),)


def test_a_notion_that_nothing_else_knows_is_a_row(house, monkeypatch):
    monkeypatch.setattr("agedp.planning.compare_notions.NOTIONS", (*NOTIONS, Doubled))
    _, rows = offers(begun(house), risk=Decimal("0.6"))
    assert set(rows["doubled", "halves"].series.losses) == {300_000_000}
    assert rows["doubled", "halves"].keys["epsilon_per_day"] == "0.3"


@given(st.integers(100, 90_000), st.floats(0.2, 3), st.floats(1e-6, 1e4), st.booleans())
def test_the_least_amount_is_that_of_a_walk_along_the_whole_grid(place, power, guess, capped):
    target = float(epsilon_at(place)) ** -power * (1 + 1e-12)
    cap = float(epsilon_at(place + 50))

    def noise_of(amount):
        if amount < Decimal("0.00001"):
            return None
        return (min(float(amount), cap) if capped else float(amount)) ** -power

    assert smallest_epsilon(noise_of, target, guess=guess) == epsilon_at(place) or float(epsilon_at(place)) < 1e-5
    if capped:
        assert smallest_epsilon(noise_of, cap**-power * 0.99, guess=guess) is None


def test_the_command_prints_the_same_as_text_and_json(house):
    session = begun(house, homes=40, rest=FEW + KERNEL, days=10)
    _, rows = offers(session, risk=Decimal("0.5"))
    site = CommandFolder(house.folder)
    plan = site.load("plan", "run.toml", "--risk", "0.5")
    assert plan["target"] == {"risk": "0.5", "from": "asked for"}
    assert [(one["notion"], one["method"]) for one in plan["offers"]] == list(rows)
    for one in plan["offers"]:
        row = rows[one["notion"], one["method"]]
        noise = row.series and row.series.noise_kwh
        assert (one.get("lacking", ""), one.get("noise_sd_kwh")) == (row.reason, noise)
        assert one.get("cheapest", False) == row.cheapest
    lines = site.succeed("plan", "run.toml", "--risk", "0.5").splitlines()
    assert max(map(len, lines)) <= 120
    assert sum(line.startswith((" > ", "=> ")) for line in lines) == 2
    [line] = [line for line in lines if "classical      each day" in line and "0.5 b" in line]
    assert line.lstrip(" >").split()[-4:] == ["1.414", "1.414!", "2013-01-01", "2013-01-10"]  # 20 sqrt 2/(.5 x 40)
    assert not (house.folder / "release").exists()
    assert not (house.folder / "ledger.sqlite").exists()


def test_the_plan_compares_notions_until_a_release_and_on_request(house):
    delivered(house, days=1)
    begun(house, homes=None, rest="")
    site, heading = CommandFolder(house.folder), "Notions that guarantee the same bound as your run file (epsilon 1)"
    assert f"{heading}, and their noise" in site.succeed("plan", "run.toml")
    target = {"risk": "1", "from": "the run file's promise"}
    assert site.load("plan", "run.toml")["notions"]["target"] == target
    house.run(today=FIRST + timedelta(days=1))
    after = site.succeed("plan", "run.toml")
    assert ("as your run file" in after, "agedp plan --notions" in after) == (False, True)
    assert heading in site.succeed("plan", "run.toml", "--notions")


def test_a_wrong_target_is_refused_in_one_line(house):
    begun(house)
    for words, message in (
        (("--risk", "none"), "--risk must be a number from"),
        (("--error-kwh", "0"), "--error-kwh must be a number from"),
        (("--risk", "nan"), "--risk must be a number from"),
        (("--risk", "1", "--error-kwh", "1"), "two targets; name one"),
        (("--frontier", "--notions"), "--frontier cannot be combined"),
    ):
        assert message in CommandFolder(house.folder).refuse("plan", "run.toml", *words, status=2)

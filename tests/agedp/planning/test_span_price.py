"""What a promised delta buys, against tables by the privacy-loss distribution and the enumerated law of the noise."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest
from scipy.special import logsumexp

from agedp.ledger_session import comparison_view
from agedp.plan_facts import read_plan
from agedp.planning.notion_comparison import ComparisonTarget, compare_promises
from agedp.planning.span_price import span_prices
from agedp.stages.plan import forecast_run
from agedp_data.config.run_file import delta_warning
from agedp_data.notions import Classical
from agedp_data.statement.note_texts import NOTES
from agedp_flows.text.plan_text import plan_lines
from agedp_flows.text.run_text import result_lines
from docs.papers.age.frontier import permitted_days

FIRST, LATER = date(2013, 1, 1), date(2020, 1, 1)
DAILY = 'notion = "classical"\nepsilon_per_day = {}\nmax_day_epsilon = 1\nepsilon_total = {}\ndelta = "{}"\n'
YEARLY = (
    'notion = "w-event"\nwindow_days = 365\nspend = "even"\nepsilon_per_window = 10\nmax_day_epsilon = 1\n'
    'epsilon_total = "unlimited"\ndelta = 1e-6\n'
)


@pytest.fixture
def promised(house):
    """Write a run file of so many days with a promise, and return the session of its ledger."""

    def write(promise, days=365, households=3, **keys):
        house.roster([(f"H{i}", FIRST, None) for i in range(households)])
        house.write(FIRST, FIRST + timedelta(days=days - 1), promise=promise, **keys)
        return house.session(today=LATER)

    return write


def enumerated_epsilon(loss, days, *, sensitivity, delta):
    """Return epsilon at delta from all outcomes of a value that moves by its sensitivity, over fine orders."""
    scale, moved = sensitivity / loss, np.arange(1, sensitivity)
    q = np.exp(-1 / scale)
    losses = np.concatenate([[loss], loss - 2 * moved / scale, [-loss]])
    masses = np.concatenate([[1], (1 - q) * q**moved, [q**sensitivity]]) / (1 + q)
    order = 1 + np.geomspace(0.01, 1000, 500)
    renyi = logsumexp((order[:, None] - 1) * losses, b=masses, axis=1) / (order - 1)
    return (days * renyi + np.log1p(-1 / order) - np.log(delta * order) / (order - 1)).min()


# docs/notions.md: the loss of a day by the privacy-loss distribution, and by the sum
TABLE = [
    ("1e-6", 1, 0.0125, 0.0027), ("1e-6", 3, 0.0343, 0.0082), ("1e-6", 10, 0.0986, 0.0274), ("1e-6", 36.5, 0.282, 0.1),
    ("1e-9", 1, 0.0096, 0.0027), ("1e-9", 3, 0.0273, 0.0082), ("1e-9", 10, 0.0824, 0.0274), ("1e-9", 36.5, 0.249, 0.1),
]  # fmt: skip


@pytest.mark.parametrize(("delta", "epsilon", "loss", "pure"), TABLE)
def test_a_year_permits_the_losses_of_the_table(promised, delta, epsilon, loss, pure):
    run = promised(DAILY.format(0.001, epsilon, delta)).run.run_file
    [price] = span_prices(run)
    assert (price.key, price.days, price.delta) == ("epsilon_total", 365, Decimal(delta))
    assert loss / 1.09 < price.loss / 1e9 < loss * 1.005  # the curve is at most 9 % above the distribution
    assert price.pure_loss / 1e9 == pytest.approx(pure, abs=5e-5)
    assert price.noise_ratio == pytest.approx(loss / pure, rel=0.09)
    # "all days alike" is this loss; a cap cuts it
    keys = Classical.candidates(run.comparison)[1].keys(Decimal(str(epsilon)))
    assert keys["epsilon_per_day"] == Decimal(price.loss) / 10**9


@pytest.mark.parametrize(
    ("days", "epsilon", "times"),
    [(7, 1, 1), (14, 1, 1.02), (30, 1, 1.38), (30, 3, 1.28), (90, 1, 2.3), (90, 3, 2.1), (365, 1, 4.6), (365, 3, 4.2)],
)
def test_a_window_permits_the_multiples_of_the_table(promised, days, epsilon, times):
    weekly = YEARLY.replace("365", str(days)).replace("window = 10", f"window = {epsilon}")
    [price] = span_prices(promised(weekly).run.run_file)
    assert max(1, times / 1.09) <= price.noise_ratio < times * 1.01
    assert price.pure_loss == epsilon * 10**9 // days


def test_days_of_a_rolling_year_get_what_enumeration_permits(promised):
    session = promised(YEARLY, days=3, clamp="1")
    plan = forecast_run(session)
    [loss] = {round(planned.loss * 10**9) for planned in plan.now.planned}
    [price] = read_plan(session).span_facts["price_of_delta"]
    assert price == {
        "key": "epsilon_per_window", "epsilon": "10", "delta": "0.000001", "days": 365,
        "epsilon_a_day": f"0.0{loss}", "pure_total": f"{Decimal(365 * loss).scaleb(-9).normalize():f}",
        "epsilon_a_day_without_delta": "0.02739726", "noise_ratio_without_delta": pytest.approx(loss / 27_397_260),
    }  # fmt: skip
    known = {"sensitivity": 1000, "delta": 1e-6}
    assert enumerated_epsilon(loss / 1e9, 365, **known) <= 10 < enumerated_epsilon(loss / 1e9 * 1.001, 365, **known)


def test_sixty_days_fit_where_the_reference_says_so(promised):
    # .5 x 60 comes to 22.195 at 1e-6, and to 30 by the sum
    session = promised(DAILY.format(0.5, 22.2, "1e-6"), days=70)
    plan = forecast_run(session)
    assert (len(plan.now.planned), plan.forecast.last_day) == (60, FIRST + timedelta(days=59))
    assert "22.19" in str(plan.now.refused)
    assert "is spent, epsilon_total = 22.2 (delta 1e-6)" in str(plan.now.refused)
    assert permitted_days(session.run.run_file, 500_000_000) == 60


def test_a_delta_above_one_in_n_squared_is_a_warning(house):
    days = [FIRST, FIRST + timedelta(days=1)]
    house.fill(days)
    house.write(*days, promise=DAILY.format(0.5, 9, "0.12"), least=3)
    lines = plan_lines(house.session(today=LATER))
    summary = house.run(today=LATER)
    line = "warning: [promise] delta = 1.2e-1 is above 1/min_households^2 = 1.1e-1: "
    assert all(any(each.startswith(line) for each in told) for told in (lines, result_lines(summary)))
    assert NOTES.large_delta.format(delta="1.2e-1", households=3) in house.release.read_statement().warnings
    promise = summary.run.run_file.promise
    assert delta_warning(promise.model_copy(update={"delta": Decimal(1) / 9}), 3) == ""
    assert delta_warning(promise, 2) == ""


def test_a_comparison_keeps_the_delta_where_it_applies(promised):
    session = promised(YEARLY.replace("365", "20"), days=30, households=500)
    found = compare_promises(session.terms(), comparison_view(session), ComparisonTarget(risk=Decimal(10)))
    entries = {(entry.notion, entry.method): entry for entry in found.entries}
    alike, daily = entries["classical", "all days alike"], entries["classical", "each day"]
    assert (alike.bound.name, alike.keys["delta"]) == ("total (delta 1e-6)", "0.000001")
    assert 30 * alike.series.losses[0] / 1e9 > 10 > alike.series.reaches / 1e9 > 9.99
    assert "delta" not in daily.keys  # nothing that "each day" promises has one
    assert ("w-event", "20 days, remaining") not in entries
    assert [entry.bound.name for entry in found.entries if entry.promised] == ["window of 20 days (delta 1e-6)"]

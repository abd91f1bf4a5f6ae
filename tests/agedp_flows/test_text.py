"""What run and plan say of a promise's own figure, whatever the notion."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.epsilon import floor_nano, format_epsilon
from agedp_data.statement.facts import state_bound
from agedp_flows.text.bound_text import assumption_text, scope_text
from agedp_flows.text.run_text import format_path, noise_line, promised_bound_lines
from tests.laws.promises import Line, bounds, kept, models, promises


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_a_promise_bounds_beside_day_and_total_is_said_with_its_bound(notion, data):
    model, promise = data.draw(models(notion)), data.draw(promises(notion))
    own = {name: floor_nano(bound) for name, bound in bounds(promise).items() if name not in ("day", "total")}
    figures = promise.bounds([Line("2013-01-01", 1, "2013-02-01")], model, None)
    lines = promised_bound_lines(promise, {figure.name: state_bound(figure, promise.limits) for figure in figures})
    assert len(lines) == min(1, len(own))
    said = [
        f"of at most {format_epsilon(bound)}. Scope: {scope_text(one.about)}."
        for one in figures
        for bound in [own.get(one.name)]
        if bound
    ]
    assert all(any(each in line for each in said) for line in lines)
    assert all(
        ("Assumption: " in line) or one.kind != "conditional"
        for line in lines
        for one in figures
        if f"Scope: {scope_text(one.about)}." in line
    )


@pytest.mark.parametrize(
    ("means", "said"),
    [
        # changes of 2 kWh; 2^2 = true^2 + 2 sd^2 with sd = 0.8: true = sqrt(2.72) = 1.649, and 0.8 / 1.649 = 0.485
        ([10.0, 12.0, 10.0], "2.000 kWh; estimated true change 1.649 kWh. Noise-to-signal ratio: 0.49."),
        ([10.0, 11.0, 10.0], "1.000 kWh; estimated true change 0.000 kWh. The noise hides the true change."),
    ],
)
def test_the_noise_is_set_against_the_part_of_the_change_that_is_none(means, said):
    rows = [{"day": date(2013, 1, i), "mean_kwh": mean, "noise_sd_kwh": 0.8} for i, mean in enumerate(means, 1)]
    start = "Noise standard deviation: 0.800 kWh per household. Day-to-day change of the published mean: "
    assert noise_line(rows) == f"{start}{said}"


def test_the_noise_of_a_single_day_names_no_change():
    line = noise_line([{"day": date(2013, 1, 1), "mean_kwh": 10.0, "noise_sd_kwh": 0.8}])
    assert line.startswith("Noise standard deviation: 0.800 kWh per household, 8.0% of a day of 10 kWh. ")
    assert line.endswith("Not enough days to estimate the true change.")


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (
            "all published days of one household, a loss j days of the data ago counted 0.99^j, on the worst day",
            "discounted sum of all published days of one household, exponential discounting with rate 0.99 per day of "
            "the data; maximum over days",
        ),
        (
            "all published days of one household, a loss j days of publication ago counted 1/(1 + 0.5 j)",
            "discounted sum of all published days of one household, hyperbolic discounting with rate 0.5 per day of "
            "publication",
        ),
        ("a text of another version", "a text of another version"),
    ],
)
def test_a_discounted_scope_names_its_discount(stored, shown):
    assert scope_text(stored) == shown


def test_an_assumption_keeps_all_its_conditions():
    stored = (
        "each household forgets at least as fast as the model says, by a Markov chain, and on its own (method tight)"
    )
    assert assumption_text(stored) == (
        "Assumption: each household is an independent Markov chain that mixes at least as fast as the model (method "
        "tight)."
    )


def test_a_release_by_its_url_is_told_without_user_and_query():
    assert format_path("s3://me@open-data/agedp?sig=aXz") == "s3://open-data/agedp"

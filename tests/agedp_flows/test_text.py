"""What run and plan say of a promise's own figure, whatever the notion."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.epsilon import floor_nano, format_epsilon
from agedp_data.statement.document import bound_entry
from agedp_flows.text.run_text import format_path, noise_line, promised_bound_lines
from tests.laws.promises import Line, bounds, kept, models, promises


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_a_promise_bounds_beside_day_and_total_is_said_with_its_bound(notion, data):
    model, promise = data.draw(models(notion)), data.draw(promises(notion))
    own = {name: floor_nano(bound) for name, bound in bounds(promise).items() if name not in ("day", "total")}
    figures = promise.figures([Line("2013-01-01", 1, "2013-02-01")], model, None)
    lines = promised_bound_lines(promise, {figure.name: bound_entry(figure, promise.limits) for figure in figures})
    assert len(lines) == min(1, len(own))
    said = [
        f"of at most {format_epsilon(bound)} about {one.about}"
        for one in figures
        for bound in [own.get(one.name)]
        if bound
    ]
    assert all(any(each in line for each in said) for line in lines)
    assert all(("if " in line) or one.kind != "conditional" for line in lines for one in figures if one.about in line)


@pytest.mark.parametrize(
    ("means", "said"),
    [
        # changes of 2 kWh; 2^2 = true^2 + 2 sd^2 with sd = 0.8: true = sqrt(2.72) = 1.649, and 0.8 / 1.649 = 0.485
        ([10.0, 12.0, 10.0], "changes by 2.000, of which 1.649 is not noise: the noise is 0.49 times that"),
        ([10.0, 11.0, 10.0], "changes by 1.000, of which 0.000 is not noise: the noise hides it"),
    ],
)
def test_the_noise_is_set_against_the_part_of_the_change_that_is_none(means, said):
    rows = [{"day": date(2013, 1, i), "mean_kwh": mean, "noise_sd_kwh": 0.8} for i, mean in enumerate(means, 1)]
    assert (
        noise_line(rows) == f"noise: 0.800 kWh a home (standard deviation); from day to day the published mean {said}"
    )


def test_a_release_by_its_url_is_told_without_user_and_query():
    assert format_path("s3://me@open-data/agedp?sig=aXz") == "s3://open-data/agedp"

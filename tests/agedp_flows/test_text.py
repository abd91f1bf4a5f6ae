"""What run and plan print of a promise's own bound, whatever the notion, and of the noise."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets.filesystem import format_path
from agedp_data.epsilon import floor_nano, format_epsilon
from agedp_data.notions.notion import LossBound, scope_at_delta
from agedp_data.statement.facts import state_bound
from agedp_flows.text.bound_text import labelled_bound, promised_bound_lines, scope_text
from tests.laws.promises import Line, bounds, kept, models, promises


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_what_a_promise_bounds_beside_day_and_total_is_printed_with_its_bound(notion, data):
    model, promise = data.draw(models(notion)), data.draw(promises(notion))
    own = {name: floor_nano(bound) for name, bound in bounds(promise).items() if name not in ("day", "total")}
    stated = promise.bounds([Line("2013-01-01", 1, "2013-02-01")], model, None)
    lines = promised_bound_lines(promise, {bound.name: state_bound(bound, promise.limits) for bound in stated})
    assert len(lines) == min(1, len(own))
    expected = {f"Scope: {scope_text(bound.about)}.": bound for bound in stated if own.get(bound.name)}
    for line in lines:
        [bound] = [
            bound
            for scope, bound in expected.items()
            if f"of at most {format_epsilon(own[bound.name])}. {scope}" in line
        ]
        assert "Assumption: " in line or bound.kind != "conditional"


def test_a_bound_with_a_delta_is_printed_with_its_delta():
    delta = Decimal("2.5e-7")
    about = scope_at_delta("any 365 consecutive days of one household", delta)
    bound = LossBound("window of 365 days (delta 2.5e-7)", 10_748_499_677, "assumption-free", about, delta=delta)
    stated = state_bound(bound, {})
    expected = "Epsilon with delta 2.5e-7 of any 365 consecutive days of one household: 10.8"
    assert (labelled_bound(stated), stated.factor) == (expected, "")


def test_a_release_by_its_url_is_named_without_user_and_query():
    assert format_path("s3://me@open-data/agedp?sig=aXz") == "s3://open-data/agedp"

"""What run and plan say of a promise's own figure, whatever the notion."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.losses import epsilon, granted
from agedp_data.statement import figure_told
from flows.words import promised_lines
from tests.laws.promises import Line, bounds, kept, models, promises


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_a_promise_bounds_beside_day_and_total_is_said_with_its_bound(notion, data):
    model, promise = data.draw(models(notion)), data.draw(promises(notion))
    own = {name: granted(bound) for name, bound in bounds(promise).items() if name not in ("day", "total")}
    figures = promise.figures([Line("2013-01-01", 1, "2013-02-01")], model, None)
    lines = promised_lines(promise, {figure.name: figure_told(figure, promise.limits) for figure in figures})
    assert len(lines) == min(1, len(own))
    said = [
        f"of at most {epsilon(bound)} about {one.about}" for one in figures for bound in [own.get(one.name)] if bound
    ]
    assert all(any(each in line for each in said) for line in lines)
    assert all(("if " in line) or one.kind != "conditional" for line in lines for one in figures if one.about in line)

"""What a notion gives as the limit of a figure is never passed, and is no wider than what is promised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.epsilon import floor_nano
from tests.laws.promises import bounds, kept, models, promises
from tests.laws.test_every_notion import ATTEMPTS, EXAMPLES, lived, values


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
class TestLimits:
    @EXAMPLES
    @given(data=st.data(), attempts=ATTEMPTS)
    def test_no_release_that_is_let_through_takes_a_figure_beyond_its_limit(self, notion, data, attempts):
        model = data.draw(models(notion))
        promise = data.draw(promises(notion))
        figures = values(promise, lived(promise, model, attempts), model)
        assert set(promise.limits) <= set(figures)
        for name, limit in promise.limits.items():
            assert limit is None or figures[name] <= limit, name

    @EXAMPLES
    @given(data=st.data())
    def test_limits_are_no_wider_than_the_promise(self, notion, data):
        promise = data.draw(promises(notion))
        for name, bound in bounds(promise).items():
            assert promise.limits[name] <= floor_nano(bound), name
        assert (promise.limits["total"] is None) == (promise.epsilon_total == "unlimited")

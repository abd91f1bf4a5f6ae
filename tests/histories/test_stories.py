"""Stories of every notion end, and are told the same by an engine that has seen others before."""

from __future__ import annotations

import pytest

from agedp_data.notions import NOTIONS
from tests.histories.stories import SHORT, story, told


@pytest.mark.parametrize("notion", [notion.name for notion in NOTIONS])
def test_a_story_is_told_the_same_again_after_others(notion):
    first, *others = [told(story(notion, str(seed), length=SHORT)) for seed in range(6)]
    assert told(story(notion, "0", length=SHORT)) == first
    assert any(len(each) > SHORT for each in (first, *others))

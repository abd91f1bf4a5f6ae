"""What run and plan print of a promise's own bound, whatever the notion, and of the noise."""

from __future__ import annotations

from agedp_flows.text.run_text import format_path


def test_a_release_by_its_url_is_named_without_user_and_query():
    assert format_path("s3://me@open-data/agedp?sig=aXz") == "s3://open-data/agedp"

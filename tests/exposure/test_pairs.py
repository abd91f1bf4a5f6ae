"""Non-interference over random pairs: two nights in two houses that differ in all that is private leave equal bytes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.exposure import pairs
from tests.exposure.pairs import House, Public

PUBLIC = st.builds(
    Public,
    mode=st.sampled_from(["rehearsal", "live", "archive"]),
    dataset=st.sampled_from(["london", "long"]),
    notion=st.sampled_from(sorted(pairs.PROMISES)),
    two_series=st.booleans(),
    counts=st.sampled_from(["", "histogram", "cumulative"]),
    grouped=st.booleans(),
    later_file=st.booleans(),
    keep_days=st.sampled_from([0, 400]),
    total=st.sampled_from(["10", "1.1", '"unlimited"']),
    model=st.booleans(),
    adopts=st.booleans(),
    marked=st.booleans(),
    preflight=st.sampled_from(["refuse", "report"]),
    witnessed=st.booleans(),
).map(
    lambda public: replace(
        public,
        adopts=public.adopts and public.notion != "temporal" and (public.model or public.notion == "age-dependent"),
    )
)
SEEDS = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)).filter(lambda pair: pair[0] != pair[1])
CASES = {
    "live, two series, groups, markers": Public(mode="live", two_series=True, grouped=True, marked=True),
    "a risk under a model, another adopted": Public(notion="age-dependent", mode="live", adopts=True),
    "counts of groups beside a mean": Public(counts="cumulative", grouped=True, notion="neighbourhood"),
    "a long table under a kernel, corrected, nothing kept": Public(
        notion="temporal", dataset="long", later_file=True, keep_days=0
    ),
    "an archive under a window": Public(mode="archive", notion="w-event"),
    "sound files first, then any, with alerts": Public(mode="live", preflight="refuse", marked=True, witnessed=True),
    "discounted by the day of publication": Public(notion="discounted", mode="live"),
}


def live(public: Public, seeds: tuple[int, int]) -> list[Any]:
    """Live the same nights in both houses and return what became public of each."""
    with tempfile.TemporaryDirectory() as folder:
        return [House(Path(folder) / str(number), public, seed).live() for number, seed in enumerate(seeds)]


def require_same(public: Public, seeds: tuple[int, int]) -> None:
    one, other = live(public, seeds)
    for step, (first, second) in enumerate(zip(one, other, strict=True)):
        assert first == second, (step, public, seeds)
    assert b'"state":"released"' in one[-2]["ledger"], one
    assert (b'"state":"confirmed"' in one[-2]["witness"]) is public.witnessed


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=pytest.mark.long if i not in (0, 1, 3) else []) for i, name in enumerate(CASES)]
)
def test_what_becomes_public_of_two_different_houses_is_the_same(case: str) -> None:
    require_same(CASES[case], (1, 2))


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(public=PUBLIC, seeds=SEEDS)
def test_what_becomes_public_of_any_two_houses_is_the_same(public, seeds):
    require_same(public, seeds)


def test_the_nights_release_give_up_and_refuse_days_and_alerts_stay_confidential() -> None:
    """The pairs are no empty runs, and what the operator reads of them is not the same."""
    public = Public(mode="live", marked=True, total="1.1")
    with tempfile.TemporaryDirectory() as folder:
        houses = [House(Path(folder) / str(seed), public, seed) for seed in (1, 2)]
        one, other = (house.live() for house in houses)
        assert one == other
        assert {step[0] for step in one if isinstance(step, tuple)} == {0, 3}
        assert b"skipped" in one[-2]["ledger"]
        kept = [house.folder / "out" / "confidential" for house in houses]
        for name in ("preflight.json", "alerts.jsonl"):
            assert len({(path / name).read_text() for path in kept}) == 2
        now = datetime(2013, 2, 20, tzinfo=UTC)
        quiet = pairs.with_fixed_noise(houses[1].folder, "run", "run.toml", "--quiet", now=now)
        assert (quiet.out, "usable households below [alerts] min_coverage = 0.9 on" in quiet.err) == ("", True)


def test_a_sampler_that_reads_its_argument_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "fixed_stream", lambda now: lambda values, *, sensitivity, loss: values + 1)
    one, other = live(Public(), (1, 2))
    assert one != other

"""Non-interference over random pairs: two nights in two houses that differ in all that is private leave equal bytes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
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
).map(lambda each: replace(each, adopts=each.adopts and (each.model or each.notion == "age-dependent")))
SEEDS = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)).filter(lambda pair: pair[0] != pair[1])


def lived(public: Public, seeds: tuple[int, int]) -> list[Any]:
    """Live the same nights in both houses and return what left each."""
    with tempfile.TemporaryDirectory() as folder:
        return [House(Path(folder) / str(number), public, seed).lived() for number, seed in enumerate(seeds)]


def same(public: Public, seeds: tuple[int, int]) -> None:
    one, other = lived(public, seeds)
    for step, (first, second) in enumerate(zip(one, other, strict=True)):
        assert first == second, (step, public, seeds)
    assert b'"state":"released"' in one[-2]["ledger"], one
    assert (b'"state":"confirmed"' in one[-2]["witness"]) is public.witnessed


CASES = {
    "live, two series, groups, markers": Public(mode="live", two_series=True, grouped=True, marked=True),
    "a long table, corrected, nothing kept": Public(dataset="long", later_file=True, keep_days=0),
    "a risk under a model, another adopted": Public(notion="age-dependent", mode="live", adopts=True),
    "an archive under a window": Public(mode="archive", notion="w-event"),
    "sound files first, then any, with alerts": Public(mode="live", preflight="refuse", marked=True, witnessed=True),
    "discounted by the day of publication": Public(notion="discounted", mode="live"),
    "counts of groups beside a mean": Public(counts="cumulative", grouped=True, notion="neighbourhood"),
}


QUICK = [name for number, name in enumerate(CASES) if number % 2 == 0]


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in CASES]
)
def test_what_leaves_two_different_houses_is_the_same(case):
    same(CASES[case], (1, 2))


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(public=PUBLIC, seeds=SEEDS)
def test_what_leaves_any_two_houses_is_the_same(public, seeds):
    same(public, seeds)


def test_the_nights_release_give_up_and_refuse_days_and_a_public_difference_shows():
    """The pairs are no empty runs."""
    [one, other] = lived(Public(mode="live", marked=True, total="1.1"), (1, 2))
    assert {each[0] for each in one if isinstance(each, tuple)} == {0, 3}
    assert b"skipped" in one[-2]["ledger"]
    with tempfile.TemporaryDirectory() as folder:
        assert House(Path(folder) / "0", Public(mode="live", marked=True, total="1.2"), 2).lived() != other


def test_a_sampler_that_reads_its_argument_would_be_caught(monkeypatch):
    def honest(now):
        def shifted(values, *, sensitivity, loss):
            return values + 1

        return shifted

    monkeypatch.setattr(pairs, "_stream", honest)
    with pytest.raises(AssertionError):
        same(Public(), (1, 2))


def test_alerts_and_findings_of_two_houses_differ_and_stay_in_the_confidential_folder():
    """The pairs are alerted: what the operator hears is not the same, and nothing of it is in what left the houses."""
    with tempfile.TemporaryDirectory() as folder:
        houses = [House(Path(folder) / str(seed), Public(mode="live"), seed) for seed in (1, 2)]
        left = [house.lived() for house in houses]
        kept = [house.folder / "out" / "confidential" for house in houses]
        findings, alerts = ([(each / name).read_text() for each in kept] for name in ("preflight.json", "alerts.jsonl"))
        assert left[0] == left[1]
        assert findings[0] != findings[1]
        assert alerts[0] != alerts[1]
        quiet = houses[1].run_command("run", "run.toml", "--quiet", now=pairs.datetime(2013, 2, 20, tzinfo=pairs.UTC))
        assert quiet[:2] == (0, "")
        assert "agedp: warning: usable households below [alerts] min_coverage = 0.9 on" in quiet[2]
        assert len(quiet[2].splitlines()) == 1

"""The comparison of two commits: its interval by brute force, a planted slowdown of 10 to 15 %, and none."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import compare
from tests.benchmarks.compared_job import JOBS
from tests.benchmarks.scenes import write_comparison


def test_the_signed_rank_law_is_that_of_all_signs() -> None:
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=8)]
    expected = np.bincount(sums) / 2**8
    np.testing.assert_allclose(compare.signed_rank_law(8), expected)


def test_the_interval_is_where_the_signed_rank_test_accepts() -> None:
    logs = np.random.default_rng(3).normal(0.1, 0.05, 9)
    found = compare.interval(logs, level=0.95)
    tail = np.cumsum(compare.signed_rank_law(9))

    def accepts(shift: float) -> bool:
        moved = logs - shift
        ranks = np.argsort(np.argsort(np.abs(moved))) + 1
        smaller = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
        return tail[smaller] > 0.025

    grid = np.linspace(-0.2, 0.4, 6001)
    accepted = np.exp(grid[[accepts(shift) for shift in grid]])
    assert (found.low, found.high) == pytest.approx((accepted[0], accepted[-1]), abs=2e-4)
    assert compare.interval(logs[:3]).high == np.inf  # three pairs say nothing at this level


def test_every_job_runs_with_this_commit(tmp_path: Path) -> None:
    folder = write_comparison(tmp_path / "scene", rows=90_000)
    for name, job in JOBS.items():
        if name != "planted":
            job(folder)
    assert (folder / "run" / "out" / "release" / "SHA256SUMS").exists()
    assert list((folder / "calibrate" / "out").rglob("public.json"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the tag `before`, of 100, and `after`, which was given 12 % more work."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for tag, work in (("before", 100), ("after", 112)):
        (folder / "planted.txt").write_text(str(work))
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", tag), ("tag", tag)):
            identity = ("-c", "user.name=agedp contributors", "-c", "user.email=nobody@example.org")
            subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(("head", "status"), [("after", 1), ("before", 0)])
def test_twelve_per_cent_more_work_ends_with_one(
    repository: Path, head: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(11)
    drift = iter(np.linspace(1, 1.5, 1000))  # the machine becomes half as slow again, and each run has 2 % of noise

    def run_job(job: str, tree: Path, scene: Path) -> tuple[float, float]:
        seconds = int((tree / "planted.txt").read_text()) / 100 * next(drift) * np.exp(rng.normal(0, 0.02))
        return seconds, 2 * seconds

    monkeypatch.setattr(compare, "run_job", run_job)
    words = ["compare", "before", head, "--only", "planted", "--repository", str(repository), "--rows", "0.001"]
    monkeypatch.setattr("sys.argv", words)
    if status:
        with pytest.raises(SystemExit, match="1"):
            compare.main()
    else:
        compare.main()
    assert ("SLOWER" in capsys.readouterr().out) == bool(status)
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert listed.stdout.count("\n") == 1


def test_the_jobs_run_with_the_packages_of_this_commit(tmp_path: Path) -> None:
    ratios = compare.compared([compare.ROOT] * 2, tmp_path / "one", ["start", "planted"][:1], rounds=1, rows=1000)
    assert set(ratios) == {"start"}


def test_equal_commits_fail_less_than_once_in_a_hundred_times() -> None:
    rng = np.random.default_rng(0)
    found = [compare.interval(rng.normal(0, 0.04, compare.ROUNDS)) for _ in range(400)]
    assert sum(one.low > compare.TOLERANCE for one in found) == 0
    slower = [compare.interval(rng.normal(np.log(1.12), 0.04, compare.ROUNDS)) for _ in range(400)]
    assert np.mean([one.low > compare.TOLERANCE for one in slower]) > 0.9
    covered = np.mean([one.low < 1.12 < one.high for one in slower])
    assert covered == pytest.approx(compare.LEVEL, abs=0.02)

"""Two commits on the same machine, in turn: `python -m benchmarks.compare BASE [HEAD]`.

Both are checked out in a temporary folder, and a small set of measurements runs alternately (A B, B A, A B ...), each
in a process of its own. Printed for each is the ratio of HEAD to BASE, by CPU time and by wall time, with an interval.
The exit status is 1 if the interval of a ratio of CPU times lies above the tolerance.

Decisions:

* CPU time decides, wall time informs: other programs change the second far more than the first.
* The two runs of a pair are neighbours in time and change places from pair to pair, so that a slow drift of the machine
  cancels. The interval is that of the signed-rank test on the logarithms of the pairs' ratios (Hodges and Lehmann
  1963): exact for pairs whose order is exchangeable, and narrower than that of a sign test.
* The tolerance is 1.05. A commit that is 10 % slower has an interval around 1.10: a tolerance of 1.10 would let nearly
  all such commits pass, however often they are measured. 5 % is room for what does not come from the change.
* What is not committed is not compared.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.compared_job import JOBS
from benchmarks.measuring import ROOT, source_path
from benchmarks.scenes import write_comparison

LEVEL, TOLERANCE, ROUNDS, ROWS = 0.98, 1.05, 12, 1_000_000
_SCRIPT = Path(__file__).with_name("compared_job.py")


@dataclass(frozen=True, slots=True)
class Interval:
    """The ratio of two sides, with the bounds of its interval."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.ratio:5.3f} ({self.low:5.3f} to {self.high:5.3f})"


def main() -> None:
    """Compare two commits, and end with 1 if one measurement is slower beyond the tolerance."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="agedp-compare-") as folder:
        sides = (chosen.base, chosen.head)
        with worktrees(chosen.repository, sides, Path(folder)) as trees:
            ratios = compared(trees, Path(folder), chosen.only, rounds=chosen.rounds, rows=round(chosen.rows * 1e6))
    slower = []
    _say(f"\n{chosen.head} against {chosen.base}: ratio and {LEVEL:.0%} interval of {chosen.rounds} pairs")
    for job, (cpu, wall) in ratios.items():
        if cpu.low > chosen.tolerance:
            slower.append(job)
        _say(f"{job:18s} CPU {cpu}   wall {wall}{'   SLOWER' if job in slower else ''}")
    if slower:
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="the commit before, such as main")
    parser.add_argument("head", nargs="?", default="HEAD", help="the commit after (default: HEAD)")
    usual = [job for job in JOBS if job != "planted"]
    parser.add_argument("--only", nargs="+", choices=list(JOBS), default=usual, metavar="JOB", help=", ".join(usual))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="pairs of runs of each measurement")
    parser.add_argument("--rows", type=float, default=ROWS / 1e6, metavar="MILLIONS", help="size of the input file")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="ratio above which an interval fails")
    parser.add_argument("--repository", type=Path, default=ROOT, help="whose commits (default: this one)")
    return parser.parse_args()


@contextmanager
def worktrees(repository: Path, commits: Sequence[str], folder: Path) -> Iterator[list[Path]]:
    """Check two commits out, and remove the worktrees at the end."""
    trees = [folder / name for name in ("base", "head")[: len(commits)]]
    try:
        for tree, commit in zip(trees, commits, strict=True):
            _git(repository, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        yield trees
    finally:
        for tree in trees:
            shutil.rmtree(tree, ignore_errors=True)
        _git(repository, "worktree", "prune")


def _git(repository: Path, *words: str) -> None:
    ended = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr.strip())


def compared(
    trees: Sequence[Path], folder: Path, jobs: Sequence[str], *, rounds: int, rows: int
) -> dict[str, tuple[Interval, Interval]]:
    """Return the ratios of the second tree to the first by job: of CPU and of wall time."""
    scenes = [write_comparison(folder / f"scene-{number}", rows=rows) for number in range(len(trees))]
    taken: dict[str, list[list[tuple[float, float]]]] = {job: [] for job in jobs}
    for number in range(-1, rounds):  # one round that does not count: caches of the disk and of byte code
        for job in jobs:
            order = (0, 1) if number % 2 == 0 else (1, 0)
            pair = {side: run_job(job, trees[side], scenes[side]) for side in order}
            if number >= 0:
                taken[job].append([pair[0], pair[1]])
                _say(f"{number + 1:3d}  {job:18s} CPU {pair[0][0]:6.2f} {pair[1][0]:6.2f} s")
    ratios = {job: np.log(np.array(pairs)) for job, pairs in taken.items()}
    return {
        job: (interval(log[:, 1, 0] - log[:, 0, 0]), interval(log[:, 1, 1] - log[:, 0, 1]))
        for job, log in ratios.items()
    }


def run_job(job: str, tree: Path, scene: Path) -> tuple[float, float]:
    """Return the CPU and wall seconds of a process that does one job with the packages of a tree."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", str(_SCRIPT), job, str(scene)],
        stdout=subprocess.DEVNULL,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": source_path(tree)},
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{job} failed in {tree.name} with exit status {process.returncode}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun


def interval(logs: np.ndarray, level: float = LEVEL) -> Interval:
    """Return the Hodges-Lehmann estimate of the ratio whose logarithms are given, and its signed-rank interval.

    Source: Hodges and Lehmann, Estimates of location based on rank tests, Ann. Math. Statist. 34 (1963). The bounds are
    order statistics of the means of all pairs (Walsh averages), counted off by the null law of the signed-rank sum.
    """
    n = len(logs)
    rows, columns = np.triu_indices(n)
    walsh = np.sort((logs[rows] + logs[columns]) / 2)
    below = np.cumsum(signed_rank_law(n))
    skipped = int(np.searchsorted(below, (1 - level) / 2, side="right"))  # so many values of the sum are in each tail
    middle = math.exp(float(np.median(walsh)))
    if skipped == 0:
        return Interval(middle, 0.0, math.inf)
    return Interval(middle, math.exp(walsh[skipped - 1]), math.exp(walsh[-skipped]))


def signed_rank_law(n: int) -> np.ndarray:
    """Return the probabilities of the sums of ranks 1 to n with random signs, of those that are positive.

    >>> signed_rank_law(2).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    law = np.ones(1)
    for rank in range(1, n + 1):
        law = (np.pad(law, (0, rank)) + np.pad(law, (rank, 0))) / 2
    return law


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""A further notion is one file, its line in `NOTIONS` and its entry in `tests/laws/promises.py`: the rest follows.

A copy of the packages is given the file, the line and the entry, as CONTRIBUTING says. In the copy the commands run and
the laws of all notions hold for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_path import source_path

ROOT = Path(__file__).parents[3]
LIMITED = '''"""A made-up notion: at most so many days are released, each with at most the same epsilon."""

from typing import Annotated, ClassVar, Literal

from agedp_data.amendment_rules import LOWER
from agedp_data.errors import Refused
from agedp_data.epsilon import floor_nano
from agedp_data.notions.publication import Alternative, part
from agedp_data.notions.enforcement import EnforcedPromise, refuse_above
from agedp_data.notions.notion import DAY_BOUND, LossBound, day_losses
from agedp_data.notions.notion import NotionText, OwnBound
from agedp_data.parameters import Days, Epsilon

BOUND = "sum of limited releases"


class Limited(EnforcedPromise):
    """At most `most_releases` days, each with at most `epsilon_each`."""

    name: ClassVar[str] = "limited"
    TEXT = NotionText(
        epsilon_key="epsilon_each",
        own_bound=OwnBound(BOUND, BOUND),
        proposals={"epsilon_each": "0.5"},
        option_help={"epsilon_each": "epsilon of a released day"},
    )

    notion: Literal["limited"]
    epsilon_each: Annotated[Epsilon, LOWER]
    """Epsilon of a released day."""
    most_releases: Annotated[Days, LOWER]
    """Number of days that are released at most."""

    @property
    def limits(self):
        each = floor_nano(self.epsilon_each)
        return {**super().limits, DAY_BOUND: min(self.day_cap, each), BOUND: each * self.most_releases}

    def planned_loss(self, losses, day, leakage_bound):
        return floor_nano(self.epsilon_each) if sum(map(bool, losses.values())) < self.most_releases else 0

    def check(self, history, new_row, leakage_bound):
        losses = self.losses_with(history, new_row)
        refuse_above(new_row.day, "the day", losses[new_row.day], ("epsilon_each", floor_nano(self.epsilon_each)))
        if new_row.loss and sum(map(bool, losses.values())) > self.most_releases:
            raise Refused(f"{new_row.day}: most_releases = {self.most_releases} days are released; nothing was drawn")

    def bounds(self, history, leakage_bound, at):
        losses = day_losses(history)
        own = LossBound(BOUND, sum(losses.values()), "assumption-free", "all released days of one household")
        return [*self.cap_bounds(history), own]

    @classmethod
    def candidates(cls, comparison):
        days, cap = comparison.days or 30, comparison.promise.max_day_epsilon
        keys = lambda amount: {"epsilon_each": min(part(amount, days), cap), "most_releases": days}
        return (Alternative(f"{days} days", keys, BOUND),)
'''
ENTRY = """    "limited": Tried(
        _drawn("limited", epsilon_each=amounts(), most_releases=st.integers(1, 9)),
        lambda promise: {
            "day": promise.epsilon_each, "sum of limited releases": promise.epsilon_each * promise.most_releases,
        },
    ),
"""
COMMANDS = """
import contextlib, io, json, os, sys
from agedp_flows.cli.app import main
ends = []
for folder, *words in json.loads(sys.argv[1]):
    out, err, sys.argv, status = io.StringIO(), io.StringIO(), ["agedp", *words], 0
    if words[0] == "init":
        os.remove(os.path.join(folder, "roster.csv"))  # of the sample
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    ends.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""


def insert(path: Path, *additions: tuple[str, str]) -> None:
    """Write text before another one, which must be there once."""
    text = path.read_text("utf-8")
    for line, following in additions:
        assert text.count(following) == 1, following
        text = text.replace(following, line + following)
    path.write_text(text, "utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages with one further notion."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("agedp_data", "pipelines", "flows", "tests", "docs/examples"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "fixtures"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "agedp_data" / "notions" / "limited.py").write_text(LIMITED, "utf-8")
    insert(
        folder / "agedp_data" / "notions" / "__init__.py",
        ("from agedp_data.notions.limited import Limited\n", "from agedp_data.notions.neighbourhood import"),
        ("    Limited,\n", ")\n\nif TYPE_CHECKING:"),
    )
    insert(folder / "tests" / "laws" / "promises.py", (ENTRY, "}  # fmt: skip\n\n\nclass Alike("))
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copied packages."""
    environment = os.environ | {"PYTHONPATH": source_path(folder), "COLUMNS": "200"}
    order = [sys.executable, "-P", *arguments]
    return subprocess.run(order, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_it_is_compared_released_verified_and_told_of(copy, tmp_path):
    households = tmp_path / "households"
    init = (
        "init", "input", "--notion", "limited", "--epsilon-each", "0.5", "--most-releases", "2",
        "--max-day-epsilon", "0.5", "--epsilon-total", "9", "--clamp-kwh", "30", "--min-households", "1",
        "--accept", "no-credit", "--accept", "useless",
    )  # fmt: skip
    commands = [
        (tmp_path, "sample", "london", "households", "--households", "4", "--days", "6", "--quiet"),
        (households, *init),
        *((households, *words) for words in (("plan", "run.toml", "--notions", "--json"), ("run", "run.toml"))),
        (households, "verify", "out/release"),
    ]
    end = run(copy, "-c", COMMANDS, json.dumps([[str(word) for word in words] for words in commands]))
    assert (end.returncode, end.stderr) == (0, ""), end.stderr
    ends = json.loads(end.stdout)
    assert [status for status, *_ in ends] == [0, 0, 0, 3, 0], ends
    assert 'keeps the promise of notion = "limited" with the days released so far' in ends[3][2]
    offers = [offer for offer in json.loads(ends[2][1])["offers"] if offer["notion"] == "limited"]
    assert [offer["promise"]["most_releases"] for offer in offers if offer["method"] == "6 days"] == [6]
    statement = json.loads((households / "out" / "release" / "statement.json").read_text("utf-8"))
    assert "sum of limited releases" in {bound["name"] for bound in statement["figures"]}
    assert statement["days"]["released"] == 2


def test_the_laws_of_every_notion_and_the_rules_of_keys_hold(copy):
    tests = [
        "tests/laws/test_every_notion.py",
        "tests/agedp_data/config/test_amendments.py::test_a_notion_says_itself_which_of_its_own_keys_may_be_tightened",
    ]
    others = " and ".join(f"not {name}" for name in ("classical", "event", "dependent", "temporal", "discounted"))
    chosen = f"not test_every_notion or ({others} and not neighbourhood)"
    end = run(copy, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests, "-k", chosen)
    assert end.returncode == 0, end.stdout
    assert " passed" in end.stdout

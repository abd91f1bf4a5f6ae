"""A further notion is one file, its line in `NOTIONS` and its entry in `tests/laws/promises.py`: the rest follows.

A copy of the packages is given the file, the line and the entry, as CONTRIBUTING says. In the copy the commands run,
the laws of all notions hold for it, and the reference pages are made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from filecmp import dircmp
from pathlib import Path

import pytest

from tests.source_path import source_path

ROOT = Path(__file__).parents[3]
COPIED = ("agedp_data", "pipelines", "flows", "tests", "docs")
LIMITED = '''"""A made-up notion: at most so many days are released, each with at most the same epsilon."""

from typing import ClassVar, Literal

from agedp_data.errors import Refused
from agedp_data.epsilon import floor_nano
from agedp_data.notions.alternatives import Alternative, part
from agedp_data.notions.enforcement import EnforcedPromise, refuse_above
from agedp_data.notions.notion import DAY_BOUND, LossBound, day_losses, spent_bounds
from agedp_data.notions.notion_text import NoiseExample, NotionText, OwnBound
from agedp_data.parameters import Days, Epsilon

BOUND = "sum of limited releases"


class Limited(EnforcedPromise):
    """At most `most_releases` days, each with at most `epsilon_each`."""

    name: ClassVar[str] = "limited"
    TIGHTENING = {"epsilon_each": "lower", "most_releases": "lower"}
    TEXT = NotionText(
        epsilon_key="epsilon_each",
        own_bound=OwnBound(BOUND, BOUND),
        examples=(NoiseExample("epsilon {e} for each of 3 days", {"epsilon_each": "{e}", "most_releases": "3"}),),
        proposals={"epsilon_each": "0.5"},
        option_help={"epsilon_each": "epsilon of a released day"},
    )

    notion: Literal["limited"]
    epsilon_each: Epsilon
    """Epsilon of a released day."""
    most_releases: Days
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
        return [*spent_bounds(losses), own]

    @classmethod
    def candidates(cls, comparison):
        days = comparison.days or 30
        cap = comparison.promise.max_day_epsilon
        return (
            Alternative(
                f"{days} days",
                lambda amount: {"epsilon_each": min(part(amount, days), cap), "most_releases": days},
                BOUND,
            ),
        )
'''
ENTRY = """    "limited": Tried(
        st.fixed_dictionaries({"epsilon_each": amounts(), "most_releases": st.integers(1, 9)}).map(
            _also(notion="limited")
        ),
        lambda promise: {
            "day": promise.epsilon_each,
            "sum of limited releases": promise.epsilon_each * promise.most_releases,
        },
    ),
"""
CHANGED = {"agedp_data/notions/__init__.py", "agedp_data/notions/limited.py", "tests/laws/promises.py"}


def insert(path: Path, *additions: tuple[str, str]) -> None:
    """Write text before another one, which must be there once."""
    text = path.read_text("utf-8")
    for line, following in additions:
        assert text.count(following) == 1, following
        text = text.replace(following, line + following)
    path.write_text(text, "utf-8")


def files_that_differ(comparison: dircmp[str], below: str = "") -> set[str]:
    """Return the files that only one of two folders has, or that differ."""
    names = [*comparison.left_only, *comparison.right_only, *comparison.diff_files]
    deeper = [files_that_differ(folder, f"{below}{name}/") for name, folder in comparison.subdirs.items()]
    return {f"{below}{name}" for name in names}.union(*deeper)


def run(folder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with the copied packages."""
    environment = os.environ | {"PYTHONPATH": source_path(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    order = [sys.executable, "-P", *arguments]
    return subprocess.run(order, cwd=cwd or folder, env=environment, capture_output=True, text=True, check=False)


COMMANDS = """
import contextlib, io, json, os, sys
from agedp_flows.cli.app import main
ends = []
for words in json.loads(sys.argv[1]):
    out, err, sys.argv, status = io.StringIO(), io.StringIO(), ["agedp", *words], 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    ends.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""


def agedp(household_data: Path, *commands: tuple[str, ...], cwd: Path | None = None) -> list[list]:
    """Run commands of the copy in one process; return status, standard output and standard error of each."""
    end = run(household_data.parent, "-c", COMMANDS, json.dumps(commands), cwd=cwd or household_data)
    assert (end.returncode, end.stderr) == (0, ""), end.stderr
    return json.loads(end.stdout)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages with one further notion."""
    folder = tmp_path_factory.mktemp("copy")
    for package in COPIED:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "fixtures"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "agedp_data" / "notions" / "limited.py").write_text(LIMITED, "utf-8")
    insert(
        folder / "agedp_data" / "notions" / "__init__.py",
        ("from agedp_data.notions.limited import Limited\n", "from agedp_data.notions.neighbourhood import"),
        ("    Limited,\n", ")\n\nif TYPE_CHECKING:"),
    )
    insert(folder / "tests" / "laws" / "promises.py", (ENTRY, "}\n\n\nclass Alike("))
    return folder


@pytest.fixture(scope="module")
def household_data(copy: Path) -> Path:
    """Synthetic households beside the copy, and the run file that `agedp init` makes for the new notion."""
    folder = copy / "households"
    sample = ("sample", "london", str(folder), "--households", "4", "--days", "6", "--quiet")
    assert agedp(folder, sample, cwd=copy) == [[0, "", ""]]
    (folder / "roster.csv").unlink()
    [[status, _, err]] = agedp(folder, (
        "init", "input", "--notion", "limited", "--epsilon-each", "0.5", "--most-releases", "5",
        "--max-day-epsilon", "0.5", "--epsilon-total", "9", "--clamp-kwh", "30", "--min-households", "1",
        "--mode", "rehearsal", "--age-days", "1",
    ))  # fmt: skip
    assert (status, err) == (0, "")
    return folder


def change_key(household_data: Path, key: str, value: str) -> None:
    """Change a key of the run file, which has it once."""
    path = household_data / "run.toml"
    lines = path.read_text("utf-8").splitlines()
    [number] = [number for number, line in enumerate(lines) if line.split(" ")[0] == key]
    lines[number] = f"{key} = {value}"
    path.write_text("\n".join(lines) + "\n", "utf-8")


def test_no_other_file_changes(copy):
    changed = {
        f"{package}/{name}"
        for package in COPIED
        for name in files_that_differ(dircmp(ROOT / package, copy / package, ignore=["__pycache__", "fixtures"]))
    }
    assert changed == CHANGED


def released_days(household_data: Path) -> int:
    """Return the number of released days that the statement reports."""
    statement = json.loads((household_data / "out" / "release" / "statement.json").read_text("utf-8"))
    assert "sum of limited releases" in {bound["name"] for bound in statement["figures"]}
    return int(statement["days"]["released"])


RUN, VERIFY, AMEND = ("run", "run.toml"), ("verify", "out/release"), ("ledger", "amend", "run.toml", "--yes")


def test_it_is_compared_released_verified_and_tightened(household_data):
    plan, released, verified = agedp(
        household_data, ("plan", "run.toml", "--notions", "--json"), (*RUN, "--as-of", "2012-11-23"), VERIFY
    )
    assert [end[0] for end in (plan, released, verified)] == [0, 0, 0]
    assert plan[2] == verified[2] == ""
    offers = [offer for offer in json.loads(plan[1])["offers"] if offer["notion"] == "limited"]
    assert [offer["promise"]["most_releases"] for offer in offers if offer["method"] == "6 days"] == [6]
    assert released_days(household_data) == 2

    change_key(household_data, "most_releases", "6")
    [[status, out, err]] = agedp(household_data, AMEND)
    assert status == 3
    assert "most_releases" in out + err

    change_key(household_data, "most_releases", "4")
    changed, tighter, _, verified = agedp(household_data, RUN, AMEND, RUN, VERIFY)
    assert (changed[0], "most_releases" in changed[2]) == (3, True)
    assert (tighter[0], tighter[2], verified[0], verified[2]) == (0, "", 0, "")
    assert "tightens the promise" in tighter[1]
    assert released_days(household_data) == 4


def test_the_laws_of_every_notion_and_the_rules_of_keys_and_options_hold(copy):
    tests = [
        "tests/laws/test_every_notion.py",
        "tests/laws/test_caps.py::test_the_list_of_notions_begins_with_the_six_and_no_two_share_a_name",
        "tests/agedp_data/config/test_amendments.py::test_a_notion_says_itself_which_of_its_own_keys_may_be_tightened",
        "tests/agedp/test_run_file_options.py",
        "tests/agedp/test_noise_table.py",
    ]
    others = " and ".join(f"not {name}" for name in ("classical", "event", "dependent", "temporal", "discounted"))
    chosen = f"not test_every_notion or ({others} and not neighbourhood)"
    end = run(copy, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests, "-k", chosen)
    assert end.returncode == 0, end.stdout


def test_the_reference_pages_name_it(copy, tmp_path):
    pages = tmp_path / "docs"
    shutil.copytree(copy / "docs", pages)
    end = run(copy, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import reference; reference.main()",
              str(pages / "_ext"))  # fmt: skip
    assert (end.returncode, end.stderr) == (0, "")
    assert '### notion = "limited"' in (pages / "run-file.md").read_text("utf-8")
    assert "`--epsilon-each VALUE`" in (pages / "commands.md").read_text("utf-8")

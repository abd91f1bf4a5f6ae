"""Ledgers whose rows are odd and whose hashes are right: one line from every command, never a traceback."""

# ruff: noqa: S311  (choices, not secrets)

from __future__ import annotations

import random
import shutil
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from agedp_data.ledger import Ledger
from agedp_flows.cli.app import main
from tests import minimal
from tests.fuzz.forgery import GONE, ODD, forge, places

URL = "sqlite:///ledger.sqlite"
FIRST = date(2013, 1, 1)


def run_file(last: int, curve: str) -> str:
    """Two series under an aged promise on a declared model."""
    return minimal.run_file(
        input={"files": ["in/*"]},
        output={"title": "Made up"},
        schedule={"last_day": date(2013, 1, last)},
        **{
            "series.daily_mean": {"share": 0.5},
            "series.by_area": {"statistic": "mean", "by": "area", "clamp_kwh": 40, "share": 0.5},
        },
        promise={
            "notion": "age-dependent", "age_days": 1, "method": "total_variation", "secret": "day", "epsilon_total": 30,
        },
        model={"source": "declared", "basis": "made up", "assume": "curve", "curve": f"{curve}.csv"},
    )  # fmt: skip


COMMANDS = [
    ("ledger", "verify", "run.toml"),
    ("ledger", "show", "run.toml"),
    ("ledger", "show", URL, "--json"),
    ("plan", "run.toml"),
    ("ledger", "amend", "run.toml", "--yes"),
    ("publish", "run.toml"),
    ("verify", "release", "--ledger", URL),
    ("publish", "run.toml", "--as-of", "2099-01-01"),
    ("publish", "run.toml", "--statement", "{statement}"),
    ("run", "run.toml", "--json"),
    ("verify", "release", "--ledger", URL),
    ("ledger", "recover", "release", "--to", "sqlite:///recovered.sqlite"),
    ("ledger", "export", "run.toml", "rows.jsonl", "--close"),
    ("ledger", "import", "rows.jsonl", "--to", "sqlite:///moved.sqlite"),
    ("ledger", "verify", "sqlite:///moved.sqlite"),
]


def status_of(*words: str) -> int:
    """Run the command in this process; a traceback is the test's failure."""
    sys.argv = ["agedp", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def agedp(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run the command and return its status and the one line in which it was refused."""
    status, said = status_of(*words), capsys.readouterr().err
    if status:
        [line] = said.splitlines()
        assert line.startswith("agedp: "), said
        assert line.isprintable(), said
        assert status in (2, 3), said
        assert len(line) < 2000, said
    return status, said


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, two contracts, two series, three days, one of them skipped, statements; two days still to come."""
    house = tmp_path_factory.mktemp("house")
    (house / "in").mkdir()
    stamps = [
        str(FIRST + timedelta(days=day)) + f" {slot // 2:02}:{slot % 2 * 30:02}:00"
        for day in range(6)
        for slot in range(48)
    ]
    lines = [f"{home},{stamp},0.2" for home in "ABCD" for stamp in stamps]
    (house / "in" / "a.csv").write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n")
    others = "".join(f"{home},2013-01-01,2013-01-01,n\n{home},2013-01-03,,n\n" for home in "BCD")
    (house / "roster.csv").write_text(f"household_id,from,to,area\nA,2013-01-01,,n\n{others}")
    (house / "slow.csv").write_text("1,0.9\n7,0.8\n")
    (house / "fast.csv").write_text("1,0.1\n7,0.01\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(house)
        patch.setattr(sys, "argv", sys.argv)
        for last, curve, words in ((3, "slow", ("run",)), (5, "fast", ("ledger", "amend")), (5, "fast", ("publish",))):
            (house / "run.toml").write_text(run_file(last, curve))
            assert status_of(*words, "run.toml", *(["--yes"] if "amend" in words else [])) == 0
    shutil.rmtree(house / "release")  # its head would be found missing before anything else is read
    return house


def judged(house: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Run every command on a forged ledger; what `ledger verify` refuses, nobody reads."""
    with Ledger.open(URL) as ledger:
        sound = not ledger.verify()
        statement = max(row.seq for row in ledger.statements("homes")) if sound else 1
    for number, words in enumerate(COMMANDS):
        status, _ = agedp(capsys, *(word.format(statement=statement) for word in words))
        if number < 6 and not sound:
            assert status == 3, words
        if number < 3 and sound:
            assert status == 0, words
    return 0 if sound else 3


@pytest.fixture
def copied(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Fresh copies of the house, one after the other, with the working directory inside."""
    monkeypatch.setattr(sys, "argv", sys.argv)

    def fresh() -> Path:
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(tmp_path / "house", ignore_errors=True)
        house = Path(shutil.copytree(good, tmp_path / "house"))
        monkeypatch.chdir(house)
        return house

    return fresh


def test_a_chain_made_anew_around_nothing_odd_is_as_good_as_the_first(copied, capsys):
    house = copied()
    assert forge(house / "ledger.sqlite", (1, ("at",)), "2013-01-03")
    with Ledger.open(URL) as ledger:
        assert ledger.verify() == ()
        assert {row.state for row in ledger.rows()} == {"released", "skipped"}
        assert (len(ledger.contracts()), len(ledger.models()), len(ledger.statements())) == (2, 2, 2)
    for words in COMMANDS:
        status, said = agedp(capsys, *(word.format(statement=1) for word in words))
        assert status == 0 or "--statement" in words, said


def sampled(copied, capsys, seed: int, trials: int) -> dict[int, int]:
    choice, ends = random.Random(seed), {0: 0, 3: 0}
    everywhere = places(copied() / "ledger.sqlite")
    while trials:
        house = copied()
        seq, keys = choice.choice(everywhere)
        odd = choice.choice([GONE, *ODD])
        if isinstance(keys[-1], int) and odd is GONE:
            continue
        if forge(house / "ledger.sqlite", (seq, keys), odd):
            trials -= 1
            try:
                ends[judged(house, capsys)] += 1
            except BaseException as error:
                error.add_note(f"at {seq} {keys}: {str(odd)[:80]!r}")
                raise
    return ends


@pytest.mark.parametrize(
    ("seed", "trials"), [(20261121, 8), *(pytest.param(seed, 100, marks=pytest.mark.long) for seed in range(8))]
)
def test_forged_ledgers_end_in_a_fault_or_one_line(copied, capsys, seed, trials):
    ends = sampled(copied, capsys, seed, trials)
    assert min(ends.values()) > 5 or (trials < 100 and ends[3]), ends

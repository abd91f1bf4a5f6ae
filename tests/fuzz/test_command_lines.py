"""Whatever stands on a command line, the command ends with a result or with one line that says what is wrong."""

from __future__ import annotations

import io
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from agedp_flows.cli.app import main
from tests.agedp_flows.worlds import DECLARED, make
from tests.fuzz.command_lines import WRONG, commands, furnish

COMMANDS = {" ".join(one.words): one for one in commands()}
SOUND_HERE = {
    "sample": "london sound --households 2 --days 2", "init": "incoming --in empty-folder",
    "sanitise": "incoming --out new --notion classical --epsilon-per-day 0.5 --max-day-epsilon 0.5 --epsilon-total 5 "
    "--clamp-kwh 20 --min-households 2",
    "plan": "run.toml", "run": "run.toml", "publish": "run.toml",
    "verify": "out/release --ledger sqlite:///out/ledger.sqlite", "ledger show": "run.toml",
    "ledger verify": "sqlite:///out/ledger.sqlite", "ledger amend": "run.toml",
    "ledger export": "run.toml sound.jsonl", "ledger import": "rows.jsonl --to sqlite:///sound.sqlite --lost",
    "ledger recover": "out/release --to sqlite:///sound.sqlite", "ledger upgrade": "run.toml",
}  # fmt: skip
"""What is wrong with a line is not the world: `audit` would work for long, the others are for other run files."""
SECONDS = 60
"""No command line takes longer, or it waits for something that never comes."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release, its ledger, its exported rows, and much that is none of these."""
    made = make(tmp_path_factory.mktemp("lines") / "world", seed=1, mode="archive", model=DECLARED, method="tight")
    folder = made.folder
    text = (folder / "run.toml").read_text().replace('"tight"', '"total_variation"')
    (folder / "run.toml").write_text(text.replace("epsilon_total = 2.5", "epsilon_total = 3"))
    for words in (("run", "run.toml"), ("ledger", "export", "run.toml", "rows.jsonl")):
        assert made.run(*words).returncode == 0
    return folder


@pytest.fixture
def house(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(world, tmp_path / "world"))
    furnish(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return folder


def judged(line: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command line; require a result, the help, or one line, and return the exit status."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["agedp", *line])
    signal.alarm(SECONDS)
    try:
        main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        pytest.fail(f"agedp {line}\n{traceback.format_exc()}")
    finally:
        signal.alarm(0)
    shown = capsys.readouterr()
    assert status in (0, 2, 3), (line, shown.err)
    if status:
        assert shown.err.startswith("agedp: "), (line, shown)
        assert shown.err.endswith("\n"), (line, shown.err)
        assert shown.err[:-1].isprintable(), (line, shown.err)
        assert "secret" not in shown.err, line
    return status


class TooLong(BaseException):
    """It waits for something that never comes; no error of the system, which the command would report in one line."""


def too_long(*_: object) -> None:
    raise TooLong


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, too_long)
    yield
    signal.signal(signal.SIGALRM, before)


def lines(name: str, number: int) -> Iterator[list[str]]:
    chance = random.Random(f"20261121 {name}")  # noqa: S311 - words, no secrets
    for _ in range(number):
        yield COMMANDS[name].line(chance)


@pytest.mark.parametrize("number", [3, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_wrong_thing_in_every_place_ends_in_one_line(name, number, house, capsys, monkeypatch):
    if name in SOUND_HERE and number > 3:
        assert judged([*name.split(), *SOUND_HERE[name].split()], capsys, monkeypatch) == 0
    met = [judged(line, capsys, monkeypatch) for line in lines(name, number)]
    assert {2, 3} & set(met)
    assert number == 3 or (2 in met and (0 not in met or name in SOUND_HERE))


def test_a_wrong_thing_in_place_of_a_command_is_one_line(house, capsys, monkeypatch):
    for wrong in WRONG:
        assert judged([wrong], capsys, monkeypatch) == 2
        assert judged(["ledger", wrong], capsys, monkeypatch) == 2


def test_every_command_is_among_them() -> None:
    assert set(COMMANDS) - set(SOUND_HERE) == {"audit", "calibrate", "demo", "serve"}
    assert set(COMMANDS) >= {
        "sample", "init", "sanitise", "calibrate", "plan", "run", "serve", "publish", "verify", "audit",
        *(f"ledger {name}" for name in ("show", "verify", "amend", "export", "import", "recover", "upgrade")),
    }  # fmt: skip


def test_a_traceback_would_be_noticed(
    house: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import agedp.release_folder.release_folder

    def boom(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(agedp.release_folder.release_folder, "open_release", boom)
    with pytest.raises(pytest.fail.Exception, match="a bug"):
        judged(["verify", "out/release"], capsys, monkeypatch)

"""One server of runs for all tests of faults, and the scenes that they begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.runs import Runs
from tests.faults.scenes import SCENES, Scene


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Runs of the command, each in a process of its own that is soon there."""
    server = Runs(tmp_path_factory.mktemp("runs"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def scene(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scene]:
    """A scene by its name, made once."""
    made: dict[str, Scene] = {}

    def of(name: str) -> Scene:
        if name not in made:
            made[name] = SCENES[name](runs, tmp_path_factory.mktemp("scene"))
        made[name].restore()
        return made[name]

    return of

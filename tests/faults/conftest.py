"""One server of runs for all tests of faults, and the scenes that they begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.runs import Runs
from tests.faults.scenes import Scene, make_scene


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Runs of the command, each in a process of its own that is soon there."""
    server = Runs(tmp_path_factory.mktemp("runs"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def scene(runs: Runs, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[..., Scene]:
    """A scene by its name, made once; its ledgers lie in files unless they are asked for `on_server`."""
    made: dict[tuple[str, bool], Scene] = {}

    def of(name: str, *, on_server: bool = False) -> Scene:
        if (name, on_server) not in made:
            server = request.getfixturevalue("postgresql") if on_server else None
            made[name, on_server] = make_scene(name, runs, tmp_path_factory.mktemp("scene"), server)
        made[name, on_server].restore()
        return made[name, on_server]

    return of

"""Two marked worlds that were calibrated and run, one on threads, one on processes, with no umask to help."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.exposure.marks import Marks
from tests.exposure.worlds import MarkedWorld, Seen, make


@dataclass(frozen=True)
class Ran:
    """A world, what its two commands did, and the marks that were read before anything else ran."""

    world: MarkedWorld
    calibrated: Seen
    released: Seen
    marks: Marks


@pytest.fixture(scope="session", params=["threads", pytest.param("processes", marks=pytest.mark.long)])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    world = make(tmp_path_factory.mktemp("marked") / "world", estimated=True, scheduler=request.param)
    calibrated, released = (world.run(verb, "run.toml", "--json", umask=0) for verb in ("calibrate", "run"))
    assert (calibrated.status, released.status) == (0, 0), calibrated.stderr + released.stderr
    return Ran(world, calibrated, released, world.marks)

"""Two marked worlds that were calibrated and run, one on threads, one on processes, with no umask to help."""

from __future__ import annotations

import pytest

from tests.exposure.worlds import Ran, make


@pytest.fixture(scope="session", params=["threads", pytest.param("processes", marks=pytest.mark.long)])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(make(tmp_path_factory.mktemp("marked") / "world", estimated=True, scheduler=request.param))

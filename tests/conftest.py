"""What all tests share: where real extracts lie, run files to vary, and the last digits of floats.

With AVX-512, numpy computes exp and log, and OpenBLAS products of matrices, with other last digits than without. Stored
numbers are those without, so tests and the commands that they start do not use it; this must be said before numpy is
imported.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

with suppress(OSError):
    if " avx512f " in Path("/proc/cpuinfo").read_text():
        os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4")  # numpy's name for AVX-512
        os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

import pytest
from hypothesis import settings

from tests.postgresql import PostgreSQL, binaries

# Tests start hundreds of processes: each would compile agedp again, and each pytest rewrite all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No test enters the accounts of whoever runs it. The temporary folder of user data has a file in the place of agedp's
# folder, so that accounts are in the confidential folder, and a world that is copied takes them along.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="agedp-data-")
Path(os.environ["XDG_DATA_HOME"], "agedp").touch()

# The same examples in every run, so that a failure is of the change that is tested; `make long` looks for new ones.
# No deadline: what a busy machine takes for one example says nothing.
settings.register_profile("agedp", deadline=None, derandomize=True)
settings.register_profile("new-examples", deadline=None)
settings.load_profile("agedp")


ONE_PROCESS = (
    "tests/agedp/reports", "tests/agedp/smoothed_estimates", "tests/exposure", "tests/faults", "tests/real",
    "tests/style",
)  # fmt: skip
"""Folders whose tests share a browser, worlds, extracts or syntax trees that take seconds to make."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage in what is collected, now or later: all of it stays, and looking took longer than making."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a file, or of such a folder, run in one process, which makes what they share once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            path = os.path.relpath(item.path, item.config.rootpath)
            folder = next((folder for folder in ONE_PROCESS if path.startswith(f"{folder}{os.sep}")), path)
            item.add_marker(pytest.mark.xdist_group(folder))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real extracts; tests that need them are skipped where AGEDP_REAL_DATA names none."""
    named = os.environ.get("AGEDP_REAL_DATA")
    if not named:
        pytest.skip("AGEDP_REAL_DATA names no folder of real extracts")
    return Path(named)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server of the tests' own; tests that need it are skipped where there is none to start."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = binaries()
    if programs is None:
        pytest.skip("there are no programs of a PostgreSQL server (Debian: apt-get install postgresql)")
    server = PostgreSQL(programs)
    yield server
    server.close()


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """An empty bucket of a made-up S3 service on this machine, as a URL; its credentials are in the environment."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    told = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "made-up",
        "AWS_SECRET_ACCESS_KEY": "made-up",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("meters")
        yield "s3://meters"
    server.stop()

"""The command in this process with fixed noise, clock and versions: all that the golden set knows of the product.

A restructuring of the packages changes the three names below and nothing else in this folder.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.metadata
import os
import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.command import agedp
from tests.source_path import ROOT

NOISE = "agedp_data.mechanisms.discrete_laplace"
SELECTION = "agedp_data.mechanisms.exponential_mechanism"
CLOCK = "agedp_data.clock.now"

VERSION = "0.0.0"
_VERSIONS_SHOWN = {"agedp", "numpy", "opendp", "pyarrow", "scipy", "tzdata"}
_NO_USER_DATA = {"XDG_DATA_HOME": os.devnull}
"""No folder of user data: the accounts of populations are in the confidential folder of the run."""
_UNFIXED = dict.fromkeys(("AGEDP_PROGRESS", "FORCE_COLOR", "NO_COLOR", "TERM"))


def run_command(folder: Path, *words: str, now: datetime, seed: int) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of the command, run inside a folder.

    The surroundings are the caller's to fix, once for all commands of a run.
    """
    with (
        mock.patch(NOISE, _fixed_noise(seed)),
        mock.patch(SELECTION, _best_score),
        mock.patch(CLOCK, return_value=now),
    ):
        return agedp(*words, folder=folder)


def _fixed_noise(seed: int) -> Any:
    """Return a sampler whose draws depend on the seed, the scale and the number of earlier draws only."""
    stream = np.random.default_rng(seed)

    def add_noise(values: Any, *, sensitivity: int, loss: Any) -> np.ndarray:
        vector = np.asarray(values, np.int64)
        scale = round(Fraction(sensitivity) / Fraction(loss))
        return vector + stream.integers(-1000, 1001, len(vector)) * scale // 1000

    return add_noise


def _best_score(scores: Any, *, loss: Any) -> int:
    return int(np.argmax(scores))


@contextlib.contextmanager
def fixed_surroundings() -> Iterator[None]:
    """Fix the terminal's width and the versions that a statement lists; begin and end with empty caches.

    The zone database is that of the `tzdata` package: the system's own would add its version.
    """
    find = importlib.metadata.distribution

    def distribution(name: str) -> Any:
        return _FixedVersion(find(name)) if name in _VERSIONS_SHOWN else find(name)

    system_zones = zoneinfo.TZPATH
    _clear_caches()
    zoneinfo.reset_tzpath(())
    environment = {name: value for name, value in os.environ.items() if name not in _UNFIXED}
    try:
        with (
            mock.patch.dict(os.environ, {**environment, **_NO_USER_DATA, "COLUMNS": "100", "LINES": "40"}, clear=True),
            mock.patch.object(importlib.metadata, "distribution", distribution),
        ):
            yield
    finally:
        zoneinfo.reset_tzpath(system_zones)
        _clear_caches()


class _FixedVersion:
    """An installed distribution whose version is not its own."""

    version = VERSION

    def __init__(self, distribution: importlib.metadata.Distribution) -> None:
        self._distribution = distribution

    def __getattr__(self, name: str) -> Any:
        return getattr(self._distribution, name)


def _clear_caches() -> None:
    """Empty the caches of the product's functions, which may hold what an earlier test or command computed."""
    gc.unfreeze()  # what pytest has collected, which `tests/conftest.py` froze, would not be listed
    for cached in gc.get_objects():
        if isinstance(cached, functools._lru_cache_wrapper):
            code = getattr(cached.__wrapped__, "__code__", None)
            if code is not None and code.co_filename.startswith(f"{ROOT}{os.sep}"):
                cached.cache_clear()
    gc.freeze()

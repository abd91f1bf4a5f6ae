"""Versions of installed packages, as releases, statements and confidential records list them: {"agedp": "0.3.0", ...}.

Decisions:

* Read once per process: `importlib.metadata` parses a package's whole description for each answer, a run asks some
  twenty times, and that was a twentieth of the time of a small one.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version(package: str) -> str:
    """Return the version of an installed package.

    Raises:
        importlib.metadata.PackageNotFoundError: the package is not installed.

    >>> version("numpy").count(".")
    2
    """
    return metadata.version(package)

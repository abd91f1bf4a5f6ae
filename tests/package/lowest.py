"""The lowest versions that pyproject.toml admits, as a constraints file: `python -m tests.package.lowest`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_BOUND = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(\[[a-z0-9,_-]+\])?>=(?P<version>[0-9.]+)")


def lowest(project: Path, *extras: str) -> list[str]:
    """Return `name==version` for each requirement of the project and of these extras.

    Raises:
        ValueError: a requirement that has no lower bound.
    """
    told = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = [*told["dependencies"], *(line for extra in extras for line in told["optional-dependencies"][extra])]
    return [_pinned(line) for line in wanted if not line.startswith(f"{told['name']}[")]


def _pinned(line: str) -> str:
    found = _BOUND.match(line)
    if found is None:
        raise ValueError(f"{line}: has no lower bound")
    return f"{found['name']}=={found['version']}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(Path("pyproject.toml"), "cluster", "postgresql", "prefect", "s3")) + "\n")

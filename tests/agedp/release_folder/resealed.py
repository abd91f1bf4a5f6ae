"""A release folder whose list of files and checksums are made anew, as whoever forges a release would make them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

PACKAGE, SUMS = "datapackage.json", "SHA256SUMS"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reseal(folder: Path, *, repack: bool = True) -> None:
    """List the files of a folder as they are; with `repack=False` in the checksums only."""
    package = folder / PACKAGE
    if repack and package.exists():
        listed = json.loads(package.read_text())
        there = [one for one in listed["resources"] if (folder / one["path"]).exists()]
        for one in there:
            path = folder / one["path"]
            one |= {"bytes": path.stat().st_size, "hash": f"sha256:{digest(path)}"}
        package.write_text(json.dumps({**listed, "resources": there}))
    names = sorted(path.name for path in folder.iterdir() if path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{digest(folder / name)}  {name}\n" for name in names))

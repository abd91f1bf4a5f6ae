"""A release folder whose list of files and checksums are made anew, as whoever forges a release would make them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

PACKAGE, SUMS = "datapackage.json", "SHA256SUMS"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_json(document: Any) -> str:
    """A document as agedp writes one."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def reseal(folder: Path, *, repack: bool = True) -> None:
    """List the files of a folder as they are; with `repack=False` in the checksums only."""
    package = folder / PACKAGE
    if repack and package.exists():
        listed = json.loads(package.read_text())
        there = [one for one in listed["resources"] if (folder / one["path"]).exists()]
        for one in there:
            path = folder / one["path"]
            one["hash"] = f"sha256:{digest(path)}"
            if "bytes" in one:
                one["bytes"] = path.stat().st_size
        package.write_text(as_json({**listed, "resources": there}))
    names = sorted(path.name for path in folder.iterdir() if path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{digest(folder / name)}  {name}\n" for name in names))

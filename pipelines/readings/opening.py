"""Input files -> what they are: content ids, of files that were not touched from memory, and headers.

    <confidential>/store/names.json     names of the input files, what tells that they were touched, their digests

A file that was touched within two seconds of being listed is not remembered: it may be touched again unnoticed.
"""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from agedp_data.errors import InputError
from agedp_data.readers import files
from agedp_data.readers.datasets import LAYOUTS
from agedp_data.readers.files import Source
from agedp_data.readers.layout import Header, Layout
from agedp_data.shown import shown
from pipelines import folders
from pipelines.blocks import Engine, map_merge, seen_by_workers
from pipelines.readings.store import Store

_DESCRIBE = 'correct the header line, or describe the columns under dataset = "long" and [input.columns]'
_APART_BY = {";": "semicolons", "\t": "tabs", "|": "bars"}
_UNSURE_NS = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Identified:
    """A file whose bytes are known by name: their digest, the content id, and whether a quote may be in them."""

    source: Source
    digest: str
    content: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """A file whose header is known; `header` is None for a file without rows."""

    file: Identified
    header: Header | None
    data_start: int

    @property
    def source(self) -> Source:
        """Return the file."""
        return self.file.source


def identify(store: Store, sources: Sequence[Source], *, engine: Engine) -> list[Identified]:
    """Return what the files are; only those that are new or were touched are read, in stretches.

    Raises:
        InputError: a file that cannot be read.
    """
    known = _remembered(store)
    listed_ns = time.time_ns()
    fresh = [one for one in sources if known.get(one.location, ("",))[0] != one.stamp]
    with seen_by_workers(engine):
        hashed = map_merge(
            "hash", [files.leaves(one) for one in fresh], each=files.digest_leaf, merge=files.digest_of, engine=engine
        )
    for one, (digest, quoted) in zip(fresh, hashed, strict=True):
        known[one.location] = (one.stamp, digest, quoted)
    found = [_identified(store, one, known[one.location]) for one in sources]
    lasting = {one.location: known[one.location] for one in sources if one.touched_ns < listed_ns - _UNSURE_NS}
    if lasting != _remembered(store):
        folders.write(store.folder / "names.json", json.dumps(lasting, sort_keys=True).encode())
    return found


def _identified(store: Store, source: Source, known: tuple[str, str, bool]) -> Identified:
    _, digest, quoted = known
    return Identified(source, digest, store.content(digest), quoted)


def _remembered(store: Store) -> dict[str, tuple[str, str, bool]]:
    try:
        found = json.loads((store.folder / "names.json").read_bytes())
        return {str(name): (str(stamp), str(digest), bool(quoted)) for name, (stamp, digest, quoted) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def open_file(file: Identified, *, store: Store) -> Opened:
    """Return a file's header.

    Raises:
        InputError: binary or UTF-16, an unknown header (naming the columns found and the nearest known layout).
    """
    header, data_start = recognised(file.source, store.layout)
    return Opened(file, header, data_start)


def recognised(source: Source, layout: Layout) -> tuple[Header | None, int]:
    """Return a file's header under a layout (None: it has no rows), and where its first data row begins.

    Raises:
        InputError: as `open_file`.
    """
    head = files.read_head(source)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error("is UTF-16; save it as UTF-8")
    if b"\x00" in head:
        raise source.error("is binary, not CSV")
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    kept = head[bom:].splitlines(keepends=True)
    if not head[bom:].strip() and len(head) < files.HEAD_BYTES:
        return None, len(head)
    lines = [line.decode("latin-1").rstrip("\r\n") for line in kept]
    _require_commas(source, lines[0])
    try:
        header = layout.recognise(lines)
    except InputError as error:
        raise source.error(str(error), private=error.private) from None
    if header is None:
        raise _unknown_header(source, lines, layout)
    return header, bom + sum(len(line) for line in kept[: header.lines])


def _require_commas(source: Source, line: str) -> None:
    """Raise InputError for a first line without a comma whose columns stand apart by something else."""
    for mark, word in _APART_BY.items():
        if "," not in line and line.count(mark) > 1:
            raise source.error(f"its columns stand apart by {word}; write the table again with commas between them")


def _unknown_header(source: Source, lines: Sequence[str], layout: Layout) -> InputError:
    """Return the error; what was found stays private: without a header line it is a household's first row."""
    found = lines[0] if len(lines[0].replace(",", "")) > 0 else (lines[1] if len(lines) > 1 else "")
    every = [(name, text) for name, other in LAYOUTS.items() for text in other.known_headers()]
    nearest = difflib.get_close_matches(found, [text for _, text in every], n=1, cutoff=0.0)
    name = next((name for name, text in every if [text] == nearest), layout.name)
    hint = f'did you mean dataset = "{name}"?' if name != layout.name else _DESCRIBE
    rest = f'are not those of dataset "{layout.name}"; the nearest known are "{nearest[0]}"; {hint}'
    return source.error(f"its columns {rest}", private=f'columns "{shown(found, 120)}" {rest}')

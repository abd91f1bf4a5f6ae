"""Which files of the store count although they are no longer delivered, and whether all that should count can.

A nightly delivery may be cleared away once it is read. What was read under other rules, or as another dataset, says
something else and never counts: two populations may share a folder, and a bound may be amended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agedp_data.errors import InputError
from pipelines.readings.manifest import Manifest
from pipelines.readings.opening import Identified
from pipelines.readings.store import Store

_AGAIN = "put the files back in [input] files"


def remembered(store: Store, known: Mapping[str, Manifest], listed: Sequence[Identified]) -> dict[str, Manifest]:
    """Return the stored files that count whether or not they are still listed: those read as the run file says now.

    Of bytes that were read under several formats only the newest counts; those that are listed are read again.
    """
    if not store.order.remembers:
        return {}
    now = {content: one for content, one in known.items() if one.read_as == store.read_as}
    again = {one.digest for one in now.values()} | {one.digest for one in listed}
    before = {content: one for content, one in known.items() if store.counts(one) and one.digest not in again}
    return now | before


def require_there(
    store: Store, known: Mapping[str, Manifest], earlier: Mapping[str, Manifest], listed: Sequence[Identified]
) -> None:
    """Check that files that are no longer listed can be counted from the store.

    Args:
        store: the confidential store.
        known: what is stored, under whatever rules it was read.
        earlier: what of it counts anyway (`remembered`).
        listed: the input files.

    Raises:
        InputError: their readings or manifests are damaged, or they were read under other rules and are not let go yet.
    """
    if not store.order.remembers:
        return
    gone = earlier.keys() - {one.content for one in listed}
    if lacking := sum(not store.holds(content, earlier[content]) for content in gone):
        raise InputError(
            f"the confidential store lacks readings of {lacking} files that are no longer delivered; {_AGAIN}"
        )
    if damaged := len(set(store.noted()) - known.keys() - {one.content for one in listed}):
        notes = f"the notes on {damaged} files that the store holds are damaged: without them they do not count"
        raise InputError(
            f"{notes}; {_AGAIN}, then remove the damaged notes",
            private=f"{store.folder / 'files'}: {notes}; {_AGAIN}, then remove the damaged notes",
        )
    digests = {one.digest for one in listed} | {one.digest for one in earlier.values()}
    keys = _other_rules(store, [one for one in known.values() if one.digest not in digests])
    if "format" in keys:
        raise InputError(f"files that are no longer delivered were read by another version of agedp; {_AGAIN}")
    if keys:
        raise InputError(
            f"files that are no longer delivered were read under another [input] {', '.join(sorted(keys))}; "
            f"{_AGAIN}, or change the key back"
        )


def _other_rules(store: Store, others: Sequence[Manifest]) -> set[str]:
    """Return the keys under which files of the same table were read otherwise, if any of their months is still there.

    A table of another dataset, or of other columns, is another delivery and nothing that is lacking here.
    """
    now, forgotten = store.read_as, store.forgotten_before()
    keys: set[str] = set()
    for manifest in others:
        same_table = all(manifest.read_as.get(key) == now.get(key) for key in ("dataset", "columns"))
        if same_table and any(month >= forgotten for month in manifest.months):
            keys |= _differing(manifest.read_as, now)
    return keys


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}

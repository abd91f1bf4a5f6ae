"""Stored files that count although they are no longer listed, and the check that all of them can be counted.

A delivery may be removed once it is ingested. Files that were parsed under different rules, or as another dataset,
never count: two populations may share a folder, and a bound may be amended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agedp_data.errors import InputError
from pipelines.readings.manifest import Manifest
from pipelines.readings.opening import IdentifiedFile
from pipelines.readings.store import Store

_REMEDY = "put the files back in [input] files"


def select_counted_manifests(
    store: Store, stored: Mapping[str, Manifest], listed: Sequence[IdentifiedFile]
) -> dict[str, Manifest]:
    """Return the stored files that count, listed or not: those parsed under the present rules of the run file.

    Of a file that was parsed under several formats only the newest counts; listed files are parsed again.
    """
    if not store.order.keeps_unlisted:
        return {}
    current = {content: manifest for content, manifest in stored.items() if manifest.read_as == store.read_as}
    listed_digests = {manifest.digest for manifest in current.values()} | {manifest.digest for manifest in listed}
    earlier = {
        content: manifest
        for content, manifest in stored.items()
        if store.is_read_alike(manifest) and manifest.digest not in listed_digests
    }
    return current | earlier


def check_unlisted_files(
    store: Store, stored: Mapping[str, Manifest], earlier: Mapping[str, Manifest], listed: Sequence[IdentifiedFile]
) -> None:
    """Check that files that are no longer listed can be counted from the store.

    Args:
        store: the confidential store.
        stored: the manifests of all stored files, under any rules.
        earlier: those that count (`select_counted_manifests`).
        listed: the input files.

    Raises:
        InputError: their readings or manifests are damaged, or they were parsed under different rules and are retained.
    """
    if not store.order.keeps_unlisted:
        return
    unlisted = earlier.keys() - {file.content for file in listed}
    if missing := sum(not store.contains(content, earlier[content]) for content in unlisted):
        raise InputError(
            f"the confidential store lacks readings of {missing} files that are no longer delivered; {_REMEDY}"
        )
    if damaged := len(set(store.manifest_contents()) - stored.keys() - {file.content for file in listed}):
        notes = f"the notes on {damaged} files that the store holds are damaged: without them they do not count"
        raise InputError(
            f"{notes}; {_REMEDY}, then remove the damaged notes",
            private=f"{store.folder / 'files'}: {notes}; {_REMEDY}, then remove the damaged notes",
        )
    digests = {file.digest for file in listed} | {file.digest for file in earlier.values()}
    keys = _changed_keys(store, [file for file in stored.values() if file.digest not in digests])
    if "format" in keys:
        raise InputError(f"files that are no longer delivered were read by another version of agedp; {_REMEDY}")
    if keys:
        raise InputError(
            f"files that are no longer delivered were read under another [input] {', '.join(sorted(keys))}; "
            f"{_REMEDY}, or change the key back"
        )


def _changed_keys(store: Store, manifests: Sequence[Manifest]) -> set[str]:
    """Return the keys that differ for files of the same table, if any of their months is retained.

    A table of another dataset, or with different columns, is a different delivery and not missing here.
    """
    current, retained_from = store.read_as, store.retained_from()
    keys: set[str] = set()
    for manifest in manifests:
        same_table = all(manifest.read_as.get(key) == current.get(key) for key in ("dataset", "columns"))
        if same_table and any(month >= retained_from for month in manifest.months):
            keys |= _differing_keys(manifest.read_as, current)
    return keys


def _differing_keys(stored: Mapping[str, Any], current: Mapping[str, Any]) -> set[str]:
    return {key for key in stored.keys() | current.keys() if stored.get(key) != current.get(key)}

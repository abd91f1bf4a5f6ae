"""The keys that sign release folders: <confidential>/signing_keys/<fingerprint>.pem, of which the ledger names one.

Every key stays, so that a folder as of an earlier date is signed as it was. The confidential folder is not handed
over; a copy of the key belongs where copies of the ledger are.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

from agedp.local_files import atomic_files
from agedp_data.errors import RunFileError
from agedp_data.ledger import Ledger
from agedp_data.ledger.lifecycle import LEDGER_POPULATION, SigningKey
from agedp_data.ledger.signature import FolderKey, KeyHistory

_MISSING: Final = "[output] sign = true needs a signing key in the confidential folder"


def keys_of(ledger: Ledger | None) -> KeyHistory:
    """Return the keys that a ledger names; none without a ledger."""
    return KeyHistory() if ledger is None else KeyHistory.of(ledger.statements(LEDGER_POPULATION))


def _paths(folder: Path) -> list[Path]:
    return sorted((folder / "signing_keys").glob("*.pem"))


def _load(path: Path) -> FolderKey:
    key = FolderKey(path.read_bytes())
    if key.fingerprint != path.stem:
        raise RunFileError(f"{_MISSING}: the file of key {path.stem[:16]} holds another key; put back a copy of it")
    return key


def signing_key(folder: Path, keys: KeyHistory) -> FolderKey:
    """Return the key that signs: the newest that the ledger names or, where it names none yet, the one that is there.

    Raises:
        RunFileError: it is missing; the message says how to make one, or that it is lost.
    """
    paths = {path.stem: path for path in _paths(folder)}
    if keys.newest:
        if keys.newest not in paths:
            raise RunFileError(
                f"{_MISSING}: key {keys.newest[:16]}, which the ledger names, is missing. Put back a copy of its file; "
                "if it is lost, `agedp key create --replace` makes another, and verification says so"
            )
        return _load(paths[keys.newest])
    if len(paths) != 1:
        problem = "there are several, and the ledger names none; move all but one away"
        raise RunFileError(f"{_MISSING}: {problem if paths else '`agedp key create RUN.toml` makes it'}")
    return _load(*paths.values())


def create_key(folder: Path, ledger: Ledger | None, *, at: str | date, replaces: bool = False) -> FolderKey:
    """Write a new key into the confidential folder and, if the ledger names one, a row that it follows.

    Args:
        folder: the confidential folder.
        ledger: None before the first release.
        at: date of the row.
        replaces: whether a key that exists, or that the ledger names, is replaced.

    Raises:
        RunFileError: there is a key, and it is not to be replaced.
    """
    keys, paths = keys_of(ledger), {path.stem: path for path in _paths(folder)}
    if not replaces and (keys.newest or paths):
        shown = keys.newest or min(paths)
        raise RunFileError(f"key {shown} signs already; `agedp key create --replace` makes another, which it signs")
    new = FolderKey.create()
    place = atomic_files.make_private(folder / "signing_keys")
    atomic_files.write(place / f"{new.fingerprint}.pem", new.pem())
    if ledger is not None and keys.newest:
        old = _load(paths[keys.newest]) if keys.newest in paths else None
        record = SigningKey(new.fingerprint) if old is None else old.successor(new.fingerprint)
        ledger.record_key(record, at=at)
    named = {fingerprint for fingerprint, _, _ in keys.keys}
    for fingerprint, path in paths.items():
        if fingerprint not in named:  # no folder was ever signed by it
            path.unlink(missing_ok=True)
    return new

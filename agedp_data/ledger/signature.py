"""The signature of a release folder: Ed25519 over what it was published from, and over its checksums.

    SIGNATURE.json   {"schema": ..., "signs": {"population": ..., "ledger": ..., "head": ..., "rows": 120,
                      "sha256sums": ...}, "key": <public key>, "signature": ...}

SHA256SUMS does not list the file, because it signs SHA256SUMS. The signature says that the holder of a key published
these bytes. It says neither who holds the key, nor that noise was drawn, nor that nothing else was released.

The ledger names keys by their fingerprint, the SHA-256 of the public key (`lifecycle.SigningKey`). A new key is signed
by the one before it: the row has that public key and the signature, so that whoever knows the first fingerprint can
follow to the newest key. A lost key cannot sign; the row then has no signature, and verification says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from agedp_data.errors import InputError
from agedp_data.foreign_files import parse_json
from agedp_data.ledger.lifecycle import SigningKey, read_lifecycle_record
from agedp_data.ledger.records import Row, StatementRecord, canonical

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SCHEMA: Final = "agedp-signature-1"
_FOLDER, _KEY = b"agedp release folder\n", b"agedp signing key\n"
"""What a signature is of: none is ever that of the other."""
_DIFFERS: Final = "SIGNATURE.json is no signature of this folder; ask for the release again"


@dataclass(frozen=True, slots=True)
class SignedFolder:
    """What is signed: population, ledger with the head that the folder names and its number, SHA-256 of SHA256SUMS."""

    population: str
    ledger: str
    head: str
    rows: int
    sha256sums: str

    @property
    def message(self) -> bytes:
        """Return the bytes that are signed."""
        return _FOLDER + canonical(asdict(self)).encode()


class FolderKey:
    """A private key that signs release folders and later keys.

    >>> key = FolderKey.create()
    >>> len(key.fingerprint), FolderKey(key.pem()).fingerprint == key.fingerprint
    (64, True)
    """

    def __init__(self, pem: bytes) -> None:
        """Read a key as `pem` returns it.

        Raises:
            InputError: these bytes are no such key.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  (slow)
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise InputError("the signing key in the confidential folder is damaged; put back a copy of its file")
        self._key: Ed25519PrivateKey = key

    @classmethod
    def create(cls) -> Self:
        """Return a new key; its entropy is the operating system's."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

        return cls(_pem(Ed25519PrivateKey.generate()))

    def pem(self) -> bytes:
        """Return the private key as the text of a file, without a password."""
        return _pem(self._key)

    @property
    def public(self) -> str:
        """Return the public key, 32 bytes as hexadecimal text."""
        return self._key.public_key().public_bytes_raw().hex()

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the public key, by which the ledger and recipients name it."""
        return fingerprint_of(self.public)

    def sign(self, folder: SignedFolder) -> bytes:
        """Return the content of SIGNATURE.json; the same folder and key give the same bytes."""
        signature = self._key.sign(folder.message).hex()
        document = {"schema": SCHEMA, "signs": asdict(folder), "key": self.public, "signature": signature}
        return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()

    def successor(self, fingerprint: str) -> SigningKey:
        """Return the record of a new key that this one signs."""
        signature = self._key.sign(_KEY + fingerprint.encode()).hex()
        return SigningKey(fingerprint, f"{self.public} {signature}")


def _pem(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    private, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, private, plain)


def fingerprint_of(public: str) -> str:
    """Return the SHA-256 of a public key that is hexadecimal text.

    Raises:
        ValueError: it is none.
    """
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()


def _is_signed(public: str, signature: str, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


_KEYS: Final = {"schema", "key", "signature", "signs"}


def check_signature(content: bytes, folder: SignedFolder) -> str:
    """Check the content of SIGNATURE.json against a folder, and return the fingerprint of the key that signed it.

    Args:
        content: of SIGNATURE.json.
        folder: of which `rows` is at most the number of rows up to its head.

    Raises:
        InputError: it is damaged, of another folder, or its signature is false.
    """
    try:
        document: dict[str, Any] = parse_json(content)
        public, signature, signed = document["key"], document["signature"], SignedFolder(**document["signs"])
        is_of_folder = replace(signed, rows=folder.rows) == folder and signed.rows >= folder.rows
        if (
            document.keys() == _KEYS
            and document["schema"] == SCHEMA
            and is_of_folder
            and _is_signed(public, signature, signed.message)
        ):
            return fingerprint_of(public)
    except (LookupError, TypeError, ValueError):
        pass
    raise InputError(_DIFFERS)


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The keys of a ledger, oldest first: fingerprint, date of its row, and whether the key before it signed it."""

    keys: tuple[tuple[str, str, bool], ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row]) -> KeyHistory:
        """Return the keys that ledger rows name."""
        keys: list[tuple[str, str, bool]] = []
        for row in rows:
            record = read_lifecycle_record(row) if isinstance(row, StatementRecord) else None
            if isinstance(record, SigningKey):
                before = keys[-1][0] if keys else ""
                keys.append((record.fingerprint, row.at, _follows(record, before)))
        return cls(tuple(keys))

    @property
    def newest(self) -> str:
        """Return the fingerprint of the newest key, "" without one."""
        return self.keys[-1][0] if self.keys else ""

    @property
    def breaks(self) -> tuple[tuple[str, str], ...]:
        """Return fingerprint and date of each later key that the one before it did not sign."""
        return tuple((key, at) for key, at, is_signed in self.keys[1:] if not is_signed)

    def trusts(self, fingerprint: str) -> bool:
        """Return whether the newest key is this one, or follows from it, each signed by the one before it."""
        places = [place for place, (key, _, _) in enumerate(self.keys) if key == fingerprint]
        return bool(places) and all(is_signed for _, _, is_signed in self.keys[places[-1] + 1 :])


def _follows(record: SigningKey, before: str) -> bool:
    public, _, signature = record.signature.partition(" ")
    try:
        is_of_key = bool(before) and fingerprint_of(public) == before
    except ValueError:
        return False
    return is_of_key and _is_signed(public, signature, _KEY + record.fingerprint.encode())

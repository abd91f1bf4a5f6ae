"""The key and the place of the household register: created together, and noticed when one of them is lost.

    <confidential>/household_register.key       32 random bytes of the system, for its owner only
    <confidential>/household_register.sqlite    the register, unless [output] household_register names another place

The key is in each confidential folder that uses the register, or beside a file of SQLite that several folders share; a
database on a server never sees it. A register that is being created has its key under a temporary name, so that a
killed run leaves neither a key without a register nor a register without a key.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agedp.internal_records.roster_ranges import HouseholdKey
from agedp.local_files import atomic_files, locks
from agedp.local_files.atomic_files import DamagedFile
from agedp.local_files.internal_files import InternalPaths
from agedp_data.errors import LedgerError
from agedp_data.ledger.household_register import HouseholdRegister

KEY_BYTES: Final = 32
CHECK, BEGAN, REBUILT = "check", "began", "rebuilt"
_KEY_FILE: Final = "household_register.key"
_REGISTER_FILE: Final = "household_register.sqlite"
_FILE_URL: Final = "sqlite:///"
_COPY = (
    f"put back a copy of {_KEY_FILE}, from a backup or from another confidential folder that uses the register. If "
    "there is none, nobody can use the register any more: name another one, and fill it from each of its ledgers "
    "(`agedp ledger households RUN.toml --rebuild`)"
)
_ADVICE = (
    f"nothing was drawn; put back {_REGISTER_FILE} and {_KEY_FILE} (from the earlier confidential folder, if this is a "
    "new one), or fill a register from this ledger and roster (`agedp ledger households RUN.toml --rebuild`)"
)
_LOST = f"the household register is not there, although it counted releases of these households before; {_ADVICE}"
UNKNOWN_POPULATION: Final = (
    "the household register does not know this population, although it counted it before: it is another register, or "
    f"began anew; {_ADVICE}"
)


@dataclass(frozen=True, slots=True)
class RegisterPlace:
    """Where a run finds the household register and its key.

    Attributes:
        folder: the confidential folder, which holds the key.
        url: the address of [output] household_register; None for the file in the confidential folder.
    """

    folder: Path
    url: str | None = None

    def register(self) -> HouseholdRegister:
        """Return the register, whether or not it exists."""
        return HouseholdRegister(self.url or f"sqlite:///{(self.folder / _REGISTER_FILE).absolute()}")

    @property
    def cache(self) -> Path:
        """Return the folder of what is derived from the roster file."""
        return InternalPaths(self.folder).roster

    def exists(self, *, expected: bool) -> bool:
        """Return whether there is a register with its key; False only where there never was one.

        Args:
            expected: whether the ledger has an account that was computed from a register.

        Raises:
            LedgerError: the register or its key is lost, or the key is that of another register.
            DamagedFile: the key is damaged.
        """
        try:
            return self._is_complete(expected=expected)
        except LedgerError:
            with locks.exclusive_lock(self._key_path.parent):  # another run may just have created both
                return self._is_complete(expected=expected)

    def _is_complete(self, *, expected: bool) -> bool:
        key, is_begun = self._read_key(self._key_path), False
        with self.register() as register:
            exists = register.exists()
            check = register.read(lambda rows: rows.meta()[CHECK]) if exists else ""
        if key is None and exists:
            begun = self._read_key(self._begun_path)
            is_begun = begun is not None and begun.check == check
        if (key is not None and not exists) or (expected and key is None and not exists):
            raise LedgerError(_LOST)
        if key is None and exists and not is_begun:
            raise LedgerError(f"the key of the household register is not there; nothing was drawn; {_COPY}")
        if key is not None and key.check != check:
            raise LedgerError(f"the household register was filled with another key; nothing was drawn; {_COPY}")
        return exists and not is_begun

    def ensure(self, *, today: str, rebuilding: bool = False) -> HouseholdKey:
        """Return the key of the register; create both if there is none.

        Args:
            today: date from which on a new register counts.
            rebuilding: whether a lost register is created again; it keeps its key, if that exists.

        Raises:
            LedgerError: as `exists`.
        """
        key = self._read_key(self._key_path)
        if key is not None and not rebuilding:
            return key
        with locks.exclusive_lock(self._key_path.parent):
            key = self._read_key(self._key_path)
            if key is not None and not rebuilding:  # another run was faster
                return key
            begun = key or self._read_key(self._begun_path)
            if begun is None:
                begun = HouseholdKey(os.urandom(KEY_BYTES))
                atomic_files.write(self._begun_path, begun.secret)
            with self.register() as register:
                register.create({CHECK: begun.check, BEGAN: today, REBUILT: today if rebuilding else ""})
                if register.read(lambda rows: rows.meta()[CHECK]) != begun.check:  # another machine was faster
                    raise LedgerError(f"the household register was filled with another key; nothing was drawn; {_COPY}")
            if key is None:
                with atomic_files.write_errors(self._key_path):
                    self._begun_path.replace(self._key_path)
            return begun

    @property
    def _key_path(self) -> Path:
        """Return where the key is: in the confidential folder, or beside a file that several folders share."""
        own = self.folder / _KEY_FILE
        shared = self.url is not None and self.url.startswith(_FILE_URL) and not atomic_files.path_exists(own)
        return Path(str(self.url).removeprefix(_FILE_URL)).parent / _KEY_FILE if shared else own

    @property
    def _begun_path(self) -> Path:
        return self._key_path.with_name(f"{_KEY_FILE}.begun")

    @staticmethod
    def _read_key(path: Path) -> HouseholdKey | None:
        if not atomic_files.path_exists(path):
            return None
        try:
            secret = path.read_bytes()
        except OSError as error:
            raise atomic_files.unreadable_error(path, error.errno) from None
        if len(secret) != KEY_BYTES:
            raise DamagedFile(f"{_KEY_FILE} in the confidential folder is damaged; {_COPY}")
        return HouseholdKey(secret)

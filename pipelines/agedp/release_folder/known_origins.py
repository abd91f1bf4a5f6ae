"""Origins of a release folder's files, read from the record of their publication while they are unchanged."""

from __future__ import annotations

from pathlib import Path

from agedp.internal_records.publication_record import PublicationRecord
from agedp.release_folder.origin import ReleaseOrigin, release_origins
from agedp.release_folder.release_folder import SUMS


def known_origins(folder: Path, publication: PublicationRecord | None) -> frozenset[ReleaseOrigin]:
    """Return the origins that the files of a release folder name; the files are read if the record is not of them.

    Raises:
        InputError: as `release_origins`.
    """
    if publication is not None and publication.is_of_folder(folder, sums=SUMS):
        return frozenset({ReleaseOrigin(publication.population, publication.origin_head)})
    return release_origins(folder)

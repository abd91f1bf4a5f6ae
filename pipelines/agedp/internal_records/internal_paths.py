"""Names of the files in the confidential folder of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class InternalPaths:
    """The confidential folder of a run, and its files.

    >>> InternalPaths(Path("confidential")).coverage.as_posix()
    'confidential/coverage.parquet'
    """

    folder: Path

    @property
    def store(self) -> Path:
        """The folder of the stored readings."""
        return self.folder / "store"

    @property
    def release_copy(self) -> Path:
        """The local copy of a release folder at a URL."""
        return self.folder / "release"

    @property
    def sums(self) -> Path:
        """The daily sums of the last run."""
        return self.folder / "sums.parquet"

    @property
    def true_means(self) -> Path:
        """The table of true means."""
        return self.folder / "true_means.parquet"

    @property
    def true_counts(self) -> Path:
        """The table of true counts."""
        return self.folder / "true_counts.parquet"

    @property
    def coverage(self) -> Path:
        """The table of coverage."""
        return self.folder / "coverage.parquet"

    @property
    def counted_states(self) -> Path:
        """The table of means by states and by readings."""
        return self.folder / "counted_states.parquet"

    @property
    def quality(self) -> Path:
        """The table of kept and rejected rows by file and reason."""
        return self.folder / "quality.parquet"

    @property
    def roster_history(self) -> Path:
        """The rosters of released days."""
        return self.folder / "released_rosters.parquet"

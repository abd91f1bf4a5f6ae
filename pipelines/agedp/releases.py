"""`agedp.release`, `plan`, `compare` and `sanitise` on tables in memory: the stages of a run on a temporary run file.

The keywords are those of a run file; the same stages plan, sum, draw and publish. Without `ledger` the ledger ends with
this process, and the statement says so. With the URL of one, all rules of a run apply: days are drawn once, losses add
up, and a changed promise is refused.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from agedp import plots
from agedp.compute.engine_settings import Scheduler
from agedp.input_findings import noted, warn_of
from agedp.ledger_session import LedgerSession
from agedp.pipeline import run_stages
from agedp.promises import PromiseKeys
from agedp.release_folder.partitions import list_files
from agedp.release_folder.release_folder import ReleaseFolder, is_release_file
from agedp.release_options import ReleaseOptions, context_of, with_options
from agedp.run_context import RunContext
from agedp.stages.plan import find_due_days, plan_due_days
from agedp.workspace import Workspace
from agedp_data.errors import InputError, PreflightFailed, Refused, RunFileError
from agedp_data.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd

    from agedp.release_verification import Verification


_LOG = logging.getLogger("agedp")


@dataclass(frozen=True, slots=True)
class Release:
    """Released days: their table and statement, and the ledger that remembers what was spent."""

    folder: ReleaseFolder
    ledger: Ledger
    _owner: Workspace | None = None

    @property
    def table(self) -> pd.DataFrame:
        """The published values, indexed by day: `daily_averages.parquet` or `daily_distribution.parquet`."""
        return self.folder.table().set_index("day")

    @property
    def statement(self) -> dict[str, Any]:
        """The statement, as in statement.json."""
        return self.folder.statement

    @property
    def bounds(self) -> pd.DataFrame:
        """The bounds of the statement on the privacy loss, one row each, those without assumption first."""
        import pandas as pd  # noqa: PLC0415

        bounds = self.folder.read_statement().bounds
        names = ("name", "epsilon", "factor", "limit", "kind", "scope", "assumption")
        frame = pd.DataFrame([{name: getattr(bound, name) for name in names} for bound in bounds])
        if any(bound.conditional_days for bound in bounds):  # beside a model that is published without noise
            frame["conditional_days"] = [bound.conditional_days or "" for bound in bounds]
        if any(bound.delta for bound in bounds):
            frame["delta"] = [float(bound.delta or 0) for bound in bounds]
        frame["epsilon"] = [float("inf") if bound.epsilon == "infinite" else float(bound.epsilon) for bound in bounds]
        return frame

    def plot(self) -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot the published means with their noise intervals, or the mean count of each range of a distribution."""
        table = self.table
        return plots.means(table) if "mean_kwh" in table else plots.counts(table)

    def save(self, folder: str | Path) -> ReleaseFolder:
        """Copy the release folder to a new or empty folder, which may be handed over; `agedp verify` checks it.

        Raises:
            InputError: the folder has files already.
        """
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{target.name}: has files already; name a new or empty folder")
        target.mkdir(parents=True, exist_ok=True)
        for name in filter(is_release_file, list_files(self.folder.path)):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.folder.path / name, target / name)
        return ReleaseFolder(target)

    def verify(self) -> Verification:
        """Verify the release folder, as a recipient would."""
        return self.folder.verify()


@with_options
def release(
    source: Any,  # noqa: ANN401  (the path of a run file, or any table of readings)
    *,
    promise: PromiseKeys | None = None,
    scheduler: Scheduler = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> Release:
    r"""Release every due day of a run file, or every day of a table of readings, under a promise.

    Use it to publish. Each day's sum of n households, clamped at U, has discrete Laplace noise of its own. The noise of
    the mean, with the epsilon that the promise grants the day, has the standard deviation

    .. math:: \sigma = \frac{\sqrt 2\, U}{\varepsilon\, n} \text{ kWh per household}

    Source: [GRS] Ghosh, Roughgarden, Sundararajan (2009); `agedp_data.mechanisms.discrete_laplace`.

    Args:
        source: the path of a run file, which says everything else; or a table with the columns of `agedp.read`.
        promise: the promise, one of `agedp.Classical`, `WEvent`, `AgeDependent`, `Temporal`, `Discounted`,
            `Neighbourhood`.
        scheduler: a Dask scheduler, client or cluster; the active client, or threads, if not given.
        as_of: of a run file in a rehearsal, the simulated date.
        options: `ReleaseOptions`; `clamp_kwh` and `min_households` have no default.

    Returns:
        The release. Without `ledger`, releasing the same days again draws again and the losses add: pass one ledger
        to have them composed and limited.

    Raises:
        RunFileError: a missing or invalid keyword, or keywords beside a run file.
        InputError: a table that has not the columns of `agedp.read`.
        PreflightFailed: readings that refuse a first release; `agedp.findings` names the causes.
        Refused: the promise does not permit a day. Nothing is drawn of a table; of a run file the days before it are
            released.
        ContractChanged: the ledger holds releases of this population under another promise.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100)
    >>> released = release(readings, promise=promise, clamp_kwh=50, min_households=2)
    >>> released.table["noise_sd_kwh"].round(1).tolist(), released.bounds.set_index("name")["epsilon"]["total"]
    ([70.7, 70.7], np.float64(1.0))
    >>> released.verify().compared[:3]
    ('checksums', 'tables', 'statement.json')
    """
    run, workspace = context_of(source, promise, options, scheduler=scheduler, as_of=as_of)
    if workspace is not None:
        _check_all_days_permitted(run)
    summary = run_stages(run)
    if isinstance(summary.refusal, PreflightFailed):
        raise noted(summary.refusal)
    summary.check_not_refused()
    if summary.checked is not None and workspace is not None:
        warn_of(summary.checked.findings)
    ledger = options.get("ledger")
    if not isinstance(ledger, Ledger):
        ledger = Ledger.open(run.run_file.output.ledger)
    return Release(ReleaseFolder(run.release_folder), ledger, workspace)


def _check_all_days_permitted(run: RunContext) -> None:
    """Check that the promise permits every day of a table: whoever releases a table expects all of its days.

    Raises:
        Refused: it does not permit a day.
    """
    session = LedgerSession.open(run)
    refusal = plan_due_days(session.terms(), find_due_days(session).due, session.history).refused
    if refusal is not None:
        raise Refused(f"{refusal}. Give last_day= to release the days before it, or another promise")
    if days := session.released_days:
        _LOG.warning(
            "agedp: the ledger has %d released days of population %r already; they are returned as they are, and "
            "nothing is drawn for them. Other households need another population=",
            len(days),
            session.population,
        )


@with_options
def sanitise(
    source: Any,  # noqa: ANN401
    *,
    folder: str | Path | None = None,
    promise: PromiseKeys | None = None,
    scheduler: Scheduler = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> ReleaseFolder:
    """Release as `release` does, and return the release folder: that of the run file, or `folder` for a table.

    Use it where the folder is what you want, such as in a scheduled job. Arguments are those of `agedp.release`.

    Args:
        source: the path of a run file, or a table with the columns of `agedp.read`.
        folder: a new or empty folder for the release of a table.
        promise: as in `release`.
        scheduler: as in `release`.
        as_of: as in `release`.
        options: as in `release`.

    Raises:
        RunFileError: no `folder` for a table, or one beside a run file; and as `release`.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100)
    >>> from tempfile import mkdtemp
    >>> folder = sanitise(readings, folder=mkdtemp(), promise=promise, clamp_kwh=50, min_households=2)
    >>> verification = agedp.verify(folder.path)
    """
    if isinstance(source, str | Path):
        if folder is not None:
            raise RunFileError("sanitise: a run file names its release folder; leave out folder=")
        return release(source, promise=promise, scheduler=scheduler, as_of=as_of, **options).folder
    if folder is None:
        raise RunFileError("sanitise: give folder=, where the release folder of a table is written")
    return release(source, promise=promise, scheduler=scheduler, as_of=as_of, **options).save(folder)

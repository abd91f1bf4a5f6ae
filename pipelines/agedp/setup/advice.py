"""Run file, or input files -> the advice of what can be published usefully (`planning.advisor`); draws nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agedp.budget import ReleaseTerms
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.planning.advisor import Advice, advise
from agedp.run_context import RunContext
from agedp.setup.init_run_file import init
from agedp.setup.run_file_draft import DraftPaths, RunFileDraft, load_decided
from agedp.setup.run_file_options import OptionValues
from agedp.workspace import Workspace
from agedp_data import clock
from agedp_data.roster import Roster


def advise_run_file(run_file: Path) -> Advice:
    """Return the advice for the roster, the period and the series of a run file.

    Raises:
        RunFileError, InputError: the run file or its roster cannot be used.
    """
    return advise_run(RunContext.load(run_file))


def advise_run(run: RunContext) -> Advice:
    """Return the advice for the inputs of a run, under its model if it has one."""
    bound = None if run.model is None else run.model.leakage_bound
    return advise(ReleaseTerms(run.run_file, bound), run.roster.counts, run.today)


def advise_files(
    patterns: Sequence[str],
    *,
    options: OptionValues | None = None,
    confidential: Path | None = None,
    progress: ProgressReporter = SILENT,
) -> Advice:
    """Return the advice for the households and the days that input files contain; writes to a temporary folder.

    What is read is kept in the folder `confidential`, if one is named, for a run that reads the same files.

    Raises:
        InputError, RunFileError: as `agedp init`.
    """
    workspace = Workspace.create()  # of its owner alone, and removed with this value
    paths = None if confidential is None else DraftPaths(confidential=str(confidential.absolute()))
    initial = init(patterns, folder=workspace.folder, options=options, paths=paths, progress=progress)
    return advise_draft(initial.draft, initial.read_roster(), base=workspace.folder)


def advise_draft(drafted: RunFileDraft, roster: Roster, *, base: Path) -> Advice:
    """Return the advice for a draft, with its proposals for what is not decided.

    Raises:
        RunFileError: the proposals do not go together.
    """
    run = load_decided(drafted.with_proposals(), base=base.absolute())
    advice = advise(ReleaseTerms(run), roster.counts, clock.today())
    return replace(advice, given=None) if drafted.undecided else advice

"""`agedp init` and `agedp sanitise`: from input files to a run file, or in one command to a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.ending import ResultView, end_run
from flows.commands.options import TO_BEGIN, JsonOption, QuietOption, answer
from flows.commands.run_file_options import with_run_file_options

app = typer.Typer()

FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILES", help="files, folders or globs", show_default=False)
]
Given = dict[str, str | bool | None]


@app.command(rich_help_panel=TO_BEGIN)
@with_run_file_options
def init(
    files: FilesArgument,
    folder: Annotated[Path, typer.Option("--in", help="where to write run.toml and roster.csv")] = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    *,
    given: Given,
) -> None:
    """Write a commented run file and a first roster, read off the files.

    An option is written into the run file. A deciding key without an option stays a "# decide:" line. The table of
    noise shows what this number of households gives under each notion; it decides nothing.

    Example: agedp init 'incoming/*.csv' --notion discounted --clamp-kwh 30
    """
    from flows.initial_text import initial_json, initial_lines
    from flows.progress import bars
    from pipelines.init import init as make
    from pipelines.run_file_options import toml_of

    with bars(wanted=not (as_json or quiet)) as told:
        made = make(files, folder=folder, given=toml_of(given), told=told)
    lines = [] if as_json or quiet else initial_lines(made)
    answer(initial_json(made), "\n".join(lines), as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=TO_BEGIN)
@with_run_file_options
def sanitise(
    files: FilesArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="the release folder", show_default=False)],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    *,
    given: Given,
) -> None:
    """Release a dataset once: init, calibrate if the notion needs an estimated model, and run, in one command.

    DIR is the release folder. Ledger, run file, roster and confidential folder lie in DIR-confidential. The same
    command again continues and draws nothing again.

    Example: agedp sanitise 'incoming/*.csv' --out out/2013 --notion classical --epsilon-per-day 0.5
    --max-day-epsilon 0.5 --epsilon-total 182.5 --clamp-kwh 30 --min-households 20
    """
    from flows.calibration import calibration_lines
    from flows.progress import bars
    from flows.words import result, result_lines
    from pipelines.one_off import release_files
    from pipelines.run_file_options import toml_of

    with bars(wanted=not (as_json or quiet)) as told:
        done = release_files(files, out=out, given=toml_of(given), told=told)

    def released() -> tuple[dict[str, Any], list[str]]:
        found, lines = result(done.work), result_lines(done.work)
        if done.calibration is None:
            return found, lines
        return {**found, "model": done.calibration.model.id}, [*calibration_lines(done.calibration), *lines]

    end_run(ResultView(as_json=as_json, quiet=quiet, warns=not as_json), done.work, done.error, released)

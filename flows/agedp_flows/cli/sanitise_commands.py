"""`agedp init` and `agedp sanitise`: from input files to a run file, or in one command to a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agedp_data.messages import escape_text
from agedp_flows.cli.options import TO_BEGIN, JsonOption, QuietOption, print_answer
from agedp_flows.cli.run_file_parameters import RunFileCommand, with_run_file_options
from agedp_flows.cli.run_results import ResultView, end_run

app = typer.Typer()

FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILES", help="files, folders or globs", show_default=False)
]
OptionTexts = dict[str, str | bool | None]


@app.command(cls=RunFileCommand, rich_help_panel=TO_BEGIN)
@with_run_file_options
def init(
    files: FilesArgument,
    folder: Annotated[Path, typer.Option("--in", help="where to write run.toml and roster.csv")] = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    *,
    option_texts: OptionTexts,
) -> None:
    """Write a commented run file and a first roster, both derived from the files.

    Options are written into the run file. A deciding key without an option
    becomes a line to decide. Before that, a table shows the noise of each notion
    at this number of households.

    Example: agedp init 'incoming/*.csv' --notion discounted --clamp-kwh 30
    """
    from agedp.setup.init_run_file import init as write_initial_files
    from agedp.setup.run_file_options import toml_of
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.text.init_text import initial_json, initial_lines

    with progress_bars(enabled=not (as_json or quiet)) as progress:
        initial = write_initial_files(files, folder=folder, options=toml_of(option_texts), progress=progress)
    lines = [] if as_json or quiet else initial_lines(initial)
    print_answer(initial_json(initial), "\n".join(lines), as_json=as_json, quiet=quiet)


@app.command(cls=RunFileCommand, rich_help_panel=TO_BEGIN)
@with_run_file_options
def sanitise(
    files: FilesArgument,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="the release folder", show_default=False)],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    *,
    option_texts: OptionTexts,
) -> None:
    r"""Release a dataset once: init, calibrate if the notion needs an estimated model, and run, in one command.

    DIR is the release folder. Ledger, run file, roster and confidential folder
    are in DIR-confidential. The same command again draws nothing; other options
    start anew until a day is released.
    Options that decide have no default. The second example estimates a model.

    Example: agedp sanitise 'incoming/*.csv' --out out/2013 --notion classical --epsilon-per-day 0.5 \
    --max-day-epsilon 0.5 --epsilon-total 182.5 --clamp-kwh 30 --min-households 20

    Example: agedp sanitise 'incoming/*.csv' --out out/aged --notion age-dependent \
    --mode rehearsal --age-days 2 --epsilon-per-day 0.5 --method tight --secret day --max-day-epsilon 0.5 \
    --epsilon-total 182.5 --clamp-kwh 30 --min-households 20 --assume markov --period all --step day --states 12 \
    --edges quantile --chain homogeneous --min-visits 5 --confidence plug-in --publish-envelope
    """
    from agedp.one_off import confidential_folder, release_files
    from agedp.setup.run_file_options import toml_of
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.text.calibration_text import calibration_lines
    from agedp_flows.text.run_text import result_json, result_lines

    with progress_bars(enabled=not (as_json or quiet)) as progress:
        result = release_files(files, out=out, options=toml_of(option_texts), progress=progress)

    def output() -> tuple[dict[str, Any], list[str]]:
        facts = result_json(result.run)
        confidential = confidential_folder(Path(out))
        location = Path(out).parent / confidential.name if Path(out).name else confidential  # --out . has no name
        hint = f"run file, ledger and confidential folder: {escape_text(str(location))} (keep it)"
        lines = [*result_lines(result.run), hint]
        if (model := result.run.session.model) is not None:
            facts["model"] = model.id
        calibration_text = [] if result.calibration is None else calibration_lines(result.calibration)
        return facts, [*calibration_text, *lines]

    end_run(ResultView(as_json=as_json, quiet=quiet, warns=not as_json), result.run, output)

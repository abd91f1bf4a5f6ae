"""`agedp sample` and `calibrate`: what is done once, before the first release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import TO_BEGIN, JsonOption, QuietOption, RunFileArgument, answer

app = typer.Typer()


@app.command(rich_help_panel=TO_BEGIN)
def sample(
    dataset: Annotated[
        str, typer.Argument(help="london or ausgrid", show_default=False, autocompletion=lambda: ["ausgrid", "london"])
    ],
    folder: Annotated[Path, typer.Argument(help="where to write", show_default=False)],
    households: Annotated[int, typer.Option(min=2, max=1_000_000, help="number of made-up homes")] = 300,
    days: Annotated[int, typer.Option(min=2, max=3650, help="number of days")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same homes")] = 1,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write made-up homes in the publisher's exact format, a roster and a rehearsal's run file.

    Example: agedp sample london out/london
    """
    from pipelines.sample import sample as make

    made = make(dataset, folder, households=households, days=days, seed=seed)
    answer({"run_file": str(made.run_file), "written": made.written}, made.words, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=TO_BEGIN)
def calibrate(run_file: RunFileArgument, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Estimate the model of a run file from its readings, once.

    Example: agedp calibrate london.toml
    """
    from flows.calibration import calibration_lines
    from flows.progress import bars
    from pipelines.calibrate import calibrate as make

    with bars(wanted=not (as_json or quiet)) as told:
        found = make(run_file, told=told)
    answer({"model": found.model.id}, "\n".join(calibration_lines(found)), as_json=as_json, quiet=quiet)

"""`agedp demo`, `sample` and `calibrate`: what is done once, before the first release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.options import TO_BEGIN, JsonOption, QuietOption, RunFileArgument, answer, say

if TYPE_CHECKING:
    from pipelines.blocks import ProgressReporter
    from pipelines.bound import Calibration

app = typer.Typer()


@app.command(rich_help_panel=TO_BEGIN)
def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="where to write; other files in it stay", show_default=False)
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show everything once on synthetic households: chains, bounds, and three notions on both formats.

    A page with pictures is written to DIR/index.html. With PREFECT_API_URL the flows run on that Prefect server.

    Example: agedp demo out
    """
    from flows.demonstration import DemoPage, Step, run_demonstration
    from flows.demonstration_lines import demonstration_json, step_lines, table_lines
    from flows.progress import bars
    from pipelines.demo.synthetic_datasets import Size

    words, steps = not (as_json or quiet), list[Step]()
    with bars(wanted=words) as progress:
        for step in run_demonstration(folder, Size(), progress=progress):
            if words and isinstance(step, DemoPage):
                say("\n".join(table_lines(steps)))
            if words:
                say("\n".join(step_lines(step, folder)))
            steps.append(step)
    if as_json:
        say(json.dumps(demonstration_json(steps)))


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
    answer({"run_file": str(made.run_file), "written": made.written}, made.message, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=TO_BEGIN)
def calibrate(
    run_file: RunFileArgument,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Estimate the Markov chains of the households and store their model, once.

    Example: agedp calibrate london.toml --flow
    """
    from flows.calibration import calibration_lines
    from flows.progress import bars

    with bars(wanted=not (as_json or quiet)) as told:
        found = (_calibrate_by_flow if through_prefect else _calibrate)(run_file, told)
    answer({"model": found.model.id}, "\n".join(calibration_lines(found)), as_json=as_json, quiet=quiet)


def _calibrate(run_file: Path, told: ProgressReporter) -> Calibration:
    from pipelines.calibrate import calibrate as make

    return make(run_file, told=told)


def _calibrate_by_flow(run_file: Path, told: ProgressReporter) -> Calibration:
    from flows.server import served_beside

    with served_beside(run_file):
        from flows.calibrate_flow import run_calibration

        return run_calibration(str(run_file), told).calibration

"""`agedp demo`, `sample` and `calibrate`: commands that run once, before the first release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agedp_flows.cli.options import TO_BEGIN, JsonOption, QuietOption, RunFileArgument, print_answer, print_text

if TYPE_CHECKING:
    from agedp.calibration.bound import Calibration
    from agedp.compute.engine_settings import ProgressReporter

app = typer.Typer()


@app.command(rich_help_panel=TO_BEGIN)
def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="where to write; other files in it are kept", show_default=False)
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show the whole pipeline on synthetic households: chains, bounds, and three notions in both formats.

    A page with pictures is written to DIR/index.html. With PREFECT_API_URL the flows run on that Prefect server.

    Example: agedp demo out
    """
    from agedp.demo.demo_steps import DemoPage, Step
    from agedp.demo.synthetic_datasets import Size
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.demonstration import run_demonstration
    from agedp_flows.text.demonstration_text import demonstration_json, step_lines, table_lines

    is_verbose, steps = not (as_json or quiet), list[Step]()
    with progress_bars(enabled=is_verbose) as progress:
        for step in run_demonstration(folder, Size(), progress=progress):
            if is_verbose and isinstance(step, DemoPage):
                print_text("\n".join(table_lines(steps)))
            if is_verbose:
                print_text("\n".join(step_lines(step, folder)))
            steps.append(step)
    if as_json:
        print_text(json.dumps(demonstration_json(steps)))


@app.command(rich_help_panel=TO_BEGIN)
def sample(
    dataset: Annotated[
        str, typer.Argument(help="london or ausgrid", show_default=False, autocompletion=lambda: ["ausgrid", "london"])
    ],
    folder: Annotated[Path, typer.Argument(help="where to write", show_default=False)],
    households: Annotated[int, typer.Option(min=2, max=1_000_000, help="number of synthetic households")] = 300,
    days: Annotated[int, typer.Option(min=2, max=3650, help="number of days")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="the same seed gives the same households")] = 1,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write synthetic households in the publisher's exact format, a roster and a rehearsal's run file.

    Example: agedp sample london out/london
    """
    from agedp.setup.sample import sample as write_sample

    sample_files = write_sample(dataset, folder, households=households, days=days, seed=seed)
    print_answer(
        {"run_file": str(sample_files.run_file), "written": sample_files.written},
        sample_files.message,
        as_json=as_json,
        quiet=quiet,
    )


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
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.text.calibration_text import calibration_lines

    with progress_bars(enabled=not (as_json or quiet)) as progress:
        calibration = (_calibrate_by_flow if through_prefect else _calibrate)(run_file, progress)
    print_answer(
        {"model": calibration.model.id}, "\n".join(calibration_lines(calibration)), as_json=as_json, quiet=quiet
    )


def _calibrate(run_file: Path, progress: ProgressReporter) -> Calibration:
    from agedp.calibration_pipeline import calibrate as calibrate_run_file

    return calibrate_run_file(run_file, progress=progress)


def _calibrate_by_flow(run_file: Path, progress: ProgressReporter) -> Calibration:
    from agedp_flows.prefect_server import server_for_run_file

    with server_for_run_file(run_file):
        from agedp_flows.calibrate_flow import run_calibration

        return run_calibration(str(run_file), progress).calibration

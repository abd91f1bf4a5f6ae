"""Commands to begin with: `agedp init`, `sanitise`, `demo`, `sample` and `calibrate`.

`init` writes a run file and `sanitise` releases in one command; both have an option for each line of
`agedp.setup.run_file_options` and for each key of a notion that has no line there.
"""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agedp_data.messages import escape_text
from agedp_flows.cli import options
from agedp_flows.text.screen import command_step

if TYPE_CHECKING:
    from agedp.calibration.bound import Calibration
    from agedp.compute.engine_settings import ProgressReporter
    from agedp.setup.run_file_draft import DraftPaths
    from agedp.setup.run_file_options import OptionValues, RunFileOption


app = options.CommandGroup()

PANELS: Final = {
    "protect": "Promise",
    "input": "Input",
    "input.columns": "Columns of a long table",
    "output": "Output",
    "population": "Population, period and series",
    "schedule": "Population, period and series",
    "series.daily_mean": "Population, period and series",
    "promise": "Promise",
    "model": "Model",
}


_SHOWN: Final = frozenset(
    (
        "protect", "epsilon", "delta", "mode", "age_days", "first_day", "notion", "statistic", "every", "by",
        "clamp_kwh", "min_households", "household_column", "time_column", "energy_column", "unit", "zone",
    )
)  # fmt: skip
"""Options that the help shows; every other key of a run file is set by --set, or by an option that is not shown."""
_GIVEN: Final[ContextVar[Mapping[str, Any]]] = ContextVar("run-file options", default=MappingProxyType({}))
"""The options of the running command that become keys of a run file, each text by the option's name."""
_WORDS: Final[ContextVar[tuple[str, ...]]] = ContextVar("command line", default=())
"""The command line of the running command."""


class RunFileCommand(options.OnceCommand):
    """A command that also takes an option for every key of a run file that decides something.

    They are made when the command itself is called, so that no other command waits for them. Typer passes on declared
    parameters alone; `_given_keys` has these.
    """

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  (typer does not export the type of a context)
        """Return the parameters of the command and those of the run file's keys, as typer makes them for a command."""

        def command(**_: str | None) -> None: ...

        parameters = [_parameter(option) for option in _run_file_options()]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app = typer.Typer(add_completion=False)
        app.command()(command)
        return [*super().get_params(ctx), *typer.main.get_command(app).params]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the arguments; `_WORDS` keeps them."""
        _WORDS.set((*ctx.command_path.split(), *args))
        if any(word.partition("=")[0] == "--memory" for word in args):
            from agedp_data.config.withdrawn import MEMORY
            from agedp_data.errors import RunFileError

            raise RunFileError(MEMORY.format(ctx.info_name))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Call the command; `_given_keys` returns what was given."""
        given = {option.name: ctx.params.pop(option.name) for option in _run_file_options()}
        _GIVEN.set({name: list(value) if isinstance(value, tuple) else value for name, value in given.items()})
        return super().invoke(ctx)


def _run_file_options() -> tuple[RunFileOption, ...]:
    from agedp.setup.run_file_options import OPTIONS, notion_options

    return (*OPTIONS, *notion_options())


def _parameter(option: RunFileOption) -> inspect.Parameter:
    from agedp.setup.run_file_options import SEVERAL

    panel = PANELS[option.key[0]]
    is_flag = option.form in ("flag", "switch")
    kind: Any = bool if is_flag else (list[str] if option.form in SEVERAL else str) | None
    metavar, default = (None, False) if is_flag else (option.metavar, None)
    is_hidden = option.name not in _SHOWN
    shown = typer.Option(option.flag, metavar=metavar, help=option.help, rich_help_panel=panel, hidden=is_hidden)
    declared = Annotated[kind, shown]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=declared)


SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", help="any other key of the run file; may be repeated"),
]


def _given_keys(further: list[str] | None) -> OptionValues:
    """Return the TOML text of the keys whose options were given, and of those of --set."""
    from agedp.setup.run_file_options import set_keys, toml_of

    return {**set_keys(further or ()), **toml_of(_GIVEN.get())}


def _asked_keys(files: list[str], further: list[str] | None, *, folder: Path, paths: DraftPaths) -> OptionValues:
    """Return the same with the answers to questions about all that is open."""
    from agedp.setup.run_file_options import set_keys
    from agedp_flows.cli import questions

    call = questions.OpenCall(files, _GIVEN.get(), set_keys(further or ()), folder, paths)
    answers = questions.ask_open_options(call)
    if answers:
        questions.say([questions.command_line(_WORDS.get(), answers)])
    return call.options(answers)


FilesArgument = Annotated[list[str], typer.Argument(metavar="FILES", help="files, folders or globs")]


@app.command(cls=RunFileCommand, rich_help_panel=options.TO_BEGIN)
def init(
    files: FilesArgument,
    folder: Annotated[Path, typer.Option("--in", help="where to write run.toml and roster.csv")] = Path(),
    set_key: SetOption = None,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Write a commented run file and a first roster, both derived from the files.

    --protect or --notion says what of one household is protected, and --epsilon
    with which loss; every other deciding key follows, with a sentence why. A
    table shows what these households can publish usefully (`agedp advise`).
    On a terminal it asks for what is missing. Otherwise, or with --yes, and
    without --epsilon, a deciding key without an option becomes a line to decide.

    Example: agedp init 'incoming/*.csv' --protect month --epsilon 5
    """
    from agedp.setup.init_run_file import check_replaceable
    from agedp.setup.init_run_file import init as write_initial_files
    from agedp.setup.run_file_draft import DraftPaths
    from agedp_flows.text.init_text import initial_json, initial_lines

    keys = _given_keys(set_key)
    if options.can_ask(yes=yes, as_json=as_json, quiet=quiet):
        check_replaceable(folder, keys)
        keys = _asked_keys(files, set_key, folder=folder, paths=DraftPaths())
    with options.progress_bars(enabled=not (as_json or quiet)) as progress:
        initial = write_initial_files(files, folder=folder, options=keys, progress=progress)
    lines = [] if as_json or quiet else initial_lines(initial)
    options.print_answer(initial_json(initial), lines, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=options.TO_BEGIN)
def advise(
    files: Annotated[list[str], typer.Argument(metavar="RUN.toml|FILES", help="a run file, or the input files")],
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Print what these households can publish usefully: what is protected, with which epsilon, and how good it is.

    It uses the number of households and days alone, and no reading. Every figure is the accountant's.

    Example: agedp advise 'incoming/*.csv'
    """
    from agedp.setup.advice import advise_files, advise_run_file
    from agedp_flows.text.advice_text import advice_json, advice_lines

    is_run_file = len(files) == 1 and files[0].endswith(".toml")
    with options.progress_bars(enabled=not (as_json or quiet)) as progress:
        advice = advise_run_file(Path(files[0])) if is_run_file else advise_files(files, progress=progress)
    lines = [*advice_lines(advice)]
    if advice.rows and not is_run_file:
        lines.append(command_step("write the run file of row 1", "init", *files, *shlex.split(advice.rows[0].options)))
    options.print_answer(advice_json(advice), lines, as_json=as_json, quiet=quiet)


@app.command(cls=RunFileCommand, rich_help_panel=options.TO_BEGIN)
def sanitise(
    files: FilesArgument,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="the release folder")],
    set_key: SetOption = None,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    r"""Release a dataset once: init, calibrate if the notion needs an estimated model, and run, in one command.

    DIR is the release folder. Ledger, run file, roster and confidential folder
    are in DIR-confidential. The same command again draws nothing; other options
    start anew until a day is released.
    What is protected, and with which epsilon, has no default. On a terminal the
    command asks for what is missing, and before it releases anything.

    Example: agedp sanitise 'incoming/*.csv' --out out/2013 --protect month --epsilon 5
    """
    from agedp.one_off import confidential_folder, release_files
    from agedp_flows.text.calibration_text import calibration_lines
    from agedp_flows.text.run_text import after_run, result_lines

    asks = options.can_ask(yes=yes, as_json=as_json, quiet=quiet)
    keys, begun = _confirmed_release(files, out, set_key) if asks else (_given_keys(set_key), None)
    verdict: options.Verdicts = "none" if asks else "concern" if quiet else "all"
    with options.progress_bars(enabled=not (as_json or quiet), verdict=verdict) as progress:
        result = release_files(files, out=out, options=keys, progress=progress)

    def output() -> list[str]:
        model = result.run.session.model
        if as_json:
            return [json.dumps(result.run.facts | ({} if model is None else {"model": model.id}))]
        confidential = confidential_folder(Path(out))
        location = Path(out).parent / confidential.name if Path(out).name else confidential  # --out . has no name
        hint = f"run file, ledger and confidential folder: {escape_text(str(location))} (keep it)"
        calibration = result.calibration or begun
        model_lines = [] if calibration is None else calibration_lines(calibration, verbose=verbose)
        next_lines = after_run(result.run, location / "run.toml")
        return [*model_lines, *result_lines(result.run, verbose=verbose), hint, *next_lines]

    options.end_run(result.run, output, as_json=as_json, quiet=quiet, warns=not as_json)


def _confirmed_release(
    files: list[str], out: str, set_key: list[str] | None
) -> tuple[OptionValues, Calibration | None]:
    """Ask for what is open, do what comes before a release, and ask whether to release.

    Return the keys, and the calibration if one was computed. The command ends here if the answer is no.
    """
    from agedp import one_off
    from agedp_flows.cli import questions

    place = one_off.local_release_folder(out)
    folder, paths = one_off.confidential_folder(place), one_off.draft_paths(place)
    keys = _asked_keys(files, set_key, folder=folder, paths=paths)
    if (folder / paths.model).exists() or questions.confirm_draw(keys):
        with options.progress_bars() as progress:
            calibration = one_off.begin_release(files, out=out, options=keys, progress=progress)
        if questions.confirm_release(folder / one_off.RUN_FILE, one_off.accepted_words(keys)):
            return keys, calibration
    options.print_text("not released; the same command asks again")
    raise typer.Exit


@app.command(rich_help_panel=options.TO_BEGIN)
def demo(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="where to write; other files in it are kept")],
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Show the whole pipeline on synthetic households: chains, bounds, and three notions in both formats.

    A page with pictures is written to DIR/index.html. With PREFECT_API_URL the flows run on that Prefect server.

    Example: agedp demo out
    """
    from agedp_flows.demonstration import Size, run_demonstration

    is_verbose = not (as_json or quiet)
    with options.progress_bars(enabled=is_verbose) as progress:
        show = options.print_lines if is_verbose else None
        results = run_demonstration(folder, Size(), show, progress=progress)
    if as_json:
        options.print_text(json.dumps(results))


@app.command(rich_help_panel=options.TO_BEGIN)
def sample(
    dataset: Annotated[str, typer.Argument(help="london or ausgrid", autocompletion=lambda: ["ausgrid", "london"])],
    folder: Annotated[Path, typer.Argument(help="where to write")],
    households: Annotated[int, typer.Option(min=2, max=1_000_000, help="number of synthetic households")] = 300,
    days: Annotated[int, typer.Option(min=2, max=3650, help="number of days")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="the same seed gives the same households")] = 1,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Write synthetic households in the publisher's exact format, a roster and a rehearsal's run file.

    Example: agedp sample london out/london
    """
    from agedp.setup.sample import sample as write_sample

    files = write_sample(dataset, folder, households=households, days=days, seed=seed)
    facts = {"run_file": str(files.run_file), "written": files.written}
    lines = [files.message]
    if files.written:
        lines.append("The promise is an example. The plan says whether a release with it would be refused, and why.")
        lines.append(command_step("due days, epsilon and noise; draws nothing", "plan", files.run_file))
        lines.append(command_step("a rehearsal: releases every day by a simulated clock", "run", files.run_file))
    options.print_answer(facts, lines, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=options.TO_BEGIN)
def calibrate(
    run_file: options.RunFileArgument = options.RUN_FILE,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Estimate the Markov chains of the households and store their model, once.

    It also compares the model with direct counts and with hidden regimes. The
    verdict is for your terminal alone; `agedp plan` and `agedp run` repeat it.

    With publish = "private" the ledger stores what was drawn, with its epsilon,
    before the first release; the same question is never drawn again.

    Example: agedp calibrate london.toml --flow
    """
    from agedp_flows.text.calibration_text import calibration_json, calibration_lines

    with options.progress_bars(enabled=not (as_json or quiet)) as progress:
        calibration = (_calibrate_by_flow if through_prefect else _calibrate)(run_file, progress)
    lines = calibration_lines(calibration, verbose=verbose)
    if not calibration.is_stored:
        lines.append(command_step("due days, epsilon and noise under this model", "plan", run_file))
    options.print_answer(calibration_json(calibration), lines, as_json=as_json, quiet=quiet)


def _calibrate(run_file: Path, progress: ProgressReporter) -> Calibration:
    from agedp.calibration_pipeline import calibrate as calibrate_run_file

    return calibrate_run_file(run_file, progress=progress)


def _calibrate_by_flow(run_file: Path, progress: ProgressReporter) -> Calibration:
    from agedp_flows.prefect_server import server_for_run_file

    with server_for_run_file(run_file):
        from agedp_flows.calibrate_flow import run_calibration

        return run_calibration(str(run_file), progress)

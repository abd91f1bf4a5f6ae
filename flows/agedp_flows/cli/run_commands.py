"""Commands of every day, `agedp plan`, `compare`, `status`, `run`, `serve`, and of hand-over, `publish` to `audit`."""

from __future__ import annotations

import json
import sys
from datetime import date
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text
from agedp_flows.cli import options

if TYPE_CHECKING:
    from agedp.compute.engine_settings import ProgressReporter
    from agedp.pipeline import RunSummary


app = options.CommandGroup()


@app.command(rich_help_panel=options.NIGHTLY)
def plan(  # noqa: PLR0913, PLR0917  (a parameter for each option)
    run_file: options.RunFileArgument = options.RUN_FILE,
    as_of: options.AsOfOption = None,
    frontier: Annotated[bool, typer.Option("--frontier", hidden=True)] = False,
    notions: Annotated[bool, typer.Option("--notions", hidden=True)] = False,
    risk: Annotated[str | None, typer.Option("--risk", hidden=True)] = None,
    error_kwh: Annotated[str | None, typer.Option("--error-kwh", hidden=True)] = None,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Print the due days, their noise and epsilon. Draws no noise.

    Before the first release it also reads the input files and prints the
    findings of a first run (the preflight, for your terminal alone). With an
    estimated model a line repeats the verdict of its calibration, also for your
    terminal alone. With --verbose it compares the noise of all notions at the
    same bound before the first release, and prints the contract as it will be
    registered.

    Example: agedp plan london.toml
    """
    from agedp.ledger_session import LedgerSession
    from agedp.plan_facts import read_plan
    from agedp.run_context import RunContext
    from agedp_data.config.withdrawn import FRONTIER
    from agedp_flows.text.plan_text import after_plan, plan_lines
    from agedp_flows.text.run_text import shared_lines, verdict_lines

    if frontier:
        raise RunFileError(FRONTIER)
    if notions or risk is not None or error_kwh is not None:  # as 0.2 had the command
        compare(run_file, as_of=as_of, risk=risk, error_kwh=error_kwh, as_json=as_json)
        return
    end_pandas_search()
    with options.progress_bars(enabled=not as_json) as progress:
        session = LedgerSession.open(RunContext.load(run_file, as_of=as_of, progress=progress))
        if as_json:
            facts = read_plan(session).facts
        else:
            lines = plan_lines(session, verbose=verbose)
    if as_json:
        options.print_text(json.dumps(facts, indent=1))
    else:
        lines += [*verdict_lines(session.run), *shared_lines(session)]
        options.print_lines([*lines, *after_plan(session, run_file, lines)])


@app.command(rich_help_panel=options.TO_BEGIN)
def compare(
    run_file: options.RunFileArgument = options.RUN_FILE,
    risk: Annotated[
        str | None, typer.Option("--risk", metavar="EPSILON", help="at another bound than the run file's")
    ] = None,
    error_kwh: Annotated[
        str | None, typer.Option("--error-kwh", metavar="KWH", help="at a noise per household")
    ] = None,
    as_of: options.AsOfOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Compare the notions of privacy: which guarantee the run file's bound, and with which noise. Draws no noise.

    Example: agedp compare london.toml --risk 0.5
    """
    from agedp.ledger_session import LedgerSession, comparison_view
    from agedp.planning.notion_comparison import compare_promises
    from agedp.run_context import RunContext
    from agedp_flows.text.comparison_text import comparison_lines, parse_target
    from agedp_flows.text.run_text import verdict_lines

    end_pandas_search()
    target = parse_target(risk, error_kwh)
    session = LedgerSession.open(RunContext.load(run_file, as_of=as_of))
    comparison = compare_promises(session.terms(), comparison_view(session), target)
    if as_json:
        options.print_text(json.dumps(comparison.facts, indent=1))
    else:
        options.print_lines([*comparison_lines(comparison), *verdict_lines(session.run)])


@app.command(rich_help_panel=options.NIGHTLY)
def status(
    run_file: options.RunFileArgument = options.RUN_FILE,
    as_of: options.AsOfOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print where a series stands: days due, last release, budget used, warnings. Reads no reading, draws no noise.

    A run file, ledger or roster that stops the next run ends this command with
    the same line and status. What else refuses a day is printed; so is the end of
    the series. Nothing due is a success.

    Example: agedp status london.toml
    """
    from agedp.ledger_session import LedgerSession
    from agedp.run_context import RunContext
    from agedp_flows.text.status_text import read_status, status_json, status_lines

    end_pandas_search()
    series_status = read_status(LedgerSession.open(RunContext.load(run_file, as_of=as_of)))
    if as_json:
        options.print_text(json.dumps(status_json(series_status), indent=1))
    else:
        options.print_lines(status_lines(series_status))


@app.command(rich_help_panel=options.NIGHTLY)
def run(
    run_file: options.RunFileArgument = options.RUN_FILE,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_of: options.AsOfOption = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="at the first release, accept a refused cause knowingly: no-credit, useless or total; may be repeated",
        ),
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Release everything that is due.

    A first release is judged before anything is read: a promise that credits
    nothing, that makes no span of use, or whose losses add up to too much, is
    refused unless the run file or --accept accepts the cause. Nothing is asked.

    Without Prefect, one cron line is enough. It needs the full path of the
    command, because cron has its own PATH:
    30 6 * * * /srv/agedp/.venv/bin/agedp run --quiet /srv/agedp/london.toml

    Example: agedp run london.toml
    """

    def result() -> list[str]:
        if as_json:
            return [json.dumps(summary.facts)]
        from agedp_flows.text.run_text import after_run, result_lines

        return [*result_lines(summary, verbose=verbose), *after_run(summary, run_file)]

    words = options.split_words(accept)
    verdict: options.Verdicts = "concern" if quiet else "all"
    with options.progress_bars(enabled=not (as_json or quiet), verdict=verdict) as progress:
        summary = (_run_flow if through_prefect else _run_stages)(run_file, as_of, progress, words)
    options.end_run(summary, result, as_json=as_json, quiet=quiet, warns=not (as_json or through_prefect))


def _run_stages(run_file: Path, as_of: date | None, progress: ProgressReporter, accept: list[str]) -> RunSummary:
    from agedp.pipeline import run_stages
    from agedp.run_context import RunContext

    end_pandas_search()
    return run_stages(RunContext.load(run_file, as_of=as_of, progress=progress, accept=accept))


class _HiddenPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from pyarrow's search", name=fullname)


def end_pandas_search() -> None:
    """Let pyarrow search for pandas now and find none; does nothing where pandas is imported already.

    pyarrow searches when it first converts a value, once in a process, and imports pandas: 0.3 s and 60 MB that a night
    never uses. Conversions to pandas (`to_pandas`) still import it, and from then on pyarrow knows it. Only a command
    whose stages pass no data frame to pyarrow calls this: without the search `pa.array` of a series of pandas treats
    nan as a number. Notebooks, workers and the Prefect flow are left as they are.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    hidden = _HiddenPandas()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)


def _run_flow(run_file: Path, as_of: date | None, progress: ProgressReporter, accept: list[str]) -> RunSummary:
    from agedp_flows.prefect_server import server_for_run_file

    with server_for_run_file(run_file):
        from agedp_flows.release_flow import run_release

        return run_release(str(run_file), as_of, progress, accept)


@app.command(rich_help_panel=options.NIGHTLY)
def serve(
    run_files: Annotated[list[Path], typer.Argument(metavar="RUN.toml...", help="the run files", readable=False)],
    quiet: options.QuietOption = False,
) -> None:
    """Run the Prefect flow of each run file on its cron line, in its zone, until stopped.

    With PREFECT_API_URL the flows run on that server; else agedp starts a server that ends with the command.

    Example: agedp serve london.toml ausgrid.toml
    """
    from agedp_flows.scheduled_runs import scheduled_runs, serving_lines
    from agedp_flows.serving import serve_runs

    runs = scheduled_runs(run_files)
    serve_runs(runs, ready=lambda server: None if quiet else options.print_lines(serving_lines(runs, server)))


@app.command(rich_help_panel=options.TO_HAND_OVER)
def publish(
    run_file: options.RunFileArgument = options.RUN_FILE,
    as_of: Annotated[
        date | None,
        typer.Option("--as-of", metavar="DATE", parser=options.parse_day, help="the folder as of the end of this day"),
    ] = None,
    statement: Annotated[
        int | None, typer.Option(metavar="SEQ", help="the folder as of this statement; `ledger show` lists the numbers")
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Write the release folder again, as of now or of the end of a day; draws no noise and uses no readings.

    Example: agedp publish london.toml --as-of 2026-04-01
    """
    from agedp_flows.text.run_text import publish_folder

    end_pandas_search()
    facts, text = publish_folder(run_file, as_of, statement=statement)
    options.print_answer(facts, [text], as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=options.TO_HAND_OVER)
def verify(  # noqa: PLR0913, PLR0917  (a parameter for each option)
    folder: options.FolderArgument,
    ledger: Annotated[str | None, typer.Option(metavar="URL", help="the ledger it was published from")] = None,
    span: Annotated[
        str | None,
        typer.Option(metavar="DAYS|total", help="also print the (epsilon, delta) bound of the worst such days"),
    ] = None,
    delta: Annotated[str | None, typer.Option(metavar="P", help="the delta of that bound, such as 1e-6")] = None,
    key: Annotated[
        str, typer.Option(metavar="FINGERPRINT", help="the key that must have signed it, got by another way")
    ] = "",
    not_before: Annotated[
        str, typer.Option(metavar="ROW", help="refuse a folder older than the one with this newest row")
    ] = "",
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Check a release folder: every table, bound and text against its ledger rows, and these against a ledger if given.

    It prints what it compared and what it did not. For recipients.

    With --key every edit of a value, text or report is refused, since only the
    holder of the key can sign. Ask the publisher for its fingerprint by another
    way than the folder.

    With --span and --delta it also prints what such a span, and all days, reveal
    about one household, from the folder's rows alone; folders of every version
    have them.

    Example: agedp verify out/release --span 365 --delta 1e-6
    """
    from agedp.release_verification import open_release
    from agedp_flows.text.screen import reading_advice, signature_lines, verification_json, verification_lines

    end_pandas_search()
    release = open_release(folder)
    verification = release.verify(key=key, not_before=not_before)
    chain_facts, span_facts, spans_text = {}, {}, []
    if ledger is not None:
        from agedp_flows.text.ledger_text import verify_folder_against

        verify_folder_against(release, ledger)
        chain_facts = {"chain": True}
    if (span, delta) != (None, None):
        from agedp_flows.text.ledger_text import folder_spans, span_lines, spans_json

        spans = folder_spans(release, span, delta)
        span_facts, spans_text = {"spans": spans_json(spans)}, span_lines(release, spans)
    lines = verification_lines(folder, verification, has_ledger=ledger is not None, has_key=bool(key))
    lines += signature_lines(verification, key=key)
    if foreign_files := release.other_files():
        lines.append(f"not part of the release, and not checked: {', '.join(map(escape_text, foreign_files))}")
    advice = reading_advice(folder, verification, has_ledger=ledger is not None, has_key=bool(key))
    lines += [*spans_text, advice]
    options.print_answer(
        {
            "verified": True,
            **chain_facts,
            **verification_json(verification, has_ledger=ledger is not None),
            "not_of_the_release": list(foreign_files),
            **span_facts,
        },
        lines,
        as_json=as_json,
        quiet=quiet,
    )


@app.command(rich_help_panel=options.TO_HAND_OVER)
def smooth(
    folder: options.FolderArgument,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="where the estimates are written", readable=False)],
    region: Annotated[
        str | None,
        typer.Option(
            metavar="GB-ENG",
            help="whose public holidays count, by ISO 3166; none: weekdays and the days from 22 December to 1 January. "
            "Default for run files of London and Sydney",
        ),
    ] = None,
    weather: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV or Parquet with day and daily mean temperature, in degrees Celsius",
            readable=False,
        ),
    ] = None,
    temperature_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="its column of temperatures, if it has several")
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Estimate each day of a release from its published averages, the calendar and the weather. For recipients.

    The estimates stand beside the published values and replace none. They say
    nothing more about any household than the release does.

    Example: agedp smooth received --out estimates --weather weather.csv
    """
    from agedp.release_verification import open_release
    from agedp.smoothed_estimates.smoothed_release import check_target, estimate_release
    from agedp.smoothed_estimates.weather_table import read_weather
    from agedp_flows.text.smoothing_text import smoothing_json, smoothing_lines

    if temperature_column is not None and weather is None:
        raise RunFileError("--temperature-column names a column of the weather table; give --weather FILE too")
    release = open_release(folder)
    check_target(out, release.path, release.read_statement())
    temperatures = None if weather is None else read_weather(weather, column=temperature_column)
    with options.progress_bars(enabled=not (as_json or quiet)) as progress:
        estimates = estimate_release(release, region=region, weather=temperatures, progress=progress)
    target = estimates.save(out)
    options.print_answer(
        smoothing_json(estimates, target), smoothing_lines(estimates, target), as_json=as_json, quiet=quiet
    )


@app.command(rich_help_panel=options.TO_HAND_OVER)
def audit(
    run_file: options.RunFileArgument = options.RUN_FILE,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Measure the privacy loss of the whole pipeline on synthetic households, with a run file's parameters.

    Example: agedp audit london.toml
    """
    from agedp.privacy_audit import audit as measure
    from agedp_flows.text.audit_text import audit_json, audit_lines, require_no_violation

    with options.progress_bars(enabled=not (as_json or quiet)) as progress:
        audit_result = measure(run_file, progress=progress)
    options.print_answer(audit_json(audit_result), audit_lines(audit_result), as_json=as_json, quiet=quiet)
    require_no_violation(audit_result)

"""The options that write a run file, added to a command: one for each line of `pipelines.run_file_options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Final

import typer

from pipelines.run_file_options import OPTIONS, RunFileOption

PANELS: Final = {
    "input": "What comes in",
    "input.columns": "Columns of a long table",
    "output": "What goes out",
    "population": "Population, period and series",
    "schedule": "Population, period and series",
    "series.daily_mean": "Population, period and series",
    "promise": "Promise",
    "model": "Model",
}


def with_run_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also accepts the options of a run file and receives their texts as `option_texts`."""

    @wraps(command)
    def command_with_options(**arguments: Any) -> None:  # noqa: ANN401  (texts and flags)
        option_texts = {option.name: arguments.pop(option.name) for option in OPTIONS}
        command(**arguments, option_texts=option_texts)

    signature = inspect.signature(command, eval_str=True)
    parameters = [parameter for name, parameter in signature.parameters.items() if name != "option_texts"]
    parameters += [_parameter(option) for option in OPTIONS]
    command_with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command_with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command_with_options


def _parameter(option: RunFileOption) -> inspect.Parameter:
    panel = PANELS[option.key[0]]
    if option.form == "flag":
        declared: Any = Annotated[bool, typer.Option(option.flag, help=option.help, rich_help_panel=panel)]
        default: Any = False
    else:
        option_info = typer.Option(option.flag, metavar=option.metavar, help=option.help, rich_help_panel=panel)
        declared, default = Annotated[str | None, option_info], None
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=declared)

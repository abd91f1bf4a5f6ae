"""The options that write a run file, added to a command: one for each line of `agedp.setup.run_file_options`.

The keys of notions that have no line there come in when the command itself is called, not when commands are listed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from agedp.setup.run_file_options import OPTIONS, RunFileOption, notion_options

PANELS: Final = {
    "input": "Input",
    "input.columns": "Columns of a long table",
    "output": "Output",
    "population": "Population, period and series",
    "schedule": "Population, period and series",
    "series.daily_mean": "Population, period and series",
    "promise": "Promise",
    "model": "Model",
}


_FURTHER: Final[ContextVar[Mapping[str, str | None]]] = ContextVar("further options", default=MappingProxyType({}))
"""Values of the options that come from notions, while a command runs."""


class RunFileCommand(TyperCommand):
    """A command with run-file options; it also takes the keys of notions that have no line among these."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  (typer does not export the type of a context)
        """Return the parameters of the command and those of the notions' further keys."""
        return [*super().get_params(ctx), *_parameters_of(notion_options())]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Call the command; typer passes on declared parameters alone, so that the others take a way of their own."""
        further = _FURTHER.set({option.name: ctx.params.pop(option.name) for option in notion_options()})
        try:
            return super().invoke(ctx)
        finally:
            _FURTHER.reset(further)


def _parameters_of(options: Sequence[RunFileOption]) -> list[Any]:
    """Return the command-line parameters of options, as typer makes them for a command that has just these."""

    def command(**_: str | None) -> None: ...

    parameters = [_parameter(option) for option in options]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return list(typer.main.get_command(app).params)


def with_run_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also accepts the options of a run file and receives their texts as `option_texts`."""

    @wraps(command)
    def command_with_options(**arguments: Any) -> None:  # noqa: ANN401  (texts and flags)
        option_texts = {option.name: arguments.pop(option.name) for option in OPTIONS}
        command(**arguments, option_texts={**option_texts, **_FURTHER.get()})

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

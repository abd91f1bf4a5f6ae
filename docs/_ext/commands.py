"""The commands as Markdown, read off the command itself: a page that cannot drift."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from flows.command import app

if TYPE_CHECKING:
    from typer.core import TyperCommand

OPTION_TABLE = "| argument or option | meaning |"
"""First line of every table of arguments and options."""
_EXAMPLE = "Example:"


def commands_page() -> str:
    """Return every command with its usage, arguments, options and example."""
    commands = list(every_command())
    lines = [line for path, command in commands for line in _lines(path, command)]
    return "\n".join([*_overview(commands), *lines])


def every_command() -> Iterator[tuple[str, TyperCommand]]:
    """Yield every command with its words, such as "agedp ledger show"."""
    yield from _below("agedp", typer.main.get_command(app))


def _below(path: str, command: TyperCommand) -> Iterator[tuple[str, TyperCommand]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        if not child.hidden:
            yield from _below(f"{path} {name}", child)


def _overview(commands: list[tuple[str, TyperCommand]]) -> Iterator[str]:
    """Yield a table of all commands, each with the first sentence of its help and a link to its section."""
    yield from ("| command | purpose |", "|---|---|")
    for path, command in commands:
        purpose = inspect.cleandoc(command.help or "").partition("\n\n")[0]
        yield f"| [`{path}`](#{path.replace(' ', '-')}) | {_cell(_plain(purpose))} |"
    yield ""


def _lines(path: str, command: TyperCommand) -> Iterator[str]:
    context = command.make_context(path, [], resilient_parsing=True)
    said, _, example = inspect.cleandoc(command.help or "").partition(_EXAMPLE)
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece)
    yield from (f"## {path}", "", said.strip(), "", "```text", f"{path} {usage}", "```", "")
    named = [each for each in command.get_params(context) if each.name != "help"]
    records = [found for each in named if (found := each.get_help_record(context)) is not None]
    if records:
        yield from (OPTION_TABLE, "|---|---|")
        yield from (f"| `{_cell(name)}` | {_cell(_plain(about))} |" for name, about in records)
        yield ""
    if example:
        yield from ("For example:", "", "```sh", *_example_lines(example), "```", "")


def _example_lines(example: str) -> list[str]:
    r"""Return the lines of an example as a shell reads them.

    >>> _example_lines(" agedp run run.toml\n--quiet")
    ['agedp run run.toml \\', '    --quiet']
    """
    text = "\n".join(line.strip() for line in example.strip().splitlines())
    return text.replace("\n--", " \\\n    --").splitlines()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a text that Markdown reads as it stands."""
    return " ".join(text.split()).replace("[", "\\[")

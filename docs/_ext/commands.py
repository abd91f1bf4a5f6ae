"""The commands as Markdown, read off the command itself: a page that cannot drift."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from flows.command import app

if TYPE_CHECKING:
    from typer.core import TyperCommand

_EXAMPLE = "Example:"


def commands_page() -> str:
    """Return every command with its usage, arguments, options and example."""
    return "\n".join(line for path, command in every_command() for line in _lines(path, command))


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


def _lines(path: str, command: TyperCommand) -> Iterator[str]:
    context = command.make_context(path, [], resilient_parsing=True)
    said, _, example = inspect.cleandoc(command.help or "").partition(_EXAMPLE)
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece)
    yield from (f"## {path}", "", said.strip(), "", "```text", f"{path} {usage}", "```", "")
    named = [each for each in command.get_params(context) if each.name != "help"]
    records = [found for each in named if (found := each.get_help_record(context)) is not None]
    if records:
        yield from ("{.keys}", "| | |", "|---|---|")
        yield from (f"| `{_cell(name)}` | {_cell(_plain(about))} |" for name, about in records)
        yield ""
    if example:
        yield from ("For example:", "", "```sh", *(line.strip() for line in example.strip().splitlines()), "```", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a text that Markdown reads as it stands."""
    return " ".join(text.split()).replace("[", "\\[")

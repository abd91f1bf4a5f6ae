"""The page of all commands as Markdown, generated from the command itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from table_heads import OPTION_TABLE

from agedp_flows.cli.app import app

if TYPE_CHECKING:
    from typer import Context
    from typer.core import TyperCommand

_EXAMPLE = "Example:"


Panel = tuple[str, tuple[tuple[str, str], ...]]
"""A group of options: its title ("" for a command's own options), and each option with its meaning."""


def commands_page() -> str:
    """Return every command with its usage, arguments, options and example."""
    commands = list(every_command())
    lines, shared = list(_overview(commands)), dict[Panel, str]()
    for path, command in commands:
        lines += _lines(path, command, shared)
    return "\n".join(lines)


def every_command() -> Iterator[tuple[str, TyperCommand]]:
    """Yield every command with its full name, such as "agedp ledger show"."""
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
        yield f"| [`{path}`](#{_anchor(path)}) | {_cell(_plain(purpose))} |"
    yield ""


def _lines(path: str, command: TyperCommand, shared: dict[Panel, str]) -> Iterator[str]:
    """Yield the section of a command; `shared` has the titled panels of earlier commands, listed once."""
    context = command.make_context(path, [], resilient_parsing=True)
    purpose, *examples = inspect.cleandoc(command.help or "").split(_EXAMPLE)
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece)
    yield from (f"## {path}", "", purpose.strip(), "", "```text", f"{path} {usage}", "```", "")
    for title, records in _panels(command, context):
        if first_command := shared.get((title, records)):
            yield from (f"**{title}**: as for [`{first_command}`](#{_anchor(first_command)}).", "")
            continue
        if title:
            shared[title, records] = path
            yield from (f"**{title}**", "")
        yield from (OPTION_TABLE, "|---|---|")
        yield from (f"| `{_cell(name)}` | {_cell(_plain(about))} |" for name, about in records)
        yield ""
    if examples:
        yield from ("For example:", "")
    for example in examples:
        yield from ("```sh", *_example_lines(example), "```", "")


def _panels(command: TyperCommand, context: Context) -> Iterator[Panel]:
    """Yield the arguments and options of a command by panel, its own ones first."""
    panels: dict[str, list[tuple[str, str]]] = {"": []}
    for parameter in command.get_params(context):
        if parameter.name != "help" and (record := parameter.get_help_record(context)) is not None:
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or "", []).append(record)
    yield from ((title, tuple(records)) for title, records in panels.items() if records)


def _example_lines(example: str) -> list[str]:
    r"""Return the lines of an example as a shell reads them.

    >>> _example_lines(" agedp run run.toml\n--quiet")
    ['agedp run run.toml \\', '    --quiet']
    """
    text = "\n".join(line.strip().removesuffix(" \\") for line in example.strip().splitlines())
    return text.replace("\n--", " \\\n    --").splitlines()


def _anchor(path: str) -> str:
    return path.replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a text on one line, escaped for Markdown."""
    return " ".join(text.split()).replace("[", "\\[")

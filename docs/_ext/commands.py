"""The page of all commands as Markdown, generated from the command itself."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer
from run_file import without_emphasis

from agedp_flows.cli.app import app

if TYPE_CHECKING:
    from typer import Context
    from typer.core import TyperCommand

_EXAMPLE = "Example:"
_PLAIN_TYPE = re.compile(r" <(?:list\[\w+\]|path|str|int range)>")
_MANY = 4
"""An argument or option of so many commands is described once."""


Panel = tuple[str, tuple[tuple[str, str], ...]]
"""A group of options: its title ("" for a command's own options), and each option with its meaning."""


def commands_page() -> str:
    """Return every command with its arguments, options and example; what many of them share stands first."""
    commands = list(every_command())
    common = _common_records(commands)
    lines, shared = [*_overview(), *_common(common)], dict[Panel, str]()
    for path, command in commands:
        lines += _lines(path, command, common, shared)
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


def _overview() -> Iterator[str]:
    """Yield a table of the groups of commands, each command with a link to its section."""
    yield from ("| group | commands |", "|---|---|")
    grouped: dict[str, list[str]] = {}
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        paths = [path for path, _ in _below(f"agedp {name}", command) if not command.hidden]
        grouped.setdefault(command.rich_help_panel, []).extend(paths)
    for group, paths in grouped.items():
        yield f"| {group} | {', '.join(f'[`{path}`](#{_anchor(path)})' for path in paths)} |"
    yield ""


def _common_records(commands: list[tuple[str, TyperCommand]]) -> dict[tuple[str, str], str]:
    """Return the arguments and options that many commands share, each with its name alone."""
    counted: Counter[tuple[str, str]] = Counter()
    for path, command in commands:
        counted.update(record for _, records in _panels(command, _context(path, command)) for record in records)
    return {record: record[0].partition(" ")[0] for record, count in counted.items() if count >= _MANY}


def _common(common: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield what many commands share."""
    yield from ("Many commands share these; their sections name them only:", "")
    yield from _listed(common)


def _context(path: str, command: TyperCommand) -> Context:
    return command.make_context(path, [], resilient_parsing=True)


def _lines(
    path: str, command: TyperCommand, common: dict[tuple[str, str], str], shared: dict[Panel, str]
) -> Iterator[str]:
    """Yield the section of a command; `shared` has the titled panels of earlier commands, listed once."""
    purpose, *examples = inspect.cleandoc(command.help or "").split(_EXAMPLE)
    yield from (f"## {path}", "", purpose.strip(), "")
    for example in examples:
        yield from ("```sh", *_example_lines(example), "```", "")
    for title, records in _panels(command, _context(path, command)):
        if first_command := shared.get((title, records)):
            yield from (f"**{title}**: as for [`{first_command}`](#{_anchor(first_command)}).", "")
            continue
        if title:
            shared[title, records] = path
            yield from (f"**{title}**", "")
        own = [record for record in records if record not in common]
        yield from _listed(own)
        if len(own) < len(records):
            yield from (f"Also {', '.join(f'`{common[record]}`' for record in records if record in common)}.", "")


def _listed(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [f"* `{name}`: {_plain(about)}" for name, about in records]
    yield from (*lines, "") if lines else ()


def _panels(command: TyperCommand, context: Context) -> Iterator[Panel]:
    """Yield the arguments and options of a command by panel, its own ones first."""
    panels: dict[str, list[tuple[str, str]]] = {"": []}
    for parameter in command.get_params(context):
        if parameter.name != "help" and (record := parameter.get_help_record(context)) is not None:
            name, about = record
            panel = getattr(parameter, "rich_help_panel", None) or ""
            panels.setdefault(panel, []).append((_PLAIN_TYPE.sub("", name), about))
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


def _plain(text: str) -> str:
    """Return a text on one line, escaped for Markdown."""
    return without_emphasis(" ".join(text.split()).replace("[", "\\["))

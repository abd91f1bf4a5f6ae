"""Questions on a terminal: what a command line of `agedp init` or `agedp sanitise` leaves open, and the last one.

An answer is an option: it ends in the run file as if it had been given, and the command line that has it is printed for
scripts. Questions and answers use standard error and input; standard output has results alone.

Decisions:

* A column without which no row can be read is asked first; then what is protected, its epsilon, and what else is open.
* Enter accepts a proposal about how a file is read. What decides privacy is typed: the advice beside the question about
  the epsilon is a text, not a default.
* An answer that the run file does not take is refused by the loader's own line, and asked again.
* `agedp run` asks nothing: it is the command of cron, and refuses a senseless first release by itself.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from agedp.ledger_session import LedgerSession
from agedp.run_context import RunContext
from agedp.setup.advice import advise_files
from agedp.setup.init_run_file import preview
from agedp.setup.long_columns import TABLE, LongTable, UnreadableTable
from agedp.setup.protection import ABOUT, EPSILON, SPAN
from agedp.setup.run_file_draft import DraftPaths, KeyLine, RunFileDraft
from agedp.setup.run_file_options import (
    OPTIONS,
    SERIES,
    Key,
    OptionValues,
    RunFileOption,
    notion_options,
    toml_of,
    toml_value,
)
from agedp.stages.plan import find_due_days, find_verdict
from agedp_data.epsilon import floor_nano
from agedp_data.errors import AgedpError
from agedp_data.messages import escape_text
from agedp_data.statement.note_texts import odds_percent
from agedp_flows.cli import options as options_module
from agedp_flows.text.run_text import shared_lines
from agedp_flows.text.screen import StyledLine, has_colours, screen_width, shown

Answers = dict[str, Any]
"""The answers as options: by the option's name a text, several texts, or whether a flag is given."""

_NOTION: Final[Key] = ("promise", "notion")
_SELECTION: Final[Key] = ("model", "selection_epsilon")
_DECIMAL: Final[Key] = (TABLE, "decimal")
_OF_FILES: Final = ("input", TABLE)
"""Tables whose proposals Enter accepts."""
_STAND_IN: Final = "1"
"""An epsilon with which the other options are checked before one is typed."""
_EXAMPLES: Final = tuple(map(Decimal, ("0.5", "1", "3", "10")))
_YES: Final = ("y", "yes")


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of `init` or `sanitise`: the files, its options by name, the keys of --set, and where it writes."""

    patterns: Sequence[str]
    given: Mapping[str, Any]
    further: OptionValues
    folder: Path
    paths: DraftPaths

    def options(self, answers: Answers) -> OptionValues:
        """Return the TOML text of the keys that are given or answered."""
        read_off = [*(self.given.get("read_off") or ()), *answers.get("read_off", ())]
        return {**self.further, **toml_of({**self.given, **answers, "read_off": read_off})}


class _State(NamedTuple):
    """What the files and the options so far lead to; without a draft `candidates` are the keys that it needs."""

    options: OptionValues
    draft: RunFileDraft | None
    long: LongTable | None
    candidates: Mapping[Key, tuple[str, ...]]


class _Question(NamedTuple):
    """A question about an option: explanations, what Enter accepts, and answers to choose by their number."""

    option: RunFileOption
    lines: tuple[str, ...]
    proposal: KeyLine | None = None
    candidates: tuple[str, ...] = ()


def ask_open_options(call: OpenCall) -> Answers:
    """Ask for every option that the call needs and does not give, and return the answers.

    Raises:
        AgedpError: files or options that cannot be used, whatever is answered.
    """
    answers: Answers = {}
    state = _state(call, answers)
    question = _next_question(call, state, answers)
    while question is not None:
        changed = {**answers, **_ask(question, answers)}
        try:
            state = _state(call, changed)
        except AgedpError as error:
            options_module.print_error(f"agedp: {escape_text(error.private, 1000)}")
            continue
        answers = changed
        question = _next_question(call, state, answers)
    return answers


def command_line(words: Sequence[str], answers: Answers) -> StyledLine:
    """Return the line with the command that has the answers as options, to copy into a script.

    >>> command_line(["agedp", "init", "my file.csv"], {"protect": "month", "epsilon": "5", "publish_envelope": False})
    "Without questions: agedp init 'my file.csv' --protect month --epsilon 5 --yes"
    """
    given = list(words)
    for name, value in answers.items():
        flag = "--" + name.replace("_", "-")
        values = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
        given += [word for text in values for word in (flag, text)] or [flag] * bool(value)
    return StyledLine(f"Without questions: {escape_text(shlex.join([*given, '--yes']), 10_000)}", "step")


def confirm_release(run_file: Path, accept: Iterable[str]) -> bool:
    """Show the verdict on a first release and ask whether to release; True where no verdict is due, or it refuses."""
    session = LedgerSession.open(RunContext.load(run_file, accept=accept))
    verdict = find_verdict(session, find_due_days(session))
    if verdict is None or verdict.refused:
        return True
    say(["", *verdict.lines, *shared_lines(session)])
    return _read("Release now? [y/N]").lower() in _YES


def confirm_draw(options: OptionValues) -> bool:
    """Ask before the calibration of a private model, which draws before a verdict is possible."""
    if _SELECTION not in options:
        return True
    say([f"The calibration draws its model with epsilon {options[_SELECTION]}, before a verdict is possible."])
    return _read("Calibrate now? [y/N]").lower() in _YES


def say(lines: Iterable[str]) -> None:
    """Print lines on standard error, where the questions are."""
    for line in lines:
        typer.echo(shown(line, width=screen_width(sys.stderr), coloured=has_colours(sys.stderr)), err=True)


def _state(call: OpenCall, answers: Answers) -> _State:
    options = call.options(answers)
    lacks_epsilon = SPAN in options and EPSILON not in options
    checked = {**options, EPSILON: _STAND_IN} if lacks_epsilon else options
    try:
        drafted, long = preview(call.patterns, folder=call.folder, options=checked, paths=call.paths)
    except UnreadableTable as error:
        return _State(options, None, None, error.candidates)
    return _State(options, drafted, long, {})


def _next_question(call: OpenCall, state: _State, answers: Answers) -> _Question | None:
    options, by_key = state.options, {option.key: option for option in (*OPTIONS, *notion_options())}
    if state.draft is None:
        if _DECIMAL in state.candidates:
            [mark] = state.candidates[_DECIMAL]
            explained = (f'In the first rows "{mark}" is the decimal mark, or it is between thousands. Decimal mark:',)
            return _Question(by_key[_DECIMAL], explained, candidates=(mark, "." if mark == "," else ","))
        key = next(iter(state.candidates))
        return _Question(by_key[key], _about(by_key[key]), candidates=state.candidates[key])
    if SPAN not in options and _NOTION not in options:
        spans = (f"  {span:5s}  {about}" for span, about in ABOUT.items())
        return _Question(by_key[SPAN], ("What of one household is protected?", *spans))
    if SPAN in options and EPSILON not in options:
        return _Question(by_key["promise", "epsilon"], tuple(_epsilon_lines(call, options)))
    for table, lines in state.draft.tables.items():
        for line in lines:
            option = by_key.get((table, line.key))
            is_open = not line.decided and (table, line.key) not in options
            if is_open and option is not None and option.name not in answers:
                reason = "" if state.long is None else state.long.reasons.get(line.key, "")
                proposal = line if table in _OF_FILES else None
                return _Question(option, _about(option, reason), proposal)
    return None


def _about(option: RunFileOption, reason: str = "") -> tuple[str, ...]:
    return (f"{option.flag}: {option.help}", *([f"  {escape_text(reason, 200)}"] if reason else []))


def _epsilon_lines(call: OpenCall, options: OptionValues) -> Iterator[str]:
    """Yield what an epsilon means, and the best row of the advice for what is protected."""
    span = toml_value(options[SPAN])
    odds = ", ".join(f"{odds_percent(floor_nano(epsilon))} at {epsilon}" for epsilon in _EXAMPLES)
    yield f"Which epsilon? It bounds the loss about {ABOUT[span]}."
    yield f"  What an even chance about a household becomes: {odds}."
    if span == "today":
        return
    of_files = {key: toml for key, toml in options.items() if key[0] not in ("protect", "promise", "model")}
    with suppress(AgedpError), options_module.progress_bars() as progress:
        confidential = call.folder / call.paths.confidential
        advice = advise_files(call.patterns, options=of_files, confidential=confidential, progress=progress)
        every = options.get((SERIES, "every"))
        rows = [row for row in advice.rows if row.protected == span]
        rows = [row for row in rows if every is None or row.every == toml_value(every)] or rows
        yield f"  The advice: {rows[0].text}." if rows else "  The advice has no row that is of use for this."


def _ask(question: _Question, answers: Answers) -> Answers:
    """Ask until something is answered, and return the answer as options."""
    option = question.option
    say(["", *question.lines])
    if option.form in ("flag", "switch"):
        while (typed := _read(f"{option.flag} [y/n]:").lower()) not in (*_YES, "n", "no"):
            pass
        return {option.name: typed in _YES}
    say(f"  {number}  {escape_text(name, 60)}" for number, name in enumerate(question.candidates, start=1))
    proposed = [] if question.proposal is None else _option_texts(question.proposal)
    hint = f" [{escape_text(','.join(proposed), 60)}]" if proposed else ""
    typed = _read(f"{option.flag}{hint}:")
    while not (typed or proposed):
        say([f"  Nothing is proposed here: type {option.metavar}."])
        typed = _read(f"{option.flag}:")
    return _answer(question, typed, proposed, answers)


def _answer(question: _Question, typed: str, proposed: list[str], answers: Answers) -> Answers:
    """Return an answer as the option's value; one that follows readings is recorded as that (--read-off)."""
    option, candidates = question.option, question.candidates
    if typed.isdecimal() and typed not in candidates and 0 < int(typed) <= len(candidates):
        typed = candidates[int(typed) - 1]
    if option.key == _DECIMAL and typed in candidates[1:]:
        return {"thousands": candidates[0]}
    texts = [typed] if typed else proposed
    if option.form == "columns" and typed in candidates:
        texts = typed.split(" with ")
    elif option.form == "words":
        texts = [part.strip() for text in texts for part in text.split(",")]
    value = texts if option.form in ("words", "columns", "where") else ",".join(texts)
    answer: Answers = {option.name: value}
    if question.proposal is not None and question.proposal.read_off and texts == proposed:
        answer["read_off"] = [*answers.get("read_off", ()), question.proposal.key]
    return answer


def _option_texts(line: KeyLine) -> list[str]:
    """Return a proposal as an option has it: a text, or several.

    >>> _option_texts(KeyLine("where", '{ "register" = ["E1", "E2"] }')), _option_texts(KeyLine("unit", '"kWh"'))
    (['register=E1', 'register=E2'], ['kWh'])
    """
    value = toml_value(line.toml)
    if isinstance(value, Mapping):
        return [f"{name}={text}" for name, texts in value.items() for text in texts]
    return [str(text) for text in value] if isinstance(value, list) else [str(value)]


def _read(prompt: str) -> str:
    """Return a line that is typed after a prompt; at the end of the input the command stops."""
    typer.echo(f"{prompt} ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        typer.echo(err=True)
        raise typer.Abort
    return line.strip()

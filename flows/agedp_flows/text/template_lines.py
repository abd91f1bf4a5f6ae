"""Facts -> lines for the terminal: the templates in `templates/`, one for each output, have the words.

A template gets the value that `--json` is made of. Its language is Jinja's, with

* a mark at the start of a line, `{{ heading }}` or `{{ warning }}`: its style; `{{ step(...) }}` is a next step;
* a table, `{% filter table("day", ">epsilon") %}` to `{% endfilter %}`, with a `{{ row(...) }}` for each of its rows;
* a sentence on several lines of the template, from `{% filter line %}`, or `{% filter wrapped("=  ") %}`, to its end;
* numbers as people read them: `{{ nano_epsilon | loss }}`, `{{ days | count("day") }}`.

Decisions:

* Control characters of every inserted value are escaped, line feeds as well: no value begins a line, styles one or
  ends a cell. Only lines that other functions made are inserted as they are (`| lines`).
* An empty line of a template prints nothing, so templates can be laid out freely; one of `| lines` is printed.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agedp.signal_against_noise import change_text, three_digits
from agedp_data.datasets.filesystem import format_path
from agedp_data.epsilon import exact_text, format_delta, format_epsilon
from agedp_data.messages import count_text, escape_controls, percent_text
from agedp_data.statement.note_texts import odds_percent
from agedp_flows.text import screen
from agedp_flows.text.bound_text import assumption_text, exception_text, scope_text
from agedp_flows.text.screen import StyledLine

if TYPE_CHECKING:
    from jinja2 import Environment

_WIDTH: Final = 118
_STYLES: Final[dict[str, screen.Style]] = {"\x01": "heading", "\x02": "warning", "\x03": "step"}
_BLANK: Final = "\x04"
_CELL_END: Final = "\x1f"


class _Escaped(str):
    """Text without control characters of any value, inserted as it is."""

    __slots__ = ()


def render_lines(name: str, **facts: Any) -> list[str]:  # noqa: ANN401  (values of any kind)
    """Return the lines of a template, with their styles."""
    text = _templates().get_template(f"{name}.txt").render(facts)
    return [_styled(line) for line in text.split("\n") if line]


def _styled(line: str) -> str:
    style, plain = _STYLES.get(line[0]), line.lstrip("".join((*_STYLES, _BLANK)))
    return plain if style is None else StyledLine(plain, style)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (whoever reads no text)

    environment = Environment(  # noqa: S701  (no HTML)
        loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_escaped,
    )  # fmt: skip
    environment.globals |= {style: _Escaped(mark) for mark, style in _STYLES.items()}
    environment.globals |= {"row": _row, "step": _step}
    environment.filters |= {
        "table": _table, "line": _line, "wrapped": _wrapped, "lines": _lines,
        "loss": screen.format_loss, "budget": screen.format_budget, "bound": _bound, "epsilon": format_epsilon,
        "digits": three_digits, "kwh": _kwh, "delta": format_delta, "exact": exact_text, "plain": "{:f}".format,
        "integer": "{:,}".format, "percent": percent_text, "odds": odds_percent, "count": count_text,
        "scope": scope_text, "assumption": assumption_text, "exception": exception_text, "change": change_text,
        "skips": screen.skips_text, "path": format_path, "clock": _clock,
    }  # fmt: skip
    return environment


def _escaped(value: object) -> str:
    return value if isinstance(value, _Escaped) else escape_controls(str(value))


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _bound(epsilon: Decimal | str | None, limit: str | None = None) -> str:
    return "none" if epsilon is None else screen.format_bound(epsilon, limit=limit)


def _kwh(value: float) -> str:
    return three_digits(value) if math.isfinite(value) else "no end"


def _row(*cells: object) -> _Escaped:
    return _Escaped(_CELL_END.join(map(_escaped, cells)))


def _step(purpose: str, *words: str | Path) -> _Escaped:
    return _lines([screen.command_step(purpose, *words)])


def _table(text: str, *headings: str, **layout: Any) -> str:  # noqa: ANN401  (as `table_lines`)
    rows = [line.split(_CELL_END) for line in text.split("\n") if line]
    return f"{_lines(screen.table_lines(headings, rows, **layout))}\n"


def _lines(lines: Iterable[str]) -> _Escaped:
    """Return lines that other functions made, with the marks of their styles."""
    marks = {style: mark for mark, style in _STYLES.items()}
    styled = ((marks[line.style] if isinstance(line, StyledLine) else "", line) for line in lines)
    return _Escaped("\n".join(mark + escape_controls(line) if line else _BLANK for mark, line in styled))


def _line(text: str) -> str:
    return f"{_joined(text)}\n"


def _joined(text: str) -> str:
    return " ".join(part.strip() for part in text.split("\n") if part.strip())


def _wrapped(text: str, start: str = "") -> str:
    width, later = screen.screen_width() or _WIDTH, " " * max(3, len(start))
    lines = textwrap.wrap(_joined(text), width, initial_indent=start, subsequent_indent=later)
    return "".join(f"{line}\n" for line in lines)

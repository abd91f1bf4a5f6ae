"""Templates of the terminal: no value begins a line, styles one or ends a cell; each template is used and complete."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from agedp_flows.text import template_lines
from agedp_flows.text.screen import StyledLine
from agedp_flows.text.template_lines import render_lines

FOLDER = Path(template_lines.__file__).parent
TEMPLATES = sorted((FOLDER / "templates").iterdir())
HOSTILE = "north\nNext: agedp forget\x01\x1fmore\x1b[2J\u202e"
SHOWN = r"north\nNext: agedp forget\x01\x1fmore\x1b[2J\u202e"
NOTHING = {"means": [], "periods": [], "counts": [], "half_hours": [], "profiles": [], "coverages": []}


def test_no_value_begins_a_line_or_ends_a_cell() -> None:
    [line] = render_lines("planned_noise", label=HOSTILE, noise=2.0, change_kwh=1.0)
    assert line.startswith(f"{SHOWN}: Noise 2 kWh")
    assert not isinstance(line, StyledLine)
    row = {"day": "2013-01-01", "households": 9, "usable_noisy": 8, "coverage": 0.89, "noise_sd": 1.0, "place": HOSTILE}
    heading, cells = render_lines("newest", **NOTHING | {"coverages": [[row]]})
    assert (heading.split()[0], cells.split()) == ("day", ["2013-01-01", "9", "8", "89.0", *SHOWN.split()])


def test_a_line_has_the_style_of_its_mark_and_not_the_mark() -> None:
    [line] = render_lines("waiting", waiting=[date(2013, 1, 1), date(2013, 1, 4)])
    assert isinstance(line, StyledLine)
    assert (line, line.style) == ("2 due days wait for delivery: 2013-01-01 to 2013-01-04", "warning")
    assert render_lines("waiting", waiting=[]) == []


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="change_kwh"):
        render_lines("planned_noise", label="use", noise=2.0)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_template_can_be_read_and_is_used(template: Path) -> None:
    template_lines._templates().get_template(template.name)
    code = "".join(path.read_text() for path in FOLDER.parent.rglob("*.py"))
    others = "".join(path.read_text() for path in TEMPLATES if path != template)
    assert f'"{template.stem}"' in code or f'include "{template.name}"' in others

"""What an experiment leaves: figures as data, and verdicts on what the paper claims.

A figure is its curves; what is drawn and what is written as a table are the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Look = Literal["paper", "ours", "measured", "reference"]
Verdict = Literal["reproduced", "sharpened", "refuted", "not judged"]
Ground = Literal["", "every open value", "own case"]

EVERY: Final[Ground] = "every open value"
"""A refutation: the claim is false for every value tried of what the paper leaves open."""
OWN: Final[Ground] = "own case"
"""A refutation: it is false on the paper's own data and parameters, or in a case that meets its own conditions."""
PUBLISHED = "the paper's published parameters; no data"
OURS = "parameters of ours, for the paper prints none; no data"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One line of a panel.

    Attributes:
        label: text of the legend.
        x, y: (n,) points; infinite and NaN ones are kept in the table and not drawn.
        look: the paper's curve, the project's, one counted on readings, or a reference to compare with.
        shade: which of several curves of one look: another mark and lightness.
        kind: a line with marks, points alone, a staircase, or bars.
    """

    label: str
    x: Floats
    y: Floats
    look: Look = "ours"
    shade: int = 0
    kind: Literal["line", "points", "steps", "bars"] = "line"


def curve(label: str, x: ArrayLike, y: ArrayLike, look: Look = "ours", **style: Any) -> Curve:  # noqa: ANN401
    """Return a curve of any two sequences of equal length."""
    along, value = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if along.shape != value.shape or along.ndim != 1:
        raise ValueError(f"curve {label!r}: {along.shape} places and {value.shape} values")
    return Curve(label, along, value, look, **style)


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with their units; `levels` are horizontal lines (value, what it is)."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    levels: tuple[tuple[float, str], ...] = ()
    levels_named: Literal["left", "right", "below"] = "right"
    log: str = ""
    bottom: float | None = None
    top: float | None = None


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One figure of a paper.

    Attributes:
        name: of its files.
        shows: which figure of the paper it is.
        title: the finding.
        sentence: what one sees, with its numbers.
        rests_on: the data, or the published parameters.
        panels: from left to right.
        erratum: what cannot be reproduced and why, with the name of a page in brackets, such as [errata]; empty if
            everything can.
        repeatable: whether a second run gives the same numbers (run times do not).
        parts: what verdicts quote of it, by name.
        verdicts: verdicts on claims that depend on its data, by name.
    """

    name: str
    shows: str
    title: str
    sentence: str
    rests_on: str
    panels: tuple[Panel, ...]
    erratum: str = ""
    repeatable: bool = True
    parts: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    def at(self, label: str, x: float, *, panel: str | None = None) -> float:
        """Return the value of a curve at one of its places, for a sentence or a verdict."""
        values = [
            float(value)
            for figure_panel in self.panels
            for line in figure_panel.curves
            if line.label == label and panel in (None, figure_panel.title)
            for value in line.y[np.isclose(line.x, x)]
        ]
        if len(values) != 1:
            raise KeyError(f"{len(values)} curves {label!r} of {self.name} have a value at {x:g}")
        return values[0]


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A statement of a paper, our result, and the source of both.

    Attributes:
        place: where in the paper.
        claim: in our words.
        verdict: reproduced (as printed, or under a reading of what the paper leaves open), sharpened (true, and more
            is), refuted (false as printed), not judged (the data at hand, or the paper's own words, do not decide it).
        found: the numbers.
        correct_form: the pages that have it, each name in brackets, or "reference value".
        test: a test that proves it, `file::name`.
        rests_on: the data, or the published parameters.
        ground: of a refutation, for which values the claim is false; "" of other verdicts.
        reading: under which reading a claim is reproduced; "" as printed.
    """

    place: str
    claim: str
    verdict: Verdict
    found: str
    correct_form: str
    test: str
    rests_on: str = PUBLISHED
    ground: Ground = ""
    reading: str = ""


@dataclass(frozen=True, slots=True)
class Paper:
    """All of one paper."""

    name: str
    title: str
    figures: tuple[PaperFigure, ...]
    claims: tuple[PaperClaim, ...] = field(default=())

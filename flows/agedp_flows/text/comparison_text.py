"""Output of `agedp compare`, as text and as JSON: every notion that meets a target.

The text shows each notion with its noise and its end; docs/written.md describes the keys of the JSON output.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from itertools import cycle
from typing import Final

from agedp.planning.notion_comparison import ComparisonTarget, NotionComparison
from agedp_data.epsilon import format_delta
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, LossBound
from agedp_data.parameters import LARGEST
from agedp_flows.text.bound_text import scope_text
from agedp_flows.text.template_lines import render_lines

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def parse_target(risk: str | None, error_kwh: str | None) -> ComparisonTarget:
    """Return the target of --risk or --error-kwh; without either it is the bound of the run file's promise.

    Raises:
        RunFileError: both options, or a value that is not a number above 0.
    """
    if risk is not None and error_kwh is not None:
        raise RunFileError("--risk and --error-kwh are two targets; name one")
    if error_kwh is not None:
        return ComparisonTarget(error_kwh=float(_parse_amount("--error-kwh", error_kwh)))
    return ComparisonTarget(risk=None if risk is None else _parse_amount("--risk", risk))


def _parse_amount(option: str, value_text: str) -> Decimal:
    try:
        epsilon = Decimal(value_text) if _NUMBER.fullmatch(value_text) else Decimal("nan")
        if not epsilon.is_finite() or not Decimal("0.000001") <= epsilon <= LARGEST:
            raise InvalidOperation
    except InvalidOperation:
        raise RunFileError(f"{option} must be a number from 0.000001 to {LARGEST}, such as 0.5") from None
    return epsilon


def comparison_lines(comparison: NotionComparison) -> list[str]:
    """Return the offers of all notions as lines for the terminal."""
    costs = [entry.series for entry in comparison.entries if entry.series is not None]
    offers = [entry for entry in comparison.entries if entry.series is not None and entry.bound is not None]
    bounds = [entry.bound for entry in offers if entry.bound is not None]
    promised = [entry.bound.name for entry in offers if entry.promised and entry.bound is not None]
    scopes = {scope: "" if scope[2] == ASSUMPTION_FREE else "*" for scope in map(_scope, bounds)}
    letters = zip(scopes, cycle(_LETTERS), scopes.values(), strict=False)
    ratios = sorted(cost.sum_noise_kwh / cost.noise_kwh for cost in costs if math.isfinite(cost.sum_noise_kwh))
    impossible: dict[tuple[str, str], list[str]] = {}
    for entry in comparison.entries:
        if entry.reason:
            impossible.setdefault((entry.notion, entry.reason), []).extend(filter(None, [entry.method]))
    return render_lines(
        "compare",
        c=comparison,
        offers=offers,
        # a promise with a delta is compared at its bound on one day, which has no delta
        is_of_day=comparison.delta is not None and DAY_BOUND in promised,
        scope=_scope,
        letters={scope: f"{letter}{star}" for scope, letter, star in letters},
        sum_times=" to ".join(dict.fromkeys(f"{ratio:.1f}" for ratio in ratios[:1] + ratios[-1:])),
        verdicts={comparison.change.verdict(cost.noise_kwh) for cost in costs},
        impossible=impossible,
    )


def _scope(bound: LossBound) -> tuple[str, str, str, str]:
    """Return scope, delta, class and assumption of a bound; the method of an assumption is in the offer's own line."""
    delta = "" if bound.delta is None else f", with delta {format_delta(bound.delta)}"
    return scope_text(bound.about), delta, bound.kind, bound.assumption.partition(" (method")[0]

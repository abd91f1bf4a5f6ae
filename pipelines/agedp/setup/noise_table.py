"""The noise of a daily mean under each notion, for a roster, as `agedp init` shows it before any decision.

Every value equals that of `agedp plan --notions` for a run file with these keys: the run file is validated, every day
of the period is simulated under the notion, and the noise follows from the day budgets. Public: it uses no reading,
only the roster. The examples decide nothing; options replace them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

import numpy as np

from agedp.budget import ReleaseTerms
from agedp.planning.forecast import ForecastView
from agedp.planning.simulated_days import SimulatedDays
from agedp.setup.run_file_draft import DraftPaths, draft
from agedp.setup.run_file_options import SERIES, Key, OptionValues, number_of, quoted
from agedp.setup.run_file_proposals import FileFacts, notion_of
from agedp_data import clock
from agedp_data.config.loading import validate_run_file
from agedp_data.errors import AgedpError
from agedp_data.model import Model, kernel_leakage_bound, public_text
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion_text import NoiseExample
from agedp_data.roster import Roster

_EXAMPLES: Final = ((Decimal("0.1"), Decimal(20)), (Decimal(1), Decimal(50)))
"""Pairs of epsilon and clamp_kwh; options replace them."""

_NO_CAP: Final = "1000"
_NO_TOTAL: Final = "1000000"
_NOWHERE: Final = Path("/nowhere")
"""The folder of a run file that is never written."""


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """The noise of one setting of a notion.

    Attributes:
        notion: the name of the notion.
        description: the setting, with "e" for the epsilon.
        noise_kwh: standard deviation for each pair of the table [kWh per household]; None where no day is released.
    """

    notion: str
    description: str
    noise_kwh: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class NoiseTable:
    """Noise by notion for pairs of epsilon and clamp; root mean square over the days.

    Attributes:
        households: the fewest and the most on the roster on a day.
        days: number of days of the files.
        pairs: (epsilon, clamp_kwh) of each column.
        is_given_pair: whether the options name the pair.
        rows: one for each setting.
    """

    households: tuple[int, int]
    days: int
    pairs: tuple[tuple[Decimal, Decimal], ...]
    is_given_pair: bool
    rows: tuple[NoiseRow, ...]


def noise_table(facts: FileFacts, options: OptionValues, roster: Roster) -> NoiseTable:
    """Return the noise of a daily mean under each notion, for the epsilon and clamp of the options or for examples.

    It reads the roster and no reading, and draws nothing. Notions that need a model are computed with complete mixing
    from day to day, the most favourable case.
    """
    given_epsilon, given_clamp = _amount(options), _number(options, (SERIES, "clamp_kwh"))
    pairs = tuple(dict.fromkeys((given_epsilon or epsilon, given_clamp or clamp) for epsilon, clamp in _EXAMPLES))
    model = _complete_mixing()
    rows = tuple(
        NoiseRow(
            notion.name,
            example.description.format(e="e", days=facts.days),
            tuple(_noise(facts, options, (notion.name, example), pair, roster, model) for pair in pairs),
        )
        for notion in NOTIONS
        for example in notion.TEXT.examples
    )
    counts = [roster.households(facts.first + timedelta(days=number)) for number in range(facts.days)]
    return NoiseTable((min(counts), max(counts)), facts.days, pairs, bool(given_epsilon and given_clamp), rows)


def _complete_mixing() -> Model:
    """Return the model of a chain that is independent from day to day."""
    leakage_bound = kernel_leakage_bound(np.full((2, 2), 0.5), assume="markov", steps_per_day=1)
    return Model(
        public_text({"source": "declared", "assume": "markov", "given": "kernel"}, leakage_bound), leakage_bound
    )


def _amount(given: OptionValues) -> Decimal | None:
    """Return the epsilon that the options give the notion that they name."""
    notion = notion_of(given)
    return None if notion is None else _number(given, ("promise", notion.TEXT.epsilon_key))


def _number(options: OptionValues, key: Key) -> Decimal | None:
    number = number_of(options, key)
    return number if number is not None and number > 0 else None


def _noise(
    facts: FileFacts,
    given: OptionValues,
    setting: tuple[str, NoiseExample],
    pair: tuple[Decimal, Decimal],
    roster: Roster,
    model: Model,
) -> float | None:
    """Return the noise of an example of a notion [kWh per household], None if it releases no day."""
    (notion, example), (epsilon, clamp) = setting, pair
    keys = {("promise", key): toml for key, toml in example.toml(e=f"{epsilon:f}", days=facts.days).items()}
    # a delta needs a total to apply to
    total = _NO_TOTAL if ("promise", "delta") in given else quoted("unlimited")
    caps: dict[Key, str] = {("promise", "max_day_epsilon"): _NO_CAP, ("promise", "epsilon_total"): total}
    same = given.get(("promise", "notion")) == quoted(notion)
    options = {key: toml for key, toml in given.items() if key[0] == "promise" and (same or key in caps)}
    filled = {
        **caps, **keys, **options, ("promise", "notion"): quoted(notion), (SERIES, "clamp_kwh"): f"{clamp:f}",
        ("population", "min_households"): "1", ("model", "kernel"): quoted("example.csv"),
        ("model", "assume"): quoted("markov"), ("model", "basis"): quoted("complete mixing from day to day"),
    }  # fmt: skip
    try:
        run, _ = validate_run_file(
            draft(facts, filled, paths=DraftPaths(), base=_NOWHERE).text(proposals=True), base=_NOWHERE
        )
        if run is None:
            return None
        terms = ReleaseTerms(run, model.leakage_bound, model=model.id)
        series_cost = SimulatedDays(terms, ForecastView((), roster, clock.today())).simulate(run, "")
    except AgedpError:
        return None
    return None if series_cost is None else series_cost.noise_kwh

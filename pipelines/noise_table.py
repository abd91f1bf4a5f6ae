"""The noise of a daily mean under each notion, for a roster, as `agedp init` shows it before any decision.

Every value equals that of `agedp plan --notions` for a run file with these keys: the run file is validated, every day
of the period is simulated under the notion, and the noise follows from the day budgets. Public: it uses no reading,
only the roster. The examples decide nothing; options replace them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import numpy as np

from agedp_data import clock
from agedp_data.config.reading import check
from agedp_data.errors import AgedpError
from agedp_data.model import Model, kernel_envelope, public_text
from agedp_data.notions import NOTIONS
from agedp_data.roster import Roster
from pipelines.promise.promised_days import SimulatedDays
from pipelines.run_file_draft import DraftPaths, draft
from pipelines.run_file_options import SERIES, Key, OptionValues, quoted
from pipelines.run_file_proposals import FileFacts, notion_of
from pipelines.work import Work, engine_for

_EXAMPLES: Final = ((Decimal("0.1"), Decimal(20)), (Decimal(1), Decimal(50)))
"""Pairs of epsilon and clamp_kwh; options replace them."""

_AMOUNTS: Final = ("epsilon_per_day", "epsilon_per_window", "alpha", "epsilon")
"""The keys in which notions take their epsilon."""

_NO_CAP: Final = "1000"
_NOWHERE: Final = Path("/nowhere")
"""The folder of a run file that is never written: it contains neither ledger nor release."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters of a notion and their description; `{e}` is replaced by the epsilon, `{days}` by the period."""

    notion: str
    description: str
    keys: Mapping[str, str]


_SETTINGS: Final = (
    Setting("classical", "epsilon {e} for each day", {"epsilon_per_day": "{e}"}),
    Setting(
        "w-event",
        "epsilon {e} for any 7 days together",
        {"window_days": "7", "epsilon_per_window": "{e}", "spend": '"even"'},
    ),
    Setting(
        "age-dependent",
        "epsilon {e} for each day; a model bounds what is left of it with age",
        {"epsilon_per_day": "{e}", "age_days": "2", "method": '"total_variation"', "secret": '"day"'},
    ),
    Setting(
        "temporal",
        "epsilon {e} about any one day by all {days} days, however slowly households mix",
        {"alpha": "{e}", "horizon_days": "{days}", "budget": '"even"'},
    ),
    Setting(
        "temporal",
        "the same where every household mixes completely from day to day; a model lies between",
        {"alpha": "{e}", "horizon_days": "{days}", "budget": '"best"'},
    ),
    Setting(
        "discounted",
        "epsilon {e} for the sum of all days, a day earlier counts 0.99 of it",
        {
            "discount": '"exponential"', "rate": "0.99", "epsilon": "{e}", "schedule": '"optimal"',
            "horizon_days": "{days}", "clock": '"data-day"',
        },
    ),
    Setting(
        "neighbourhood",
        "epsilon {e} about changes up to 1 kWh in any 7 days together",
        {"delta_kwh": "1", "window_days": "7", "epsilon_per_window": "{e}", "spend": '"per-request"'},
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """The noise of one setting, kWh per household (standard deviation), one for each pair; None: no day is released."""

    notion: str
    description: str
    noise_kwh: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class NoiseTable:
    """Noise by notion for pairs of (epsilon, clamp_kwh); `is_given_pair` tells whether the options name the pair.

    `households` are the fewest and the most on the roster on a day; the noise is the root mean square over the days.
    """

    households: tuple[int, int]
    days: int
    pairs: tuple[tuple[Decimal, Decimal], ...]
    is_given_pair: bool
    rows: tuple[NoiseRow, ...]


def noise_table(facts: FileFacts, options: OptionValues, roster: Roster) -> NoiseTable:
    """Return the noise of a daily mean under each notion, for the epsilon and clamp of the options or for examples."""
    given_epsilon, given_clamp = _amount(options), _number(options, (SERIES, "clamp_kwh"))
    pairs = tuple(dict.fromkeys((given_epsilon or epsilon, given_clamp or clamp) for epsilon, clamp in _EXAMPLES))
    model = _complete_mixing()
    rows = tuple(
        NoiseRow(
            setting.notion,
            setting.description.format(e="e", days=facts.days),
            tuple(_noise(facts, options, setting, pair, roster, model) for pair in pairs),
        )
        for setting in _settings()
    )
    counts = [roster.households(facts.first + timedelta(days=number)) for number in range(facts.days)]
    return NoiseTable((min(counts), max(counts)), facts.days, pairs, bool(given_epsilon and given_clamp), rows)


def _complete_mixing() -> Model:
    """Return the model of a chain that is independent from day to day."""
    envelope = kernel_envelope(np.full((2, 2), 0.5), assume="markov", steps_per_day=1)
    return Model(public_text({"source": "declared", "assume": "markov", "given": "kernel"}, envelope), envelope)


def _settings() -> Iterator[Setting]:
    """Yield the settings of all notions in their order."""
    for notion in NOTIONS:
        yield from (setting for setting in _SETTINGS if setting.notion == notion.name)


def _amount(options: OptionValues) -> Decimal | None:
    """Return the epsilon in the options for the notion that they name, None without one."""
    notion = notion_of(options)
    keys = [] if notion is None else [key for key in _AMOUNTS if key in notion.model_fields]
    return next(filter(None, (_number(options, ("promise", key)) for key in keys)), None)


def _number(options: OptionValues, key: Key) -> Decimal | None:
    try:
        number = Decimal(options[key])
    except (KeyError, InvalidOperation):
        return None
    return number if number > 0 else None


def _noise(
    facts: FileFacts,
    options: OptionValues,
    setting: Setting,
    pair: tuple[Decimal, Decimal],
    roster: Roster,
    model: Model,
) -> float | None:
    """Return the noise of a setting [kWh per household], None if it releases no day."""
    epsilon, clamp = pair
    setting_options = {
        ("promise", key): toml.format(e=f"{epsilon:f}", days=facts.days) for key, toml in setting.keys.items()
    }
    caps: dict[Key, str] = {("promise", "max_day_epsilon"): _NO_CAP, ("promise", "epsilon_total"): quoted("unlimited")}
    is_setting_notion = options.get(("promise", "notion")) == quoted(setting.notion)
    promise_options = {
        key: toml for key, toml in options.items() if key[0] == "promise" and (is_setting_notion or key in caps)
    }
    complete_options = {
        **caps, **setting_options, **promise_options,
        ("promise", "notion"): quoted(setting.notion), (SERIES, "clamp_kwh"): f"{clamp:f}",
        ("population", "min_households"): "1", ("model", "kernel"): quoted("example.csv"),
        ("model", "assume"): quoted("markov"), ("model", "basis"): quoted("complete mixing from day to day"),
    }  # fmt: skip
    try:
        run, _ = check(
            draft(facts, complete_options, paths=DraftPaths(), base=_NOWHERE).text(proposals=True), base=_NOWHERE
        )
        if run is None:
            return None
        work = Work(run, clock.now(), None, engine_for(run, None), roster, model)
        series_cost = SimulatedDays(work).simulate(run, "")
    except AgedpError:
        return None
    return None if series_cost is None else series_cost.noise_kwh

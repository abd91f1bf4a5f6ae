"""`agedp.quantize` and `agedp.estimate`: readings -> states -> chains, for inspection and use.

The stages of a calibration on readings of a table: the same edges, states, counts and bounds, by the same functions.
Readings in memory are counted in this process; those of a Dask frame are stored first, and counted by Dask tasks.
Everything here is confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa

from agedp import plots
from agedp.calibration.estimate import NO_STATE, Transitions, repeated_half_hours
from agedp.calibration.estimate import estimate as count
from agedp.calibration.quantize import AnyPeriod, MonthReadings, Period, PeriodInMemory, states_by_household
from agedp.calibration.quantize import quantize as compute_edges
from agedp.compute.engine import household_blocks, map_items, reopened
from agedp.compute.engine_settings import Engine, Scheduler
from agedp.frame_reader import instants, parse_readings, read_off_roster
from agedp.result_summary import CONFIDENTIAL, ResultSummary, extent
from agedp.store.daily_totals import days_with_readings
from agedp.store.month_reader import split_household_day_key
from agedp.workspace import StoredReadings, Workspace, check_readings, engine_of, is_dask
from agedp_data.arrays import Floats
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import SLOTS, Ints
from agedp_data.errors import ChainError, InputError
from agedp_data.markov import mixing, transitions
from agedp_data.markov.memory_check import markov_goodness_of_fit
from agedp_data.markov.mixing import reversible_fit_bound
from agedp_data.messages import check_one_of, format_value
from agedp_data.parameters import FindingName

if TYPE_CHECKING:
    import pandas as pd

Step = Literal["half-hour", "day"]
_DAYS = 2**31
OwnEdges = Literal["quantile", "equal-width"]
Edges = OwnEdges | Sequence[float]
ChainForm = Literal["homogeneous", "cyclic"]


@dataclass(frozen=True, slots=True, repr=False)
class States(ResultSummary):
    """The states of households in each step, from `agedp.quantize`; confidential.

    `edges` has a row for each household, the inner edges in watt-hours; `days` are the first and last day with a
    reading.
    """

    edges: pd.DataFrame
    kind: Edges
    period: AnyPeriod
    engine: Engine
    _owner: Workspace | None = None

    def _facts(self) -> dict[str, object]:
        edges = self.kind if isinstance(self.kind, str) else "given"
        shown = {"households": len(self.households), "days": extent(self.days), "step": self.step}
        return {**shown, "states": self.n_states, "edges": edges, "states_of_households": CONFIDENTIAL}

    @property
    def step(self) -> Step:
        """The step of the states."""
        return self.period.step

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day with a reading."""
        return self.period.first, self.period.last

    @property
    def n_states(self) -> int:
        """The number of states."""
        return self.edges.shape[1] + 1

    @property
    def households(self) -> pd.Index:
        """The households, sorted."""
        return self.edges.index

    @property
    def frame(self) -> pd.DataFrame:
        """The state of each household and step: household_id, interval_start, state (0 is the lowest).

        Half-hours that the clock shows twice have no state.
        """
        import pandas as pd  # noqa: PLC0415

        layout, names = self.period.layout, pa.array(self.households, pa.string())
        frames = []
        for part, of_part in _parts_with_states(self):
            is_repeated = self.step == "half-hour" and repeated_half_hours(layout, part.time)
            state = np.where(is_repeated, NO_STATE, of_part)
            households = names.take(pa.array(part.household))
            starts = instants(part.time * (SLOTS if self.step == "day" else 1), layout)
            table = pa.table({"household_id": households, "interval_start": starts, "state": state})
            frames.append(table.filter(pa.array(state != NO_STATE)).to_pandas())
        frame: pd.DataFrame = pd.concat(frames)
        return frame.sort_values(["household_id", "interval_start"], ignore_index=True)

    def plot(self) -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot the share of readings in each state, by half-hour of the day, or by weekday for states of days."""
        per_row, shift = (SLOTS, 0) if self.step == "half-hour" else (7, 3)  # 1970 began on a Thursday
        number = np.zeros((self.n_states, per_row), np.int64)
        for part, state in _parts_with_states(self):
            np.add.at(number, (state, (part.time + shift) % per_row), 1)
        return plots.shares(number / np.maximum(number.sum(axis=0), 1), step=self.step)

    @property
    def readings_without_state(self) -> pd.Series:
        """The number of readings of each household that `frame` does not contain.

        With step "half-hour" those of half-hours that the clock shows twice, with step "day" those of days that lack
        more than two half-hours or one hour.
        """
        import pandas as pd  # noqa: PLC0415

        period, number = self.period, np.zeros(len(self.households), np.int64)
        for month in period.months:
            days = [np.zeros(0, np.int64)]
            if self.step == "day":
                days += [part.household * _DAYS + part.time for part in period.parts(month)]
            for part in replace(period, step="half-hour").parts(month):
                omitted = repeated_half_hours(period.layout, part.time)
                if self.step == "day":
                    omitted = ~np.isin(part.household * _DAYS + part.time // SLOTS, np.concatenate(days))
                number += np.bincount(part.household[omitted], minlength=len(number))
        return pd.Series(number, self.households, name="readings_without_state")


def _parts_with_states(states: States) -> Iterator[tuple[MonthReadings, Ints]]:
    """Yield the readings of each part of the period, and the state of each reading."""
    period, edges = states.period, states.edges.to_numpy()
    for part in (part for month in period.months for part in period.parts(month)):
        yield part, states_by_household(part.household, part.energy_wh, edges)


def read_period(readings: Any, step: Step) -> PeriodInMemory:  # noqa: ANN401
    """Return the readings of a table in memory, by step.

    Raises:
        InputError: a table without the columns of `agedp.read`, or without a usable reading.
    """
    parsed, layout = parse_readings(readings)
    roster, readings = read_off_roster(parsed, layout), parsed.readings
    code = {household: i for i, household in enumerate(roster.ids)}
    codes = np.array([code.get(household, -1) for household in readings.ids], readings.household.dtype)
    days = split_household_day_key(parsed.days[0])[1]
    ends = date_of_day(int(days.min())), date_of_day(int(days.max()))
    return PeriodInMemory(layout, replace(readings, household=codes[readings.household]), roster, *ends, step)


def quantize(
    readings: Any,  # noqa: ANN401  (any table)
    *,
    states: int = 12,
    edges: Edges = "quantile",
    step: Step = "half-hour",
    scheduler: Scheduler = None,
) -> States:
    r"""Return the states of every household: the class of each reading between edges, 0 for the lowest.

    Use it before `agedp.estimate`. With inner edges e of a household, its reading x has the state

    .. math:: s(x) = \#\{i : e_i \le x\}

    Every half-hour has a state, of incomplete days too; `States.readings_without_state` counts the exceptions.

    Source: `agedp_data.markov.states.states`.

    Args:
        readings: a table with the columns of `agedp.read`.
        states: the number of states.
        edges: "quantile" and "equal-width" are each household's own; a list of edges [Wh] is the same for all.
        step: "half-hour", or "day" for states of daily totals.
        scheduler: a Dask scheduler or client for a Dask frame and for measures of chains; the active client, or
            threads, if not given.

    Raises:
        InputError: a table without these columns, or without a usable reading.
        ChainError: edges that do not fit the number of states, or a word that none of the parameters knows.

    >>> import pandas as pd
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> table = pd.DataFrame({"household_id": "A", "interval_start": times, "energy_wh": [100, 300] * 48})
    >>> states = quantize(table, states=2, edges=[200])
    >>> states.frame["state"].head(4).tolist()
    [0, 1, 0, 1]
    """
    import pandas as pd  # noqa: PLC0415

    check_one_of("step", step, get_args(Step), ChainError)
    if isinstance(edges, str):
        check_one_of("edges", edges, get_args(OwnEdges), ChainError)
    if isinstance(states, bool) or not isinstance(states, int | np.integer) or states < 2:
        raise ChainError(f"states = {format_value(states)}: must be a whole number of at least 2")
    if not isinstance(edges, str) and len(edges) != states - 1:
        raise ChainError(f"edges: {states} states have {states - 1} inner edges, not {len(edges)}")
    accepted, owner = get_args(FindingName), None
    period: AnyPeriod
    if is_dask(readings):
        stored = StoredReadings.of(readings, scheduler=scheduler, accepted=accepted)
        engine, owner = stored.engine, stored.workspace
        days = days_with_readings(stored.store, stored.delivery)
        period = Period(stored.store, stored.delivery, stored.roster.rows, *days, step)
    else:
        check_readings(readings, accepted=accepted)
        engine, period = engine_of(scheduler), read_period(readings, step)
    table = compute_edges(period, edges=edges, n_states=states, engine=_engine_for(period, engine))
    index = pd.Index(period.roster.ids, name="household_id")
    frame = pd.DataFrame(table, index=index, columns=[f"edge_{i}_wh" for i in range(1, states)])
    return States(frame, edges, period, engine, owner)


@dataclass(frozen=True, slots=True, repr=False)
class Chains(ResultSummary):
    """The Markov chain of each household, from `agedp.estimate`; confidential.

    Every measure is a table with the households as index, NaN where a chain has none. `counts` are transitions (n, k,
    k), of cyclic chains (n, 48, k, k); row i holds those from state i.
    """

    states: States
    counts: Ints
    readings: Ints

    def _facts(self) -> dict[str, object]:
        return {**self.states._facts(), "chain": self.chain, "transitions": CONFIDENTIAL}

    @property
    def chain(self) -> ChainForm:
        """Whether a household has one transition matrix, or one for each half-hour of the day."""
        return "cyclic" if self.counts.ndim == 4 else "homogeneous"

    @property
    def households(self) -> pd.Index:
        """The households, sorted; the index of every table here."""
        return self.states.households

    @property
    def transition(self) -> Floats:
        """Transition matrices, shape (n, k, k), cyclic (n, 48, k, k); NaN in rows of states that are never left."""
        return transitions.transition_matrix(self.counts, smoothing=0)

    def spectral_gap(self) -> pd.Series:
        """Return the spectral gap of each chain [-], NaN where a chain has no unique stationary distribution.

        The equation is that of `agedp_data.markov.mixing.spectral_gap`.
        """
        import pandas as pd  # noqa: PLC0415

        gaps = self._per_household(mixing.spectral_gap, self.transition, 1)[:, 0]
        return pd.Series(gaps, self.households, name="spectral_gap")

    def total_variation(
        self, ages_days: Sequence[int] | None = None, *, age_steps: Sequence[int] | None = None
    ) -> pd.DataFrame:
        """Return Delta(t) by household and age [-], exactly (`agedp_data.markov.mixing.total_variation`).

        Args:
            ages_days: ages [days], whole numbers; this or `age_steps`.
            age_steps: ages [steps of the chain].

        Raises:
            InputError: both or neither of the two, or a cyclic chain.
        """
        return self._by_age(mixing.total_variation, ages_days, age_steps)

    def spectral_bound(
        self, ages_days: Sequence[int] | None = None, *, age_steps: Sequence[int] | None = None
    ) -> pd.DataFrame:
        """Return the bound of Delta(t) by the spectral gap [-]; NaN where a chain is not reversible.

        Arguments as `total_variation`; the equation is that of `agedp_data.markov.mixing.spectral_bound`.
        """
        return self._by_age(mixing.spectral_bound, ages_days, age_steps)

    def reversibilised_bound(
        self, ages_days: Sequence[int] | None = None, *, age_steps: Sequence[int] | None = None
    ) -> pd.DataFrame:
        """Return the bound of Delta(t) by the reversibilised chain [-], which holds for every chain.

        Arguments as `total_variation`; the equation is that of `agedp_data.markov.mixing.reversibilised_bound`.
        """
        return self._by_age(mixing.reversibilised_bound, ages_days, age_steps)

    def reversible_fit_bound(
        self, ages_days: Sequence[int] | None = None, *, age_steps: Sequence[int] | None = None
    ) -> pd.DataFrame:
        """Return the bound of [A] eq. 55 for the reversible fit of each chain [-]; NaN where there is no fit.

        It is indicative: `total_variation` of the chain itself may exceed it (`exceeds_reversible_fit`). Arguments as
        `total_variation`; the equation is that of `agedp_data.markov.mixing.reversible_fit_bound`.
        """
        return self._by_age(reversible_fit_bound, ages_days, age_steps, of_counts=True)

    def exceeds_reversible_fit(
        self, ages_days: Sequence[int] | None = None, *, age_steps: Sequence[int] | None = None
    ) -> pd.Series:
        """Return whether `total_variation` of each chain exceeds `reversible_fit_bound` at one of these ages or more.

        Its sum is the number of households for which the paper's bound would have promised too much.
        """
        exact = self.total_variation(ages_days, age_steps=age_steps)
        bound = self.reversible_fit_bound(ages_days, age_steps=age_steps)
        return (exact > bound).any(axis=1).rename("exceeds_reversible_fit")

    def goodness_of_fit(self, lags: Sequence[int], rng: np.random.Generator) -> pd.DataFrame:
        """Test for each household whether its series is first-order Markov; one row for each household and lag.

        The test and its columns are those of `agedp_data.markov.memory_check.markov_goodness_of_fit`.

        Args:
            lags: lags [steps].
            rng: source of randomness of the bootstrap.
        """
        import pandas as pd  # noqa: PLC0415

        per_day = 1 if self.states.step == "day" else SLOTS
        period, number = self.states.period, self.states.n_states
        first, days = day_number(period.first), (period.last - period.first).days + 1
        series = np.full((len(self.households), days * per_day), -1, np.int64)  # -1: no state in a step
        for part, state in _parts_with_states(self.states):
            series[part.household, part.time - first * per_day] = np.where(state == NO_STATE, -1, state)
        table = markov_goodness_of_fit(series, lags, rng, n_states=number, steps_per_day=per_day)
        columns = {name: table[name].ravel() for name in table.dtype.names or ()}
        household = np.repeat(np.asarray(self.households, object), len(lags))
        return pd.DataFrame({"household_id": pd.array(household, dtype="str"), **columns})

    def to_frame(self) -> pd.DataFrame:
        """Return the transitions as a table: household_id, (phase,) from_state, to_state, count, probability."""
        import pandas as pd  # noqa: PLC0415

        axes = ["phase", "from_state", "to_state"][-(self.counts.ndim - 1) :]
        index = pd.MultiIndex.from_product([self.households, *map(range, self.counts.shape[1:])])
        index = index.set_names(["household_id", *axes])
        columns = {"count": self.counts.ravel(), "probability": self.transition.ravel()}
        return pd.DataFrame(columns, index=index).reset_index()

    def plot(self, household: str | None = None) -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot the total variation of all households by age, or the transition matrix of one."""
        if household is not None:
            position = self.households.get_loc(household)
            return plots.matrix(self.transition[position], name=household)
        ages = [1, 2, 3, 5, 7, 10, 14, 21, 28]
        return plots.mixing(self.total_variation(ages))

    def _by_age(
        self,
        measure: Callable[..., Floats],
        ages_days: Sequence[int] | None,
        age_steps: Sequence[int] | None,
        *,
        of_counts: bool = False,
    ) -> pd.DataFrame:
        import pandas as pd  # noqa: PLC0415

        if (ages_days is None) == (age_steps is None):
            raise InputError("give ages_days or age_steps, one of the two")
        ages = np.asarray(age_steps if ages_days is None else ages_days, np.int64)
        per_day = 1 if self.states.step == "day" or ages_days is None else SLOTS
        chains = self.counts if of_counts else self.transition
        values = self._per_household(partial(measure, steps=ages * per_day), chains, len(ages))
        columns = pd.Index(ages, name="age_steps" if ages_days is None else "age_days")
        return pd.DataFrame(values, self.households, columns)

    def _per_household(self, measure: Callable[..., Floats], chains: Floats | Ints, width: int) -> Floats:
        """Return a measure of each chain, NaN for a chain that has none: a task for each block of households."""
        if self.chain == "cyclic":
            raise InputError('a cyclic chain has no single kernel; estimate chain="homogeneous" for these measures')
        blocks = [chains[block] for block in household_blocks(len(chains))]
        of_block = partial(_measure_block, measure=measure, width=width)
        engine = reopened(self.states.engine)
        return np.concatenate(map_items("bounds", blocks, function=of_block, engine=engine))


def _measure_block(chains: Floats | Ints, *, measure: Callable[..., Floats], width: int) -> Floats:
    """Return a measure of the chains of a block, one by one if some chain has none."""
    try:
        return np.reshape(measure(chains), (len(chains), width))
    except ChainError:
        if len(chains) == 1:
            return np.full((1, width), np.nan)
    return np.concatenate([_measure_block(chain[None], measure=measure, width=width) for chain in chains])


def estimate(states: States, *, chain: ChainForm = "homogeneous") -> Chains:
    r"""Count the transitions of every household, in one pass over the readings.

    Use it to inspect how fast households mix, before a model. Of C transitions from state i to j,

    .. math:: \hat P_{ij} = C_{ij} / \sum_k C_{ik}

    Source: Anderson, Goodman (1957), the maximum-likelihood estimate.

    Args:
        states: the states of the households.
        chain: one transition matrix for each household, or 48 of them, one for each half-hour of the day.

    Returns:
        The chains; `transition` has shape (households, states, states) [-].

    Raises:
        ChainError: a cyclic chain of days, or another word for `chain`.

    >>> import pandas as pd
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> table = pd.DataFrame({"household_id": "A", "interval_start": times, "energy_wh": [100, 300] * 48})
    >>> chains = estimate(quantize(table, states=2, edges=[200]))
    >>> chains.transition[0].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    check_one_of("chain", chain, get_args(ChainForm), ChainError)
    if chain == "cyclic" and states.step == "day":
        raise ChainError('chain = "cyclic" has a kernel for each half-hour of the day; it needs step = "half-hour"')
    counted = count_transitions(states, n_phases=SLOTS if chain == "cyclic" else 1)
    return Chains(states, counted.counts, counted.readings)


def count_transitions(states: States, *, n_phases: int, subsampling: Sequence[int] = ()) -> Transitions:
    """Count the transitions of every household; use it for what a calibration counts besides single steps.

    Args:
        states: the states of the households.
        n_phases: 48 for a cyclic chain, else 1.
        subsampling: steps of each subsampled series to count too.
    """
    edges, period, number = states.edges.to_numpy(), states.period, states.n_states
    engine = _engine_for(period, states.engine)
    return count(period, edges, n_states=number, engine=engine, n_phases=n_phases, subsampling=subsampling)


def _engine_for(period: AnyPeriod, engine: Engine) -> Engine:
    """Return where the readings of a period are counted: those in memory stay in this process."""
    return Engine("synchronous", workers=1) if isinstance(period, PeriodInMemory) else engine

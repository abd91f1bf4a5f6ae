"""`agedp.calibrate`: the model of a population, from a run file or from states; and models that were made before."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow.parquet as pq

from agedp import plots
from agedp.calibration.bound import bound
from agedp.calibration.leakage_bounds import phase_count, subsampling_steps
from agedp.calibration.member_selection import check_selection_possible, is_on_roster
from agedp.calibration_pipeline import calibrate as calibrate_run_file
from agedp.chains import Chains, States, count_transitions, estimate
from agedp.compute.engine_settings import Scheduler
from agedp.promises import Number, exact_number
from agedp.result_summary import CONFIDENTIAL, ResultSummary, extent
from agedp.run_context import log_warnings
from agedp.workspace import Workspace
from agedp_data.config import load
from agedp_data.config.loading import model_from_keys
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS
from agedp_data.errors import ChainError, InputError, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.model import PUBLIC_FILE, Model
from agedp_data.parameters import rounding_lines

if TYPE_CHECKING:
    import pandas as pd

_SEED = 20130101  # a check, not a release: the same readings give the same verdict


@dataclass(frozen=True, slots=True, repr=False)
class CalibratedModel(ResultSummary):
    """A model: the leakage bound of a population, its source, and (confidential) the figures of its households."""

    public: Model
    folder: Path
    _owner: Workspace | None = None
    _states: States | None = None

    def _facts(self) -> dict[str, object]:
        settings, bound = self.settings, self.leakage_bound
        ages = dict.fromkeys([*settings["ages_days"][:1], *settings["ages_days"][-1:]])
        leakage = partial(bound, loss=1.0, direction="backward", method=bound.methods[0])
        aged = {age: leakage(age * bound.steps_per_day) for age in ages}
        return {
            "id": self.id[:12],
            **{key: settings.get(key) for key in ("source", "publish", "assume", "step", "states", "chain")},
            "period": extent(settings.get("period", ())),
            **{key: settings.get(key) for key in ("min_visits", "confidence", "level")},
            "aged_epsilon_of_1": ", ".join(
                f"{loss:.3g} after {age} day{'s' * (age > 1)}" for age, loss in aged.items()
            ),
            "figures_of_households": CONFIDENTIAL,
        }

    @property
    def id(self) -> str:
        """The SHA-256 of the public part, by which a ledger names the model."""
        return self.public.id

    @property
    def leakage_bound(self) -> LeakageBound:
        """The bound on the leakage of every household, by age and loss; public."""
        return self.public.leakage_bound

    @property
    def settings(self) -> dict[str, Any]:
        """The settings under which the model was made, as in [model]."""
        return {key: value for key, value in self.public.public.items() if key != "envelope"}

    @property
    def households(self) -> pd.DataFrame:
        """What the calibration found for each household: readings, gaps, rarest state, curves."""
        frame: pd.DataFrame = pq.read_table(self.folder / "households.parquet").to_pandas()
        return frame.set_index("household_id")

    @property
    def spectral_gaps(self) -> pd.Series:
        """The spectral gap of each household; only homogeneous chains have one."""
        frame = self.households
        if "spectral_gap" not in frame:
            raise InputError("the model is of cyclic chains, which have no single spectral gap")
        return frame["spectral_gap"]

    @property
    def goodness_of_fit(self) -> pd.DataFrame:
        """The test of the Markov property of each household at the model's ages; one row for each of both.

        Raises:
            InputError: the model was loaded; `agedp calibrate` writes its test into the confidential folder.
        """
        if self._states is None:
            raise InputError("goodness_of_fit needs the states: it is of a model that agedp.calibrate(states) made")
        per_day = 1 if self._states.step == "day" else SLOTS
        lags = [age * per_day for age in self.settings["ages_days"]]
        return estimate(self._states).goodness_of_fit(lags, np.random.default_rng(_SEED))

    def plot(self) -> Any:  # noqa: ANN401
        """Plot the total variation of the households by age."""
        curves = self.households.filter(regex=r"^total_variation_\d+_days$")
        curves.columns = [int(name.split("_")[2]) for name in curves.columns]
        return plots.mixing(curves)

    def save(self, folder: str | Path) -> Path:
        """Copy the model into a new folder, which [model] file can name.

        Raises:
            RunFileError: the folder exists already; a model is never replaced.
        """
        target = Path(folder)
        if target.exists():
            raise RunFileError(f"{target.name}: exists already; a model is never replaced, name another folder")
        shutil.copytree(self.folder, target)
        return target


def load_model(folder: str | Path) -> CalibratedModel:
    """Return the model that `CalibratedModel.save` or `agedp calibrate` wrote, for a release under it.

    Args:
        folder: the folder of the model.

    Raises:
        InputError: the folder holds no model.

    >>> load_model("nowhere")
    Traceback (most recent call last):
    agedp_data.errors.InputError: nowhere: holds no model, or a damaged one
    """
    path = Path(folder)
    try:
        return CalibratedModel(Model.from_text((path / PUBLIC_FILE).read_text(encoding="ascii")), path)
    except (OSError, ValueError, LookupError, ChainError):
        raise InputError(f"{path.name}: holds no model, or a damaged one", private=f"{path}: no model") from None


def calibrate(  # noqa: PLR0913  (the keys of [model], all of which decide)
    source: States | Chains | str | Path,
    *,
    min_visits: int | None = None,
    confidence: Literal["plug-in", "sampling-bound"] | None = None,
    level: float | None = None,
    ages_days: Sequence[int] | None = None,
    chain: Literal["homogeneous", "cyclic"] | None = None,
    assume: Literal["curve", "markov"] | None = None,
    publish: Literal["envelope", "private"] | None = None,
    selection_epsilon: Number | None = None,
    coverage: Number | None = None,
    failure_probability: Number | None = None,
    family: str | Path | None = None,
    scheduler: Scheduler = None,
) -> CalibratedModel:
    r"""Estimate the model of a population: the maximum leakage over its households, or a private choice.

    Use it for promises that need a model. With the leakage function L of each household's chain i, at age t and loss a:

    .. math:: \bar L_t(a) = \max_i L_{\hat P_i^t}(a)

    Source: [A] Theorem 1; `agedp_data.leakage.bound_table.max_leakage`.

    A private choice from states is drawn at once. Its draws travel with the model, and the ledger of each release under
    it adopts them; calibrating again draws again. From a run file, the ledger keeps the draws.

    Args:
        source: the path of a run file, whose [model] decides everything else; or states, or the chains that
            `agedp.estimate` counted of them. Confidential.
        min_visits: a state with fewer visits gives no credit [transitions]; required.
        confidence: "plug-in", estimated transitions as they are, or "sampling-bound", with a bound on their sampling
            error at `level`; required.
        level: confidence level, for "sampling-bound" only, in (0, 1) [-].
        ages_days: ages of the bound, whole numbers [days]; 1, 2, 3, 7, 14 and 28 if not given.
        chain: "homogeneous" or "cyclic"; required with states, chains have theirs.
        assume: "markov" if bounds on several releases shall follow, else "curve"; required.
        publish: "envelope" (the maximum over the households, without noise), or "private": a member of a public family
            of bounds, chosen with loss `selection_epsilon` such that `coverage` of the households lie below it, but
            for `failure_probability`; required.
        selection_epsilon: loss of the choice, about all readings of a household [epsilon].
        coverage: share of the households [-].
        failure_probability: probability with which fewer households lie below the choice.
        family: path of the CSV file of the family; a family of ten members if not given.
        scheduler: for a run file, a Dask scheduler or client.

    Raises:
        RunFileError: a run file with these keywords, a missing keyword, or an invalid value.
        ChainError: no household to estimate from.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": "A", "interval_start": times, "energy_wh": np.arange(96) % 7 * 100}
    >>> states = agedp.quantize(pd.DataFrame(columns), states=2)
    >>> terms = {"min_visits": 2, "confidence": "plug-in", "assume": "markov", "publish": "envelope"}
    >>> model = calibrate(agedp.estimate(states), ages_days=[1], **terms)
    >>> float(model.leakage_bound(0, 1.0, direction="backward", method="tight"))
    1.0
    """
    if isinstance(source, Chains):
        if chain not in (None, source.chain):
            raise RunFileError(f'chain="{chain}": the chains are {source.chain}; leave it out, or estimate others')
        chain, source = source.chain, source.states
    keys = {"min_visits": min_visits, "confidence": confidence, "chain": chain, "assume": assume, "publish": publish}
    numbers = {"level": level, "selection_epsilon": selection_epsilon}
    numbers |= {"coverage": coverage, "failure_probability": failure_probability}
    further: dict[str, Any] = {key: exact_number(value) for key, value in numbers.items() if value is not None}
    if ages_days is not None:
        further["ages_days"] = list(ages_days)
    if family is not None:
        further["family"] = str(Path(family).absolute())
    if not isinstance(source, States):
        if further or any(value is not None for value in keys.values()):
            raise RunFileError("calibrate: a run file says all of this in [model]; give its path alone")
        calibrate_run_file(source, scheduler=scheduler)
        section = load(Path(source)).model
        return load_model(section.file if isinstance(section, EstimatedModel) else "")
    if missing := [name for name, value in keys.items() if value is None]:
        raise RunFileError(f"calibrate: {', '.join(missing)} decide what is promised and have no default")
    workspace = Workspace.create()
    edges = source.kind if isinstance(source.kind, str) else [exact_number(edge / 1000) for edge in source.kind]
    file = str(workspace.folder / "model")
    written: dict[str, Any] = {"source": "estimated", "file": file}
    written |= {"period": list(source.days), "step": source.step, "states": source.n_states, "edges": edges}
    written |= keys | further
    model: EstimatedModel = model_from_keys(written)
    log_warnings(rounding_lines(model, written, "calibrate: [model]"))
    check_selection_possible(model, int(is_on_roster(source.period.roster, model.period).sum()))
    counted = count_transitions(source, n_phases=phase_count(model), subsampling=subsampling_steps(model))
    period = source.period
    input_terms = {"dataset": "long", "interval_minutes": period.layout.interval_minutes}
    table = source.edges.to_numpy()
    calibration = bound(counted, table, period.roster, model, input_terms=input_terms, engine=source.engine)
    return replace(CalibratedModel(calibration.model, Path(model.file)), _owner=workspace, _states=source)

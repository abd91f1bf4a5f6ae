"""Statistics of half-hourly smart meters with differential privacy that takes time into account: the Python API.

    readings = agedp.read("incoming/*.csv", dataset="london")
    released = agedp.release(
        readings,
        promise=agedp.WEvent(
            window_days=31, epsilon_per_window=5, spend="per-row", max_day_epsilon=5, epsilon_total="unlimited"
        ),
        every="month",
        clamp_kwh=40,
        min_households=20,
    )
    released.table, released.plot(), released.save("release")

* `read`: files or tables -> readings; `findings`: what the preflight finds in them.
* `quantize`, `estimate`, `calibrate`: readings -> states -> chains -> model.
* `advise`, `plan`, `compare`: what is of use, and what a promise permits and costs, without a draw.
* `release`, `sanitise`: draw and publish.
* `true_means`: the confidential record of what was so, beside what was released.
* `open_release`, `verify`, `smooth`: for recipients; `audit`: measured lower bounds of the loss.
* `progress_bars`: shows how far calls have come.

Every name is loaded when it is first used. The stages are in `agedp.stages`, the mathematics in `agedp_data`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agedp.chains import Chains, States, estimate, quantize
    from agedp.compute.progress_bars import progress_bars
    from agedp.frame_reader import findings, read
    from agedp.ledger_transfer import verify
    from agedp.models import CalibratedModel, calibrate, load_model
    from agedp.plans import Plan, advise, compare, plan
    from agedp.preflight.input_checks import InputWarning
    from agedp.privacy_audit import audit
    from agedp.promises import AgeDependent, Classical, DeclaredCurve, Discounted, Neighbourhood, Temporal, WEvent
    from agedp.release_verification import ReleaseFolder, open_release
    from agedp.releases import Release, release, sanitise, true_means
    from agedp.smoothed_estimates.smoothed_release import SmoothedRelease, smooth

_HOMES: Final = {
    "agedp.frame_reader": ("findings", "read"),
    "agedp.preflight.input_checks": ("InputWarning",),
    "agedp.chains": ("Chains", "States", "estimate", "quantize"),
    "agedp.models": ("CalibratedModel", "calibrate", "load_model"),
    "agedp.promises": (
        "AgeDependent",
        "Classical",
        "DeclaredCurve",
        "Discounted",
        "Neighbourhood",
        "Temporal",
        "WEvent",
    ),
    "agedp.plans": ("Plan", "advise", "compare", "plan"),
    "agedp.releases": ("Release", "release", "sanitise", "true_means"),
    "agedp.release_verification": ("ReleaseFolder", "open_release"),
    "agedp.ledger_transfer": ("verify",),
    "agedp.smoothed_estimates.smoothed_release": ("SmoothedRelease", "smooth"),
    "agedp.privacy_audit": ("audit",),
    "agedp.compute.progress_bars": ("progress_bars",),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AgeDependent",
    "CalibratedModel",
    "Chains",
    "Classical",
    "DeclaredCurve",
    "Discounted",
    "InputWarning",
    "Neighbourhood",
    "Plan",
    "Release",
    "ReleaseFolder",
    "SmoothedRelease",
    "States",
    "Temporal",
    "WEvent",
    "advise",
    "audit",
    "calibrate",
    "compare",
    "estimate",
    "findings",
    "load_model",
    "open_release",
    "plan",
    "progress_bars",
    "quantize",
    "read",
    "release",
    "sanitise",
    "smooth",
    "true_means",
    "verify",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  (any public name)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'agedp' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

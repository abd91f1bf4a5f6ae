"""The permitted edits of every key of a run file: written by hand from the specification, not read off `agedp`.

An edit sets keys (None: removes the line) and states whether they are FREE, may be AMENDed in this direction, NEVER
change (exit 3), or are WRONG where they stand (exit 2).
"""

from __future__ import annotations

from dataclasses import dataclass

FREE, AMEND, NEVER, WRONG = "free", "amend", "never", "wrong"
Tables = dict[str, dict[str, str]]
Setting = tuple[str, str, str | None]


@dataclass(frozen=True)
class Edit:
    """Settings (table, key, TOML text or None) and what becomes of them; the first one names the edit."""

    verdict: str
    settings: tuple[Setting, ...]

    @property
    def name(self) -> str:
        table, key, text = self.settings[0]
        return f"{table}.{key}={text}"


CURVE = {"source": '"declared"', "curve": '"slow.csv"', "basis": '"made up"', "assume": '"curve"'}
KERNEL = {"source": '"declared"', "kernel": '"sticky.csv"', "basis": '"made up"', "assume": '"markov"'}
CAPS = {"age_days": "2", "max_day_epsilon": "0.6", "epsilon_total": "9"}
_AGED = {"notion": '"age-dependent"', "secret": '"day"', **CAPS}

PROMISES: dict[str, Tables] = {
    "classical": {"promise": {"notion": '"classical"', "epsilon_per_day": "0.5", **CAPS}},
    "w-event": {
        "promise": {
            "notion": '"w-event"',
            "window_days": "3",
            "epsilon_per_window": "1.5",
            "spend": '"even"',
            **CAPS,
        },
        "model": CURVE,
    },
    "age-dependent": {"promise": {**_AGED, "epsilon_per_day": "0.5", "method": '"total_variation"'}, "model": CURVE},
    "risk": {"promise": {**_AGED, "risk": "0.5", "method": '"tight"'}, "model": KERNEL},
    "temporal": {
        "promise": {"notion": '"temporal"', "alpha": "3", "horizon_days": "12", "budget": '"exact"', **CAPS},
        "model": KERNEL,
    },
    "discounted": {
        "promise": {
            "notion": '"discounted"',
            "discount": '"exponential"',
            "rate": "0.9",
            "epsilon": "1.5",
            "schedule": '"renewal"',
            "clock": '"data-day"',
            **CAPS,
        }
    },
    "neighbourhood": {
        "promise": {
            "notion": '"neighbourhood"',
            "delta_kwh": "2",
            "window_days": "3",
            "epsilon_per_window": "0.06",
            "spend": '"fraction"',
            "fraction": "0.4",
            **CAPS,
        }
    },
}


def run_file(promise: str) -> Tables:
    """Return the tables of a run file for one of PROMISES."""
    return {
        "": {"version": "1"},
        "input": {
            "dataset": '"london"',
            "files": '["incoming/*.csv"]',
            "corrections": '"later-file"',
            "file_order": '"name"',
            "max_half_hour_kwh": "20",
        },
        "output": {
            "release": '"out/release"',
            "confidential": '"out/confidential"',
            "ledger": '"sqlite:///out/ledger.sqlite"',
        },
        "population": {"name": '"homes"', "roster": '"roster.csv"', "min_households": "3"},
        "schedule": {
            "mode": '"rehearsal"',
            "first_day": "2013-01-02",
            "last_day": "2013-01-11",
            "wait_for": '"markers/{day}"',
            "give_up_days": "3",
        },
        "series.daily_mean": {
            "statistic": '"mean"',
            "clamp_kwh": "40",
            "max_missing": "2",
            "missing_kwh": "1",
        },
        **PROMISES[promise],
    }


def edits(promise: str) -> list[Edit]:
    """Return at least one edit of every key for a run file, and both directions of every amount."""
    own = _PROMISE_EDITS[promise]
    return [*_input(), *_surroundings(), *_schedule(), *_series(), *own, *_caps(), *_others(promise), *_model(promise)]


def _one(verdict: str, table: str, key: str, *texts: str | None) -> list[Edit]:
    return [Edit(verdict, ((table, key, text),)) for text in texts]


def _some(verdict: str, *settings: Setting) -> list[Edit]:
    return [Edit(verdict, settings)]


def _input() -> list[Edit]:
    wrong = {"columns": '{household = "a"}', "categories": '["GC"]', "missing_controlled_load": '"zero"'}
    return [
        *_one(WRONG, "", "version", "2", "0", None),
        *_one(NEVER, "input", "dataset", '"ausgrid"'),
        *_one(FREE, "input", "files", '["incoming/*"]', '["incoming/*.csv", "more/*.csv"]'),
        *_some(AMEND, ("input", "corrections", '"set-aside"'), ("input", "file_order", None)),
        *_one(AMEND, "input", "file_order", '"modified"'),
        *_one(AMEND, "input", "max_half_hour_kwh", "10", "30", None),
        *_one(WRONG, "input", "interval_minutes", "15", "60", "20"),
        *_one(FREE, "input", "interval_minutes", "30"),
        *_one(FREE, "input", "max_rejected_share", "0.01"),
        *_one(FREE, "input", "preflight", '"report"', '"refuse"'),
        *(edit for key, text in wrong.items() for edit in _one(WRONG, "input", key, text)),
    ]


def _surroundings() -> list[Edit]:
    free = {
        "output": {
            "release": '"out/elsewhere"',
            "confidential": '"out/house"',
            "title": '"Another"',
            "source": '"Ours"',
            "licence": '"CC0-1.0"',
            "contact": '"us"',
            "interval": "0.5",
        },
        "population": {"roster": '"same.csv"'},
        "compare": {"window_days": "4", "exponential": "0.9", "hyperbolic": "2", "delta_kwh": "[1, 3]"},
        "alerts": {"min_coverage": "0.5"},
        "engine": {"scheduler": '"processes"', "workers": "1", "block_mib": "1", "keep_days": "500"},
    }
    return [
        *(edit for table, keys in free.items() for key, text in keys.items() for edit in _one(FREE, table, key, text)),
        *_one(NEVER, "output", "ledger", '"sqlite:///out/fresh.sqlite"'),
        *_one(AMEND, "output", "witness", '"homes.witness"'),
        *_one(WRONG, "population", "name", '"others"'),  # the release folder is of "homes"
        *_some(NEVER, ("population", "roster", '"more.csv"')),
        *_some(NEVER, ("population", "roster", '"fewer.csv"')),
        *_one(AMEND, "population", "min_households", "4"),
        *_one(NEVER, "population", "min_households", "2"),
    ]


def _schedule() -> list[Edit]:
    alone = (("schedule", "wait_for", None), ("schedule", "give_up_days", None))
    return [
        *_some(NEVER, ("schedule", "mode", '"live"')),
        *_one(NEVER, "schedule", "first_day", "2013-01-01", "2013-01-03"),
        *_one(AMEND, "schedule", "last_day", "2013-01-10", "2013-01-12", None),
        *_one(NEVER, "schedule", "skip_days", "[2013-01-11]"),
        *_one(WRONG, "schedule", "absent_days", '"missing"'),  # of an archive
        *_one(AMEND, "schedule", "wait_for", '"others/{day}"'),
        *_some(AMEND, *alone),
        *_one(AMEND, "schedule", "give_up_days", "1", "9", None),
        *_one(WRONG, "schedule", "cron", '"30 6 * * *"'),
        *_one(WRONG, "schedule", "zone", '"UTC"'),
    ]


_COUNTS: tuple[Setting, ...] = (
    ("series.daily_mean", "share", "0.5"),
    ("series.counts", "statistic", '"distribution"'),
    ("series.counts", "share", "0.5"),
    ("series.counts", "clamp_kwh", "40"),
)


def _series() -> list[Edit]:
    mean = "series.daily_mean"
    renamed = (("series.mean", "statistic", '"mean"'), ("series.mean", "clamp_kwh", "40"), (mean, "", None))
    return [
        *_some(AMEND, *renamed),
        *_one(WRONG, mean, "statistic", '"distribution"'),  # its bins are missing
        *_some(NEVER, (mean, "statistic", '"distribution"'), (mean, "bins_kwh", "[0, 5, 40]")),
        *_some(AMEND, ("series.counts", "bins_kwh", "[0, 5, 40]"), *_COUNTS),
        *_some(AMEND, ("series.counts", "form", '"cumulative"'), ("series.counts", "bins_kwh", "[0, 5, 40]"), *_COUNTS),
        *_some(WRONG, ("series.counts", "bins_kwh", "[0, 40]"), *_COUNTS),
        *_some(WRONG, ("series.counts", "bins_kwh", "[0, 5, 30]"), *_COUNTS),
        *_some(WRONG, ("series.counts", "form", '"both"'), ("series.counts", "bins_kwh", "[0, 5, 40]"), *_COUNTS),
        *_one(FREE, mean, "share", "1"),
        *_one(WRONG, mean, "share", "0.5", "2"),
        *_one(AMEND, mean, "clamp_kwh", "30", "50"),
        *_one(AMEND, mean, "by", '"tariff"'),
        *_one(AMEND, mean, "max_missing", "1", "3"),
        *_one(AMEND, mean, "missing_kwh", "0", "2", None),
        *_one(FREE, mean, "values", '"readings"'),
        *_one(WRONG, mean, "values", '"states"'),
        *_one(WRONG, mean, "form", '"histogram"'),
        *_one(WRONG, mean, "bins_kwh", "[0, 40]"),
    ]


def _others(promise: str) -> list[Edit]:
    """Return the keys of notions that have no part in a promise, and what its own may not be."""
    keys = {
        "alpha": "1",
        "horizon_days": "9",
        "budget": '"best"',
        "discount": '"exponential"',
        "rate": "0.9",
        "epsilon": "1",
        "schedule": '"optimal"',
        "clock": '"data-day"',
        "delta_kwh": "1",
        "fraction": "0.2",
    }
    own = PROMISES[promise]["promise"]
    return [edit for key, text in keys.items() if key not in own for edit in _one(WRONG, "promise", key, text)]


def _caps() -> list[Edit]:
    return [
        *_one(AMEND, "promise", "age_days", "3"),
        *_one(NEVER, "promise", "age_days", "1", "0"),
        *_one(AMEND, "promise", "max_day_epsilon", "0.55"),
        *_one(NEVER, "promise", "max_day_epsilon", "0.7"),
        *_one(AMEND, "promise", "epsilon_total", "8", "3"),
        *_one(NEVER, "promise", "epsilon_total", "10", '"unlimited"'),
    ]


_AS_CLASSICAL: tuple[Setting, ...] = (
    ("promise", "notion", '"classical"'),
    *(("promise", key, None) for key in ("window_days", "epsilon_per_window", "spend", "risk", "method", "secret")),
    *(("promise", key, None) for key in ("discount", "rate", "epsilon", "schedule", "clock")),
    *(("promise", key, None) for key in ("alpha", "horizon_days", "budget", "delta_kwh", "fraction")),
    ("promise", "epsilon_per_day", "0.5"),
)
_AS_WINDOW: tuple[Setting, ...] = (
    ("promise", "notion", '"w-event"'),
    ("promise", "window_days", "3"),
    ("promise", "epsilon_per_window", "1.5"),
    ("promise", "spend", '"even"'),
    ("promise", "epsilon_per_day", None),
)
_AGED_ONLY = [*_one(WRONG, "promise", "secret", '"day"'), *_one(WRONG, "promise", "method", '"tight"')]
_WINDOW_ONLY = [
    *_one(WRONG, "promise", "window_days", "3"),
    *_one(WRONG, "promise", "epsilon_per_window", "1"),
    *_one(WRONG, "promise", "spend", '"even"'),
]
_DAY_EDITS = [
    *_one(AMEND, "promise", "epsilon_per_day", "0.4"),
    *_one(NEVER, "promise", "epsilon_per_day", "0.6"),
]
_PROMISE_EDITS: dict[str, list[Edit]] = {
    "classical": [
        *_some(NEVER, *_AS_WINDOW),
        *_DAY_EDITS,
        *_AGED_ONLY,
        *_WINDOW_ONLY,
        *_one(WRONG, "promise", "risk", "0.5"),
    ],
    "w-event": [
        *_some(NEVER, *_AS_CLASSICAL),
        *_one(AMEND, "promise", "window_days", "4"),
        *_one(NEVER, "promise", "window_days", "2"),
        *_one(AMEND, "promise", "epsilon_per_window", "1.2"),
        *_one(NEVER, "promise", "epsilon_per_window", "1.6"),
        *_one(NEVER, "promise", "spend", '"remaining"'),
        *_some(NEVER, ("promise", "epsilon_per_window", "1.2"), ("promise", "window_days", "2")),
        *_AGED_ONLY,
        *_one(WRONG, "promise", "epsilon_per_day", "0.5"),
        *_one(WRONG, "promise", "risk", "0.5"),
    ],
    "age-dependent": [
        *_some(NEVER, *_AS_CLASSICAL),
        *_DAY_EDITS,
        *_some(NEVER, ("promise", "risk", "0.5"), ("promise", "epsilon_per_day", None)),
        *_one(NEVER, "promise", "secret", '"half-hour"'),
        *_one(WRONG, "promise", "method", '"tight"'),
        *_some(NEVER, ("promise", "epsilon_per_day", "0.4"), ("promise", "age_days", "1")),
        *_WINDOW_ONLY,
    ],
    "risk": [
        *_some(NEVER, *_AS_CLASSICAL),
        *_one(AMEND, "promise", "risk", "0.4"),
        *_one(NEVER, "promise", "risk", "0.6"),
        *_some(NEVER, ("promise", "epsilon_per_day", "0.1"), ("promise", "risk", None)),
        *_one(NEVER, "promise", "method", '"total_variation"', '"spectral"', '"reversibilised"'),
        *_one(WRONG, "promise", "secret", '"half-hour"'),  # a chain of days
        *_WINDOW_ONLY,
    ],
    "temporal": [
        *_some(NEVER, *_AS_CLASSICAL),
        *_one(AMEND, "promise", "alpha", "2.9", "2.8"),
        *_one(NEVER, "promise", "alpha", "3.1", "0.1"),
        *_one(AMEND, "promise", "horizon_days", "11", "3"),
        *_one(NEVER, "promise", "horizon_days", "13"),
        *_one(WRONG, "promise", "horizon_days", '"unlimited"', "0"),  # not with "exact"
        *_some(NEVER, ("promise", "horizon_days", '"unlimited"'), ("promise", "budget", '"supremum"')),
        *_one(NEVER, "promise", "budget", '"best"', '"even"', '"supremum"'),
        *_one(WRONG, "promise", "budget", '"algorithm-8"'),
        *_AGED_ONLY,
        *_WINDOW_ONLY,
        *_one(WRONG, "promise", "epsilon_per_day", "0.5"),
        *_one(WRONG, "promise", "risk", "0.5"),
    ],
    "discounted": [
        *_some(NEVER, *_AS_CLASSICAL),
        *_one(AMEND, "promise", "epsilon", "1.2", "0.1"),
        *_one(NEVER, "promise", "epsilon", "1.6"),
        *_one(NEVER, "promise", "rate", "0.8", "0.95"),
        *_one(WRONG, "promise", "rate", "1", "0"),
        *_some(NEVER, ("promise", "discount", '"hyperbolic"'), ("promise", "rate", "3")),
        *_one(NEVER, "promise", "discount", '"hyperbolic"'),
        *_one(NEVER, "promise", "schedule", '"constant"', '"paper"'),
        *_one(WRONG, "promise", "schedule", '"optimal"', '"corollary-16"'),
        *_one(NEVER, "promise", "clock", '"publication-day"'),
        *_AGED_ONLY,
        *_WINDOW_ONLY,
        *_one(WRONG, "promise", "epsilon_per_day", "0.5"),
        *_one(WRONG, "promise", "risk", "0.5"),
    ],
    "neighbourhood": [
        *_some(NEVER, *_AS_CLASSICAL),
        *_one(NEVER, "promise", "delta_kwh", "1", "3"),
        *_one(WRONG, "promise", "delta_kwh", "41", "0"),  # beyond the clamp; nothing
        *_one(AMEND, "promise", "window_days", "4"),
        *_one(NEVER, "promise", "window_days", "2"),
        *_one(AMEND, "promise", "epsilon_per_window", "0.05"),
        *_one(NEVER, "promise", "epsilon_per_window", "0.07"),
        *_one(NEVER, "promise", "fraction", "0.5", "0.3"),
        *_one(WRONG, "promise", "fraction", "1", None),
        *_some(NEVER, ("promise", "spend", '"per-request"'), ("promise", "fraction", None)),
        *_some(NEVER, ("promise", "spend", '"offline"'), ("promise", "fraction", None)),
        *_one(WRONG, "promise", "spend", '"per-request"', '"even"'),
        *_AGED_ONLY,
        *_one(WRONG, "promise", "epsilon_per_day", "0.5"),
        *_one(WRONG, "promise", "risk", "0.5"),
    ],
}
_ESTIMATED = {
    "file": '"model"',
    "period": "[2012-01-01, 2012-02-01]",
    "states": "12",
    "edges": '"quantile"',
    "chain": '"homogeneous"',
    "memory": '"one"',
    "min_visits": "1",
    "confidence": '"plug-in"',
    "level": "0.9",
    "ages_days": "[1]",
    "publish": '"envelope"',
}
_OF_ANOTHER_KIND = {"chain": '"cyclic"', "confidence": '"sampling-bound"'}


def _model(promise: str) -> list[Edit]:
    known = [*_ESTIMATED.items(), *_OF_ANOTHER_KIND.items()]
    wrong = [edit for key, text in known for edit in _one(WRONG, "model", key, text)]
    if "model" not in PROMISES[promise]:
        declared = tuple(("model", key, text) for key, text in CURVE.items())
        alone = [edit for key in ("source", "step", *KERNEL) for edit in _one(WRONG, "model", key, '"day"')]
        return [*_some(AMEND, *declared), *alone, *wrong]
    gone = _some(NEVER if promise == "w-event" else WRONG, ("model", "", None))
    if promise in ("risk", "temporal"):
        return [
            *gone,
            *_one(WRONG, "model", "source", '"estimated"'),
            *_one(AMEND if promise == "risk" else WRONG, "model", "assume", '"curve"'),
            *_one(AMEND, "model", "kernel", '"loose.csv"', '"stickier.csv"'),
            *_one(AMEND, "model", "basis", '"thought again"'),
            *_one(AMEND, "model", "step", '"half-hour"'),
            *_one(WRONG, "model", "curve", '"slow.csv"'),
            *wrong,
        ]
    return [
        *gone,
        *_one(WRONG, "model", "source", '"estimated"'),
        *_one(AMEND, "model", "assume", '"markov"'),
        *_one(AMEND, "model", "curve", '"fast.csv"', '"slower.csv"'),
        *_some(AMEND, ("model", "kernel", '"loose.csv"'), ("model", "curve", None)),
        *_one(AMEND, "model", "basis", '"thought again"'),
        *_one(WRONG, "model", "step", '"day"'),
        *wrong,
    ]

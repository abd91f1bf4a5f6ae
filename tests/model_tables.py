"""The table [model] of an estimated model of two states, as several tests write it."""

from __future__ import annotations

from datetime import date


def estimated_table(first: date, last: date, *, accepted: bool = False) -> str:
    """Return the table of a model of half-hours that is estimated from these days."""
    return (
        f"""[model]
source = "estimated"
assume = "markov"
file = "model"
period = [{first}, {last}]
step = "half-hour"
states = 2
edges = [0.5]
chain = "homogeneous"
min_visits = 5
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
{"accept_unverified_model = true" if accepted else ""}
""".rstrip("\n")
        + "\n"
    )

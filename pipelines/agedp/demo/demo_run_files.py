"""The run files of the demonstration: one per notion, commented, so that they can be copied and changed."""

from __future__ import annotations

from decimal import Decimal

from agedp.demo.synthetic_datasets import DemonstrationDataset

NOTIONS = ("age-dependent", "temporal", "discounted")
"""The notions of the demonstration, each with a run file and a release folder of this name."""

AGES_DAYS = (1, 2, 3)
_MAX_DAY_EPSILON = Decimal("2.0")
_COMMENT_COLUMN = 40

_HEAD = """# {notion}.toml: a rehearsal on synthetic households, written by `agedp demo`. Copy it and change it.
# {households} households, {calibration} days for the model, then {days} released days; seed {seed}.
version = 1

[input]
dataset = "{dataset}"
files   = ["input/*.csv"]

[output]
release      = "{notion}/release"        # public: may be handed over as it is
confidential = "{notion}/confidential"   # readings, true means, data quality: for the data owner only
ledger       = "sqlite:///{notion}/ledger.sqlite"   # every release and its privacy loss
title        = "Daily electricity use of synthetic households, {title} format, {notion} privacy"
source       = "Synthetic: drawn from the Markov chains of chains.json; no household exists"
licence      = "CC0-1.0"

[population]
name   = "synthetic-{dataset}-{notion}"   # the households; a name of its own for each rehearsal
roster = "roster.csv"                    # household_id,from,to: who is counted on which days
min_households = {least}                     # a day with fewer households on the roster is never released

[schedule]
mode      = "rehearsal"                  # a simulated clock: each day is released when it is age_days old
first_day = {first}                   # first released day
last_day  = {last}

[series.daily_mean]
statistic = "mean"
clamp_kwh = {clamp}                           # public bound on a household's day; a larger day counts as this much

"""

_AGE_DEPENDENT = """[promise]
notion   = "age-dependent"               # what the releases reveal about the present: old data reveal little
age_days = 2                             # a day is released when it is two days old
risk     = 0.25                          # bound on the epsilon about the present; the epsilon of a day is solved from
                                         # the model: the largest that keeps the risk, within the caps below
method   = "tight"                       # the exact leakage function of the estimated chains
secret   = "day"                         # the present: the household's total of the current day
max_day_epsilon = {day_cap}                    # cap of any one day, whatever the model says
epsilon_total   = {total}                    # cap of the whole series: the sum over all released days
"""

_TEMPORAL = """[promise]
notion       = "temporal"                # what all releases together reveal about any one day, past and future ones too
age_days     = 2                         # a day is released when it is two days old
alpha        = 3.0                       # bound on the temporal leakage of any one day
horizon_days = {days}                        # the series closes after this number of releases
budget       = "best"                    # the allocation with the least mean noise among those of the paper and more
max_day_epsilon = {day_cap}                    # cap of any one day, whatever the model says
epsilon_total   = {total}                    # cap of the whole series: the sum over all released days
"""

_DISCOUNTED = """[promise]
notion       = "discounted"              # the sum of the losses of all days, in which old losses count less
age_days     = 2                         # a day is released when it is two days old
discount     = "exponential"
rate         = 0.7                       # the loss of a day counts 0.7 of that of the day after it
epsilon      = 2.5                       # bound on the discounted sum, on every day
schedule     = "optimal"                 # the schedule with the least mean noise over horizon_days
horizon_days = {days}
clock        = "data-day"                # discounting follows the day of the data
max_day_epsilon = {day_cap}                    # cap of any one day
epsilon_total   = {total}                    # cap of the whole series: the sum over all released days
"""

_MODEL = """
[model]                                  # the Markov chains: one per household, estimated once by `agedp calibrate`
source     = "estimated"
assume     = "markov"                    # compositions and temporal leakage follow from the Markov property
file       = "model"                     # folder of the model; confidential but for its public.json
period     = [{model_first}, {model_last}]  # before first_day: nothing of the released days is in the model
step       = "half-hour"
states     = 12
edges      = "equal-width"               # twelve equal intervals up to the household's own largest reading
chain      = "homogeneous"               # one transition matrix per household
min_visits = {min_visits}                          # a household with a state visited less often gets no credit for age
confidence = "plug-in"                   # estimated chains taken as they are; "sampling-bound" adds their error
ages_days  = [{ages}]                   # ages at which the leakage bound is tabulated
publish    = "envelope"                  # the leakage bound comes from readings and is published without noise
"""

_PROMISES = {"age-dependent": _AGE_DEPENDENT, "temporal": _TEMPORAL, "discounted": _DISCOUNTED}


def run_file_text(notion: str, draw: DemonstrationDataset) -> str:
    """Return the run file of one notion for the households of a draw."""
    days = (draw.released.last - draw.released.first).days + 1
    text = (_HEAD + _PROMISES[notion] + _MODEL).format(
        notion=notion,
        dataset=draw.dataset.name,
        title=draw.dataset.title,
        households=draw.households,
        least=max(2, draw.households // 2),
        calibration=(draw.released.first - draw.calibration.first).days,
        days=days,
        seed=draw.seed,
        first=draw.released.first,
        last=draw.released.last,
        clamp=draw.dataset.clamp_kwh,
        day_cap=_MAX_DAY_EPSILON,
        total=days * _MAX_DAY_EPSILON,
        model_first=draw.calibration.first,
        model_last=draw.calibration.last,
        min_visits=draw.min_visits,
        ages=", ".join(map(str, AGES_DAYS)),
    )
    return "".join(map(_aligned, text.splitlines(keepends=True)))


def _aligned(line: str) -> str:
    """Return a line whose comment begins in the same column as the others, or after a longer key.

    >>> _aligned("rate = 0.7     # a rate")
    'rate = 0.7                               # a rate'
    """
    key, mark, comment = line.partition(" # ")
    return f"{key.rstrip():{_COMMENT_COLUMN}}{mark}{comment}" if mark else line

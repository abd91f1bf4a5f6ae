"""The plots of the Python API, on synthetic households, and two pictures of the mathematics.

`python -m tests.documents.gallery` draws them. Each has its name in the comment above its lines.
"""

from decimal import Decimal
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import agedp
from agedp.setup.sample import sample
from agedp_data.accounting.ageing import compose, risk
from agedp_data.accounting.discount_schedules import discounted_loss
from agedp_data.accounting.discounting import Exponential
from agedp_data.accounting.renyi import approximate_epsilon, laplace_curve, multiply
from agedp_data.accounting.temporal_leakage import temporal

sample("london", Path("sample"), households=60, days=60, seed=7)
readings = agedp.read("sample/input/*.csv", dataset="london")
promise = agedp.Classical(epsilon_per_day=1, max_day_epsilon=1, epsilon_total=60, accept=["total"])
terms = {"promise": promise, "clamp_kwh": 40, "min_households": 10}

# picture: daily-means
released = agedp.release(readings, **terms)
released.plot().set_title("Published daily means, 60 households, epsilon 1 per day")

# picture: smoothed
estimates = agedp.smooth(released, region="none")
estimates.plot().set_title("Smoothed estimates and published values")

# picture: groups
households = readings["household_id"].unique()
roster = pd.DataFrame({"household_id": households, "from": "2012-11-20", "to": ""})
roster["area"] = ["north", "south", "south", "south"] * 15
areas = agedp.release(readings, roster=roster, by="area", population="areas", **terms)
areas.plot().set_title("Means of two areas: 15 and 45 households")

# picture: months
months = released.folder.period_averages("month").set_index("first_day")
spread = [months["mean_kwh"] - months["low_kwh"], months["high_kwh"] - months["mean_kwh"]]
axes = (
    months["mean_kwh"].rename(index=lambda day: f"{day:%b %Y}").plot.bar(yerr=spread, rot=0, capsize=4, figsize=(8, 4))
)
axes.set(title="Means of months with the interval of their noise", xlabel="", ylabel="kWh per household and day")

# picture: distribution
ranges = [0, 4, 8, 12, 16, 20, 30, 40]
counts = agedp.release(readings, statistic="distribution", bins_kwh=ranges, population="use", **terms)
counts.plot().set_title("Households by use of a day")

# picture: epsilon-by-day
window = agedp.WEvent(window_days=7, epsilon_per_window=2, spend="remaining", max_day_epsilon=1, epsilon_total=100)
planned = agedp.plan(readings, last_day="2013-01-02", **(terms | {"promise": window}))
planned.plot().set_title("Epsilon of each day, half of what a window of 7 days has left")

# picture: mixing
chains = agedp.estimate(agedp.quantize(readings, states=6, step="day"))
chains.plot().set_title("Total variation by age, chains of daily use")

# picture: transition-matrix
chains.plot(household="MAC900001")

# picture: ageing
chain, ages = np.array([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.3, 0.7]]), np.arange(29)
methods = ["tight", "total_variation", "spectral", "reversibilised"]
curves = pd.DataFrame({method: risk(chain, 1.0, ages, method=method) for method in methods}, index=ages)
axes = curves.plot(logy=True, figsize=(8, 4), style=["-", "--", ":", "-."])
axes.set(title="Loss about the present of one release of epsilon 1", xlabel="age (days)", ylabel="epsilon")

# picture: notions
stay, days = np.array([[0.9, 0.1], [0.1, 0.9]]), np.arange(-14, 15)
passing = risk(stay, 0.1, abs(days), method="tight") / 0.1
window_of_seven, past = (days >= 0) & (days < 7), days <= 0
weights = {
    "classical: the day itself": days == 0,
    "w-event: any window, here 7 days": window_of_seven,
    "age-dependent: today, releases two days late": np.where(days <= -2, passing, 0),
    "temporal: the day, from all days": passing,
    "discounted: old losses count less (rate 0.9)": np.where(past, 0.9 ** np.abs(days), 0),
    "neighbourhood: a change of 10 of 50 kWh, 7 days": np.where(window_of_seven, 10 / 50, 0),
}
figure, panels = plt.subplots(2, 3, figsize=(11, 4.6), sharex=True, sharey=True)
for axes, (name, weight) in zip(panels.flat, weights.items(), strict=True):
    axes.bar(days, weight, color="#0b5394")
    axes.axvline(0, color="#b33c00", lw=0.8, ls=":")
    axes.set_title(name, fontsize=9.5, loc="left")
figure.supxlabel("day of a release, 0 being the protected day")
figure.supylabel("counted part of its loss")

# picture: accountant
loss, year = 0.1, np.arange(1, 366)
curve = laplace_curve(50_000, 500_000.0)
spans = [approximate_epsilon(multiply(curve, n), Decimal("1e-6"), pure=n * 10**8) / 10**9 for n in year.tolist()]
course = {
    "all days, sum": loss * year,
    "all days, delta 1e-6": spans,
    "discounted sum, rate 0.99": discounted_loss(np.full(365, loss), Exponential(0.99)),
    "any 7 days": loss * np.minimum(year, 7),
    "temporal leakage, chain": [temporal(stay, stay, [loss] * n).max() for n in year.tolist()],
    "today, two days later, chain": compose(
        stay, year + 1, np.full(365, 2), np.full(365, loss), year + 1, method="tight"
    ),
    "one day": np.full(365, loss),
}
axes = pd.DataFrame(course, index=year).plot(logy=True, figsize=(9.5, 4.5))
axes.yaxis.set_major_formatter("{x:g}")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=10)
axes.set(title="A year of releases with epsilon 0.1, under seven bounds", xlabel="days released", ylabel="epsilon")

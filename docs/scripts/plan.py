import agedp

readings = agedp.read("input/*.csv")
promise = agedp.WEvent(window_days=7, epsilon_per_window=2, spend="even", max_day_epsilon=1, epsilon_total=100)
plan = agedp.plan(readings, promise=promise, clamp_kwh=50, min_households=10)

print(plan.table)
print(plan.compare(epsilon=2))

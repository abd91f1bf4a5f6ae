import agedp

readings = agedp.read("input/*.csv")
caps = {"max_day_epsilon": 1, "epsilon_total": 100}
daily = agedp.Classical(epsilon_per_day=0.5, **caps)
weekly = agedp.WEvent(window_days=7, epsilon_per_window=2, spend="even", **caps)

print(agedp.compare(readings, [daily, weekly], clamp_kwh=50, min_households=10))

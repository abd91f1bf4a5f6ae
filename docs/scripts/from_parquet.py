import agedp

agedp.read("input/*.csv", dataset="london").to_parquet("readings.parquet")
columns = {"household": "household_id", "time": "interval_start", "time_format": "iso", "stamp": "start"}
columns |= {"zone": "UTC", "day_zone": "GMT", "energy": "energy_wh", "unit": "Wh"}
readings = agedp.read("readings.parquet", columns=columns)

promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=182.5, accept=["useless"])
print(agedp.release(readings, promise=promise, clamp_kwh=50, min_households=10).table)

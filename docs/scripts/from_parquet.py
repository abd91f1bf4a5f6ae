import agedp

agedp.read("input/*.csv").to_parquet("readings.parquet")
readings = agedp.read("readings.parquet", columns={"day_zone": "GMT"})

promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=182.5, accept=["useless"])
print(agedp.release(readings, promise=promise, clamp_kwh=50, min_households=10).table)

import agedp

readings = agedp.read("input/*.csv")
promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=182.5, accept=["useless"])
released = agedp.release(readings, promise=promise, clamp_kwh=50, min_households=10)

folder = released.save("release")
agedp.verify("release")
print(folder.statement["figures"])

import agedp

readings = agedp.read("input/*.csv")
promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=182.5, accept=["useless"])
terms = {"promise": promise, "clamp_kwh": 50, "min_households": 10, "ledger": "sqlite:///ledger.sqlite"}

first = agedp.release(readings, **terms)
again = agedp.release(readings, **terms)  # nothing is drawn twice
print(first.table.equals(again.table), first.ledger.head())

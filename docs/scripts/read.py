import agedp

readings = agedp.read("input/*.csv")

print(readings.groupby("household_id")["energy_wh"].describe())
print(readings.attrs["inferred"], readings.attrs["rows"])

import agedp

readings = agedp.read("input/*.csv", dataset="london")

print(readings.groupby("household_id")["energy_wh"].describe())
print(readings.attrs["rows"])

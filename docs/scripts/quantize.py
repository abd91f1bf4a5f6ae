import agedp

readings = agedp.read("input/*.csv")
states = agedp.quantize(readings, states=12, edges="quantile")

print(states.edges)
print(states.frame["state"].value_counts())

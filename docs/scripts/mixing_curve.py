import agedp

readings = agedp.read("input/*.csv")
chains = agedp.estimate(agedp.quantize(readings))

print(chains.total_variation(ages_days=[1, 7, 28]).quantile([0.5, 1]))
chains.plot().figure.savefig("mixing.png")

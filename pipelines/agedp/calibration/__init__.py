"""Parts of a calibration: the leakage bound of the population, and the empirical memory of the households."""

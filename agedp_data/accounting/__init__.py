"""Leakage of Markov kernels and the accounting of privacy losses: ageing, composition, temporal leakage."""

"""Households as Markov chains: states, transitions, mixing, and the public leakage bound."""

"""Households as Markov chains: states, transitions, mixing and goodness of fit."""
